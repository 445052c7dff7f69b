# SPDX-License-Identifier: MIT
"""A session with a JVM: its stacks go through Java code to the thread's start."""
import os
import pathlib
import subprocess

from harness import PATIENCE, Session, Victim, case, check_receipt, log
from reports import analyze

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "targets" / "JavaWork.java"
COLLECTORS = ("-XX:+UseG1GC", "-XX:+UseSerialGC")


def session_with(context, *options):
    """A session while Java code works, named by a map for perf; the report, and what memattach said. A JVM's own mappings and
    descriptors change meanwhile, so the receipt alone compares them."""
    java, jcmd = context.program("java"), context.program("jcmd")
    victim = Victim(context, [java, *options, str(PROGRAM)])
    victim_map = f"/tmp/perf-{victim.pid}.map"
    session = Session(context, victim.pid, "-v", "--max-overhead", "0", rate="4k")
    try:
        session.sampled(2000)
        subprocess.run([jcmd, str(victim.pid), "Compiler.perfmap"], check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
        check_receipt(session.stop(), victim.pid)
    finally:
        if os.path.exists(victim_map):
            os.unlink(victim_map)
    victim.send("end")
    assert victim.process.wait(PATIENCE) == 0
    victim.lines.thread.join(PATIENCE)
    assert victim.lines.seen[-1].startswith("OK "), victim.lines.seen[-3:]
    return analyze(context, session.dump), session.said()


@case()
def stacks_go_through_java_code(context):
    """Compiled and interpreted, without frame pointers: fewer than one in a hundred ends early, and callers beyond the Java code are there."""
    for options in [(COLLECTORS[0],), (COLLECTORS[1],), ("-Xint",), ("-XX:-SegmentedCodeCache", "-XX:-TieredCompilation")]:
        report, said = session_with(context, *options)
        assert "stacks go through Java code of HotSpot" in said, said
        counters = report["counters"]
        log(f"{options}: {counters}")
        assert counters["stacks_truncated"] * 100 < counters["samples_taken"], (options, counters)
        through = [stack["frames"] for stack in report["stacks"]
                   if any("Deflater_init" in (frame["function"] or "") for frame in stack["frames"])]
        assert through, report["stacks"][:2]
        for frames in through:
            assert "JavaCalls::call" in str(frames) and frames[-1]["function"] in ("clone3", "clone", "start_thread"), frames
        if options != ("-Xint",):
            assert any("JavaWork" in (frame["function"] or "") for frames in through for frame in frames), through[:2]
