# SPDX-License-Identifier: MIT
"""Which threads are borrowed and stopped, and which are not (label harm)."""

import os
import re
import signal
import threading

from harness import UNCHANGED, Victim, case, cycle, run_memattach
from procfs import PATIENCE
from snapshot import State, settle
from harm_refusals import traced_victim


def refused(context, victim, reason):
    before = State(victim.pid)
    result = run_memattach(context, "-p", victim.pid, "-d", "10ms", "-o", context.path("d.dump"), "--deadline", "300ms")
    assert result.returncode == 1 and re.search(reason, result.stderr) and UNCHANGED in result.stderr, result
    assert not os.path.exists(context.path("d.dump"))
    settle(before)
    victim.rounds_go_on()


@case()
def threads_that_the_c_library_does_not_know(context):
    """Made by clone(2), with a thread pointer of their own, none, or another thread's: they sleep, the only other one is busy. None is borrowed."""
    victim = Victim(context, "odd_threads", "raw")
    for _ in range(8):
        cycle(context, victim.pid)
    victim.finish()


@case()
def refuse_dispatched_system_calls(context):
    """Under syscall user dispatch (Wine) system calls of ours would be signals."""
    victim = Victim(context, "odd_threads", "dispatch")
    for _ in range(3):
        refused(context, victim, "syscall user dispatch")
    victim.finish()


@case()
def thread_in_32_bit_code(context):
    """Most of the time: then it is not borrowed. In its other moments it may be; if none comes for the detach, another one finds one."""
    victim = Victim(context, "odd_threads", "compat")
    for number in range(3):
        result = run_memattach(context, "-p", victim.pid, "-d", "10ms", "-o", context.path(f"{number}.dump"), "--deadline", "300ms")
        said = "is in 32-bit code" in result.stderr
        assert result.returncode == 0 or result.returncode == 1 and said and UNCHANGED in result.stderr or result.returncode == 2 and said, result
        if result.returncode == 2:
            result = run_memattach(context, "--detach", "-p", victim.pid, "--deadline", f"{PATIENCE}s", patience=2 * PATIENCE)
            assert result.returncode == 0, result
        victim.rounds_go_on()
    victim.finish()


@case()
def refuse_in_signal_handler(context):
    """The only thread waits in a signal handler."""
    victim = Victim(context, "odd_threads", "handler")
    refused(context, victim, "is in a signal handler")
    victim.finish()


TRANSFERS = ("write", "send", "waitall", "many", "submit")


@case()
def only_thread_in_a_call_that_would_return_less(context):
    """In write, send, recv(MSG_WAITALL), recvmmsg, io_uring_enter nearly all the time: refused, or borrowed in between."""
    for mode in TRANSFERS:
        victim = Victim(context, "transfers", mode, "alone")
        result = run_memattach(context, "-p", victim.pid, "-d", "10ms", "-o", context.path("d.dump"), "--deadline", "300ms")
        assert result.returncode in (0, 2) or "would return early" in result.stderr and UNCHANGED in result.stderr, result
        victim.finish()


@case(alone=True)  # each stop has to come between two calls of a thread that wakes all the time
def calls_that_would_return_less_beside_others(context):
    """The first thread is in such a call nearly all the time, two others sleep: one of those is borrowed, and no stop meets the first, but
    for one in which it came into the call between the look and the stop. Stops that do not look make one result or more short in
    each of the 20 sessions."""
    short = 0
    for mode in TRANSFERS:
        victim = Victim(context, "transfers", mode)
        for _ in range(4):
            cycle(context, victim.pid)
        assert victim.process.poll() is None
        short += sum(line.startswith("WRONG") for line in victim.lines.seen)
        victim.process.kill()
        victim.process.wait()
    assert short <= 5, short


@case()
def random_bytes_are_all_there(context):
    """getrandom of many pages returns less when it is stopped, and is made to begin again."""
    for others in ((), ("alone",)):
        victim = Victim(context, "transfers", "random", *others)
        for _ in range(2):
            cycle(context, victim.pid)
        victim.finish()


@case()
def servers_that_wait_are_borrowed(context):
    """A read from a pipe, recv, accept in which nothing has come start again whole: a program that does nothing else is profiled."""
    for mode in ("read", "recv", "accept"):
        victim = Victim(context, "transfers", mode, "alone")
        for _ in range(2):
            cycle(context, victim.pid)
        victim.check_alive()
        victim.process.kill()
        victim.process.wait()


@case()
def heap_that_is_write_protected(context):
    """A SIGSEGV handler lets pages of the heap be written to, also when the borrowed thread writes to them."""
    victim = Victim(context, "write_protected")
    for _ in range(5):
        cycle(context, victim.pid)
    cycle(context, victim.pid, "--loader", "target")
    victim.finish()


@case()
def tracer_for_a_moment(context):
    """As a debugger that lists the threads, or a LeakSanitizer: it is waited for."""
    victim, tracer = traced_victim(context)
    ending = threading.Timer(0.5, tracer.send_signal, [signal.SIGINT])
    ending.start()
    cycle(context, victim.pid)
    ending.join()
    tracer.wait(PATIENCE)
    victim.finish()
