# SPDX-License-Identifier: MIT
"""What a JVM does at its end, with a debugger, and what its own checks say, is the same during a session."""
import pathlib
import re
import subprocess
import time

from harness import PATIENCE, Session, Victim, case, check_receipt, log
from java_walks import TARGETS
from reports import analyze

CHECKS = ("-Xcheck:jni", "-XX:+UnlockDiagnosticVMOptions", "-XX:+VerifyBeforeGC", "-XX:+VerifyAfterGC")


def compiled(context, *sources):
    classes = context.path("classes")
    subprocess.run([context.program("javac"), "-nowarn", "-g", "-d", classes, *(TARGETS / source for source in sources)], check=True,
                   stderr=subprocess.DEVNULL, timeout=PATIENCE)
    return classes


def start(context, classes, options, *arguments):
    return Victim(context, [context.program("java"), "-Xmx300m", "-XX:MaxDirectMemorySize=2g", *options, "-cp", classes, *arguments])


def ended(victim):
    victim.process.wait(PATIENCE)
    victim.lines.thread.join(PATIENCE)
    return victim.process.returncode


@case()
def java_exits_while_its_threads_allocate(context):
    """System.exit: hooks that allocate run, its status is the one it asked for, and the session ends with it."""
    classes = compiled(context, "JavaMoments.java")
    for _ in range(3):
        victim = start(context, classes, [], "JavaMoments")
        session = Session(context, victim.pid, "--max-overhead", "0", rate="4k")
        session.sampled(2000)
        victim.send("exit")
        assert ended(victim) == 7 and victim.lines.seen[-1] == "OK hook", victim.lines.seen[-5:]
        session.end()
        report = analyze(context, session.dump, "--top", "0")
        assert report["target"]["ended"] == "exited", report["target"]
        assert report["java"]["samples"] > 1000, report["java"]  # names may have gone with it, if it ends before memattach has read them


def crash_report(path):
    """What is no address of an error report: its headings, and the frames of the thread that has crashed."""
    text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    assert text.rstrip().endswith("END."), text[-500:]
    frames = re.search(r"^Native frames:.*?\n\n", text, re.M | re.S)[0]
    return (re.findall(r"^#  (SIG\w+) ", text, re.M), re.findall(r"^---------------  .*", text, re.M), "error occurred during error reporting" in text,
            [re.sub(r"\+0x[0-9a-f]+|@ 0x[0-9a-f]+|0x[0-9a-f]+", "", line).split("[")[0] for line in frames.splitlines() if "Moments" in line or line.startswith("V ")])


def crash(context, classes, session):
    path = context.unique("hs_err", ".log")
    victim = start(context, classes, [f"-XX:ErrorFile={path}", "-XX:-CreateCoredumpOnCrash"], "JavaMoments")
    session = Session(context, victim.pid, "--max-overhead", "0", rate="4k") if session else None
    if session:
        session.sampled(2000)
    victim.send("crash")
    status = ended(victim)
    if session:
        session.process.wait(PATIENCE)
        assert analyze(context, session.dump)["target"]["ended"] in ("killed", "exited")
    return status, crash_report(path)


@case()
def java_that_crashes_reports_it(context):
    """It writes the error report that it writes without a session: the same parts, frames and signal, to its end."""
    classes = compiled(context, "JavaMoments.java")
    alone, within = (crash(context, classes, session) for session in (False, True))
    log(within)
    assert alone == within and alone[1][0] == ["SIGSEGV"], (alone, within)


def checked(context, classes, seconds):
    """What a JVM says that checks itself, without numbers, and for how long it ran; seconds: so long alone, None: with a session."""
    victim = start(context, classes, [*CHECKS, "-XX:+UseSerialGC"], "JavaBusy", f"{classes}/Storm0000.class")
    began = time.monotonic()
    if seconds is None:
        session = Session(context, victim.pid, "--max-overhead", "0", rate="4k")
        session.sampled(5000)
        check_receipt(session.stop(), victim.pid)
    else:
        time.sleep(seconds)
    took = time.monotonic() - began
    victim.send("end")
    assert ended(victim) == 0 and victim.lines.seen[-1].startswith("OK "), victim.lines.seen[-5:]
    return {re.sub(r"0x[0-9a-f]+|\d+", "N", line) for line in victim.lines.seen[:-1]}, took


@case()
def java_checks_of_its_own_are_silent(context):
    """Its checks of JNI calls, and of the heap before and after each collection, say nothing that they do not say alone."""
    classes = compiled(context, "JavaBusy.java", "JavaLines.java", "Storm0000.java")
    within, took = checked(context, classes, None)
    alone, _ = checked(context, classes, took)
    log(f"{took:.0f} s, {len(alone)} kinds of lines alone")
    assert within <= alone, sorted(within - alone)[:5]


@case()
def java_debugger_comes_and_goes(context):
    """jdb attaches during a session, stops it at a breakpoint, looks at all stacks, and leaves."""
    jdb, classes = context.program("jdb"), compiled(context, "JavaLines.java")
    victim = start(context, classes, ["-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0"], "JavaLines")
    port = next(line for line in victim.lines.seen if line.startswith("Listening for transport")).rsplit(" ", 1)[1]
    session = Session(context, victim.pid, "--max-overhead", "0", rate="4k")
    session.sampled(1000)
    debugger = context.start([jdb, "-attach", f"127.0.0.1:{port}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    debugger.stdin.write("stop in JavaLines.pack\n")
    debugger.stdin.flush()
    said = []
    for line in debugger.stdout:
        said.append(line)
        if "Breakpoint hit" in line:
            break
    debugger.stdin.write("where all\nclear JavaLines.pack\ncont\nquit\n")
    debugger.stdin.flush()
    said += debugger.stdout.readlines()
    assert debugger.wait(PATIENCE) == 0 and any("JavaLines.pack (JavaLines.java:" in line for line in said), said
    session.sampled(3000)
    check_receipt(session.stop(), victim.pid)
    victim.send("end")
    assert ended(victim) == 0 and victim.lines.seen[-1].startswith("OK "), victim.lines.seen[-5:]
