# SPDX-License-Identifier: MIT
"""Targets that lack something: memory that may be locked or mapped, room on a stack. Attached to all the same, or refused with what is missing."""
import os
import re
import time

from harness import Session, UNCHANGED, Victim, case, check_receipt, slow_allocator
from procfs import Failure, Maps, Skip, read_text
from reports import analyze, stacks_with, sum_of
from snapshot import Snapshot, check_same
from harm_refusals import NOBODY, refused


def memory(pid):
    """The sizes of /proc/PID/status, in KiB."""
    return {name: int(value) for name, value in re.findall(r"^(Vm\w+):\s*(\d+) kB", read_text(f"/proc/{pid}/status"), re.M)}


def as_nobody(context, *arguments):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    path = context.target("straits")
    return Victim(context, ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", path], *arguments)


@case()
def locked_memory(context):
    """mlockall(MCL_CURRENT | MCL_FUTURE): nothing of memattach is locked, nor made resident as a whole."""
    victim = Victim(context, "straits", "locked")
    before = memory(victim.pid)
    same = Snapshot(victim.pid)
    for rate in ("64k", "1"):
        session = Session(context, victim.pid, rate=rate)
        time.sleep(0.3)
        during = memory(victim.pid)
        assert during["VmLck"] == before["VmLck"], (before, during)
        assert during["VmSize"] > before["VmSize"] + (1 << 20), during
        assert during["VmRSS"] < before["VmRSS"] + (128 << 10), (before, during)
        victim.rounds_go_on()
        check_receipt(session.stop(), victim.pid)
        check_same(same, Snapshot(victim.pid), busy=True)
        assert memory(victim.pid)["VmLck"] == before["VmLck"], (before, memory(victim.pid))
    victim.finish()


@case()
def refuse_locked_memory_without_room(context):
    """RLIMIT_MEMLOCK would end the loader in the middle of its work, and glibc leaves a part of the library mapped then."""
    victim = as_nobody(context, "locked", "3000")
    refused(context, victim.pid, "its memory is locked (mlockall) and RLIMIT_MEMLOCK leaves it 2.9", "8.00 MiB", UNCHANGED, busy=True)
    victim.finish()


@case()
def short_address_space(context):
    """RLIMIT_AS: a smaller dump, said in a line, and half of the address space stays the program's."""
    victim = Victim(context, "straits", "short", "400")
    before = memory(victim.pid)
    same = Snapshot(victim.pid)
    session = Session(context, victim.pid)
    assert "its address space is limited (RLIMIT_AS) and 400 MiB are left: the dump will not grow beyond" in session.said(), session.said()
    taken = memory(victim.pid)["VmSize"] - before["VmSize"]
    assert taken <= 200 << 10, taken
    victim.rounds_go_on()
    check_receipt(session.stop(), victim.pid)
    check_same(same, Snapshot(victim.pid), busy=True)
    victim.finish()


@case()
def refuse_without_address_space(context):
    victim = Victim(context, "straits", "short", "30")
    refused(context, victim.pid, "RLIMIT_AS", "30.0 MiB are left", "more are needed", UNCHANGED, busy=True)
    victim.finish()


@case()
def short_data(context):
    """RLIMIT_DATA: what the payload takes is known before, and at most half of what is left."""
    victim, idle = Victim(context, "straits", "data", "20"), Victim(context, "sleeper", "pause")
    before = memory(idle.pid)
    for options in ((), ("--hooks", "entry"), ("--loader", "own")):
        session, other = Session(context, victim.pid, *options), Session(context, idle.pid, *options)
        taken = memory(idle.pid)["VmData"] - before["VmData"]
        assert taken <= 4 << 10, taken
        victim.rounds_go_on()
        check_receipt(other.stop(), idle.pid)
        check_receipt(session.stop(), victim.pid)
        victim.rounds_go_on()
    victim.finish()
    idle.finish()


@case()
def refuse_without_data(context):
    victim = Victim(context, "straits", "data", "7")
    refused(context, victim.pid, "RLIMIT_DATA", "MiB are left", "more are needed", UNCHANGED, busy=True)
    victim.rounds_go_on()
    victim.finish()


@case()
def few_mappings(context):
    """vm.max_map_count: the payload's own are at most half of what is left, else nothing is begun."""
    victim = Victim(context, "straits", "maps", "40")
    refused(context, victim.pid, "vm.max_map_count leaves it", "more are needed", UNCHANGED, busy=True)
    victim.finish()
    victim = Victim(context, "straits", "maps", "60")
    same = Snapshot(victim.pid)
    for options in ((), ("--hooks", "entry"), ("--loader", "own")):
        session = Session(context, victim.pid, *options)
        taken = len(Maps(victim.pid).lines) - len(same.maps.lines)
        assert taken <= 24, taken
        check_receipt(session.stop(), victim.pid)
    check_same(same, Snapshot(victim.pid), busy=True)
    victim.finish()


@case()
def full_in_the_middle_of_an_attach(context):
    """No room for a mapping more from some moment of the attach on: it is undone, or succeeds and is undone later."""
    for options in (("--loader", "target"), ("--loader", "own", "--hooks", "entry")):
        for count in (1, 2, 3):
            victim = Victim(context, "straits", "full", str(count))
            before = Maps(victim.pid).file_backed()
            session = Session(context, victim.pid, *options, "-d", "300ms", wait=False)
            session.process.wait()
            assert session.process.returncode in (0, 1), session.said()
            victim.wait("^FULL$")
            assert Maps(victim.pid).file_backed() == before, session.said()
            victim.finish()


@case()
def forked_children_have_no_descriptors_of_ours(context):
    """While the payload comes in by descriptors nobody else forks."""
    victim = Victim(context, "straits", "forks")
    for _ in range(10):
        session = Session(context, victim.pid, "--loader", "own")
        check_receipt(session.stop(), victim.pid)
        victim.check_alive()
    victim.rounds_go_on()
    victim.finish()


@case()
def smallest_stacks(context):
    """Threads with stacks of PTHREAD_STACK_MIN, and a handler on a small signal stack above a guard page, all recorded."""
    victim = Victim(context, "straits", "stacks")
    for rate in ("1", "4k"):
        session = Session(context, victim.pid, rate=rate)
        time.sleep(0.5)
        victim.rounds_go_on()
        check_receipt(session.stop(), victim.pid)
    victim.finish()


@case()
def failing_allocator(context):
    """The allocator below the hooks refuses requests, and threads with the same ids come and go: exact to the byte all the same."""
    victim = Victim(context, "faults", environment=slow_allocator(context, "faulty"))
    session = Session(context, victim.pid, "--max-overhead", "off", "--mmap", rate="1")
    victim.send("go")
    truth = victim.truth()["change_block"]
    check_receipt(session.stop(), victim.pid)
    report = analyze(context, session.dump)
    if report["samples"]["lost"]:
        raise Failure(f"lost: {report['samples']}")
    for figure, true in truth.items():
        if figure == "function":
            continue
        found = sum_of(stacks_with(report, "change_block"), figure)
        if found != true:
            raise Failure(f"{figure}: {found}, not {true}")
    victim.finish_by_stdin()
