# SPDX-License-Identifier: MIT
"""Sessions with a JVM: its stacks go through Java code to the thread's start, and methods and lines have the names that Java says."""
import os
import pathlib
import random
import re
import signal
import subprocess
import time

from harness import Failure, Lines, PATIENCE, Session, Victim, case, check_receipt, log, run_memattach
from procfs import Skip
from reports import analyze

TARGETS = pathlib.Path(__file__).resolve().parents[2] / "targets" / "languages"
PROGRAM = TARGETS / "JavaWork.java"
ZGC = ("-XX:+UnlockExperimentalVMOptions", "-XX:+UseZGC")  # an experiment before JDK 15
COLLECTORS = ("-XX:+UseG1GC", "-XX:+UseSerialGC")
NAMED = "DirectByteBuffer.<init>"  # a method of the JDK that is compiled soon
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
    """The folder of the classes of JavaLines and JavaBusy."""
    classes = context.path("classes")
    subprocess.run([context.program("javac"), "-g", "-d", classes, TARGETS / "JavaLines.java", TARGETS / "JavaBusy.java", TARGETS / "Storm0000.java"], check=True, timeout=PATIENCE)
    return classes


def end(victim):
    victim.send("end")
    assert victim.process.wait(PATIENCE) == 0, victim.lines.seen[-5:]
    victim.lines.thread.join(PATIENCE)
    assert victim.lines.seen[-1].startswith("OK "), victim.lines.seen[-3:]


class BusyJava(Victim):
    """A JVM that compiles, unloads, makes children, and checks what it computes; the options change from one to the next.

    Its buffers are given back by the collector, which comes late where it gets no processor: their limit is one that they do not reach.
    """

    KINDS = ((), ("-XX:+UseSerialGC",), ("-XX:+UseParallelGC", "-Xint"), ("-XX:-TieredCompilation",), ZGC)

    def __init__(self, context):
        classes = compiled(context)
        super().__init__(context, [context.program("java"), "-Xmx300m", "-XX:MaxDirectMemorySize=2g", *random.choice(self.KINDS), "-cp", classes, "JavaBusy", f"{classes}/Storm0000.class"])
        self.name = "java"

    def finish(self):
        end(self)


def java_frames(stack):
    return [frame for frame in stack["frames"] if frame["language"] == "java"]


def own_lines(stack):
    """As JavaLines says them."""
    return "|".join(f"{frame['function']}:{frame['line']}" for frame in java_frames(stack) if frame["file"] == "JavaLines.java")


def gone(report):
    return sum(stack["samples"] for stack in report["stacks"] if any(frame["function"] == "[gone]" for frame in stack["frames"]))


def check_proved_by_code(context, victim, compiles):
    """Compiled code has been looked at if there is any, in whatever heap it lies, behind whatever else."""
    doctor = run_memattach(context, "--doctor", "-p", str(victim.pid))
    places = re.search(r"(\d+) places in (\d+) compiled methods", doctor.stdout + doctor.stderr)
    assert places and (int(places[2]) > 20) == compiles, doctor


@case()
def java_lines_are_those_that_java_says(context):
    """Of each stack of a buffer, a Deflater or an Inflater the program's own frames are one of the lists that it has printed, line by line."""
    classes = compiled(context)
    for options in [(COLLECTORS[0],), (COLLECTORS[1],), ("-Xint",), ("-XX:-TieredCompilation",), ("-XX:TieredStopAtLevel=1", *ZGC)]:
        victim = Victim(context, [context.program("java"), *options, "-cp", classes, "JavaLines"])
        session = Session(context, victim.pid, "-v", "--max-overhead", "0", rate="4k")
        session.sampled(5000)
        check_receipt(session.stop(), victim.pid)
        check_proved_by_code(context, victim, "-Xint" not in options)
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


STORM = re.compile(r"^Storm(\d{4})\.(run|inner|size)(\d{4})$")


def check_storm(report):
    """Each class of the storm asks for buffers of a size of its own. The classes that were seen."""
    classes = set()
    for stack in report["stacks"]:
        names = [match for match in (STORM.match(frame["function"] or "") for frame in java_frames(stack)) if match]
        if not names:
            continue
        numbers = {number for match in names for number in (match[1], match[3])}
        assert len(numbers) == 1, stack
        if re.match(r"Unsafe_AllocateMemory0$|os::malloc\(", stack["frames"][0]["function"] or "") and java_frames(stack)[0]["function"] == "DirectByteBuffer.<init>":
            size = stack["allocated_bytes"]["estimate"] / stack["allocated_count"]["estimate"]
            assert abs(size - 8000 - 8 * int(names[0][1])) < 1, (size, stack)
            classes |= numbers
    return classes


def storm(context, classes, milliseconds, *options, held=0):
    return Victim(context, [context.program("java"), "-Xmx400m", *options, "-cp", classes, "JavaLines", f"{classes}/Storm0000.class", str(milliseconds), str(held)])


def names_of(report):
    return {frame["function"] for frame in report["frames"]}


@case()
def java_classes_that_come_and_go_get_no_other_names(context):
    """Classes of one shape are made and unloaded, some compiled: no buffer has the name of another class, at rate 1. With some time between
    what is left has names, and what stays; without any, there may be none. Beside 20000 other classes memattach looks less often, as that
    takes long."""
    classes = compiled(context)
    for milliseconds, held, *options in [(900, 0, "-XX:+UseSerialGC"), (900, 0, "-Xint", "-XX:+UseG1GC"), (700, 0, *ZGC),
                                         (700, 20000, "-Xint", "-XX:+UseSerialGC"), (0, 0, "-XX:+UseSerialGC"), (0, 0, "-XX:-TieredCompilation")]:
        victim = storm(context, classes, milliseconds, *options, held=held)
        for seconds in (2.0, 4.0, 8.0, 16.0):  # names are looked for each half second; a busy machine gets less far meanwhile
            session = Session(context, victim.pid, "-v", "--max-overhead", "0", rate="1")
            began = time.monotonic()
            session.sampled(200000)
            time.sleep(max(0.0, seconds - (time.monotonic() - began)))
            check_receipt(session.stop(), victim.pid)
            report = analyze(context, session.dump, "--top", "0")
            seen = check_storm(report)
            log(f"{milliseconds} {options}: {len(seen)} classes, {report['java']}, {gone(report)} samples with [gone]")
            if len(seen) >= 8 or not milliseconds or "-Xint" in options:
                break
        else:
            raise Failure(f"{options}: {seen}")
        assert not milliseconds or "JavaLines.storm" in names_of(report), (options, names_of(report))
        end(victim)


@case(timeout=120)
def java_that_ends_while_memattach_is_held_up(context):
    """memattach stands still while classes that it has named are unloaded and others have their place, and the JVM ends before it goes on:
    no buffer has the name of another class."""
    victim = storm(context, compiled(context), 2500, "-Xint", "-XX:+UseSerialGC")
    session = Session(context, victim.pid, "-v", "--max-overhead", "0", rate="1")
    session.sampled(60000)
    time.sleep(0.5)
    session.process.send_signal(signal.SIGSTOP)
    time.sleep(6)
    victim.process.kill()
    session.process.send_signal(signal.SIGCONT)
    session.process.wait(PATIENCE)
    report = analyze(context, session.dump, "--top", "0")
    log(f"{len(check_storm(report))} classes, {report['java']}, {gone(report)} samples with [gone]")
    assert gone(report), report["java"]


@case()
def java_names_outlive_memattach(context):
    """memattach is killed while classes come and go: the compiled code that it has named is in the dump, nothing wrong is, and the JVM goes on."""
    classes = compiled(context)
    victim = storm(context, classes, 700)
    for pause in (0, 0.5, 2, 4, 8):  # the first may come before it has named anything
        session = Session(context, victim.pid, "--max-overhead", "0", rate="1")
        session.sampled(60000)
        time.sleep(pause)
        end_of_waiting = time.monotonic() + PATIENCE * (pause == 8)  # a busy machine needs longer than that for names
        while time.monotonic() < end_of_waiting and NAMED not in names_of(analyze(context, session.dump, "--top", "0")):
            time.sleep(0.5)
        session.process.kill()
        session.process.wait(PATIENCE)
        saved = context.unique("saved", ".dump")
        result = run_memattach(context, "--detach", "-p", str(victim.pid), "-o", saved)
        assert result.returncode == 0, result.stderr
        report = analyze(context, saved, "--top", "0")
        seen = check_storm(report)
        log(f"{len(seen)} classes, {report['java']}, {gone(report)} samples with [gone]")
        named = NAMED in names_of(report)
        if named and pause >= 2:
            break
    assert named
    end(victim)


def has_unnamed(stack):
    """Interpreted frames without names, from before the JVM had a count of unloaded classes: only --native shows them. One is the stub that calls Java."""
    outer = stack["frames"][max(i for i, frame in enumerate(stack["frames"]) if frame["language"] == "java") + 1:]
    return sum(frame["function"] == "[jit]" for frame in outer) > 1


def launched_java(context):
    """memattach starts it; what both said, and the dump. Again if memattach was held up as the JVM ended, since names are taken back then."""
    for _ in range(5):
        dump = context.unique("launched", ".dump")
        process = context.start([context.memattach, "--rate", "4k", "--max-overhead", "0", "-o", dump, "--", context.program("java"), "-cp",
                                 compiled(context), "JavaLines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said, errors = Lines(process.stdout), Lines(process.stderr)
        errors.wait("Java frames of HotSpot .* are recorded from ")
        said.wait("^READY$")
        end_ns = time.monotonic() + PATIENCE
        while time.monotonic() < end_ns:
            if os.path.exists(dump) and analyze(context, dump)["java"] and analyze(context, dump)["java"]["samples"] > 500:
                break
            time.sleep(0.5)
        process.stdin.write("end\n")
        process.stdin.flush()
        assert process.wait(PATIENCE) == 0, errors.seen
        for lines in (said, errors):
            lines.thread.join(PATIENCE)
        if not any("for a second as the JVM ended" in line for line in errors.seen):
            return said.seen, errors.seen, dump
    raise Skip("memattach is held up each time")


@case()
def java_that_is_launched(context):
    """memattach starts it, before there is a JVM: a moment later its frames are recorded, with names."""
    said, errors, dump = launched_java(context)
    stacks = {line[6:] for line in said if line.startswith("STACK ")}
    report = analyze(context, dump, "--top", "0", "--native")
    found = {own_lines(stack) for stack in report["stacks"] if ALLOCATORS & {frame["function"] for frame in java_frames(stack)}
             and not stack["truncated"] and not any(frame["function"] == "[gone]" for frame in stack["frames"]) and not has_unnamed(stack)}
    log(f"{len(found)} of {len(stacks)} lists, {report['java']}, {gone(report)} samples with [gone]; {errors}")
    assert found and found <= stacks, sorted(found - stacks)
    assert any("are recorded from" in note["text"] for note in report["notes"]), report["notes"]


@case()
def java_without_a_count_of_unloaded_classes(context):
    """-XX:-UsePerfData: interpreted methods cannot be proved, have no names, and a note says why; compiled ones have."""
    classes = compiled(context)
    victim = Victim(context, [context.program("java"), "-XX:-UsePerfData", "-cp", classes, "JavaLines"])
    doctor = run_memattach(context, "--doctor", "-p", str(victim.pid))
    assert "methods that the interpreter runs will have no names: it does not count the classes that it unloads" in doctor.stdout + doctor.stderr, doctor
    session = Session(context, victim.pid, "--max-overhead", "0", rate="4k")
    session.sampled(3000)
    check_receipt(session.stop(), victim.pid)
    end(victim)
    report = analyze(context, session.dump, "--top", "0")
    assert any("UsePerfData" in note["text"] for note in report["notes"]), report["notes"]
    assert gone(report) and any(frame["function"] == "JavaLines.pack" for frame in report["frames"]), report["frames"][:20]
