# SPDX-License-Identifier: MIT
"""Starts victims and sessions of memattach.

A case is a function with the decorator @case. It fails by raising (AssertionError, Failure), skips by raising Skip with a
reason. Everything that it starts is ended with it, by pid, and nothing else is.
"""
import contextlib
import ctypes
import json
import os
import platform
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from contracts import counters_in, dump_states, header_field
from procfs import Failure, Maps, PATIENCE, Skip, describe, progress_of, read_text
from snapshot import Snapshot, check_same
import waiting

waiting.use_everywhere()

ADDR_NO_RANDOMIZE = 0x0040000
VICTIM_NICE = 5  # victims allocate as fast as they can, all at once: memattach and the tests go first, or all takes longer
KILLS = 12  # of a case that kills memattach at random moments
DEADLINE = "60s"  # until memattach gives up what should succeed: an attach and a detach fit into PATIENCE


class Case:
    def __init__(self, function, labels, timeout):
        self.function, self.timeout = function, timeout
        self.labels = labels + ["harm"] * function.__module__.startswith("harm_")
        self.name = function.__name__


CASES = {}


def case(label="integration", timeout=600, sanitized=False, alone=False):
    """sanitized: run again with memattach itself under AddressSanitizer. alone: never at the same time as another test, since it takes
    all processors, or what it looks at belongs to the whole machine."""
    def register(function):
        assert function.__name__ not in CASES, function.__name__
        labels = [label, function.__module__] + ["sanitized"] * sanitized + ["alone"] * (alone or label == "stress" and not sanitized)
        CASES[function.__name__] = Case(function, labels, timeout)
        return function
    return register


class Context:
    """What a case works with: the programs, a directory of its own, and the processes that it started.

    options: what every attach is given besides.
    """

    options = ()

    def __init__(self, memattach, memanalyze, targets, work, cycles=5, kills=KILLS):
        self.memattach, self.memanalyze, self.targets = memattach, memanalyze, targets
        self.work, self.cycles, self.kills = work, cycles, kills
        self.processes = []
        self.count = 0

    def target(self, name):
        path = os.path.join(self.targets, name)
        if not os.path.exists(path):
            raise Skip(f"{name} was not built (its compiler is not installed)")
        return path

    def tool(self, name):
        """A program or library of tests/tools."""
        return os.path.realpath(os.path.join(self.targets, "..", "tools", name))

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
        command = name if isinstance(name, list) else [context.target(name)]
        self.name = os.path.basename(command[-1])

        def before_exec():
            os.nice(VICTIM_NICE)
            if fixed_addresses:
                ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)

        self.process = context.start(command + list(arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True, preexec_fn=before_exec,
                                     env={**os.environ, **(environment or {})})
        self.lines = Lines(self.process.stdout)
        self.pid = int(self.lines.wait(r"^PID \d+$").split()[1])
        self.lines.wait(r"^READY$")
        for line in self.lines.seen:
            if line.startswith("CANNOT"):
                raise Skip(f"{self.name} {' '.join(arguments)}: {line[7:]}")

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


def rootless(context, name, *files):
    """The command that runs a victim in a directory of its own as root, with its libraries, without /proc; files go to its root."""
    if os.geteuid() != 0:
        raise Skip("only root may call chroot")
    root, program = context.unique("root", ""), context.target(name)
    os.mkdir(root)
    listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    libraries = [f"/lib/ld-musl-{platform.machine()}.so.1"] if name.endswith("_musl") else re.findall(r"(/\S+) \(0x", listed)
    for path in [program, *libraries]:
        there = os.path.join(root, "bin/victim" if path == program else path.lstrip("/"))
        os.makedirs(os.path.dirname(there), exist_ok=True)
        shutil.copy(path, there)
    for name in files:
        shutil.copy(context.target(name), root)
    return ["chroot", root, "/bin/victim"]


ABANDONED = dump_states()["ABANDONED"]


def recording(pid, size=65536):
    """The begin of the memory that the payload records into, header and all, as it is in the process."""
    place = next(line for line in Maps(pid).text() if "memfd:memattach-dump" in line)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(int(place.split("-")[0], 16))
        return memory.read(size)


def recording_state(pid):
    """How far the recording is (header.state of memattach-dump(5))."""
    return header_field(recording(pid, 4096), "state")


class Session:
    """A running memattach. Use run_session for the common case."""

    def __init__(self, context, pid, *arguments, rate="64k", output=None, deadline=DEADLINE, wait=True, under=()):
        self.context, self.pid = context, pid
        self.dump = output or context.unique("session", ".dump")
        self.receipt_path = context.unique("receipt", ".json")
        command = [*under, context.memattach, "-p", str(pid), "-r", rate, "-o", self.dump, "--receipt", self.receipt_path,
                   *context.options]
        if deadline:
            command += ["--deadline", deadline]
        self.process = context.start(command + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     text=True)
        self.lines = Lines(self.process.stderr)
        self.output = Lines(self.process.stdout)
        if wait:
            self.attached = self.lines.wait(rf"attached to {pid}\b")

    def sampled(self, count=1):
        """Waits until so many samples were taken: how long that takes is the machine's affair."""
        end, pause = time.monotonic() + PATIENCE, 0.02
        while counters_in(recording(self.pid, 4096))["samples_taken"] < count:
            if time.monotonic() > end:
                raise Failure(f"no {count} samples in {PATIENCE} s; {describe(self.pid)}; said: {self.lines.seen[-5:]}")
            time.sleep(pause)
            pause = min(0.3, 1.2 * pause)  # to look takes an emulated processor that the victim needs

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
        self.receipt = json.loads(receipt) if receipt else None
        return self.receipt

    def said(self):
        return "\n".join(self.lines.seen)


def check_receipt(receipt, pid, clean=True):
    assert receipt is not None, "there is no receipt"
    assert receipt["pid"] == pid, receipt
    for key in ("attach", "detach"):
        assert isinstance(receipt["stopped_ms"][key], (int, float)) and receipt["stopped_ms"][key] >= 0, receipt
    slots, python, functions = receipt["slots"], receipt["python"], receipt["functions"]
    assert set(slots) >= {"patched", "restored", "foreign"}, receipt
    assert slots["patched"] + functions["hooked"] > 0, receipt
    assert isinstance(receipt["residue"], list), receipt
    changes = {change["what"]: change for change in receipt["changes"]}
    assert all(c["made"] == c["undone"] + c["gone"] + c["stays"] for c in changes.values()), receipt
    for what in ("the payload, and its lists", "unused padding: the stub"):
        assert changes[what]["made"], receipt
    if clean:
        assert receipt["clean"] is True and receipt["residue"] == [] and slots["foreign"] == 0, receipt
        assert slots["restored"] + slots.get("gone", 0) == slots["patched"], receipt
        assert python["restored"] + python["gone"] == python["patched"] and python["foreign"] == 0, receipt
        assert functions["restored"] == functions["hooked"], receipt
        assert not any(c["stays"] for c in changes.values()), receipt
        for what, count in (("a GOT entry", slots["patched"]), ("a jump at the entry of a function", functions["hooked"])):
            assert changes.get(what, {"made": 0})["made"] == count, receipt
    else:
        assert receipt["clean"] is False and receipt["residue"], receipt


def run_session(context, victim, *arguments, seconds=1.0, samples=0, rate="64k", busy=True, compare=True, during=None):
    """Attach, wait for the time and the samples, detach, compare; returns (session, receipt)."""
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid, *arguments, rate=rate)
    if during:
        during()
    time.sleep(seconds)
    if samples:
        session.sampled(samples)
    victim.check_alive()
    receipt = session.stop()
    check_receipt(receipt, victim.pid)
    if compare:
        check_same(before, Snapshot(victim.pid), busy)
    victim.check_alive()
    return session, receipt


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


UNCHANGED = "nothing was changed"
# For who waits for a number of samples: where one takes long, as in an emulated machine, the limit lets fewer and fewer be taken.
AT_ANY_COST = ("--max-overhead", "off")


def slow_allocator(context, name="slow"):
    """The environment of a victim with slow_malloc.c; "blind": without unwind information."""
    return {"LD_PRELOAD": context.tool(f"{name}_malloc.so")}


def run_memattach(context, *arguments, patience=PATIENCE, **options):
    """A session or a detach has DEADLINE where no other one is said: a machine that is starved is no failure."""
    if {"-d", "--detach"} & set(arguments) and not {"--deadline", "--"} & set(arguments):
        arguments += ("--deadline", DEADLINE)
    return subprocess.run([context.memattach, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=patience, cwd=context.work, check=False, **options)


def start_memattach(context, *arguments):
    return context.start([context.memattach, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def end_of(process):
    try:
        said = process.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        raise Failure(f"memattach {process.args[1:]} does not end") from None
    return process.returncode, said


def cycle(context, pid, *arguments, duration="20ms", expected=(0,)):
    """One attach and detach that must succeed; returns when it ended (CLOCK_MONOTONIC, ns)."""
    dump = context.unique("cycle", ".dump")
    result = run_memattach(context, "-p", pid, "-d", duration, "-o", dump, "--deadline", DEADLINE, *context.options, *arguments)
    if os.path.exists(dump):
        os.unlink(dump)
    if result.returncode not in expected:
        raise Failure(f"memattach ended with {result.returncode}: {result.stderr}; target: {describe(pid)}")
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
