# SPDX-License-Identifier: MIT
"""What grows with the target: its address space, its memory. Attach, detach and stops do not grow with it. And programs
that have an allocator linked in."""
import os
import signal

from harness import Session, Victim, case, check_receipt, cycle
from procfs import Skip, need_memory


def stopped(session, expected=0):
    session.process.send_signal(signal.SIGINT)
    return session.end(expected=expected)


@case(timeout=120, alone=True)
def reserved_address_space(context):
    """Terabytes that are only reserved are no reason for a long detach."""
    for mode, size in (("closed", "8192"), ("open", "20480")):
        victim = Victim(context, "size", mode, size)
        session = Session(context, victim.pid)
        check_receipt(stopped(session), victim.pid)
        victim.finish_by_stdin()


@case(timeout=120, alone=True)
def a_gigabyte_of_memory(context):
    """No mode of hooking asks how much memory there is, nor does a copied address."""
    need_memory()
    victim = Victim(context, "size", "touched", "1100")
    for options in ((), ("--mmap",), ("--hooks", "got")):
        session = Session(context, victim.pid, *options)
        if options:
            victim.send("hide")
            victim.wait("^HIDDEN")
        check_receipt(stopped(session), victim.pid)
        if options:
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


@case()
def churn_with_static_allocator(context):
    """Threads that allocate all the time, end, and have the allocator take all its locks: none is borrowed while it has one."""
    for name in static_allocators(context):
        victim = Victim(context, name, "churn")
        for _ in range(max(5, context.cycles // 4)):
            cycle(context, victim.pid)
            victim.check_alive()
        victim.rounds_go_on()
        victim.finish()
