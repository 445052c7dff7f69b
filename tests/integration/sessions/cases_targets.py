# SPDX-License-Identifier: MIT
"""Every victim, one attach and detach or many: it must go on computing right answers and be as before."""
import os
import signal
import time

from harness import AT_ANY_COST, Session, Victim, case, check_receipt, log, run_memattach, run_session, slow_allocator
from procfs import Failure, Skip, describe, tasks_of
from reports import analyze, stacks_with, truncated_share
from snapshot import Snapshot, check_same, remains


def once(context, name, *arguments, options=(), seconds=1.0, samples=0, rate="64k", busy=True, compare=True):
    victim = Victim(context, name, *arguments)
    session, _ = run_session(context, victim, *options, seconds=seconds, samples=samples, rate=rate, busy=busy, compare=compare)
    victim.rounds_go_on()
    victim.finish()
    return analyze(context, session.dump)


@case()
def idle_sleeper_is_as_before(context):
    """maps with protections, descriptors, threads, dispositions, masks, GOT words and code: all the same."""
    victim = Victim(context, "sleeper", "pause")
    before = Snapshot(victim.pid)
    assert before.words and before.code, "the snapshot found no GOT words or no code"
    assert any(word[1] == "malloc" for word in before.words.values()), "no word of malloc"
    session = Session(context, victim.pid)
    during = Snapshot(victim.pid)
    assert before.differences(during), "the snapshot does not see an attached memattach"
    check_receipt(session.stop(), victim.pid)
    check_same(before, Snapshot(victim.pid))
    victim.finish()


@case()
def attached_target_has_no_tracer_and_no_descriptors(context):
    """While the session runs nobody traces the target, no thread is held and no descriptor is left open."""
    victim = Victim(context, "alloc_loop")
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid)
    during = Snapshot(victim.pid)
    assert during.descriptors == before.descriptors, (before.descriptors, during.descriptors)
    assert all(s["TracerPid"] == "0" for s in during.signals.values()), during.signals
    victim.rounds_go_on()
    check_receipt(session.stop(), victim.pid)
    victim.finish()


@case()
def threads_of_the_kernel_are_left_alone(context):
    """A thread that polls an io_uring belongs to the process, but runs none of its code: neither borrowed nor waited for."""
    victim = Victim(context, "io_uring_poller")
    if len(tasks_of(victim.pid)) < 2:
        raise Skip("no io_uring with a thread of the kernel here")
    for rate in ("64k", "1"):
        before = Snapshot(victim.pid)
        session = Session(context, victim.pid, rate=rate, deadline="5s")
        victim.rounds_go_on()
        check_receipt(session.stop(), victim.pid)
        check_same(before, Snapshot(victim.pid), busy=True)
    victim.finish()


@case()
def all_signals_blocked_meanwhile(context):
    """A thread that blocks all signals, and did not before, could be one that memattach has not put right: it is named."""
    victim = Victim(context, "raw_mask")
    session = Session(context, victim.pid)
    os.kill(victim.pid, signal.SIGUSR2)
    victim.rounds_go_on()
    os.kill(session.process.pid, signal.SIGINT)
    receipt = session.end(expected=2)
    assert receipt["clean"] is False and receipt["residue"] == \
        [f"thread {victim.pid} has all signals blocked, which it had not before"], receipt
    session = Session(context, victim.pid)
    check_receipt(session.stop(), victim.pid)
    victim.rounds_go_on()
    victim.process.kill()  # it hears nothing else any more


@case()
def stopped_target_stays_stopped(context):
    """A target in state T is attached and detached and stays T; SIGCONT then wakes it as ever."""
    victim = Victim(context, "alloc_loop")
    os.kill(victim.pid, signal.SIGSTOP)
    os.waitpid(victim.pid, os.WUNTRACED)
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid)
    receipt = session.stop()
    after = Snapshot(victim.pid)
    assert all(s["stopped"] for s in after.signals.values()), describe(victim.pid)
    check_receipt(receipt, victim.pid)
    check_same(before, after)
    # Its parent must not have been told of another stop.
    told = os.waitpid(victim.pid, os.WUNTRACED | os.WCONTINUED | os.WNOHANG)
    assert told == (0, 0), told
    os.kill(victim.pid, signal.SIGCONT)
    victim.rounds_go_on()
    victim.finish()


for binding in ("lazy", "now"):
    def bound(context, name=f"alloc_loop_{binding}"):
        """GOT entries of each kind, which are written only where memattach is told to: glibc's functions are hooked at their entries."""
        context.options = ("--hooks", "got")
        once(context, name)
    bound.__name__ = f"alloc_loop_{binding}"
    case()(bound)


@case()
def alloc_loop_signed(context):
    """Signed return addresses and landing pads, where the compiler can."""
    once(context, "alloc_loop_signed", rate="1")


@case()
def alloc_loop_exact(context):
    """Every allocation of four threads is recorded while they run."""
    report = once(context, "alloc_loop", samples=20000, rate="1")
    assert report["samples"]["taken"] > 10000, report["samples"]


@case(sanitized=True)
def alloc_loop_musl(context):
    """musl, whose dlclose never unmaps: memattach maps the payload by itself, and nothing stays."""
    victim = Victim(context, "alloc_loop_musl")
    before = Snapshot(victim.pid)
    for _ in range(3):
        session = Session(context, victim.pid)
        session.sampled(20)
        assert remains(victim.pid), "the payload has no mapping of its name"
        check_receipt(session.stop(), victim.pid)
        assert not remains(victim.pid), remains(victim.pid)
        check_same(before, Snapshot(victim.pid), busy=True)
        victim.rounds_go_on()
    stacks = stacks_with(analyze(context, session.dump), "loop")
    assert stacks, "no stack names loop"
    # musl has no unwind information where threads start: the zero frame pointer tells the end.
    assert truncated_share({"stacks": stacks}) == 0, truncated_share({"stacks": stacks})
    victim.finish()


@case(sanitized=True)
def thread_churn(context):
    once(context, "thread_churn", seconds=2)


@case()
def thread_churn_main_exits(context):
    """The first thread has ended: /proc/PID shows Z, the process is well."""
    victim = Victim(context, "thread_churn", "main-exits")
    time.sleep(0.2)
    session = Session(context, victim.pid)
    time.sleep(1)
    check_receipt(session.stop(), victim.pid)
    victim.rounds_go_on()
    victim.finish()


@case()
def fork_storm(context):
    """Children of a profiled process run as ever and write nothing into the parent's dump."""
    report = once(context, "fork_storm", seconds=2, samples=100, rate="1")
    children = stacks_with(report, "child")
    assert not children, f"{len(children)} stacks of forked children are in the dump"
    assert stacks_with(report, "allocate"), "the parent's thread is not in the dump"


@case()
def signals(context):
    once(context, "signals", seconds=2, rate="1")


@case()
def vectors(context):
    """All registers survive: general, red zone, vector, mask, rounding modes."""
    victim = Victim(context, "vectors")
    for _ in range(5):
        run_session(context, victim, seconds=0.2, busy=False)
    victim.finish()


@case(sanitized=True)
def dlopen_storm(context):
    once(context, "dlopen_storm", context.target("plugin.so"), seconds=2, compare=False)


@case(sanitized=True)
def cxx_exceptions(context):
    report = once(context, "cxx_exceptions", options=AT_ANY_COST, samples=200, rate="4k")
    names = {frame["function"] for stack in report["stacks"] for frame in stack["frames"]}
    assert any(name and "containers" in name for name in names), sorted(filter(None, names))[:20]


def made_stacks(victim):
    """How many it had made when it last said so."""
    return max([int(line.split()[1]) for line in victim.lines.seen if line.startswith("STACKS")], default=0)


@case()
def odd_stacks(context):
    """10,000 stacks that no C library made, called by code without unwind information, walked at each allocation."""
    victim = Victim(context, "odd_stacks")
    for rate in ("1", "4k"):
        session = Session(context, victim.pid, rate=rate)
        wanted = made_stacks(victim) + 20000  # what was said may be 5,000 behind
        while made_stacks(victim) < wanted:
            victim.wait("^STACKS")
            victim.check_alive()
        check_receipt(session.stop(), victim.pid)
        report = analyze(context, session.dump)
        assert stacks_with(report, "allocate"), "no stack names allocate"
    victim.finish()


@case(sanitized=True)
def escaped_pointer(context):
    """What the program copies from its GOT entries is no address of ours: the copies are called during the session and after it, and nothing stays."""
    for options in ((), ("--hooks", "got")):
        victim = Victim(context, "escape")
        session = Session(context, victim.pid, *options)
        victim.send("capture")
        victim.wait("^CAPTURED$")
        victim.rounds_go_on()
        check_receipt(session.stop(), victim.pid)
        victim.rounds_go_on()
        victim.finish_by_stdin()


@case(sanitized=True)
def copies_that_no_search_finds(context):
    """A copy of free that was read from the GOT is kept in a pipe, packed, tagged, shifted, as a difference: it is called after a clean detach."""
    for name in ("escape", "escape_noplt"):
        for how in ("pipe", "packed", "tagged", "shifted", "xored"):
            victim = Victim(context, name)
            session = Session(context, victim.pid)
            victim.send(f"keep {how}")
            victim.wait("^KEPT")
            check_receipt(session.stop(), victim.pid)
            assert not remains(victim.pid), (how, remains(victim.pid))
            victim.send("free")
            victim.wait("^FREED")
            victim.rounds_go_on()
            victim.finish_by_stdin()


@case()
def dangling_pointers(context):
    """What a program has unmapped is where the kernel maps next, and old pointers lead there: not to trampolines, which would seem to be copied."""
    victim = Victim(context, "escape")
    victim.send("dangle")
    victim.wait("^DANGLING")
    for rate in ("64k", "1"):
        session = Session(context, victim.pid, "--hooks", "got", rate=rate)
        time.sleep(0.2)
        check_receipt(session.stop(), victim.pid)
    victim.rounds_go_on()
    victim.finish_by_stdin()


@case(sanitized=True)
def escaped_pointer_anywhere(context):
    """The copy is in memory that is protected then, in made code, beside the stack of a coroutine or thread."""
    for where in ("sealed", "shut", "code", "below", "beside"):
        victim = Victim(context, "escape")
        session = Session(context, victim.pid)
        victim.send("hide " + where)
        victim.wait("^HIDDEN")
        check_receipt(session.stop(), victim.pid)
        victim.send("use")
        victim.wait("^USED")
        victim.finish_by_stdin()


@case()
def escaped_pointer_that_moves(context):
    """A thread keeps the copy at places on its stack that change, in a register, or in frames that come and go."""
    for how in ("move slots 20", "move frames 20", "move register 20", "frame 150"):
        victim = Victim(context, "escape")
        session = Session(context, victim.pid)
        victim.send(how)
        victim.wait("^(MOVES|FRAMES)")
        time.sleep(0.2)
        check_receipt(session.stop(), victim.pid)
        victim.send("call")
        if how.startswith("move"):
            victim.wait("^CALLED")
        victim.rounds_go_on()
        victim.finish_by_stdin()


@case()
def parked_code_and_an_allocation_function(context):
    """Code that waits has read the address of an allocation function: in a frame, beside a signal handler, on a stack within another one."""
    for how in ("handler", "ended", "within", "carved", "fiber"):
        victim = Victim(context, "parked")
        session = Session(context, victim.pid, "--loader", "own")
        victim.send(how)
        victim.wait("^PARKED$")
        check_receipt(session.stop(), victim.pid)
        left = run_memattach(context, "--detach", "-p", victim.pid)
        assert left.returncode == 0 and "nothing of memattach" in left.stderr, (how, left)
        victim.send("go on")
        victim.wait("^WENT-ON$")
        victim.finish_by_stdin()


@case()
def coroutine_is_parked_in_a_hook(context):
    """malloc waits in a coroutine that no thread runs: the payload stays until it has returned; the next detach leaves nothing."""
    for options in ((), ("--hooks", "entry")):
        victim = Victim(context, "parked", environment=slow_allocator(context, "yielding"))
        session = Session(context, victim.pid, *options)
        victim.send("malloc")
        victim.wait("^PARKED$")
        session.process.send_signal(signal.SIGINT)
        session.end(expected=2)
        assert "a coroutine is parked in a hook of the payload" in session.said() and remains(victim.pid), session.said()
        victim.send("go on")
        victim.wait("^WENT-ON$")
        result = run_memattach(context, "--detach", "-p", victim.pid)
        assert result.returncode == 0 and not remains(victim.pid), result
        victim.finish_by_stdin()


def cycles(context, name, *arguments, busy=True, compare=True):
    """context.cycles times attach and detach of one process."""
    victim = Victim(context, name, *arguments)
    before = Snapshot(victim.pid)
    worst = {"attach": 0.0, "detach": 0.0}
    for i in range(context.cycles):
        session = Session(context, victim.pid, rate="64k")
        victim.check_alive()
        receipt = session.stop()
        check_receipt(receipt, victim.pid)
        for key in worst:
            worst[key] = max(worst[key], receipt["stopped_ms"][key])
        if compare:
            try:
                check_same(before, Snapshot(victim.pid), busy)
            except Failure as failure:
                raise Failure(f"after cycle {i + 1}: {failure}") from None
        victim.check_alive()
        os.unlink(session.dump)
    victim.rounds_go_on()
    victim.finish()
    log(f"{name}: {context.cycles} cycles, longest stop {worst['attach']:.2f} ms at attach, "
        f"{worst['detach']:.2f} ms at detach")


@case()
def cycles_alloc_loop(context):
    cycles(context, "alloc_loop")


@case()
def cycles_sleeper(context):
    cycles(context, "sleeper", "nanosleep", busy=False)


for victim_name, victim_arguments, victim_busy, victim_compare in (
        ("alloc_loop", (), True, True), ("sleeper", ("nanosleep",), False, True),
        ("sleeper", ("epoll_wait",), False, True), ("thread_churn", (), True, True), ("fork_storm", (), True, True),
        ("signals", (), True, True), ("vectors", (), False, True), ("cxx_exceptions", (), True, True),
        ("dlopen_storm", ("plugin.so",), True, False)):
    def many(context, name=victim_name, arguments=victim_arguments, busy=victim_busy, compare=victim_compare):
        cycles(context, name, *[context.target(a) if a.endswith(".so") else a for a in arguments], busy=busy,
               compare=compare)
    many.__name__ = "_".join(["many", victim_name] + [a for a in victim_arguments if "." not in a])
    case(label="stress", timeout=7200)(many)
