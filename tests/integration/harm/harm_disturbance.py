# SPDX-License-Identifier: MIT
"""No visible disturbance: interrupted calls, registers, signals, restartable sequences, job control, parents."""
import concurrent.futures
import os
import re
import signal
import subprocess
import threading
import time

from harness import DEADLINE, Victim, case, cycle, log, run_memattach
from procfs import Failure, PATIENCE, Skip, describe, tasks_of
from snapshot import Snapshot, State, check_same, remains, settle, wait_until_born

CYCLES = 8  # or more, with --cycles
AT_ONCE = 3 * (os.cpu_count() or 1)  # most of the time of a session is waiting
NAP_MS = 1000
LATE_MS = 500  # half of the time: a call that started anew even once in the middle would be later


class Control:
    """How late the machine wakes a sleeper whom nobody touches: what it adds to the time of the victims' calls, too."""

    STEP_S = 0.02

    def __enter__(self):
        self.stalls = []  # (CLOCK_MONOTONIC ns at the end, ms late)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def run(self):
        while not self.stop.is_set():
            before = time.monotonic_ns()
            time.sleep(self.STEP_S)
            now = time.monotonic_ns()
            late = (now - before) / 1e6 - self.STEP_S * 1000
            if late > 10:
                self.stalls.append((now, late))

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def late_ms(self, start, end):
        return sum(late for at, late in self.stalls if start <= at <= end + 1e9)


def blocked_modes(context, promise):
    listed = subprocess.run([context.target("sleeper"), "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if line.split()[1] == promise]


def check_times(mode, victim, promise, ends, control):
    """Each finished call took as long as promised, but for what the machine was late; early is always wrong."""
    calls = [tuple(map(int, line.split()[1:])) for line in victim.lines.seen if line.startswith("CALL ")]
    for start, end in calls:
        took = (end - start) / 1e6
        if took < NAP_MS - 1:
            raise Failure(f"{mode} returned after {took:.1f} of {NAP_MS} ms")
        last_touch = max([start] + [e for e in ends if e <= end])
        late = took - NAP_MS if promise == "kept" else (end - last_touch) / 1e6 - NAP_MS
        machine = control.late_ms(start, end)
        if late > LATE_MS + machine:
            raise Failure(f"{mode} returned {late:.0f} ms late (took {took:.0f}, an untouched sleeper was {machine:.0f} ms late)")
    return len(calls)


def undisturbed(context, promise):
    def one(mode):
        try:
            victim = Victim(context, "sleeper", mode)
            before = Snapshot(victim.pid)
            ends = []
            for _ in range(max(CYCLES, context.cycles)):
                ends.append(cycle(context, victim.pid))
                victim.check_alive()
            check_same(before, Snapshot(victim.pid))
            if promise != "none":
                victim.wait("^CALL")
            victim.finish()
            if promise != "none" and not check_times(mode, victim, promise, ends, control):
                raise Failure("not one call was finished")
            return None
        except Skip as reason:
            return f"{mode}: skipped: {reason}"
        except Exception as error:
            return f"{mode}: {error}"

    modes = blocked_modes(context, promise)
    with Control() as control, concurrent.futures.ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        results = [result for result in pool.map(one, modes) if result]
    for result in results:
        log(result)
    failures = [result for result in results if ": skipped: " not in result]
    if failures:
        raise Failure(f"{len(failures)} of {len(modes)} kinds:\n  " + "\n  ".join(failures))


@case(alone=True)
def blocked_calls_keep_their_time(context):
    """poll, select, nanosleep, futex …: sessions one after the other, no EINTR, errno as it was, not early, not late."""
    undisturbed(context, "kept")


@case(alone=True)
def blocked_calls_that_start_anew(context):
    """epoll_wait, semtimedop, sigtimedwait, recv with SO_RCVTIMEO, io_getevents: no EINTR, not early; the time may start anew."""
    undisturbed(context, "anew")


@case(alone=True)
def blocked_calls_without_time(context):
    """read, accept, futex, wait4, pause, semop, msgrcv, locks …: sessions one after the other, and they never return."""
    undisturbed(context, "none")


def many(context, name, *arguments, busy=True, compare=True):
    victim = Victim(context, name, *arguments)
    before = Snapshot(victim.pid) if compare else None
    for _ in range(CYCLES):
        cycle(context, victim.pid)
        victim.check_alive()
    if compare:
        check_same(before, Snapshot(victim.pid), busy)
    victim.rounds_go_on()
    victim.finish()
    return victim


@case()
def flags_and_x87_survive(context):
    """Direction flag, arithmetic flags, x87 control word and stack, MXCSR with its sticky bits."""
    many(context, "flags", busy=False)


@case()
def vector_registers_survive(context):
    """xmm, ymm, zmm, mask registers and the red zone."""
    many(context, "vectors", busy=False)


@case()
def restartable_sequences_are_aborted(context):
    """A thread that was stopped in an rseq section is let go, and the kernel aborts the section: none is committed."""
    victim = many(context, "rseq", busy=False)
    aborted, committed = map(int, re.search(r"ABORTED (\d+) COMMITTED (\d+)", "\n".join(victim.lines.seen)).groups())
    assert aborted > 0 and committed > 0, (aborted, committed)


@case()
def signals_come_once_and_in_order(context):
    """Queued real-time signals with numbers, a 1 ms timer, an alternate stack, an ignored SIGTRAP."""
    many(context, "signals")


@case(alone=True)
def signals_are_for_the_first_thread(context):
    """A timer's signals go to the first thread, as without us. It goes before other programs, lest it wait for a processor: who waits may lose one,
    if the next comes meanwhile. Where what a thread had taken as it left its stop was not handed back, one went elsewhere in each second session."""
    victim = Victim(context, "first_thread")
    try:
        for tid in tasks_of(victim.pid):
            os.sched_setscheduler(tid, os.SCHED_RR, os.sched_param(5))
    except PermissionError as error:
        victim.finish()
        raise Skip(f"SCHED_RR: {error.strerror}") from None
    for _ in range(2 * CYCLES):
        cycle(context, victim.pid)
    victim.finish()
    first, others = map(int, re.search(r"FIRST (\d+) OTHERS (\d+)", "\n".join(victim.lines.seen)).groups())
    assert first > CYCLES and others <= 2, (first, others)


@case(alone=True)
def realtime_thread_hogs_a_processor(context):
    """SCHED_FIFO, on one processor, without a pause: the only thread, or one of several that share that processor."""
    processors = sorted(os.sched_getaffinity(0))
    if os.geteuid() != 0 or len(processors) < 2:
        raise Skip("needs CAP_SYS_NICE and a processor besides")
    for name, arguments in (("lives", ("calm",)), ("alloc_loop", ())):
        victim = Victim(context, name, *arguments)
        tids = tasks_of(victim.pid)
        for tid in tids:
            os.sched_setaffinity(tid, processors[-1:])
        wait_until_born(victim.pid)
        before = State(victim.pid)
        try:
            os.sched_setscheduler(tids[-1], os.SCHED_FIFO, os.sched_param(50))
        except PermissionError as error:
            raise Skip(f"SCHED_FIFO: {error.strerror} (a cgroup without real-time share?)") from None
        cycle(context, victim.pid)
        os.sched_setscheduler(tids[-1], os.SCHED_OTHER, os.sched_param(0))
        settle(before)
        victim.rounds_go_on()
        victim.finish()


@case()
def parent_sees_no_stop(context):
    """waitpid with WUNTRACED and WCONTINUED never returns, no SIGCHLD comes."""
    victim = Victim(context, "parent")
    child = int(next(line for line in victim.lines.seen if line.startswith("CHILD")).split()[1])
    for _ in range(CYCLES):
        cycle(context, child)
        victim.check_alive()
    victim.finish()


@case()
def stopped_state_is_kept(context):
    """Sessions on a process in state T: it stays T, its parent is not told again, SIGCONT wakes it."""
    victim = Victim(context, "alloc_loop")
    os.kill(victim.pid, signal.SIGSTOP)
    os.waitpid(victim.pid, os.WUNTRACED)
    before = State(victim.pid)
    for _ in range(CYCLES):
        cycle(context, victim.pid)
        settle(before)
    told = os.waitpid(victim.pid, os.WUNTRACED | os.WCONTINUED | os.WNOHANG)
    assert told == (0, 0), told
    os.kill(victim.pid, signal.SIGCONT)
    victim.rounds_go_on()
    victim.finish()


@case()
def stop_and_continue_during_sessions(context):
    """SIGSTOP and SIGCONT at any moment of attach and detach take effect as ever."""
    victim = Victim(context, "alloc_loop")
    command = [context.memattach, "-q", "-p", str(victim.pid), "-d", "20ms", "--deadline", DEADLINE]
    for i in range(CYCLES):
        dump = context.unique("job", ".dump")
        session = context.start(command + ["-o", dump], stderr=subprocess.PIPE, text=True)
        time.sleep(0.01 * i)
        os.kill(victim.pid, signal.SIGSTOP)
        os.waitpid(victim.pid, os.WUNTRACED)
        time.sleep(0.005)
        os.kill(victim.pid, signal.SIGCONT)
        if session.wait(PATIENCE) != 0:
            raise Failure(f"memattach ended with {session.returncode}: {session.stderr.read()}; {describe(victim.pid)}")
        os.unlink(dump)
        victim.rounds_go_on()
    victim.finish()


@case(label="stress", timeout=600)
def stop_late_and_for_long(context):
    """SIGSTOP at any moment, SIGCONT when memattach has ended: at once, or given up because a thread stands in malloc or in a hook."""
    victim = Victim(context, "alloc_loop")
    wait_until_born(victim.pid)
    before = State(victim.pid)
    for i in range(CYCLES):
        session = context.start([context.memattach, "-q", "-p", str(victim.pid), "-d", "20ms", "-o", context.unique("job", ".dump")],
                                stderr=subprocess.PIPE, text=True)
        time.sleep(0.004 * i)
        os.kill(victim.pid, signal.SIGSTOP)
        os.waitpid(victim.pid, os.WUNTRACED)
        code = session.wait(PATIENCE)
        os.kill(victim.pid, signal.SIGCONT)
        if code not in (0, 1, 2):
            raise Failure(f"memattach ended with {code}: {session.stderr.read()}; {describe(victim.pid)}")
        victim.rounds_go_on()
        finished = run_memattach(context, "--detach", "-p", victim.pid)
        if finished.returncode != 0:
            raise Failure(f"--detach ended with {finished.returncode}: {finished.stderr}")
        settle(before)
        assert not remains(victim.pid), remains(victim.pid)
    victim.finish()
