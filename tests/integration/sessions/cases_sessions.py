# SPDX-License-Identifier: MIT
"""How a session begins and ends: options, signals, deaths on both sides, refusals and exit codes."""
import contextlib
import ctypes
import os
import re
import signal
import stat
import subprocess
import time

from contracts import header_field
from harness import (ABANDONED, DEADLINE, Session, Victim, case, check_receipt, recording, recording_state, run_memattach,
                     run_session)
from procfs import Failure, Maps, PATIENCE, Skip, describe, read_text
from reports import analyze, analyze_text, functions_of, stacks_with, truncated_share
from snapshot import Snapshot, check_same

USAGE = 64


@case()
def ctrl_c(context):
    victim = Victim(context, "alloc_loop")
    session, _ = run_session(context, victim, seconds=0, samples=1)
    assert re.search(rf"attached to {victim.pid} \(alloc_loop\): \d+ functions of glibc [0-9.]+, thread stopped [0-9.]+ ms, "
                     r"sampling one per 64(?:\.0)? KiB while that takes at most 1 % of the CPU time, writing \S+", session.attached), session.attached
    assert analyze(context, session.dump)["target"]["ended"] == "detached"
    victim.finish()


@case()
def detach_from_a_busy_recorder(context):
    """A thread that is nearly always in the recorder: the recording ends before a safe point is looked for, so that one comes."""
    victim = Victim(context, "pair_loop")
    before = Snapshot(victim.pid)
    for _ in range(4):
        session = Session(context, victim.pid, "--max-overhead", "0", rate="1")
        session.sampled(2000)
        check_receipt(session.stop(), victim.pid)
        check_same(before, Snapshot(victim.pid), busy=True)
        report = analyze(context, session.dump)
        assert report["target"]["ended"] == "detached", report["target"]
        assert report["samples"]["taken"] > 1000, report["samples"]
    victim.finish()


@contextlib.contextmanager
def traced(tid):
    """Another tracer has the thread, and lets it run."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(0x4206, tid, None, None):  # PTRACE_SEIZE
        raise Skip(f"PTRACE_SEIZE: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        libc.ptrace(0x4207, tid, None, None)  # PTRACE_INTERRUPT: detaching needs a stop
        os.waitpid(tid, 0x40000000)
        libc.ptrace(17, tid, None, None)  # PTRACE_DETACH


def lease_of(header):
    """lease_stamp and lease_realtime_ns (memattach-dump(5))."""
    return header_field(header, "lease_stamp"), header_field(header, "lease_realtime_ns")


@case()
def killed_then_detach_from_a_busy_recorder(context):
    """The same where memattach was killed: --detach ends the lease of its session, which would have lasted some seconds."""
    victim = Victim(context, "pair_loop")
    before = Snapshot(victim.pid)
    for _ in range(4):
        attached = time.time()
        session = Session(context, victim.pid, "--max-overhead", "0", rate="1")
        session.sampled(2000)
        session.process.kill()
        session.process.wait()
        stamp, until = lease_of(recording(victim.pid))
        assert until > (time.time() + 5) * 1e9, until
        began, saved = time.time(), context.unique("saved", ".dump")
        result = run_memattach(context, "--detach", "-p", str(victim.pid), "-o", saved)
        assert result.returncode == 0 and saved in result.stderr, result
        check_same(before, Snapshot(victim.pid), busy=True)
        with open(saved, "rb") as file:
            ended_stamp, ended = lease_of(file.read(4096))
        assert 1 < ended_stamp < stamp and began * 1e9 <= ended <= time.time() * 1e9, (stamp, until, ended_stamp, ended)
        report = analyze(context, saved)
        assert report["target"]["ended"] == "abandoned", report["target"]
        assert 0 < report["target"]["duration_seconds"] <= ended / 1e9 - attached, (report["target"], attached, ended)
        assert report["samples"]["taken"] > 1000, report["samples"]
    victim.finish()


@case()
def sigterm(context):
    victim = Victim(context, "alloc_loop", "calm")
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid)
    check_receipt(session.stop(signal.SIGTERM), victim.pid)
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.finish()


@case()
def duration(context):
    """--duration ends the session by itself."""
    victim = Victim(context, "alloc_loop", "calm")
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid, "--duration", "1.5s")
    check_receipt(session.end(), victim.pid)
    check_same(before, Snapshot(victim.pid), busy=True)
    report = analyze(context, session.dump)
    assert report["target"]["ended"] == "detached", report["target"]
    assert report["target"]["duration_seconds"] >= 1.4, report["target"]
    victim.finish()


@case(sanitized=True)
def unwind_cache(context):
    """Unwind tables are kept for the next session; damaged ones do no harm; --no-cache leaves no trace."""
    folder = os.path.join(os.environ["XDG_CACHE_HOME"], "memattach")
    victim = Victim(context, "alloc_loop", "calm")

    def files():
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return {name: os.stat(os.path.join(folder, name)) for name in names if ".unwind" in name}  # not those of memanalyze

    def whole_stacks(*arguments):
        session, _ = run_session(context, victim, *arguments, seconds=0.3, rate="4k")
        report = analyze(context, session.dump)
        assert report["stacks"] and truncated_share(report) < 0.01, report["stacks"][:3]
        return {tuple(functions_of(stack)) for stack in report["stacks"]}

    first = whole_stacks("--no-cache")
    assert not files(), files()
    assert whole_stacks() & first
    kept = files()
    assert kept and all(stat.S_IMODE(s.st_mode) == 0o600 and s.st_size > 0 for s in kept.values()), kept
    assert whole_stacks() & first
    assert {name: s.st_ino for name, s in files().items()} == {name: s.st_ino for name, s in kept.items()}, "written again"
    for i, name in enumerate(kept):
        with open(os.path.join(folder, name), "r+b") as f:
            if i % 2:
                f.truncate(kept[name].st_size // 2)
            else:
                f.seek(60)
                f.write(b"\xff" * 64)
    assert whole_stacks() & first
    for name, s in files().items():
        assert s.st_size == kept[name].st_size and s.st_ino != kept[name].st_ino, f"{name} was not written anew"
    victim.finish()


@case(sanitized=True)
def detach_from_elsewhere(context):
    """memattach --detach ends the session of another memattach, which then ends with 0."""
    victim = Victim(context, "alloc_loop")
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid)
    result = run_memattach(context, "--detach", "-p", str(victim.pid))
    assert result.returncode == 0 and "the memattach that ran the session has detached" in result.stderr, result
    check_receipt(session.end(), victim.pid)
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.finish()


@case()
def second_session_is_refused(context):
    """One session at a time: the second memattach says so, changes nothing, ends with 1."""
    victim = Victim(context, "alloc_loop", "calm")
    session = Session(context, victim.pid)
    before = Snapshot(victim.pid)
    result = run_memattach(context, "-p", str(victim.pid), "-o", context.path("second.dump"))
    assert result.returncode == 1, result
    assert str(session.process.pid) in result.stderr or "session" in result.stderr, result.stderr
    check_same(before, Snapshot(victim.pid), busy=True)
    check_receipt(session.stop(), victim.pid)
    victim.finish()


@case(sanitized=True)
def memattach_killed_then_detach(context):
    """SIGKILL of memattach: the target goes on with its hooks; --detach finishes what was left."""
    victim = Victim(context, "alloc_loop")
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid)
    session.sampled(20)
    session.process.kill()
    session.process.wait()
    victim.rounds_go_on()
    victim.check_alive()
    report = analyze(context, session.dump)
    assert report["target"]["ended"] in ("running", "abandoned"), report["target"]
    saved = context.path("saved.dump")
    result = run_memattach(context, "--detach", "-p", str(victim.pid), "-o", saved)
    assert result.returncode == 0, result
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.rounds_go_on()
    report = analyze(context, saved)
    assert stacks_with(report, "loop") and report["target"]["ended"] == "abandoned", report["target"]
    nothing = run_memattach(context, "--detach", "-p", str(victim.pid))
    assert nothing.returncode == 0 and "nothing" in nothing.stderr, nothing
    victim.finish()


@case()
def recording_stops_when_the_lease_runs_out(context):
    """A killed memattach renews nothing: the payload stops recording by itself, and says so in the dump; the hooks stay harmless, and a
    --detach finishes."""
    victim = Victim(context, "alloc_loop", "calm")
    run_session(context, victim, seconds=0, samples=1)  # what the first one of a process changes by itself
    snapshot = Snapshot(victim.pid)
    began = time.monotonic()
    session = Session(context, victim.pid)
    session.process.kill()
    session.process.wait()
    lived = time.monotonic() - began
    end = time.monotonic() + PATIENCE
    while recording_state(victim.pid) != ABANDONED:
        if time.monotonic() > end:
            raise Failure(f"still recording {PATIENCE} s after the death of memattach")
        time.sleep(0.2)
    before = recording(victim.pid)
    time.sleep(1)
    assert recording(victim.pid) == before, "it records without a lease"
    victim.rounds_go_on()
    saved = context.path("saved.dump")
    result = run_memattach(context, "--detach", "-p", str(victim.pid), "-o", saved)
    assert result.returncode == 0, result
    # It has recorded as long as the lease, and what memattach lived: the last sample tells. That comes in the lease's second half at the latest.
    target = analyze(context, saved, "--leaks")["target"]
    assert target["ended"] == "abandoned" and target["duration_is_least"] is True and 5 < target["duration_seconds"] < 11 + lived, target
    assert "recorded for at least" in analyze_text(context, saved, "--verbose")
    check_same(snapshot, Snapshot(victim.pid), busy=True)
    victim.finish()


def outlive_lease(session, pid):
    """Stops memattach for longer than its lease."""
    session.process.send_signal(signal.SIGSTOP)
    end = time.monotonic() + PATIENCE
    while recording_state(pid) != ABANDONED:
        if time.monotonic() > end:
            raise Failure(f"still recording {PATIENCE} s after memattach was stopped")
        time.sleep(0.2)


def check_gap(context, session, began):
    """How much of the time is not recorded: memattach and the reports say it alike, and what is recorded ends with the lease."""
    gap = re.search(r"nothing is recorded of the last ([0-9.]+) s of ([0-9.]+) s: memattach was held up", session.said())
    assert gap, session.said()
    missing, lasted = map(float, gap.groups())
    report = analyze(context, session.dump)
    target = report["target"]
    assert gap.group() in " ".join(note["text"] for note in report["notes"]), report["notes"]
    assert gap.group() in " ".join(analyze_text(context, session.dump).split())
    assert 0 < missing and 9.5 < lasted - missing and lasted < time.monotonic() - began + 0.1, (missing, lasted)
    assert abs(target["duration_seconds"] - (lasted - missing)) < 0.2, (target, missing, lasted)
    return target


def held_up(context):
    """A session whose memattach stands still for longer than its lease; with its victim, and when it began."""
    victim = Victim(context, "alloc_loop", "calm")
    began = time.monotonic()
    session = Session(context, victim.pid)
    outlive_lease(session, victim.pid)
    time.sleep(1)
    return victim, session, began


@case()
def recording_that_stopped_is_told(context):
    """memattach was held up for longer than its lease and then detaches as always: the dump says that it does not have all."""
    victim, session, began = held_up(context)
    session.process.send_signal(signal.SIGCONT)
    check_receipt(session.stop(), victim.pid)
    target = check_gap(context, session, began)
    assert target["ended"] == "abandoned" and target["duration_is_least"] is True, target
    victim.finish()


@case()
def recording_that_stopped_before_the_target_is_told(context):
    """The same where the target ends before memattach goes on."""
    victim, session, began = held_up(context)
    victim.finish()
    session.process.send_signal(signal.SIGCONT)
    session.end()
    assert check_gap(context, session, began)["ended"] == "exited"


@case()
def attach_that_takes_longer_than_the_lease(context):
    """A thread has another tracer when the payload is there already: the recording begins when that has gone, and has not ended before."""
    victim = Victim(context, "named_threads")
    other = max(tid for tid in map(int, os.listdir(f"/proc/{victim.pid}/task")) if tid != victim.pid)
    with traced(other):
        session = Session(context, victim.pid, "--max-overhead", "off", rate="1", wait=False)
        end = time.monotonic() + PATIENCE
        while "memfd:memattach-dump" not in "".join(Maps(victim.pid).text()):
            assert time.monotonic() < end and session.process.poll() is None, session.said()
            time.sleep(0.05)
        time.sleep(11)  # the lease is good for ten seconds
        assert session.process.poll() is None, session.said()
    session.attached = session.lines.wait(rf"attached to {victim.pid}\b")
    victim.send("go")
    victim.truth()
    check_receipt(session.stop(), victim.pid)
    report = analyze(context, session.dump)
    assert report["target"]["ended"] == "detached" and report["samples"]["taken"] > 5000, (report["target"], report["samples"])
    victim.finish_by_stdin()


@case()
def target_killed(context):
    """SIGKILL of the target: memattach ends with 0 and a line about it; the dump is whole."""
    victim = Victim(context, "alloc_loop", "calm")
    session = Session(context, victim.pid)
    session.sampled(20)
    victim.process.kill()
    victim.process.wait()
    session.end()
    assert re.search(rf"{victim.pid}.*(kill|SIGKILL|signal 9|ended|gone)", session.said()), session.said()
    report = analyze(context, session.dump)
    assert report["target"]["ended"] in ("killed", "exited"), report["target"]
    assert report["samples"]["taken"] > 0 and stacks_with(report, "loop")


@case()
def target_exits(context):
    """The target's own end during the session is no error."""
    victim = Victim(context, "alloc_loop", "calm")
    session = Session(context, victim.pid)
    time.sleep(0.5)
    victim.finish()
    session.end()
    assert re.search(rf"{victim.pid}.*(exit|ended|gone)", session.said()), session.said()
    assert analyze(context, session.dump)["target"]["ended"] == "exited"


@case()
def output_exists(context):
    """An existing file is never written to; nothing is attached."""
    victim = Victim(context, "sleeper", "pause")
    before = Snapshot(victim.pid)
    path = context.path("precious")
    with open(path, "w", encoding="ascii") as file:
        file.write("content")
    result = run_memattach(context, "-p", str(victim.pid), "-o", path)
    assert result.returncode == 1 and path in result.stderr, result
    with open(path, encoding="ascii") as file:
        assert file.read() == "content"
    check_same(before, Snapshot(victim.pid))
    victim.finish()


@case()
def default_output(context):
    """memattach.<comm>.<pid>.<date>-<time>.dump in the current directory, mode 0600."""
    victim = Victim(context, "sleeper", "pause")
    result = run_memattach(context, "-p", str(victim.pid), "-d", "300ms")
    assert result.returncode == 0, result
    names = [n for n in os.listdir(context.work)
             if re.fullmatch(rf"memattach\.sleeper\.{victim.pid}\.\d{{8}}-\d{{6}}\.dump", n)]
    assert len(names) == 1, os.listdir(context.work)
    assert stat.S_IMODE(os.stat(context.path(names[0])).st_mode) == 0o600
    assert names[0] in result.stderr, result.stderr
    victim.finish()


@case()
def quiet(context):
    """-q: not a word when all went well."""
    victim = Victim(context, "sleeper", "pause")
    result = run_memattach(context, "-q", "-p", str(victim.pid), "-d", "300ms", "-o", context.path("q.dump"),
                            "--deadline", DEADLINE)
    assert result.returncode == 0 and result.stderr == "" and result.stdout == "", result
    victim.finish()


@case()
def usage(context):
    """Wrong command lines end with 64, --help and --version with 0 on stdout."""
    wrong = ([], ["-p"], ["-p", "abc"], ["-p", "0"], ["-p", "-1"], ["--no-such-option"], ["-p", "1", "-r", "0"],
             ["-p", "1", "-r", "12q"], ["-p", "1", "-d", "soon"], ["-p", "1", "extra"], ["--detach"])
    for arguments in wrong:
        result = run_memattach(context, *arguments)
        if result.returncode != USAGE or not re.match(r"(\S*/)?memattach: ", result.stderr):
            raise Failure(f"memattach {' '.join(arguments)}: exit {result.returncode}, {result.stderr[:200]!r}")
    for option in ("-h", "--help", "-V", "--version"):
        result = run_memattach(context, option)
        assert result.returncode == 0 and "memattach" in result.stdout and result.stderr == "", (option, result)
    result = subprocess.run([context.memanalyze], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == USAGE, result


@case()
def analyze_refuses_foreign_files(context):
    """memanalyze: 2 for a file that is no dump, 1 for a dump that is cut off, a message for both."""
    def run(path):
        return subprocess.run([context.memanalyze, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE, check=False)
    foreign = run(context.memanalyze)
    assert foreign.returncode == 2 and foreign.stderr.startswith("memanalyze: "), foreign
    assert run(context.path("absent")).returncode == 2
    with open(context.path("begun.dump"), "wb"):
        pass
    begun = run(context.path("begun.dump"))
    assert begun.returncode == 2 and "is empty: a memattach that is about to begin" in begun.stderr, begun
    victim = Victim(context, "known_heap")
    session = Session(context, victim.pid, rate="64k")
    victim.send("go")
    victim.truth()
    session.stop()
    with open(session.dump, "rb") as file:
        content = file.read()
    for size, codes in ((100, (2,)), (16384, (1, 2)), (len(content) // 2, (1,))):
        cut = context.unique("cut", ".dump")
        with open(cut, "wb") as file:
            file.write(content[:size])
        result = run(cut)
        assert result.returncode in codes and result.stderr, (size, result.returncode, result.stderr)
    victim.finish_by_stdin()


# Refusals: exit 1, a reason, and nothing changed.

def refused(context, pid, *words):
    result = run_memattach(context, "-p", str(pid), "-o", context.path("refused.dump"))
    if result.returncode != 1:
        raise Failure(f"exit {result.returncode}, not 1: {result.stderr}")
    if not any(word in result.stderr for word in words):
        raise Failure(f"none of {words} in {result.stderr!r}")
    assert result.stderr.startswith("memattach: ") and len(result.stderr.splitlines()) <= 3, result.stderr
    assert not os.path.exists(context.path("refused.dump")), "a dump was left"


@case()
def refuse_absent_process(context):
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    refused(context, process.pid, "no such process", "No such process", "does not exist", "no process")


@case()
def refuse_own_process(context):
    result = subprocess.run(["/bin/sh", "-c", f"exec '{context.memattach}' -p $$ -o own.dump"], cwd=context.work,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    assert result.returncode == 1 and "itself" in result.stderr, result
    assert not os.path.exists(context.path("own.dump"))


@case()
def refuse_static_program(context):
    victim = Victim(context, "static_sleeper", "pause")
    before = Snapshot(victim.pid)
    refused(context, victim.pid, "static")
    check_same(before, Snapshot(victim.pid))
    victim.finish()


@case()
def refuse_zombie(context):
    victim = Victim(context, "zombie")
    pid = next(int(line.split()[1]) for line in victim.lines.seen if line.startswith("ZOMBIE"))
    refused(context, pid, "zombie")
    victim.finish()


@case()
def refuse_large_pages(context):
    """A kernel with other pages than those of 4 KiB: no session, and no census, which counts pages."""
    victim = Victim(context, "sleeper", "pause")
    for options in (("-d", "1s"), ("--census",), ("--census", "--unreachable"), ("--census", "--every", "1s")):
        result = run_memattach(context, "-p", victim.pid, *options, env=dict(os.environ, LD_PRELOAD=context.tool("large_pages.so")))
        assert result.returncode == 1 and "this kernel has pages of 64 KiB" in result.stderr and not result.stdout, (options, result)
    victim.finish()


@case()
def refuse_kernel_thread(context):
    try:
        with open("/proc/2/comm", encoding="ascii") as file:
            name = file.read().strip()
    except OSError:
        name = ""
    if name != "kthreadd":
        raise Skip("no kernel thread is visible in this pid namespace")
    refused(context, 2, "kernel thread")


@case()
def refuse_traced_process(context):
    """Already traced: the tracer is named."""
    victim = Victim(context, "sleeper", "nanosleep")
    with traced(victim.pid):
        refused(context, victim.pid, str(os.getpid()))
        told = run_memattach(context, "--doctor", victim.pid)
    assert f"PID {os.getpid()} ({read_text('/proc/self/comm').strip()})" in told.stdout, told
    victim.finish()


@case()
def no_safe_moment(context):
    """Within a deadline that is too short nothing happens, or the attach succeeds: never anything between."""
    victim = Victim(context, "alloc_loop")
    for _ in range(10):
        before = Snapshot(victim.pid)
        session = Session(context, victim.pid, "-d", "100ms", deadline="1ms", wait=False)
        code = session.process.wait(PATIENCE)
        assert code in (0, 1), (code, session.said(), describe(victim.pid))
        if code == 1:
            assert not os.path.exists(session.dump), "a dump was left"
        check_same(before, Snapshot(victim.pid), busy=True)
        victim.rounds_go_on()
    victim.finish()
