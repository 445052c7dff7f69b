# SPDX-License-Identifier: MIT
"""What /proc tells of a process, from outside."""
import contextlib
import os
import re

PATIENCE = 180  # seconds until something that must happen counts as never: a hang, not a measurement


class Failure(AssertionError):
    pass


class Skip(Exception):
    pass


def read_text(path, default=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return default


def need_memory():
    """For a victim that has more of it than memattach searches."""
    available = re.search(r"^MemAvailable:\s*(\d+)", read_text("/proc/meminfo"), re.M)
    if not available or int(available.group(1)) < 3 << 20:
        raise Skip("the machine has less than 3 GiB of memory left")


def tasks_of(pid):
    try:
        return sorted(int(tid) for tid in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return []


def progress_of(pid):
    """CPU ticks and context switches of all threads."""
    sums = []
    for tid in tasks_of(pid):
        fields = read_text(f"/proc/{pid}/task/{tid}/stat").rpartition(")")[2].split()
        status = read_text(f"/proc/{pid}/task/{tid}/status")
        switches = sum(int(n) for n in re.findall(r"ctxt_switches:\s*(\d+)", status))
        sums.append((tid, fields[11:13] if len(fields) > 13 else None, switches))
    return sums


def describe(pid):
    """One line for a failure message: states and system calls of the threads."""
    parts = []
    for tid in tasks_of(pid):
        status = read_text(f"/proc/{pid}/task/{tid}/status")
        state = re.search(r"State:\s*(\S)", status)
        tracer = re.search(r"TracerPid:\s*(\d+)", status)
        system_call = read_text(f"/proc/{pid}/task/{tid}/syscall").split()
        parts.append(f"{tid} {state and state.group(1)} tracer {tracer and tracer.group(1)} "
                     f"syscall {system_call[:1]} pc {system_call[-1:]}")
    return "; ".join(parts) or "no such process"


MAPS_LINE = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) (\S+) (\d+)\s*(.*)$")


class Maps:
    def __init__(self, pid):
        self.lines = []
        for tid in [pid] + tasks_of(pid):  # the file of an ended first thread is empty
            text = read_text(f"/proc/{pid}/task/{tid}/maps")
            if text:
                break
        for line in text.splitlines():
            start, end, mode, offset, device, inode, name = MAPS_LINE.match(line).groups()
            self.lines.append((int(start, 16), int(end, 16), mode, int(offset, 16), device, inode, name))

    def leave_out(self, starts):
        self.lines = [line for line in self.lines if line[0] not in starts]

    def text(self):
        return [f"{s:x}-{e:x} {m} {o:x} {d} {i} {n}" for s, e, m, o, d, i, n in self.lines]

    def file_backed(self):
        return [line for line in self.lines if line[5] != "0"]

    def bases(self):
        """(name, start of the first mapping, its end) of each ELF file; a file that is mapped twice counts twice."""
        found = []
        for start, end, _, offset, _, inode, name in self.lines:
            if inode != "0" and offset == 0 and name.startswith("/"):
                found.append([name, start, end])
            elif found and found[-1][0] == name:
                found[-1][2] = end
        return found


class Memory:
    def __init__(self, pid):
        self.pid = pid
        self.file = None
        for tid in [pid] + tasks_of(pid):
            try:
                self.file = open(f"/proc/{tid}/mem", "rb", buffering=0)
                self.file.seek(Maps(pid).lines[0][0])
                self.file.read(1)
                return
            except (OSError, IndexError):
                continue

    def read(self, address, size):
        parts = []
        while size:
            try:
                self.file.seek(address)
                part = self.file.read(min(size, 1 << 20))
            except (OSError, OverflowError, AttributeError):
                return None
            if not part:
                return None
            parts.append(part)
            address += len(part)
            size -= len(part)
        return b"".join(parts)


def descriptors_of(pid):
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
    return found
