# SPDX-License-Identifier: MIT
"""Sessions with a JVM: its stacks go through Java code to the thread's start, and methods and lines have the names that Java says."""
import os
import pathlib
import subprocess

from harness import PATIENCE, Session, Victim, case, check_receipt, log
from reports import analyze

TARGETS = pathlib.Path(__file__).resolve().parent.parent / "targets"
PROGRAM = TARGETS / "JavaWork.java"
COLLECTORS = ("-XX:+UseG1GC", "-XX:+UseSerialGC")
ALLOCATORS = {"DirectByteBuffer.<init>", "Deflater.<init>", "Inflater.<init>"}


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
    return analyze(context, session.dump, "--native"), session.said()


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
        assert any("JavaWork" in (frame["function"] or "") for frames in through for frame in frames), through[:2]


# ---- names ----

def compiled(context):
    """The folder of the classes of JavaLines."""
    classes = context.path("classes")
    subprocess.run([context.program("javac"), "-g", "-d", classes, TARGETS / "JavaLines.java", TARGETS / "Storm0000.java"], check=True, timeout=PATIENCE)
    return classes


def end(victim):
    victim.send("end")
    assert victim.process.wait(PATIENCE) == 0, victim.lines.seen[-5:]
    victim.lines.thread.join(PATIENCE)
    assert victim.lines.seen[-1].startswith("OK "), victim.lines.seen[-3:]


def java_frames(stack):
    return [frame for frame in stack["frames"] if frame["language"] == "java"]


def own_lines(stack):
    """As JavaLines says them."""
    return "|".join(f"{frame['function']}:{frame['line']}" for frame in java_frames(stack) if frame["file"] == "JavaLines.java")


def gone(report):
    return sum(stack["samples"] for stack in report["stacks"] if any(frame["function"] == "[gone]" for frame in stack["frames"]))


@case()
def java_lines_are_those_that_java_says(context):
    """Of each stack of a buffer, a Deflater or an Inflater the program's own frames are one of the lists that it has printed, line by line."""
    classes = compiled(context)
    for options in [(COLLECTORS[0],), (COLLECTORS[1],), ("-Xint",), ("-XX:-TieredCompilation",), ("-XX:TieredStopAtLevel=1", "-XX:+UseZGC")]:
        victim = Victim(context, [context.program("java"), *options, "-cp", classes, "JavaLines"])
        session = Session(context, victim.pid, "-v", "--max-overhead", "0", rate="4k")
        session.sampled(5000)
        check_receipt(session.stop(), victim.pid)
        end(victim)
        said = {line[6:] for line in victim.lines.seen if line.startswith("STACK ")}
        report = analyze(context, session.dump, "--top", "0")
        asked = [stack for stack in report["stacks"] if ALLOCATORS & {frame["function"] for frame in java_frames(stack)}
                 and not stack["truncated"] and not any(frame["function"] == "[gone]" for frame in stack["frames"])]
        found = {own_lines(stack) for stack in asked}
        log(f"{options}: {len(asked)} stacks, {len(found)} of {len(said)} lists, {report['java']}, {gone(report)} samples with [gone]")
        assert found <= said, (options, sorted(found - said))
        assert len(found) >= 6, (options, found)
        assert report["java"]["version"] >= 11 and report["java"]["samples_complete"] * 100 > report["java"]["samples"] * 97, report["java"]
        assert all(frame["module"] == "java.nio" for frame in report["frames"] if frame["function"] == "DirectByteBuffer.<init>")


@case()
def java_without_a_count_of_unloaded_classes(context):
    """-XX:-UsePerfData: interpreted methods cannot be proved, have no names, and a note says why; compiled ones have."""
    classes = compiled(context)
    victim = Victim(context, [context.program("java"), "-XX:-UsePerfData", "-cp", classes, "JavaLines"])
    session = Session(context, victim.pid, "--max-overhead", "0", rate="4k")
    session.sampled(3000)
    check_receipt(session.stop(), victim.pid)
    end(victim)
    report = analyze(context, session.dump, "--top", "0")
    assert any("UsePerfData" in note["text"] for note in report["notes"]), report["notes"]
    assert gone(report) and any(frame["function"] == "JavaLines.pack" for frame in report["frames"]), report["frames"][:20]
