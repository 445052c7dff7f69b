# SPDX-License-Identifier: MIT
"""Entry hooks (--hooks entry): threads held at each instruction of an entry and of the jumps that replace it; many threads."""
import struct
import time

from harness import Session, Victim, case, check_receipt, cycle, run_memattach
from procfs import Failure, read_text
from reports import analyze, functions_of, stacks_with, sum_of, until
from snapshot import Snapshot, check_same

HOOKS = ("--hooks", "entry")
LEFT_BLOCKS = 1000  # of entry_steps.c
STEPS = 3  # from the entry into the detour: jump, island, detour


def hold(victim, step):
    """Where the victim's thread stays, or None if its call has ended."""
    victim.send(f"go {step}")
    line = victim.wait("^(AT|DONE)")
    return None if line == "DONE" else line


def let_go(victim):
    victim.send("on")
    victim.wait("^DONE")


def held_in_the_middle(context, function, stack):
    """A thread that would go on in the middle of the displaced instructions keeps them from being replaced; elsewhere it goes on as if
    nothing were. How often it is in the middle: the jump begins behind the first instruction, and displaces one or more."""
    victim = Victim(context, "entry_steps", function, stack)
    cycle(context, victim.pid, *HOOKS)
    before = Snapshot(victim.pid)
    refused = 0
    for step in range(1, 5):
        if not hold(victim, step):
            continue
        result = run_memattach(context, *HOOKS, "--deadline", "10s", "-p", victim.pid, "-d", "10ms", "-o", context.unique("middle", ".dump"))
        in_the_middle = "is at the entry of an allocation function" in result.stderr
        assert result.returncode == int(in_the_middle), result
        refused += in_the_middle
        let_go(victim)
        check_same(before, Snapshot(victim.pid), busy=False)
    victim.finish_by_stdin()
    return refused


def held_between_the_jumps(context, function, stack):
    """A thread that stays before, between or behind the jumps during a detach goes on as if nothing were, and nothing remains."""
    victim = Victim(context, "entry_steps", function, stack)
    cycle(context, victim.pid, *HOOKS)  # what the first dlopen of a process changes by itself
    before = Snapshot(victim.pid)
    for step in range(STEPS):
        session = Session(context, victim.pid, *HOOKS, rate="1")
        where = hold(victim, step)
        assert where, step
        session.process.send_signal(2)
        # It comes to its end only once the thread has left what is to go, or says that this did not happen.
        time.sleep(0.3)
        victim.check_alive()
        let_go(victim)
        try:
            session.end()
        except Failure as failure:
            raise Failure(f"{where}: {failure}") from None
        victim.check_alive()
        check_same(before, Snapshot(victim.pid), busy=False)
    victim.finish_by_stdin()


for short in ("free", "realloc"):
    def middle(context, name=short):
        # What an entry of free is made of may leave no middle.
        refused = [held_in_the_middle(context, name, stack) for stack in ("own", "alternate")]
        assert name == "free" or all(refused), refused
    middle.__name__ = f"entry_held_in_the_middle_of_{short}"
    case()(middle)

for short in ("malloc", "free"):
    def between(context, name=short):
        for stack in ("own", "alternate"):
            held_between_the_jumps(context, name, stack)
    between.__name__ = f"entry_held_between_the_jumps_of_{short}"
    case()(between)


@case()
def entry_left_by_siglongjmp(context):
    """A program that leaves realloc by siglongjmp is seen all the same afterwards: its next calls are not taken for inner ones."""
    victim = Victim(context, "entry_steps", "realloc", "leave")
    session = Session(context, victim.pid, *HOOKS, rate="1")
    victim.send("go 0")
    victim.wait("^DONE")
    session.stop()
    seen = sum_of(stacks_with(analyze(context, session.dump), "allocate_deeper"), "allocated_count")
    assert seen == LEFT_BLOCKS, seen
    victim.finish_by_stdin()


ROW = struct.Struct("<QBBHI8s8s")  # struct code_patch


def overwrite_rows(pid):
    """Empties the payload's list of changed code, as a program does that writes where it should not; returns how many there were."""
    lines = [line.split() for line in read_text(f"/proc/{pid}/maps").splitlines()]
    ranges = [[int(end, 16) for end in line[0].split("-")] for line in lines]
    code = [r for r, line in zip(ranges, lines) if "x" in line[1]]
    first = next(i for i, line in enumerate(lines) if line[1].startswith("rw") and "memattach-payload" in line[-2])
    emptied = 0
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for i in range(first, len(lines)):
            start, end = ranges[i]
            if i > first and start != ranges[i - 1][1]:
                break
            memory.seek(start)
            data = memory.read(end - start)
            for at in range(0, len(data) - ROW.size + 1, ROW.size):
                address, count, island, _, reserved, _, _ = ROW.unpack_from(data, at)
                if count in (2, 5) and island < 2 and not reserved and any(low <= address < high for low, high in code):
                    memory.seek(start + at)
                    memory.write(bytes(ROW.size))
                    emptied += 1
    return emptied


@case()
def entry_rows_are_overwritten(context):
    """memattach takes back what it has written, whatever the target says that it is."""
    victim = Victim(context, "alloc_loop")
    cycle(context, victim.pid, *HOOKS)
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid, *HOOKS)
    assert overwrite_rows(victim.pid) > 0
    check_receipt(session.stop(), victim.pid)
    victim.rounds_go_on()
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.finish()


POOL = ("--hook", "pool_get=malloc", "--hook", "pool_put=free")
CALLERS = ("integers", "doubles", "get_and_put")


@case()
def entry_hooks_keep_registers(context):
    """What callers keep in registers across calls of a short pool, or of the program's own malloc, stays there: for calls that are
    recorded and others, during attach and detach, and when memattach is killed. The stacks are those of the callers."""
    for name, options in (("kept_registers", POOL), ("kept_registers_malloc", ())):
        victim = Victim(context, name)
        for rate in ("1", "512k"):
            # Its threads may be in malloc all the time: after the deadline the payload is mapped, which needs no safe point.
            session = Session(context, victim.pid, "--max-overhead", "off", *options, rate=rate, deadline="1s")
            until(context, session, "each caller is recorded", lambda report: all(stacks_with(report, caller) for caller in CALLERS))
            check_receipt(session.stop(), victim.pid)
            victim.check_alive()
            functions = session.receipt["functions"]
            assert functions["hooked"] == functions["restored"] > 1, session.receipt
            report = analyze(context, session.dump)
            for caller in CALLERS:
                stacks = stacks_with(report, caller)
                assert stacks and all("run_round" in functions_of(stack) for stack in stacks), (name, rate, caller, stacks)
        session = Session(context, victim.pid, *options, rate="1", deadline="1s")
        session.process.kill()
        session.process.wait()
        victim.rounds_go_on()
        result = run_memattach(context, "--detach", "-p", victim.pid)
        assert result.returncode == 0, result
        victim.rounds_go_on()
        victim.finish()


for short in ("thread_churn", "fork_storm", "cxx_exceptions", "vectors"):
    def cycles(context, name=short):
        """Attach and detach with entry hooks, again and again; the victim notices nothing."""
        victim = Victim(context, name)
        for _ in range(2 * context.cycles):
            cycle(context, victim.pid, *HOOKS, "-r", "4k")
            victim.check_alive()
        victim.rounds_go_on()
        victim.finish()
    cycles.__name__ = f"entry_cycles_{short}"
    case()(cycles)
