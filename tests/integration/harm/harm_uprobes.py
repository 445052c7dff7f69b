# SPDX-License-Identifier: MIT
"""Uprobes (perf, bpftrace, SystemTap) on the functions that are hooked at their entries: the kernel writes int3 there, whenever it likes."""
import contextlib
import ctypes
import os
import platform
import struct
import subprocess
import time

from harness import Session, Victim, case, check_receipt, cycle
from procfs import Maps, Memory, PATIENCE, Skip, read_text, tasks_of

FUNCTIONS = ("malloc", "free", "calloc", "realloc")
INT3 = 0xCC
PERF_EVENT_OPEN = 298
UPROBE_TYPE = "/sys/bus/event_source/devices/uprobe/type"


class Uprobe:
    """Counts the calls of what is at an offset of a file, in one process."""

    def __init__(self, pid, path, offset):
        kind = read_text(UPROBE_TYPE)
        if not kind:
            raise Skip("the kernel has no uprobes")
        self.path = ctypes.create_string_buffer(path.encode())
        attribute = struct.pack("<IIQQQQQIIQQ", int(kind), 128, 0, 0, 0, 0, 0, 0, 0, ctypes.addressof(self.path), offset)
        attribute = ctypes.create_string_buffer(attribute, 128)
        library = ctypes.CDLL(None, use_errno=True)
        self.files = [library.syscall(PERF_EVENT_OPEN, attribute, tid, -1, -1, 0) for tid in tasks_of(pid)]
        if -1 in self.files:
            raise Skip(f"no uprobe can be made: {os.strerror(ctypes.get_errno())}")

    def hits(self):
        return sum(struct.unpack("<Q", os.read(file, 8))[0] for file in self.files)

    def end(self):
        for file in self.files:
            os.close(file)


def places_of(pid, functions):
    """(path, offset) of functions of the C library, and their addresses in the process."""
    found = []
    path, base = next((name, start) for name, start, _ in Maps(pid).bases() if "/libc.so" in name)
    listed = subprocess.run(["nm", "-D", "--defined-only", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    values = {line.split()[2].split("@")[0]: int(line.split()[0], 16) for line in listed.splitlines() if len(line.split()) == 3}
    for function in functions:
        address = base + values[function]
        start, _, _, offset, *_ = next(line for line in Maps(pid).lines if line[0] <= address < line[1])
        found.append((path, address - start + offset, address))
    return found


@contextlib.contextmanager
def uprobes(victim, places):
    """All are hit while they are there."""
    probes = [Uprobe(victim.pid, path, offset) for path, offset, _ in places]
    try:
        yield probes
    finally:
        for probe in probes:
            probe.end()


def check_hits(probes):
    """Each is hit from now on."""
    before = [probe.hits() for probe in probes]
    end = time.monotonic() + PATIENCE
    while any(probe.hits() == count for probe, count in zip(probes, before)) and time.monotonic() < end:
        time.sleep(0.01)
    assert all(probe.hits() > count for probe, count in zip(probes, before)), (before, [probe.hits() for probe in probes])


def sessions_with(context, victim, places, *options):
    """Uprobes that come during a session and go in it; that outlast it; that were there before; all the time."""
    session = Session(context, victim.pid, *options)
    victim.rounds_go_on()
    with uprobes(victim, places) as probes:
        check_hits(probes)
        victim.rounds_go_on()
    victim.rounds_go_on()
    with uprobes(victim, places) as probes:
        check_hits(probes)
        check_receipt(session.stop(), victim.pid)
        check_hits(probes)
        session = Session(context, victim.pid, *options)
        check_hits(probes)
        check_receipt(session.stop(), victim.pid)
        session = Session(context, victim.pid, *options)
        check_hits(probes)
    victim.rounds_go_on()
    check_receipt(session.stop(), victim.pid)
    victim.rounds_go_on()


def check_code(pid, places):
    for path, offset, address in places:
        with open(path, "rb") as file:
            file.seek(offset)
            assert Memory(pid).read(address, 32) == file.read(32), f"the code at {path}+{offset:#x} is not that of its file"


@case(alone=True)
def uprobes_on_hooked_entries(context):
    """Both see all calls, in whatever order they come and go, and then the code is that of its file."""
    victim = Victim(context, "alloc_loop", "2")
    places = places_of(victim.pid, FUNCTIONS)
    with uprobes(victim, places) as probes:  # the control
        check_hits(probes)
    for options in (("--hooks", "entry"), ("--hooks", "got")):
        sessions_with(context, victim, places, *options)
        check_code(victim.pid, places)
    victim.finish()


BREAKPOINT = {"x86_64": b"\xcc", "aarch64": b"\x00\x00\x20\xd4"}[platform.machine()]  # int3; brk #0


@case()
def breakpoint_at_an_entry(context):
    """Of a debugger that has gone without it, at a function that nobody calls. It stays; where it is a whole instruction, as long as the jump, the code
    counts as changed, and the entries are not hooked."""
    victim = Victim(context, "alloc_loop", "2")
    _, _, address = places_of(victim.pid, ["pvalloc"])[0]
    with open(f"/proc/{victim.pid}/mem", "r+b", buffering=0) as memory:
        before = os.pread(memory.fileno(), 16, address)
        os.pwrite(memory.fileno(), BREAKPOINT, address)
        if len(BREAKPOINT) > 1:
            session = Session(context, victim.pid, "--hooks", "entry", wait=False)
            assert session.end(expected=1) is None
            assert "(pvalloc: its code was changed since it was loaded); nothing was changed" in session.said(), session.said()
        session = Session(context, victim.pid, *(() if len(BREAKPOINT) > 1 else ("--hooks", "entry")))
        session.sampled()
        check_receipt(session.stop(), victim.pid)
        assert os.pread(memory.fileno(), 16, address) == BREAKPOINT + before[len(BREAKPOINT):]
        os.pwrite(memory.fileno(), before[:len(BREAKPOINT)], address)
    cycle(context, victim.pid)
    victim.finish()


@case(alone=True)
def uprobe_among_displaced_instructions(context):
    """A uprobe behind the entry, where the jump would come: the entry is not hooked, and that is said."""
    victim = Victim(context, "alloc_loop", "2")
    path, offset, address = places_of(victim.pid, ["malloc"])[0]
    second = address + second_instruction(path, offset)
    with uprobes(victim, [(path, offset + second - address, second)]) as probes:
        check_hits(probes)
        session = Session(context, victim.pid, "--hooks", "entry", wait=False)
        assert session.end(expected=1) is None
        assert "a uprobe or a breakpoint is on its first instructions" in session.said(), session.said()
        check_hits(probes)
    victim.finish()


@case(alone=True)
def uprobe_in_a_jump_outlasts_the_session(context):
    """A uprobe where a jump stands: it would crash who calls the function, but after the session it is right, and the file's code comes back."""
    victim = Victim(context, "sleeper", "pause")
    places = places_of(victim.pid, ["calloc"])
    path, offset, address = places[0]
    first = second_instruction(path, offset)
    session = Session(context, victim.pid, "--hooks", "entry")
    jump = Memory(victim.pid).read(address + first, 2)
    with uprobes(victim, [(path, offset + first, address + first)]):
        assert Memory(victim.pid).read(address + first, 2) == bytes([INT3, jump[1]]), "no jump begins there"
        check_receipt(session.stop(), victim.pid)
        assert Memory(victim.pid).read(address + first, 1) == bytes([INT3]), "the uprobe is gone"
    check_code(victim.pid, places)
    victim.finish()


def second_instruction(path, offset):
    listed = subprocess.run(["objdump", "-d", path, f"--start-address={offset}", f"--stop-address={offset + 32}"],
                            stdout=subprocess.PIPE, text=True, check=True).stdout
    addresses = [int(line.split(":")[0], 16) for line in listed.splitlines() if "\t" in line]
    second = 2 if "endbr64" in listed else 1
    return addresses[second] - offset
