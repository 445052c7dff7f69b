# SPDX-License-Identifier: MIT
"""--when: memattach waits until the memory of a process meets a condition, then attaches; until then it touches nothing."""
import contextlib
import os
import re
import signal
import time

from harness import Session, Victim, case, check_receipt, run_memattach
from procfs import PATIENCE, Skip, read_text
from reports import analyze, stacks_with
from snapshot import Snapshot, check_same


def waiting(context, victim, *conditions):
    """A memattach that waits, with a look at the process before and during that."""
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid, *(word for condition in conditions for word in ("--when", condition)), wait=False)
    line = session.lines.wait(rf"^waiting for {re.escape(' or '.join(conditions))} of {victim.pid} ")
    check_same(before, Snapshot(victim.pid))
    assert not os.path.exists(session.dump)
    return session, line


@case(sanitized=True)
def when_memory_grows(context):
    """It attaches when one of several conditions holds, says which."""
    victim = Victim(context, "known_heap")
    session, line = waiting(context, victim, "rss>9G", "growth>20M/10m", "growth>9G/1m")
    assert re.search(r"; now rss is [0-9.]+ [KM]iB$", line), line
    victim.send("go")
    victim.truth()
    held = session.lines.wait(rf"^growth>20M/10m: |attached to {victim.pid}\b")
    assert re.search(r"^growth>20M/10m: private memory grew by [0-9.]+ MiB within [0-9.]+ s$", held), held
    assert 20 < float(held.split()[5]) < 40, held
    session.lines.wait(rf"attached to {victim.pid}\b")
    victim.send("free")
    victim.wait("^FREED")
    check_receipt(session.stop(), victim.pid)
    assert analyze(context, session.dump)["target"]["ended"] == "detached"
    victim.finish_by_stdin()


@case()
def when_it_holds_already(context):
    """A condition that holds at the start is no reason to wait; the session then has its --duration, and ends by itself."""
    victim = Victim(context, "known_heap")
    victim.send("go")
    victim.truth()
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid, "--when", "private>20M", "-d", "300ms")
    check_receipt(session.end(), victim.pid)
    assert re.search(r"^private>20M: private memory is [0-9.]+ MiB$", session.said(), re.M) and "waiting" not in session.said(), session.said()
    check_same(before, Snapshot(victim.pid))
    victim.finish_by_stdin()


@case()
def when_it_never_holds(context):
    """A signal ends the waiting, and so do --detach and the end of the process: said, status 1, no dump."""
    victim = Victim(context, "known_heap")
    before = Snapshot(victim.pid)
    for number in (signal.SIGINT, signal.SIGTERM):
        session, _ = waiting(context, victim, "private>9G")
        os.kill(session.process.pid, number)
        assert session.end(expected=1) is None and "nothing was changed" in session.said(), session.said()
        check_same(before, Snapshot(victim.pid))
    sessions = [waiting(context, victim, "private>9G")[0] for _ in range(2)]
    result = run_memattach(context, "--detach", "-p", victim.pid)
    assert result.returncode == 0 and "nothing of memattach" not in result.stderr, result
    for session in sessions:
        assert f"memattach, PID {session.process.pid}, which waited to profile {victim.pid} (--when or --every), has ended" in result.stderr, result
        assert session.end(expected=1) is None and "nothing was changed" in session.said(), session.said()
    check_same(before, Snapshot(victim.pid))
    session, _ = waiting(context, victim, "private>9G")
    victim.finish_by_stdin()
    session.end(expected=1)
    assert "known_heap has ended while memattach waited" in session.said(), session.said()
    assert not os.path.exists(session.dump)


@case()
def when_is_refused_early(context):
    """What cannot be attached to, or written, is refused at once and not when the condition holds."""
    victim = Victim(context, "sleeper", "pause")
    taken = context.path("taken")
    with open(taken, "w", encoding="ascii"):
        pass
    result = run_memattach(context, "-p", victim.pid, "--when", "rss>9G", "-o", taken)
    assert result.returncode == 1 and "exists" in result.stderr and "waiting" not in result.stderr, result
    result = run_memattach(context, "-p", victim.pid, "--when", "rss>9G", "--report", context.path("no-form"), patience=20)
    assert result.returncode == 1 and "no-form" in result.stderr and "waiting" not in result.stderr, result
    left = [name for name in os.listdir(context.work) if name not in ("taken", "memattach")]
    assert not left, f"a look ahead has left {left}"
    static = Victim(context, "static_sleeper", "pause")
    result = run_memattach(context, "-p", static.pid, "--when", "rss>9G", patience=20)
    assert result.returncode == 1 and "static" in result.stderr, result
    for wrong in (["rss"], ["growth>1M"], ["rss>1G", "--detach"], ["rss>1"] * 9):
        result = run_memattach(context, "-p", victim.pid, *(f"--when={word}" if word[0] != "-" else word for word in wrong))
        assert result.returncode == 64 and "--when" in result.stderr, result
    static.finish()
    victim.finish()


GROWING = """
import os, time
def plant():
    kept.append(bytearray(100000))
kept = []
while True:
    plant()
    time.sleep(0.02)
"""


@contextlib.contextmanager
def limited_group(limit):
    """A memory cgroup with a limit."""
    for root, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        path = os.path.join(root, f"memattach-test-{os.getpid()}")
        with contextlib.suppress(OSError):
            os.mkdir(path)
            try:
                with open(os.path.join(path, name), "w", encoding="ascii") as file:
                    file.write(str(limit))
                break
            except OSError:
                os.rmdir(path)
    else:
        raise Skip("no memory cgroup with a limit can be made here")
    try:
        yield path
    finally:
        end = time.monotonic() + PATIENCE
        while os.path.exists(path) and time.monotonic() < end:
            with contextlib.suppress(OSError):
                os.rmdir(path)
            time.sleep(0.05)


@case()
def when_a_cgroup_fills_up(context):
    """It attaches on the way up, outlives the OOM kill of the process, and what led to it is in the dump, which says so."""
    if not all(line.split()[1] == "0" for line in read_text("/proc/meminfo").splitlines() if line.startswith("SwapTotal")):
        raise Skip("with swap the kernel may not end a process at the limit")
    with limited_group(64 << 20) as group:
        process = context.start([context.program("/usr/bin/python3"), "-c", GROWING])
        with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(process.pid))
        session = Session(context, process.pid, "--when", "cgroup>30%", wait=False)
        held = session.lines.wait(r"^cgroup>30%: its cgroup uses [0-9.]+ % of its limit$")
        assert 30 <= float(held.split()[4]) < 100, held
        session.lines.wait(rf"attached to {process.pid}\b")
        session.end()
        assert process.wait(PATIENCE) == -signal.SIGKILL
    assert "OOM killer" in session.said(), session.said()
    report = analyze(context, session.dump)
    assert report["target"]["ended"] == "killed" and any("OOM killer" in note["text"] for note in report["notes"]), report["notes"]
    assert stacks_with(report, "plant"), report["stacks"]


@case()
def when_a_cgroup_has_no_limit(context):
    """A condition that can never hold is refused at once."""
    victim = Victim(context, "known_heap")
    result = run_memattach(context, "-p", victim.pid, "--when", "cgroup>90%", "-d", "100ms")
    if "attached to" in result.stderr or "waiting" in result.stderr:
        raise Skip("the tests run in a memory cgroup with a limit")
    assert result.returncode == 1 and "no memory cgroup that the process is in has a limit" in result.stderr, result
    victim.finish_by_stdin()
