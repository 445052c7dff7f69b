# SPDX-License-Identifier: MIT
"""Native memory that a Java program keeps, from lines that it knows: exact at rate 1, inside the intervals at others."""
import glob
import itertools
import re
import subprocess

from harness import PATIENCE, Session, Victim, case, check_receipt, log
from java_walks import TARGETS, include_of
from procfs import Skip
from reports import analyze, stacks_with, sum_of

# The sessions depend on the time, so no seed fixes their result. A case asks for some twelve intervals: together they miss with 2e-6 at most.
SURE = ("--confidence", "99.99999")
# The native methods below the lines, whose code calls malloc. The JVM itself does so, too, for as little as a frame's handles.
LARGE = ("--size", "1k..1g")
TAKERS = {"JavaAmounts.direct": "Unsafe.allocateMemory0", "JavaAmounts.library": "JavaAmounts.take", "JavaAmounts.deflater": "Deflater.init",
          "JavaAmounts.inflater": "Inflater.init", "JavaAmounts.zip": "Inflater.init", "JavaArena.arena": "Unsafe.allocateMemory0"}
# Of what zlib takes for one object, "zlib technical details" and zconf.h: 256 KiB to deflate; some 7 KiB to inflate, and later a window.
EACH = {"JavaAmounts.deflater": (256 << 10, 272 << 10), "JavaAmounts.inflater": (6 << 10, 12 << 10), "JavaAmounts.zip": (6 << 10, 12 << 10)}


def line_of(function):
    """The one that ends in "takes"."""
    name, method = function.split(".")
    lines = (TARGETS / f"{name}.java").read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if re.search(rf"\bstatic \w+ {method}\(int", line))
    return next(i + 1 for i, line in enumerate(lines) if i > start and line.endswith("// takes"))


def start(context, java, javac, *sources):
    classes, library = context.unique("classes", ""), context.path("amounts.so")
    subprocess.run([javac, "-g", "-d", classes, *(TARGETS / source for source in sources)], check=True, timeout=PATIENCE)
    include = include_of(javac)
    subprocess.run([context.program("gcc"), "-g", "-O2", "-shared", "-fPIC", f"-I{include}", f"-I{include}/linux", "-o", library, TARGETS / "java_amounts.c"],
                   check=True, timeout=PATIENCE)
    return Victim(context, [java, "-Xmx300m", "-cp", classes, "JavaAmounts", library, context.work])


def recorded(context, victim, *options, rate):
    session = Session(context, victim.pid, "--max-overhead", "0", *options, rate=rate)
    victim.send("go")
    truth = victim.truth()
    check_receipt(session.stop(), victim.pid)
    victim.send("end")
    assert victim.process.wait(PATIENCE) == 0, victim.lines.seen[-5:]
    return truth, *(analyze(context, session.dump, "--native", "--top", "0", *LARGE, *SURE, *of) for of in ((), ("--mapped-files",)))


def stacks_at(report, function):
    """Those that take memory at its line."""
    line = line_of(function)
    stacks = [(stack, [(frame["function"], frame["line"]) for frame in stack["frames"] if frame["language"] == "java"]) for stack in report["stacks"]]
    return [stack for stack, frames in stacks if frames and frames[0][0] == TAKERS[function] and (function, line) in frames]


def mapped_at(files, function):
    """Those that map a file at its line, in whatever class of the JDK mmap is called."""
    return [stack for stack in stacks_with(files, function) if any(frame["line"] == line_of(function) for frame in stack["frames"])]


def inside_files(truth, files):
    stacks, true = mapped_at(files, "JavaAmounts.mapped"), truth["JavaAmounts.mapped"]["bytes"]
    low, high = sum_of(stacks, "live_bytes", "low"), sum_of(stacks, "live_bytes", "high")
    log(f"JavaAmounts.mapped: {true} in {low} .. {high}, {len(stacks)} stacks")
    assert low <= true <= high, (true, low, high)


def is_of_the_jvm(stack):
    """It takes memory for itself now and then, below any method."""
    natives = itertools.takewhile(lambda frame: frame["language"] != "java", stack["frames"])
    return any("libjvm" in (frame["module"] or "") for frame in natives)


def exact(truth, report, files):
    """Bytes of each kind of memory. files: what is mapped of these is in a report of its own."""
    found = {}
    for function in TAKERS.keys() & truth.keys():
        stacks, told = stacks_at(report, function), truth[function]
        if TAKERS[function] != "Unsafe.allocateMemory0":  # which the JVM itself runs
            for stack in filter(is_of_the_jvm, stacks):
                log(f"of the JVM: {stack['live_count']}, {stack['live_bytes']}: {[frame['function'] for frame in stack['frames']]}")
            stacks = [stack for stack in stacks if not is_of_the_jvm(stack)]
        count, found[function] = sum_of(stacks, "live_count"), sum_of(stacks, "live_bytes")
        log(f"{function}: {told}, {count} blocks, {found[function]} bytes")
        if told["bytes"]:
            assert (count, found[function]) == (told["objects"], told["bytes"]), (function, count, found[function], told)
            continue
        each, rest = divmod(found[function], told["objects"])
        low, high = EACH[function]
        assert rest == 0 and count % told["objects"] == 0 and low <= each <= high, (function, count, found[function], told)
    for function, method in (("JavaAmounts.mapped", "live"), ("JavaAmounts.unmapped", "allocated")):
        stacks, told = mapped_at(files, function), truth[function]
        log(f"{function}: {told}, {sum_of(stacks, method + '_count')} mappings, {sum_of(stacks, method + '_bytes')} bytes")
        assert sum_of(stacks_with(report, function), "allocated_bytes") < told["bytes"] / told["objects"], "the pages of a file are no memory"
        assert (sum_of(stacks, method + "_count"), sum_of(stacks, method + "_bytes")) == (told["objects"], told["bytes"]), (function, told)
    assert not sum_of(mapped_at(files, "JavaAmounts.unmapped"), "live_bytes"), "they were dropped"
    return found


def inside(found, report):
    for function, true in found.items():
        stacks = stacks_at(report, function)
        low, high = sum_of(stacks, "live_bytes", "low"), sum_of(stacks, "live_bytes", "high")
        log(f"{function}: {true} in {low} .. {high}, {len(stacks)} stacks")
        assert low <= true <= high, (function, true, low, high)


@case()
def java_amounts_are_known_to_their_lines(context):
    """Direct buffers, a JNI library, Deflater, Inflater, ZipFile; and MappedByteBuffer with --mmap, which is none of them."""
    command = (context.program("java"), context.program("javac"), "JavaAmounts.java")
    found = exact(*recorded(context, start(context, *command), "--mmap", rate="1"))
    truth, report, files = recorded(context, start(context, *command), "--mmap", rate="64k")
    assert all(not report["trust"][figure]["reasons"] for figure in ("live_bytes", "allocated_bytes")), report["trust"]  # libjvm's own munmap is seen, too
    assert all(truth[function]["bytes"] in (0, true) for function, true in found.items()), (truth, found)
    inside(found, report)
    inside_files(truth, files)


def newer_jdk(context):
    """One that has java.lang.foreign."""
    for java in (context.program("java"), *sorted(glob.glob("/usr/lib/jvm/*/bin/java"))):
        said = subprocess.run([java, "-version"], stderr=subprocess.PIPE, text=True, check=False, timeout=PATIENCE).stderr
        release = re.search(r'version "(\d+)', said)
        if release and int(release[1]) >= 22:
            return java, f"{java}c"
    raise Skip("there is no JDK 22 or later")


@case()
def java_arenas_are_known_to_their_lines(context):
    """java.lang.foreign.Arena of a later JDK, beside all the other kinds."""
    command = (*newer_jdk(context), "JavaAmounts.java", "JavaArena.java")
    found = exact(*recorded(context, start(context, *command), "--mmap", rate="1"))
    assert "JavaArena.arena" in found, found
    truth, report, files = recorded(context, start(context, *command), "--mmap", rate="64k")
    inside(found, report)
    inside_files(truth, files)
