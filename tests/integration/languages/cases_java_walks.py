# SPDX-License-Identifier: MIT
"""Each walk through Java code is compared with what the JVM says of the same stack at that moment: a short bench/java/walks."""
from harness import case, log
from java_walks import walks


def check(context, count, *options, **happens):
    tally = walks(context, count, *options, **happens)
    log(f"{options} {happens}: {dict(tally)}")
    assert tally["walks"] == tally["recorded"] == tally["whole"] == count, (tally, tally.examples)
    assert tally["wrong"] == 0 and tally["names"] == tally["lines"] == tally["frames"], (tally, tally.examples)
    return tally


@case()
def java_walks_are_those_of_the_jvm(context):
    """While all compiled code is deoptimised each 15 ms and classes are unloaded, also where C2 alone compiles, so that hardly any of its code is
    not taken back, and in the interpreter alone: no frame is another one."""
    assert check(context, 2000, unloads=True, deoptimised=True)["frames"] > 0
    assert check(context, 1000, "-XX:-TieredCompilation", "-XX:-SegmentedCodeCache", deoptimised=True)["frames"] > 1000
    assert check(context, 1000, "-Xint", "-XX:+UseSerialGC")["stacks"] > 100
