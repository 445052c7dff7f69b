# SPDX-License-Identifier: MIT
"""Starts victims and sessions of memattach, takes snapshots of a process from outside, and compares them.

A case is a function with the decorator @case. It fails by raising (AssertionError, Failure), skips by raising Skip with a
reason. Everything that it starts is ended with it, by pid, and nothing else is.
"""
import collections
import contextlib
import ctypes
import hashlib
import json
import os
import queue
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

PATIENCE = 90  # seconds until something that must happen counts as never: a hang, not a measurement
ADDR_NO_RANDOMIZE = 0x0040000


class Failure(AssertionError):
    pass


class Skip(Exception):
    pass


class Case:
    def __init__(self, function, labels, timeout):
        self.function, self.labels, self.timeout = function, labels, timeout
        self.name = function.__name__


CASES = {}


def case(label="integration", timeout=180, sanitized=False):
    """sanitized: run again with memattach itself under AddressSanitizer."""
    def register(function):
        assert function.__name__ not in CASES, function.__name__
        CASES[function.__name__] = Case(function, [label, "sanitized"] if sanitized else [label], timeout)
        return function
    return register


class Context:
    """What a case works with: the programs, a directory of its own, and the processes that it started."""

    def __init__(self, memattach, memanalyze, targets, work, cycles):
        self.memattach, self.memanalyze, self.targets = memattach, memanalyze, targets
        self.work, self.cycles = work, cycles
        self.processes = []
        self.count = 0

    def target(self, name):
        path = os.path.join(self.targets, name)
        if not os.path.exists(path):
            raise Skip(f"{name} was not built (its compiler is not installed)")
        return path

    def program(self, *candidates):
        """The path of an installed program that is to be attached, or that drives one."""
        scope = read_text("/proc/sys/kernel/yama/ptrace_scope", "0").strip()
        if scope != "0" and os.geteuid() != 0:
            raise Skip(f"Yama's ptrace_scope is {scope} and this is not root: only victims that allow it can be attached")
        for candidate in candidates:
            path = shutil.which(candidate, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin:/bin")
            if path:
                return path
        raise Skip(f"{candidates[0]} is not installed")

    def path(self, name):
        return os.path.join(self.work, name)

    def unique(self, stem, suffix):
        self.count += 1
        return self.path(f"{stem}-{self.count}{suffix}")

    def start(self, arguments, **options):
        options.setdefault("cwd", self.work)
        process = subprocess.Popen(arguments, **options)
        self.processes.append(process)
        return process

    def close(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.kill()
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)


class Lines:
    """Collects the lines of a stream; waits for one that matches."""

    def __init__(self, stream):
        self.seen, self.queue = [], queue.Queue()
        self.thread = threading.Thread(target=self.pump, args=(stream,), daemon=True)
        self.thread.start()

    def pump(self, stream):
        for line in stream:
            line = line.rstrip("\n")
            self.seen.append(line)
            self.queue.put(line)
        self.queue.put(None)

    def wait(self, pattern, patience=PATIENCE):
        """The next line in which pattern is found; Failure if the stream ends first or nothing comes."""
        end = time.monotonic() + patience
        while True:
            try:
                line = self.queue.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise Failure(f"no line matched {pattern!r} in {patience} s; seen: {self.seen[-10:]}") from None
            if line is None:
                self.queue.put(None)
                raise Failure(f"the stream ended before a line matched {pattern!r}; seen: {self.seen[-10:]}")
            if re.search(pattern, line):
                return line


class Victim:
    """A program of tests/targets."""

    def __init__(self, context, name, *arguments, fixed_addresses=False, environment=None):
        self.name = name
        command = name if isinstance(name, list) else [context.target(name)]

        def before_exec():
            if fixed_addresses:
                ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)

        self.process = context.start(command + list(arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True, preexec_fn=before_exec,
                                     env={**os.environ, **(environment or {})})
        self.lines = Lines(self.process.stdout)
        self.pid = int(self.lines.wait(r"^PID \d+$").split()[1])
        self.lines.wait(r"^READY$")

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait(self, pattern):
        return self.lines.wait(pattern)

    def truth(self):
        """The TRUTH lines of the round that was asked for, by function."""
        found = {}
        while True:
            line = self.lines.wait(r"^TRUTH")
            if line == "TRUTH-END":
                return found
            entry = json.loads(line[len("TRUTH "):])
            found[entry["function"]] = entry

    def check_alive(self):
        if self.process.poll() is not None:
            raise Failure(f"{self.name} ended with {self.process.returncode}: {self.lines.seen[-10:]}")
        wrong = [line for line in self.lines.seen if line.startswith("WRONG")]
        if wrong:
            raise Failure(f"{self.name}: {wrong[:5]}")

    def finish(self):
        """Asks for the report; the victim must end by itself with everything right."""
        end = time.monotonic() + PATIENCE
        # The signal may come just before the victim blocks: it is sent until it is heeded.
        while self.process.poll() is None and time.monotonic() < end:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGUSR1)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.1)
        if self.process.poll() is None:
            raise Failure(f"{self.name} did not end in {PATIENCE} s: {describe(self.pid)}")
        self.lines.thread.join(PATIENCE)
        if self.process.returncode != 0 or not any(line.startswith("OK ") for line in self.lines.seen):
            raise Failure(f"{self.name} ended with {self.process.returncode}: {self.lines.seen[-10:]}")

    def finish_by_stdin(self):
        self.send("end")
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} did not end in {PATIENCE} s: {describe(self.pid)}") from None
        self.finish()

    def rounds_go_on(self):
        """The victim uses CPU time or changes its voluntary switches: it is not stuck."""
        before = progress_of(self.pid)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if progress_of(self.pid) != before:
                return
            time.sleep(0.02)
        raise Failure(f"{self.name} makes no progress: {describe(self.pid)}")


def read_text(path, default=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return default


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


# Snapshots

MAPS_LINE = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) (\S+) (\d+)\s*(.*)$")
STATUS_OF_PROCESS = ("SigIgn", "SigCgt", "ShdPnd", "TracerPid", "NoNewPrivs", "Seccomp", "CoreDumping")
STATUS_OF_THREAD = ("SigBlk", "SigPnd")
GLIBC_SIGNALS = 1 << 31 | 1 << 32
R_64, R_GLOB_DAT, R_JUMP_SLOT, R_RELATIVE = 1, 6, 7, 8
ALLOCATION = re.compile(rb"^(malloc|calloc|realloc|reallocarray|free|cfree|posix_memalign|aligned_alloc|memalign|valloc|"
                        rb"pvalloc|free_sized|free_aligned_sized|_Zn[wa]m.*|_Zd[la]Pv.*|[rxsd]?d?allocx|mallocx|mmap|mmap64|"
                        rb"munmap|mremap)$")


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
            if r_type != R_GLOB_DAT and not ALLOCATION.match(name):
                continue
            value = memory.read(bias + offset, 8)
            if value:
                words[bias + offset] = (int.from_bytes(value, "little"), name.decode(errors="replace"), r_type)
    return words


def thread_state(pid, tid):
    status = dict(re.findall(r"^(\w+):\s*(.*)$", read_text(f"/proc/{pid}/task/{tid}/status"), re.M))
    state = [(key, status.get(key)) for key in STATUS_OF_PROCESS + STATUS_OF_THREAD]
    return tuple(state + [("stopped", status.get("State", "?")[0] in "Tt")])


def in_critical_section(state):
    """glibc keeps SIGCANCEL and SIGSETXID (32, 33) from programs, and blocks them only around some of its own steps."""
    return int(state["SigBlk"] or "0", 16) & GLIBC_SIGNALS == GLIBC_SIGNALS


def descriptors_of(pid):
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
    return found


def comes_back(look, wanted):
    """A program that is busy opens a file for a moment, or runs a signal handler with another mask; on a loaded machine the moment may be long. What was
    left changed stays."""
    end = time.monotonic() + 5
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
            end = time.monotonic() + 10
            while in_critical_section(state) and time.monotonic() < end:
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


# memattach and memanalyze

ABANDONED = 5  # enum dump_state


def recording(pid, size=65536):
    """The begin of the memory that the payload records into, header and all, as it is in the process."""
    place = next(line for line in Maps(pid).text() if "memfd:memattach-dump" in line)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(int(place.split("-")[0], 16))
        return memory.read(size)


def recording_state(pid):
    """How far the recording is (header.state of memattach-dump(5))."""
    return struct.unpack_from("<I", recording(pid, 4096), 24)[0]


class Session:
    """A running memattach. Use run_session for the common case."""

    def __init__(self, context, pid, *arguments, rate="64k", output=None, deadline="20s", wait=True):
        self.context, self.pid = context, pid
        self.dump = output or context.unique("session", ".dump")
        self.receipt_path = context.unique("receipt", ".json")
        command = [context.memattach, "-p", str(pid), "-r", rate, "-o", self.dump, "--receipt", self.receipt_path]
        if deadline:
            command += ["--deadline", deadline]
        self.process = context.start(command + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     text=True)
        self.lines = Lines(self.process.stderr)
        self.output = Lines(self.process.stdout)
        if wait:
            self.attached = self.lines.wait(rf"attached to {pid}\b")

    def stop(self, signal_number=signal.SIGINT):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal_number)
        return self.end()

    def end(self, expected=0):
        """Waits for its end; returns the receipt."""
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"memattach did not end in {PATIENCE} s; target: {describe(self.pid)}; "
                          f"said: {self.lines.seen[-5:]}") from None
        self.lines.thread.join(PATIENCE)
        if code != expected:
            raise Failure(f"memattach ended with {code}, not {expected}: {self.lines.seen}")
        if self.output.seen:
            raise Failure(f"memattach wrote to stdout: {self.output.seen[:3]}")
        receipt = read_text(self.receipt_path)
        return json.loads(receipt) if receipt else None

    def said(self):
        return "\n".join(self.lines.seen)


def check_receipt(receipt, pid, clean=True):
    assert receipt is not None, "there is no receipt"
    assert receipt["pid"] == pid, receipt
    for key in ("attach", "detach"):
        assert isinstance(receipt["stopped_ms"][key], (int, float)) and receipt["stopped_ms"][key] >= 0, receipt
    slots = receipt["slots"]
    assert set(slots) >= {"patched", "restored", "foreign"}, receipt
    assert slots["patched"] > 0, receipt
    assert isinstance(receipt["residue"], list), receipt
    if clean:
        assert receipt["clean"] is True and receipt["residue"] == [] and slots["foreign"] == 0, receipt
        assert slots["restored"] + slots.get("gone", 0) == slots["patched"], receipt
    else:
        assert receipt["clean"] is False and receipt["residue"], receipt


def run_session(context, victim, *arguments, seconds=1.0, rate="64k", busy=True, compare=True, during=None):
    """Attach, wait, detach, compare; returns (session, receipt)."""
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid, *arguments, rate=rate)
    if during:
        during()
    time.sleep(seconds)
    victim.check_alive()
    receipt = session.stop()
    check_receipt(receipt, victim.pid)
    if compare:
        check_same(before, Snapshot(victim.pid), busy)
    victim.check_alive()
    return session, receipt


def analyze(context, dump, *arguments, expected=0):
    """memanalyze --json, parsed and checked for the documented fields."""
    result = subprocess.run([context.memanalyze, "--json", *arguments, dump], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    if result.returncode != expected:
        raise Failure(f"memanalyze ended with {result.returncode}: {result.stderr[-1000:]}")
    report = json.loads(result.stdout)
    check_report(report)
    return report


def analyze_text(context, dump, *arguments):
    result = subprocess.run([context.memanalyze, *arguments, dump], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, timeout=PATIENCE, check=False)
    if result.returncode:
        raise Failure(f"memanalyze ended with {result.returncode}: {result.stderr[-1000:]}")
    return result.stdout


FIGURES = ("live_bytes", "live_count", "allocated_bytes", "allocated_count")


def check_figures(holder):
    for name in FIGURES:
        figure = holder[name]
        assert figure["low"] <= figure["estimate"] * (1 + 1e-9) + 1e-9, (name, figure)
        assert figure["estimate"] <= figure["high"] * (1 + 1e-9) + 1e-9, (name, figure)
        assert figure["stderr"] >= 0, (name, figure)


def check_report(report):
    assert report["format"] == 2
    assert set(report) >= {"format", "rate_bytes", "confidence", "complete", "target", "samples", "total", "stacks"}
    assert set(report["target"]) >= {"pid", "command", "attached_at", "duration_seconds", "ended"}
    assert report["target"]["ended"] in ("detached", "exited", "killed", "running", "abandoned"), report["target"]
    assert set(report["samples"]) >= {"taken", "live", "lost"}
    check_figures(report["total"])
    for stack in report["stacks"]:
        check_figures(stack)
        assert stack["samples"] >= stack["samples_live"] >= 0
        assert stack["truncated"] in (True, False)
        for frame in stack["frames"]:
            assert re.match(r"^0x[0-9a-f]+$", frame["address"]), frame
            assert set(frame) >= {"function", "file", "line", "module", "build_id", "inlined"}, frame


def functions_of(stack):
    return [frame["function"] for frame in stack["frames"] if frame["function"]]


def stacks_with(report, function):
    return [stack for stack in report["stacks"] if function in functions_of(stack)]


def sum_of(stacks, figure, part="estimate"):
    return sum(stack[figure][part] for stack in stacks)


def truncated_share(report):
    samples = sum(stack["samples"] for stack in report["stacks"])
    cut = sum(stack["samples"] for stack in report["stacks"] if stack["truncated"])
    return cut / samples if samples else 0.0


def memattach_once(context, *arguments, patience=PATIENCE):
    """A run that ends by itself; returns the finished process."""
    return subprocess.run([context.memattach, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=patience, cwd=context.work, check=False)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port, process):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise Failure(f"the server ended with {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise Failure(f"nothing listens on port {port} after {PATIENCE} s")


def log(*words):
    print(*words, file=sys.stderr, flush=True)
