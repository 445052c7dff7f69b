# SPDX-License-Identifier: MIT
"""--when: memattach waits until the memory of a process meets a condition, then attaches; until then it touches nothing."""
import os
import re
import signal

from harness import Session, Victim, case, check_receipt, run_memattach
from reports import analyze
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
