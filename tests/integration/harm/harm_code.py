# SPDX-License-Identifier: MIT
"""Code whose entries are hooked, and that is not what the loader has mapped, goes away, or is changed by somebody else."""
import contextlib
import os
import re
import signal
import struct
import time

from harness import Session, UNCHANGED, Victim, case, check_receipt, cycle, run_memattach
from procfs import Failure, Skip, read_text
from snapshot import Snapshot, check_same, remains

POOL = ("--hook", "plugin_take=malloc", "--hook", "plugin_give=free")
JUMP = 0xE9  # and the distance, of 4 bytes, from behind it
SHORT_JUMP = 0xEB


def start(context, mode, library="pool_plugin.so"):
    """The victim, and the addresses of plugin_take, plugin_give and of the spare code."""
    victim = Victim(context, "changed_code", mode, context.target(library))
    line = next(line for line in victim.lines.seen if line.startswith("POOL"))
    return victim, [int(word, 16) for word in line.split()[1:]]


def peek(pid, address, count):
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(count)


def poke(pid, address, code):
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        memory.write(code)


def poke_where_nobody_is(pid, address, code):
    """While the process is stopped, its first thread, which alone runs that code, outside of what changes."""
    end = time.monotonic() + 30
    outside = False
    while not outside and time.monotonic() < end:
        os.kill(pid, signal.SIGSTOP)
        while read_text(f"/proc/{pid}/task/{pid}/stat").rpartition(") ")[2][:1] != "T" and time.monotonic() < end:
            time.sleep(0.001)
        words = read_text(f"/proc/{pid}/syscall").split()
        outside = len(words) > 2 and not address <= int(words[-1], 16) < address + 16
        if outside:
            poke(pid, address, code)
        os.kill(pid, signal.SIGCONT)
    assert outside, "it is in that code at each look"


def jump(at, target):
    return struct.pack("<Bi", JUMP, target - at - 5)


def target_of(at, code):
    """Of a jump to a detour, or to an island."""
    if code[0] == JUMP:
        return at + 5 + struct.unpack("<i", code[1:5])[0]
    assert code[0] == SHORT_JUMP, code
    return at + 2 + struct.unpack("<b", code[1:2])[0]


@case()
def code_in_a_shared_mapping(context):
    """What is written there would not be for this process alone, and the kernel forbids it: refused by name, before anything is touched."""
    victim, _ = start(context, "shared")
    before = Snapshot(victim.pid)
    result = run_memattach(context, "-p", victim.pid, *POOL, "-d", "10ms", "-o", context.path("shared.dump"))
    assert result.returncode == 1 and "is a shared mapping" in result.stderr and UNCHANGED in result.stderr, result
    check_same(before, Snapshot(victim.pid), busy=True)
    cycle(context, victim.pid)  # without the pool
    victim.rounds_go_on()
    victim.finish()


@case()
def code_in_anonymous_memory(context):
    """As of programs that copy their code into huge pages: hooked, and byte for byte as before."""
    victim, (take, give, _) = start(context, "anonymous")
    before = Snapshot(victim.pid), peek(victim.pid, take, 64), peek(victim.pid, give, 64)
    session = Session(context, victim.pid, *POOL, rate="64k")
    assert peek(victim.pid, take, 64) != before[1]
    victim.rounds_go_on()
    check_receipt(session.stop(), victim.pid)
    assert session.receipt["functions"]["restored"] > 2, session.receipt
    assert before[1:] == (peek(victim.pid, take, 64), peek(victim.pid, give, 64))
    check_same(before[0], Snapshot(victim.pid), busy=True)
    victim.finish()


HUGE_PAGES = "/proc/sys/vm/nr_hugepages"


@contextlib.contextmanager
def huge_page_set_aside():
    """One more than the machine had."""
    before = read_text(HUGE_PAGES).strip()
    try:
        with open(HUGE_PAGES, "w", encoding="ascii") as file:
            file.write(str(int(before or "0") + 1))
    except OSError as error:
        raise Skip(f"no huge page can be set aside: {error}") from None
    try:
        yield
    finally:
        with open(HUGE_PAGES, "w", encoding="ascii") as file:
            file.write(before)


def huge_page_at(pid, address):
    """What smaps says of the mapping with the address: (of the kernel's making, set aside), KiB."""
    for part in re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", read_text(f"/proc/{pid}/smaps")):
        first, last = (int(word, 16) for word in part.split()[0].split("-"))
        if first <= address < last:
            return tuple(int(re.search(rf"^{name}: +(\d+) kB", part, re.M)[1]) for name in ("AnonHugePages", "Private_Hugetlb"))
    raise Failure(f"nothing is mapped at {address:x}")


def hooked_in_a_huge_page(context, mode, kibibytes):
    """Hooked, and byte for byte as before; or refused, with nothing changed, where the kernel lets nobody write to such a page from outside."""
    victim, (take, _, _) = start(context, mode, "pool_plugin_huge.so")
    if huge_page_at(victim.pid, take) != kibibytes:
        raise Skip("the kernel makes no huge page of it")
    before = Snapshot(victim.pid), peek(victim.pid, take & -4096, 4096)
    session = Session(context, victim.pid, *POOL, rate="64k", wait=False)
    if UNCHANGED in session.lines.wait("attached to|" + UNCHANGED):
        session.end(expected=1)
    else:
        assert peek(victim.pid, take & -4096, 4096) != before[1]
        victim.rounds_go_on()
        check_receipt(session.stop(), victim.pid)
        assert session.receipt["functions"]["restored"] > 2, session.receipt
    assert peek(victim.pid, take & -4096, 4096) == before[1]
    check_same(before[0], Snapshot(victim.pid), busy=True)
    victim.rounds_go_on()
    victim.finish()


@case()
def code_in_a_huge_page(context):
    """Code that a program has copied into memory of which the kernel makes a huge page."""
    hooked_in_a_huge_page(context, "huge", (2048, 0))


@case(alone=True)
def code_in_a_page_of_hugetlbfs(context):
    """The same in a page that the administrator has set aside, as mysqld and HHVM ask for."""
    with huge_page_set_aside():
        hooked_in_a_huge_page(context, "hugetlb", (0, 2048))


@case()
def hooked_library_is_unloaded(context):
    """dlclose takes hooked functions away during a session: the detach writes nothing where they were."""
    victim, _ = start(context, "plain")
    session = Session(context, victim.pid, *POOL, rate="4k")
    victim.rounds_go_on()
    victim.send("unload")
    victim.wait("^UNLOADED")
    victim.rounds_go_on()
    session.stop()
    assert not remains(victim.pid), remains(victim.pid)
    functions = session.receipt["functions"]
    assert session.receipt["clean"] and functions["hooked"] - functions["restored"] == 2, session.receipt
    victim.rounds_go_on()
    cycle(context, victim.pid)
    victim.finish()


@case()
def entry_of_another_tool_over_ours(context):
    """A tool that hooks the same function after us has our jump in its own copy: its jump stays, and what that leads to."""
    victim, (take, _, spare) = start(context, "plain")
    cycle(context, victim.pid, *POOL)
    old = peek(victim.pid, take, 16)
    session = Session(context, victim.pid, *POOL, rate="4k")
    ours = peek(victim.pid, take, 16)
    first = next(at for at in range(16) if ours[at] != old[at])  # what our jump leaves as it is
    # As tools do: the first instructions, our jump among them, are run elsewhere. Of its own jump 2 bytes are enough.
    detour = target_of(take + first, ours[first:])
    theirs = struct.pack("<Bb", SHORT_JUMP, spare - take - 2)
    poke(victim.pid, spare, old[:first] + jump(spare + first, detour))
    poke_where_nobody_is(victim.pid, take, theirs)
    victim.rounds_go_on()
    session.process.send_signal(2)
    receipt = session.end(expected=2)
    check_receipt(receipt, victim.pid, clean=False)
    assert any("somebody else has changed" in line for line in receipt["residue"]), receipt
    assert peek(victim.pid, take, 2) == theirs, "the tool's jump is gone"
    victim.rounds_go_on()
    # The tool goes, too: it puts our jump back, which still leads to the function.
    poke_where_nobody_is(victim.pid, take, ours)
    victim.rounds_go_on()
    poke_where_nobody_is(victim.pid, take, old)
    victim.rounds_go_on()
    victim.finish()
