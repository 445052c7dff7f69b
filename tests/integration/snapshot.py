# SPDX-License-Identifier: MIT
"""Snapshots of a process from outside, and what differs between two: nothing that memattach did may be left."""
import collections
import hashlib
import os
import platform
import re
import struct
import time

from contracts import hook_symbols
from procfs import Failure, Maps, Memory, PATIENCE, describe, descriptors_of, read_text, tasks_of

STATUS_OF_PROCESS = ("SigIgn", "SigCgt", "ShdPnd", "TracerPid", "NoNewPrivs", "Seccomp", "CoreDumping")
STATUS_OF_THREAD = ("SigBlk", "SigPnd")
GLIBC_SIGNALS = 1 << 31 | 1 << 32
R_64, R_GLOB_DAT, R_JUMP_SLOT = {"x86_64": (1, 6, 7), "aarch64": (257, 1025, 1026)}[platform.machine()]
HOOKED = {symbol.encode() for symbol in hook_symbols()}


def words_of(memory, base, end):
    """The same as relocated_words; none of a module that the program unmaps meanwhile, and that may come back in the same place."""
    for attempt in range(40):
        try:
            return relocated_words(memory, base, end)
        except (TypeError, struct.error):  # nothing, or other memory, where a table was
            if base not in {start for _, start, _ in Maps(memory.pid).bases()}:
                return {}
            if attempt == 39:
                raise
            time.sleep(0.005)
    return {}


def relocated_words(memory, base, end):
    """address -> (value, symbol, type) of the words of one module that relocations with a symbol set; read from memory."""
    head = memory.read(base, 64)
    if not head or head[:5] != b"\x7fELF\x02":
        return {}
    kind, = struct.unpack_from("<H", head, 16)
    phoff, = struct.unpack_from("<Q", head, 32)
    phentsize, phnum = struct.unpack_from("<HH", head, 54)
    table = memory.read(base + phoff, phentsize * phnum)
    dynamic = None
    first = None
    for i in range(phnum):
        p_type, _, _, vaddr, _, _, memsz, _ = struct.unpack_from("<IIQQQQQQ", table, i * phentsize)
        if p_type == 1 and first is None:
            first = vaddr & ~4095
        if p_type == 2:
            dynamic = (vaddr, memsz)
    if dynamic is None or first is None:
        return {}
    bias = base - first if kind == 3 else 0
    raw = memory.read(bias + dynamic[0], dynamic[1])
    entries = {}
    for tag, value in struct.iter_unpack("<QQ", (raw or b"")[:len(raw or b"") // 16 * 16]):
        if tag == 0:
            break
        entries[tag] = value

    def address(value):
        return value if base <= value < end else bias + value

    if 6 not in entries or 5 not in entries:
        return {}
    symbols, strings = address(entries[6]), address(entries[5])
    words = {}
    for offset_tag, size_tag in ((7, 8), (23, 2)):
        size = entries.get(size_tag, 0)
        if offset_tag not in entries or not size:
            continue
        relocations = memory.read(address(entries[offset_tag]), size)
        for offset, info, _ in struct.iter_unpack("<QQq", relocations or b""):
            symbol, r_type = info >> 32, info & 0xffffffff
            if r_type not in (R_64, R_GLOB_DAT, R_JUMP_SLOT) or not symbol:
                continue
            name_at = struct.unpack("<I", memory.read(symbols + 24 * symbol, 4))[0]
            text = memory.read(strings + name_at, 128) or memory.read(strings + name_at, 16) or b""
            name = text.split(b"\0")[0]
            if r_type != R_GLOB_DAT and name not in HOOKED:
                continue
            value = memory.read(bias + offset, 8)
            if value:
                words[bias + offset] = (int.from_bytes(value, "little"), name.decode(errors="replace"), r_type)
    return words


def thread_state(pid, tid):
    status = dict(re.findall(r"^(\w+):\s*(.*)$", read_text(f"/proc/{pid}/task/{tid}/status"), re.M))
    state = [(key, status.get(key)) for key in STATUS_OF_PROCESS + STATUS_OF_THREAD]
    return tuple(state + [("stopped", status.get("State", "?")[0] in "Tt")])


def is_of_the_kernel(pid, tid):
    """A worker or poller of io_uring, which has all signals blocked at all times: PF_IO_WORKER, PF_USER_WORKER of linux/sched.h."""
    fields = read_text(f"/proc/{pid}/task/{tid}/stat").rpartition(")")[2].split()
    return len(fields) > 6 and int(fields[6]) & 0x4010 != 0


def in_critical_section(pid, tid, state):
    """glibc keeps SIGCANCEL and SIGSETXID (32, 33) from programs, and blocks them only around some of its own steps. A stopped thread stays in one."""
    return not state["stopped"] and int(state["SigBlk"] or "0", 16) & GLIBC_SIGNALS == GLIBC_SIGNALS and not is_of_the_kernel(pid, tid)


def comes_back(look, wanted):
    """A program that is busy opens a file for a moment, or runs a signal handler with another mask; on a loaded machine the moment may be long. What was
    left changed stays."""
    end = time.monotonic() + PATIENCE
    while look() != wanted:
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


class Snapshot:
    """A process from outside. Taken while it runs: a busy one changes what is its own (compare with busy=True)."""

    def __init__(self, pid):
        self.pid = pid
        self.maps = Maps(pid)
        self.descriptors = descriptors_of(pid)
        self.threads = {tid: read_text(f"/proc/{pid}/task/{tid}/comm").strip() for tid in tasks_of(pid)}
        self.signals = {}
        # A thread that runs a signal handler or is just being born has another mask for an instant: what is seen most
        # often in 30 ms counts. On a loaded machine the instant may last: glibc's own signals are blocked only in
        # its critical sections, so a thread that has them blocked is looked at until it has not.
        seen = {tid: collections.Counter() for tid in self.threads}
        for _ in range(15):
            for tid, counter in seen.items():
                counter[thread_state(pid, tid)] += 1
            time.sleep(0.002)
        for tid, counter in seen.items():
            state = dict(counter.most_common(1)[0][0])
            end = time.monotonic() + PATIENCE
            while in_critical_section(pid, tid, state) and time.monotonic() < end:
                time.sleep(0.01)
                state = dict(thread_state(pid, tid))
            self.signals[tid] = state
        memory = Memory(pid)
        self.words = {}
        for _, base, end in self.maps.bases():
            self.words.update(words_of(memory, base, end))
        self.code = {}
        for start, end, mode, _, _, _, name in self.maps.lines:
            if "x" in mode and "w" not in mode and name not in ("[vsyscall]", ""):
                content = memory.read(start, end - start)
                self.code[start, name] = hashlib.sha256(content).hexdigest() if content else None

    def differences(self, after, busy=False):
        """What differs, as a list of sentences. busy: the process allocates, so anonymous memory comes and goes."""
        found = []

        def compare(what, old, new):
            for gone in [item for item in old if item not in new]:
                found.append(f"{what}: {gone} is gone")
            for extra in [item for item in new if item not in old]:
                found.append(f"{what}: {extra} is new")

        if busy:
            compare("maps", self.maps.file_backed(), after.maps.file_backed())
            compare("executable maps", [m[:3] for m in self.maps.lines if "x" in m[2]],
                    [m[:3] for m in after.maps.lines if "x" in m[2]])
        else:
            compare("maps", self.maps.text(), after.maps.text())
        if after.descriptors != self.descriptors and not (busy and comes_back(lambda: descriptors_of(after.pid), self.descriptors)):
            compare("descriptors", list(self.descriptors.items()), list(after.descriptors.items()))
        if not busy:
            compare("threads", list(self.threads.items()), list(after.threads.items()))
        for tid in self.threads:
            if tid not in after.threads:
                continue
            for key, value in self.signals[tid].items():
                if busy and key in ("SigPnd", "ShdPnd"):
                    continue
                if after.signals[tid][key] != value and not (busy and key == "SigBlk" and comes_back(lambda: after.mask_now(tid, value), value)):
                    found.append(f"thread {tid}: {key} was {value}, is {after.signals[tid][key]}")
        for address, (value, name, r_type) in self.words.items():
            new = after.words.get(address)
            if new is None:
                found.append(f"GOT word of {name} at {address:x} is not there any more")
            elif new[0] != value and not self.bound_lazily(address, value, new[0], r_type):
                found.append(f"GOT word of {name} at {address:x} was {value:x}, is {new[0]:x}")
        for place, digest in self.code.items():
            if place in after.code and after.code[place] != digest:
                found.append(f"code of {place[1]} at {place[0]:x} changed")
        return found

    def mask_now(self, tid, ended):
        return dict(thread_state(self.pid, tid))["SigBlk"] or ended

    def bound_lazily(self, address, old, new, r_type):
        """The loader may resolve a JUMP_SLOT at any time: from the module's own stub to a function of a file."""
        if r_type != R_JUMP_SLOT:
            return False
        module = [(base, end) for _, base, end in self.maps.bases() if base <= address < end]
        return (any(base <= old < end for base, end in module)
                and any(m[0] <= new < m[1] and "x" in m[2] for m in self.maps.file_backed()))


def check_same(before, after, busy=False):
    found = before.differences(after, busy)
    if found:
        raise Failure(f"process {before.pid} is not as before ({len(found)} differences): " + "\n    ".join(found[:12]))


class State:
    """The part of a process's state that a kill of memattach could harm at once, cheap enough for each of 10 000 kills."""

    def __init__(self, pid, looks=1):
        """
        With several looks only descriptors count that are there each time: a library that is being opened has one for a moment. And
        what threads are like most of the time: in a handler a thread has another mask. Where processors are short, moments are long.
        """
        pause = 0.003 * max(1.0, os.getloadavg()[0])
        self.pid = pid
        status = read_text(f"/proc/{pid}/status")
        self.process = dict(re.findall(r"^(SigIgn|SigCgt|ShdPnd):\s*(\S+)", status, re.M))
        self.process.pop("ShdPnd", None)
        threads = {}
        descriptors = set(os.listdir(f"/proc/{pid}/fd"))
        for look in range(looks):
            if look:
                time.sleep(pause)
                descriptors &= set(os.listdir(f"/proc/{pid}/fd"))
            for tid in tasks_of(pid):
                seen = self.thread(tid)
                if seen[0] is not None:  # else it has ended meanwhile
                    threads.setdefault(tid, collections.Counter())[seen] += 1
        self.threads = {tid: seen.most_common(1)[0][0] for tid, seen in threads.items()}
        self.descriptors = sorted(descriptors)

    def thread(self, tid):
        status = read_text(f"/proc/{self.pid}/task/{tid}/status")
        found = dict(re.findall(r"^(SigBlk|State|TracerPid):\s*(\S+)", status, re.M))
        return found.get("SigBlk"), found.get("State", "?") in "Tt", found.get("TracerPid")

    def differences(self, after):
        found = []
        if self.process != after.process:
            found.append(f"dispositions were {self.process}, are {after.process}")
        for tid, old in self.threads.items():
            if tid in after.threads and after.threads[tid] != old:
                found.append(f"thread {tid}: mask, stopped, tracer were {old}, are {after.threads[tid]}")
        if self.descriptors != after.descriptors:
            found.append(f"descriptors were {self.descriptors}, are {after.descriptors}")
        return found


def wait_until_born(pid):
    """Until no thread has glibc's own signals blocked, as all have that are just being born."""
    end = time.monotonic() + PATIENCE
    while any(in_critical_section(pid, tid, dict(thread_state(pid, tid))) for tid in tasks_of(pid)):
        if time.monotonic() > end:
            raise Failure(f"a thread of {pid} keeps all signals blocked: {describe(pid)}")
        time.sleep(0.005)


def remains(pid):
    """What of memattach is mapped in the process."""
    return [line for line in Maps(pid).text() if "memfd:memattach" in line or line.split(" (deleted)")[0].endswith(".dump")]


def code_apart(pid):
    """Where code of a file is in several mappings, as it is while it holds jumps."""
    lines = Maps(pid).lines
    return {(b[0], b[6]) for a, b in zip(lines, lines[1:])
            if a[1] == b[0] and a[2] == b[2] == "r-xp" and a[4:] == b[4:] and a[5] != "0" and a[3] + a[1] - a[0] == b[3]}


def settle(state):
    """Waits until the process looks as in state: a thread in a handler of its own, or a stub at its end, takes a moment."""
    end = time.monotonic() + PATIENCE
    while True:
        found = state.differences(State(state.pid))
        if not found:
            return
        if time.monotonic() > end:
            raise Failure(f"process {state.pid} is not as before: {'; '.join(found)}; {describe(state.pid)}")
        time.sleep(0.005)
