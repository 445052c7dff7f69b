# SPDX-License-Identifier: MIT
"""Programs that print a line every tick (bench/bench.h), alone and under the profilers that scripts/bench compares with memattach."""
import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from servers import bounded

PATIENCE = 15  # seconds for a peer to attach, or a workload to begin; then it counts as hung
HANGS = 4  # seconds without an operation of a workload that has begun


@dataclass
class Workload:
    name: str
    command: list
    peers: tuple = ()
    warm: float = 0.7   # seconds between its first operations and the first phase
    phase: float = 1.2
    gaps: bool = True   # a gap between two looks at its clock is a stop


class Ticks:
    """Such a program, read while it runs; ended by close(), or as a context."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
        self.lines = []
        try:
            with bounded(self.process, PATIENCE):
                first = self.process.stdout.readline().split()
            if len(first) != 2 or first[0] != "PID":
                raise RuntimeError(f"{Path(command[0]).name} does not start")
        except BaseException:
            self.close()
            raise
        self.pid = int(first[1])
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            if len(words) == 7 and words[0] == "T":
                # stamp, ops, seconds, cpu seconds, longest gap
                self.lines.append((time.monotonic(), float(words[3]), float(words[2]), float(words[5]), float(words[6])))

    def between(self, start, end):
        """Throughput for each second of CPU, and of time, of the ticks that lie within; None if there is none."""
        inside = [l for l in self.lines if l[0] - l[2] >= start and l[0] <= end]
        ops, wall, cpu = (sum(l[i] for l in inside) for i in (1, 2, 3))
        return (ops / cpu, ops / wall) if ops and cpu else None

    def gap(self, start, end):
        """The longest time between two looks at the clock, in ms."""
        return max((l[4] for l in self.lines if l[0] >= start and l[0] - l[2] <= end), default=0) / 1000

    def warm(self, seconds):
        """Lets it run since its first operations."""
        end = time.monotonic() + PATIENCE
        while self.alive() and time.monotonic() < end and not any(l[1] for l in self.lines):
            time.sleep(0.02)
        time.sleep(seconds)

    def phase(self, seconds):
        """Lets it run; gives what between() takes."""
        start = time.monotonic()
        time.sleep(seconds)
        return start, time.monotonic()

    def goes_on(self):
        """Waits for operations that began after this call; False where none do, as in a program that hangs."""
        start = time.monotonic()
        while self.alive() and time.monotonic() < start + HANGS:
            if any(ops and stamp - seconds >= start for stamp, ops, seconds, _, _ in self.lines[-2:]):
                return True
            time.sleep(0.02)
        return False

    def alive(self):
        return self.process.poll() is None

    def fate(self):
        """Why there is no figure."""
        code = self.process.poll()
        if code is None:
            return "the workload made no progress"
        return f"the workload died of signal {-code}" if code < 0 else f"the workload ended with {code}"

    def close(self):
        if self.alive():
            self.process.kill()
        self.process.wait()


def add_pair(table, workload, tool, native, with_tool, **values):
    table.add(workload, tool, cpu_ratio=with_tool[0] / native[0], ratio=with_tool[1] / native[1],
              added_ns=(1 / with_tool[0] - 1 / native[0]) * 1e9, **values)


def mean(a, b):
    return tuple((x + y) / 2 for x, y in zip(a, b)) if a and b else a or b


def holds(pid, name):
    """Whether a process has a file open with this in its name."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if name in os.readlink(link):
                return True
    return False


class Heaptrack:
    """Attached with gdb. Without -r heaptrack_interpret reads its pipe while the workload runs."""

    def __init__(self, program, options, pid, folder):
        self.program, self.pid, self.folder = program, pid, folder
        self.command = [program, *options, "-o", str(folder / "heaptrack"), "-p", str(pid)]

    def absent(self):
        return not shutil.which(self.program) or not shutil.which("gdb")

    def ready(self, said):
        """Whether it records; None: not yet."""
        return holds(self.pid, "heaptrack_fifo") if "injection finished" in said else None

    def bytes(self):
        return sum(f.stat().st_size for f in self.folder.glob("heaptrack.*"))

    def clean(self, process):
        for f in [*self.folder.glob("heaptrack.*"), Path(f"/tmp/heaptrack_fifo{process.pid}")]:
            f.unlink(missing_ok=True)


class Bpftrace:
    """The sum of sizes by stack (of frame pointers: there is nothing else) at malloc, and a count at free."""

    def __init__(self, pid, _):
        maps = Path(f"/proc/{pid}/maps").read_text()
        libc = re.search(r"\S*/libc\.so\.6$", maps, re.M)
        where = f"uprobe:{libc.group()}" if libc else "uprobe:libc"
        self.command = ["bpftrace", "-p", str(pid), "-e", f"{where}:malloc /pid == {pid}/ {{ @[ustack(30)] = sum(arg0); }} "
                        f"{where}:free /pid == {pid}/ {{ @frees = count(); }}"]

    def absent(self):
        return not shutil.which("bpftrace")

    def ready(self, said):
        return True if "Attaching" in said else None

    def bytes(self):
        return None

    def clean(self, process):
        pass


def complaint(said):
    """The first line that tells of a failure; None if there is none."""
    lines = (l.strip() for l in said.splitlines() if re.search(r"error|fail|cannot|could not|invalid|unable|signaled|terminate", l, re.I))
    return next((l[:80].rstrip(".") for l in lines), None)


def attaching(name, kind, table, work, folder):
    """A peer that attaches: native, with it, in one process, which is then killed: the peers end by themselves."""
    with open(folder / "peer.log", "w+", encoding="utf-8", errors="replace") as log, Ticks(work.command) as t:
        tool = kind(t.pid, folder)
        if tool.absent():
            table.absent(work.name, name, "not installed")
            return
        t.warm(work.warm)
        native = t.phase(work.phase)
        began = time.monotonic()
        process = subprocess.Popen(tool.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            def said():
                return Path(log.name).read_text(encoding="utf-8", errors="replace")
            ready = None
            while ready is None and t.alive() and process.poll() is None and time.monotonic() < began + PATIENCE:
                time.sleep(0.05)
                ready = tool.ready(said())
            attached = time.monotonic()
            if not t.alive():
                table.absent(work.name, name, t.fate())
                return
            if not ready:
                why = complaint(said()) or ("it hung" if ready is None else "no reason given")
                table.absent(work.name, name, f"could not attach ({why})")
                return
            time.sleep(1.2)
            span = t.phase(work.phase)
            size, seconds = tool.bytes(), time.monotonic() - attached
            went_on = t.goes_on()
            base, speed = t.between(*native), t.between(*span)
            if not went_on or not base or not speed:
                table.absent(work.name, name, t.fate())
                return
            if process.poll() is not None or not tool.ready(said()):
                table.absent(work.name, name, f"it ended by itself ({complaint(said()) or 'no reason given'})")
                return
            add_pair(table, work.name, name, base, speed, gap_attach=t.gap(began, span[0]) if work.gaps else None,
                     bytes_s=None if size is None else size / seconds, attach_s=attached - began)
        finally:
            t.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(3)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also what it left behind
            process.wait()
            tool.clean(process)


def run_once(work, env):
    with Ticks(work.command, env) as t:
        t.warm(work.warm)
        span = t.phase(work.phase)
        time.sleep(0.3)
        speed = t.between(*span)
        return speed, None if speed else t.fate()


def preloaded(table, work, tool, native_env, tool_env):
    """A peer that is there from the start: natively, with it, in two processes."""
    try:
        base, why = run_once(work, native_env)
        speed, with_tool = run_once(work, tool_env)
    except RuntimeError as e:
        table.absent(work.name, tool, str(e))
        return
    if base and speed:
        add_pair(table, work.name, tool, base, speed)
    else:
        table.absent(work.name, tool, why or with_tool)


def library(*names):
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib", "/usr/lib64", "/usr/local/lib"):
        for name in names:
            if os.path.exists(f"{folder}/{name}"):
                return f"{folder}/{name}"
    return None


def heaptrack_preloaded(table, work, folder):
    preload, tool = library("heaptrack/libheaptrack_preload.so"), "heaptrack, preloaded"
    if not preload:
        table.absent(work.name, tool, "not installed")
        return
    output = folder / "heaptrack.raw"
    preloaded(table, work, tool, {}, {"LD_PRELOAD": preload, "DUMP_HEAPTRACK_OUTPUT": str(output)})
    output.unlink(missing_ok=True)


def jemalloc(table, work, _):
    preload, tool = library("libjemalloc.so.2"), "jemalloc prof 512k"
    told = subprocess.run(["true"], env={**os.environ, "LD_PRELOAD": preload or "", "MALLOC_CONF": "prof:true"},
                          capture_output=True, text=True, check=False).stderr
    if not preload or "Invalid" in told:
        table.absent(work.name, tool, "not installed" if not preload else "this libjemalloc is built without it")
        return
    preloaded(table, work, tool, {"LD_PRELOAD": preload},
              {"LD_PRELOAD": preload, "MALLOC_CONF": "prof:true,lg_prof_sample:19,prof_final:false"})


def gperftools(table, work, folder):
    preload, tool = library("libtcmalloc.so.4"), "gperftools HEAPPROFILE"
    if not preload:
        table.absent(work.name, tool, "not installed (libtcmalloc_minimal has no heap profiler)")
        return
    preloaded(table, work, tool, {"LD_PRELOAD": preload}, {"LD_PRELOAD": preload, "HEAPPROFILE": str(folder / "gperftools")})
    for f in folder.glob("gperftools*"):
        f.unlink()


def version_of(heaptrack):
    """As [1, 4, 0]; [] if it is no heaptrack, or cannot be asked."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        said = subprocess.run([heaptrack, "--version"], capture_output=True, text=True, check=False, timeout=PATIENCE).stdout
        if said.startswith("heaptrack "):
            return [int(number) for number in re.findall(r"\d+", said)]
    return []


def heaptracks(asked):
    """What attaches heaptrack: the installed one and the programs that are asked for. All of them with -r; with their interpreters from 1.5
    on: that of 1.4 ends with std::bad_alloc on churn, and the recorder blocks in its next write."""
    ways = {"heaptrack -p -r": ("heaptrack", ["-r"])}
    for program in ("heaptrack", *asked):
        version = version_of(program)
        name = f"heaptrack {'.'.join(map(str, version))}"
        if program != "heaptrack":
            ways[f"{name} -p -r"] = program, ["-r"]
        if version >= [1, 5]:
            ways[f"{name} -p"] = program, ["--record-only"]  # opens no window at the end
    for name, way in ways.items():
        peer = functools.partial(attaching, name, functools.partial(Heaptrack, *way))
        peer.__name__ = name
        yield peer


def bpftrace(table, work, folder):
    attaching("bpftrace uprobes", Bpftrace, table, work, folder)
