# SPDX-License-Identifier: MIT
"""What grows with the target: its address space, its memory. Attach, detach and stops do not grow with it. And programs
that have an allocator linked in."""
import os
import re
import signal

from harness import Session, Victim, case, check_receipt, cycle
from procfs import Skip, need_memory


def stopped(session, expected=0):
    session.process.send_signal(signal.SIGINT)
    return session.end(expected=expected)


@case(timeout=40)
def reserved_address_space(context):
    """Terabytes that are only reserved are passed over, and it is still proven that nobody has copied an address."""
    for mode, size in (("closed", "8192"), ("open", "20480")):
        victim = Victim(context, "size", mode, size)
        session = Session(context, victim.pid)
        check_receipt(stopped(session), victim.pid)
        victim.finish_by_stdin()


@case(timeout=40)
def copied_address_in_a_large_reservation(context):
    """The only copy is in the last page of twenty terabytes."""
    victim = Victim(context, "size", "open", "20480")
    session = Session(context, victim.pid)
    victim.send("hide")
    page = int(victim.wait("^HIDDEN").split()[1], 16)
    receipt = stopped(session, expected=2)
    check_receipt(receipt, victim.pid, clean=False)
    copies = [int(at, 16) for at in re.findall(r"in memory at 0x([0-9a-f]+)", " ".join(receipt["residue"]))]
    assert copies == [page], (hex(page), receipt)
    victim.send("use")
    victim.wait("^USED")
    victim.finish_by_stdin()


@case(timeout=120)
def more_memory_than_is_searched(context):
    """Beyond the limit nothing is proven, so the trampolines stay, which is said, and they work. Entry hooks leave none."""
    need_memory()
    for size in ("600", "1100"):  # the first could grow beyond the limit
        victim = Victim(context, "size", "touched", size)
        session = Session(context, victim.pid)
        check_receipt(stopped(session), victim.pid)
        assert session.receipt["functions"]["hooked"] > 0, session.receipt
        if size == "600":
            victim.finish_by_stdin()
    # The address of mmap, which has no entry hook, may be copied, too: that says nothing of the allocator.
    session = Session(context, victim.pid, "--mmap")
    check_receipt(stopped(session, expected=2), victim.pid, clean=False)
    assert session.receipt["functions"]["hooked"] > 0, session.receipt
    session = Session(context, victim.pid, "--hooks", "got")
    victim.send("hide")
    victim.wait("^HIDDEN")
    receipt = stopped(session, expected=2)
    check_receipt(receipt, victim.pid, clean=False)
    said = " ".join(receipt["residue"])
    assert "not proven that no function pointer to them was copied" in said and "limit 1.00 GiB" in said, receipt
    victim.send("use")
    victim.wait("^USED")
    victim.finish_by_stdin()


STATIC = ("static_jemalloc", "static_jemalloc_stripped", "static_tcmalloc_minimal", "static_tcmalloc_minimal_stripped")


def static_allocators(context):
    """The programs of this kind that were built; some allocators may not be installed."""
    found = [name for name in STATIC if os.path.exists(os.path.join(context.targets, name))]
    if not found:
        raise Skip("no allocator is installed as a static library")
    return found


@case()
def sleeper_with_static_allocator(context):
    """A thread that sleeps outside of the allocator that is linked into its program is at a safe point."""
    for name in static_allocators(context):
        victim = Victim(context, name, "sleep")
        session = Session(context, victim.pid)
        check_receipt(session.stop(), victim.pid)
        victim.rounds_go_on()
        victim.finish()


@case(timeout=600)
def churn_with_static_allocator(context):
    """Threads that allocate all the time, end, and have the allocator take all its locks: none is borrowed while it has one."""
    for name in static_allocators(context):
        victim = Victim(context, name, "churn")
        for _ in range(max(5, context.cycles // 4)):
            cycle(context, victim.pid)
            victim.check_alive()
        victim.rounds_go_on()
        victim.finish()
