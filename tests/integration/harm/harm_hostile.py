# SPDX-License-Identifier: MIT
"""A target that is out to harm memattach, or others through it. It may harm itself: nobody else, nothing for ever, and memattach says what it met."""
import collections
import os
import re
import signal
import subprocess
import time

from harness import Session, Victim, case, log, run_memattach
from procfs import Failure, PATIENCE, Skip, describe, read_text, tasks_of
from snapshot import State, remains, settle

SOON = 60  # seconds; memattach promises one or a few, on a machine that has time


def switches(pid):
    return re.findall(r"ctxt_switches:\s*(\d+)", read_text(f"/proc/{pid}/status"))


@case()
def stub_that_names_somebody_elses_thread(context):
    """Believed, that thread would be stopped."""
    other = Victim(context, "sleeper", "pause")
    victim = Victim(context, "hostile", "stub", str(other.pid))
    while describe(other.pid).find(" S ") < 0:  # it is on its way into pause()
        time.sleep(0.01)
    before = switches(other.pid)
    run_memattach(context, "-p", victim.pid, "-d", "50ms", "-o", context.unique("stub", ".dump"))
    run_memattach(context, "--detach", "-p", victim.pid)
    assert switches(other.pid) == before, f"{before} became {switches(other.pid)}"
    other.finish()
    victim.finish()


@case()
def forged_frames_of_a_stub(context):
    """No frame is written over the stub that is to use it, nor over what is used; the session begins with another one, and all of it ends."""
    for place in ("code", "data", "main", "beyond", "none"):
        victim = Victim(context, "forged_stub", place)
        session = Session(context, victim.pid)
        session.sampled()
        session.stop()
        assert not remains(victim.pid), place
        victim.finish()


@case()
def stub_that_names_a_thread_of_its_own(context):
    """It says that the thread has not left: such a program is refused, in time."""
    victim = Victim(context, "hostile", "stub", "0")
    start = time.monotonic()
    result = run_memattach(context, "-p", victim.pid, "-d", "50ms", "-o", context.unique("stub", ".dump"))
    assert result.returncode == 1 and "still runs the last steps of an earlier memattach" in result.stderr, result
    log(f"refused after {time.monotonic() - start:.1f} s")
    victim.rounds_go_on()
    victim.finish()


@case()
def stub_that_comes_back(context):
    """What memattach clears is written again, for ever."""
    victim = Victim(context, "hostile", "stub_again")
    result = run_memattach(context, "--detach", "-p", victim.pid)
    assert result.returncode in (0, 2), result
    victim.rounds_go_on()
    victim.finish()


@case()
def kept_descriptors_allow_nothing(context):
    """The program keeps each descriptor that it has while dlopen runs. It may write into the dump, which it maps writable, but not change its size."""
    victim = Victim(context, "hostile", "grab")
    session = Session(context, victim.pid)
    victim.send("try")
    victim.wait("^DONE$")
    kept = [line.split()[1] for line in victim.lines.seen if line.startswith("KEPT ")]
    for name in ("/memfd:memattach-payload", "/memfd:memattach-tables"):
        assert name in kept, f"{name} was not kept: {kept}"
    wrong = [line for line in victim.lines.seen if re.match("ALLOWED /memfd:memattach-(payload|tables)", line)
             or re.match("ALLOWED /memfd:memattach-dump.*(truncate|fallocate|behind)", line)]
    assert not wrong, wrong
    os.kill(session.process.pid, signal.SIGINT)
    session.process.wait(PATIENCE)
    victim.finish()


@case()
def pair_that_leads_elsewhere(context):
    """The numbers that memattach reads are replaced before it does: of one that leads to another process."""
    victim = Victim(context, "hostile", "pair")
    for _ in range(30):
        result = run_memattach(context, "-p", victim.pid, "-d", "20ms", "-o", context.unique("pair", ".dump"))
        victim.check_alive()
        if "was replaced by another one" in result.stderr:
            assert result.returncode == 1, result
            break
    else:
        raise Skip("the victim's thread never came between the call and memattach; unit test_borrowed_pair needs no race")
    victim.rounds_go_on()
    victim.finish()


@case()
def flooded_channel(context):
    victim = Victim(context, "hostile", "flood")
    start = time.monotonic()
    for _ in range(3):
        result = run_memattach(context, "-p", victim.pid, "-d", "50ms", "-o", context.unique("flood", ".dump"))
        if result.returncode not in (0, 1, 2):
            raise Failure(f"{result}")
    took = time.monotonic() - start
    if victim.process.poll() is None:  # it may have harmed itself
        os.kill(victim.pid, signal.SIGUSR1)
        log(victim.wait("^SENT"))
    log(f"{took:.1f} s, the last one: {result.returncode} {result.stderr.splitlines()[-1:]}")


def fill(context, mode, *arguments):
    victim = Victim(context, "hostile", mode)
    session = Session(context, victim.pid, *arguments)
    victim.send("fill")
    victim.wait("^FILLED$")
    return victim, session


@case(sanitized=True)
def scribbling_target(context):
    """Random words over all that memattach has written into it, while it attaches and detaches; the target may die of it."""
    said = collections.Counter()
    for seed in range(10):
        victim = Victim(context, "hostile", "scribble", str(seed))
        for arguments in (("-p", victim.pid, "-d", "60ms", "-o", context.unique("scribble", ".dump")), ("--detach", "-p", victim.pid)):
            result = run_memattach(context, *arguments, errors="replace")
            said[result.returncode] += 1
            if result.returncode not in (0, 1, 2, 3) or not result.stderr or "Sanitizer" in result.stderr or "runtime error" in result.stderr:
                raise Failure(f"seed {seed}: {result}")
        victim.process.kill()
    log(f"exit statuses {dict(said)}")


@case()
def list_of_entries_is_overwritten(context):
    """Each of 32768 entries looks like another tool's hook: that is neither searched for ever nor told in so many lines. The true GOT entries stay, and so do the trampolines."""
    victim, session = fill(context, "slots", "--hooks", "got")
    os.kill(session.process.pid, signal.SIGINT)
    receipt = session.end(expected=2)
    assert len(receipt["residue"]) < 50, len(receipt["residue"])
    victim.finish()


@case()
def session_block_is_overwritten(context):
    """No execve, and no end of the session: the payload is still there, which is said."""
    victim, session = fill(context, "block", "-d", "3s")
    receipt = session.end(expected=2)
    assert any("has written over it" in line for line in receipt["residue"]), receipt
    victim.finish()


def blocked(process):
    """Does a thread of it stand in a call on the memory of another process?"""
    return any(read_text(f"/proc/{process.pid}/task/{tid}/syscall").split()[:1] in (["310"], ["17"]) for tid in tasks_of(process.pid))


def wait_until_blocked(process):
    end = time.monotonic() + PATIENCE
    looks = 0
    while looks < 20:
        looks = looks + 1 if blocked(process) else 0
        if process.poll() is not None or time.monotonic() > end:
            raise Failure("memattach did not block on memory that cannot be read")
        time.sleep(0.01)


def start_blocked(context, mode):
    victim = Victim(context, "hostile", mode)
    process = context.start([context.memattach, "-p", str(victim.pid), "-o", context.unique("fault", ".dump")], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until_blocked(process)
    return victim, process


def ended_by_itself(process, start):
    try:
        _, said = process.communicate(timeout=SOON)
    except subprocess.TimeoutExpired:
        raise Failure(f"memattach hangs: {describe(process.pid)}") from None
    log(f"ended after {time.monotonic() - start:.1f} s")
    assert process.returncode == -signal.SIGKILL and "finish with memattach --detach" in said, (process.returncode, said)


@case()
def interrupt_ends_a_read_that_does_not(context):
    """Memory under userfaultfd, and nobody is held: Ctrl-C ends memattach."""
    victim, process = start_blocked(context, "fault_sleep")
    time.sleep(1)
    assert process.poll() is None and blocked(process)
    os.kill(process.pid, signal.SIGINT)
    ended_by_itself(process, time.monotonic())
    victim.rounds_go_on()
    victim.finish()


@case()
def nobody_is_held_for_a_read_that_does_not_end(context):
    """The same while a thread is held: memattach ends without being asked to."""
    victim, process = start_blocked(context, "fault_spin")
    ended_by_itself(process, time.monotonic())
    assert "tracer 0" in describe(victim.pid), describe(victim.pid)
    victim.rounds_go_on()
    victim.finish()


def lose(victim):
    victim.send("lose")
    victim.wait("^LOST$")


def say_until_ended(process, signals):
    """So many signals, each when the one before had time to have an effect."""
    for _ in range(signals):
        time.sleep(1)
        assert process.poll() is None, "it ended too soon"
        os.kill(process.pid, signal.SIGINT)
    try:
        return process.wait(SOON)
    except subprocess.TimeoutExpired:
        raise Failure(f"memattach hangs: {describe(process.pid)}") from None


@case()
def interrupt_ends_the_search_for_a_thread(context):
    """Nothing is touched yet, and the deadline is far."""
    victim = Victim(context, "hostile", "lost")
    lose(victim)
    session = Session(context, victim.pid, deadline="120s", wait=False)
    assert say_until_ended(session.process, 1) == 1
    session.lines.wait("interrupted; nothing was changed")
    victim.finish()


@case()
def interrupt_undoes_an_attach(context):
    """It comes while the thread is in dlopen: what was loaded is taken out again."""
    victim = Victim(context, "hostile", "slow")
    before = State(victim.pid)
    session = Session(context, victim.pid, wait=False)
    victim.wait("^OPENING$")
    os.kill(session.process.pid, signal.SIGINT)
    session.end(expected=1)
    assert "interrupted" in session.said() and not os.path.exists(session.dump), session.said()
    settle(before)
    assert not remains(victim.pid), remains(victim.pid)
    victim.rounds_go_on()
    victim.finish()


@case()
def second_interrupt_gives_up_a_detach(context):
    """The first one asks for the end of the session; the detach waits for a thread; the second one ends it. A later one finishes."""
    victim = Victim(context, "hostile", "lost")
    session = Session(context, victim.pid, deadline="120s")
    lose(victim)
    assert say_until_ended(session.process, 2) == 2
    session.lines.wait("finish with memattach --detach")
    detach = context.start([context.memattach, "--detach", "-p", str(victim.pid), "--deadline", "120s"], stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert say_until_ended(detach, 2) == 2
    victim.finish()
