# SPDX-License-Identifier: MIT
"""--doctor finds CPython, proves how it is laid out, and shows the stacks that the program itself says it has.

Other interpreters are tried if MEMATTACH_PYTHONS names them, separated by ";": each is a command that runs a Python program
which is the next argument, "/opt/python3.12/bin/python3.12 -c" or "chroot /srv/debian13 python3 -c".
"""
import json
import os
import pathlib
import re
import shlex
import subprocess

from cases_allocators import doctor
from harness import PATIENCE, Skip, Snapshot, Victim, case, check_same, log, read_text

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "targets" / "languages" / "python_stacks.py"
SHOWN = 64  # PYTHON_PLACES_MAX


def verbose(context, victim):
    """The lines about Python. The process is as before."""
    before = Snapshot(victim.pid)
    result = subprocess.run([context.memattach, "--doctor", "--verbose", "-p", str(victim.pid)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    assert result.returncode in (0, 1) and not result.stderr, result
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.check_alive()
    lines, inside = [], False
    for line in result.stdout.splitlines():
        inside = line.startswith("python ") or (inside and line.startswith(" "))
        if inside:
            lines.append(line[16:])
    return lines


def stacks_in(lines):
    """(thread, interpreter), how many frames, and those that are shown."""
    found = []
    for line in lines:
        head = re.match(r"  (?:made by )?thread (\d+), interpreter (\d+), (\d+) frames?$", line)
        frame = re.match(r"    (.*) \((.*):(\d+)\)$", line)
        if head:
            found.append(((int(head[1]), int(head[2])), int(head[3]), []))
        elif frame and found:
            found[-1][2].append([frame[1], frame[2], int(frame[3])])
    return found


def shown(stack):
    """As a terminal gets it."""
    return [[re.sub(r"[\x00-\x1f]", "?", function), re.sub(r"[\x00-\x1f]", "?", file), line] for function, file, line in stack[:SHOWN]]


def compare(context, command, version=None, arguments=()):
    victim = Victim(context, command, *arguments, environment={"PYTHONIOENCODING": "utf-8"})
    said = {line.split(" ", 1)[0]: json.loads(line.split(" ", 1)[1]) for line in victim.lines.seen
            if line.startswith(("STACKS ", "INNER "))}
    lines = verbose(context, victim)
    log(f"{' '.join(command)[:60]}: {lines[:4]}")
    stacks = {key: (count, places) for key, count, places in stacks_in(lines)}
    assert len(stacks) == len(stacks_in(lines)), lines
    assert re.match(rf"CPython {version or r'3[.][0-9]+[.][0-9]+'} in ", lines[0]), lines[0]
    frames = sum(len(stack) for stack in said["STACKS"].values()) + len(said["INNER"] or ())
    found = re.match(r"  Python frames can be read: (\d+) frames of (\d+) threads in (\d+) interpreters? ", lines[1])
    assert found, lines[:5]
    assert int(found[1]) == frames and int(found[3]) == 1 + bool(said["INNER"]), (lines[1], frames)
    # A thread that runs a subinterpreter has two states; in 3.12 it finds that one, which names another thread.
    own = re.match(r"  a thread finds its own frames: so it was for (\d+) threads", lines[2])
    assert own and int(own[1]) == len(said["STACKS"]) - ("CPython 3.12." in lines[0] and bool(said["INNER"])), lines[:5]
    for tid, stack in said["STACKS"].items():
        count, places = stacks[int(tid), 0]
        assert count == len(stack), (tid, count, len(stack), stack[:5])
        assert places == shown(stack), f"thread {tid}: {places} is not {shown(stack)}"
    inner = [stack[1] for (_, interpreter), stack in stacks.items() if interpreter]
    assert inner == ([said["INNER"]] if said["INNER"] else []), inner
    victim.send("end")
    victim.process.wait(PATIENCE)
    victim.lines.thread.join(PATIENCE)
    assert victim.process.returncode == 0 and victim.lines.seen[-1].startswith("OK "), victim.lines.seen[-3:]


@case(sanitized=True)
def doctor_shows_python_stacks(context):
    """Debian's python3: plain functions, classes, generators, coroutines, C between, a finaliser, a subinterpreter, strange names."""
    compare(context, [context.program("/usr/bin/python3"), str(PROGRAM)])


@case()
def doctor_shows_stacks_of_other_pythons(context):
    if not others():
        raise Skip("MEMATTACH_PYTHONS names no other interpreter")
    for command in others():
        compare(context, [*command, PROGRAM.read_text(encoding="utf-8")])


BUSY = r"""
import os, sys, threading
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
def values(n):
    yield from (fibonacci(i) for i in range(n))
end = False
def work():
    while not end:
        if sum(values(12)) != 232 or sum(sorted(values(9), key=lambda x: fibonacci(3) - x)) != 54:
            print("WRONG sum", flush=True)
def come_and_go():
    while not end:
        threads = [threading.Thread(target=fibonacci, args=(10,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
threads = [threading.Thread(target=f) for f in (work, work, come_and_go)]
for thread in threads:
    thread.start()
print("PID %d\nREADY" % os.getpid(), flush=True)
sys.stdin.readline()
end = True
for thread in threads:
    thread.join()
print("OK busy rounds=1", flush=True)
"""


@case()
def doctor_looks_at_busy_python(context):
    """Frames and threads that come and go under the look: it ends well each time, and takes none of that for a wrong layout."""
    victim = Victim(context, [context.program("/usr/bin/python3"), "-c", BUSY])
    proved, names = 0, set()
    for _ in range(20):
        lines = verbose(context, victim)
        assert lines[0].startswith("CPython 3."), lines
        proved += lines[1].startswith("  Python frames can be read: ")
        names |= {function for _, _, stack in stacks_in(lines) for function, _, _ in stack}
        assert lines[1].startswith("  Python frames can be read: ") or "thread states" in lines[1] or "not one of" in lines[1], lines
    log(f"proved {proved} times of 20; {sorted(names)}")
    assert proved >= 1 and {"work", "values", "<module>"} <= names, (proved, names)
    victim.send("end")
    assert victim.process.wait(PATIENCE) == 0
    victim.lines.thread.join(PATIENCE)
    assert victim.lines.seen[-1].startswith("OK ") and not any(line.startswith("WRONG") for line in victim.lines.seen), victim.lines.seen


@case()
def doctor_says_nothing_of_python_elsewhere(context):
    victim = Victim(context, "alloc_loop", "calm")
    assert "python" not in doctor(context, victim)
    assert verbose(context, victim) == []
    victim.finish()


# Of CPython's own tests (Debian: libpython3.11-testsuite), if they are installed: all that makes, suspends and ends frames.
MODULES = """test_generators test_coroutines test_asyncgen test_threading test_gc test_finalization test_sys_settrace test_fork1
test_frame test_contextlib test_weakref test_descr test_exceptions test_traceback test_thread test_functools test_sort test_json
test_re test_class test_call test_atexit test_threading_local test_threadsignals test_signal test_subprocess
test__xxsubinterpreters test_interpreters test_ctypes""".split()


def walks_in(path):
    """Sums over the processes: walks, frames, without a thread, truncated, lost, code without a name."""
    found = [[int(word) for word in line.split()[1:]] for line in read_text(path).splitlines() if " not " not in line]
    return [sum(column) for column in zip(*found)]


# Each walk is of the very moment in which Python looks at itself: the same code objects, at the same instructions.
COMPARING = r"""
import asyncio, ctypes, functools, re, sys, threading, time
here = ctypes.PyDLL(sys.argv[1]).python_walks_here  # keeps the lock
codes, offsets = (ctypes.c_uint64 * 1000)(), (ctypes.c_int32 * 1000)()
seen = []
def look():
    f, own = sys._getframe(), []
    count = here(codes, offsets, 1000, 1)
    while f:
        own.append((id(f.f_code), f.f_lasti))
        f = f.f_back
    # The innermost frame has gone on since; all others rest in their call.
    assert count == len(own), (count, len(own))
    assert [codes[i] for i in range(count)] == [code for code, _ in own]
    assert [offsets[i] for i in range(1, count)] == [at for _, at in own[1:]], (offsets[:count], own)
    seen.append(count)
    return seen[-1]
class Maker:
    def __init__(self):
        self.count = look()
def generator():
    yield look()
    yield from (look() for _ in range(2))
async def coroutine():
    async def values():
        yield look()
        await asyncio.sleep(0)
        yield look()
    return [value async for value in values()]
def recursion(n):
    return recursion(n - 1) if n else look()
def kinds():
    look(), Maker(), list(generator()), asyncio.run(coroutine()), recursion(300)
    sorted([2, 1], key=lambda x: look() * 0 + x)
    re.sub("x", lambda match: str(look()), "xx")
    functools.reduce(lambda a, b: look(), [1, 2, 3])
    exec("look()")
    for _ in range(50):  # specialised code
        Maker()
kinds()
threads = [threading.Thread(target=kinds) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
def deep(n):
    if n:
        return deep(n - 1)
    start = time.perf_counter_ns()
    assert here(codes, offsets, 1000, 100000) == 30
    return (time.perf_counter_ns() - start) / 1e5
print(len(seen), "looks,", round(deep(28)), "ns for 30 frames")
"""


def others():
    return [shlex.split(command) for command in os.environ.get("MEMATTACH_PYTHONS", "").split(";") if command.strip()]


def pythons(context):
    """Interpreters that run on this system: in a chroot nothing can be loaded that is built here."""
    return [context.program("/usr/bin/python3")] + [command[0] for command in others() if command[0] != "chroot"]


def running(context, program):
    """A command for each interpreter that runs the program; in a chroot that is no file."""
    chroots = [[*command, program.read_text(encoding="utf-8")] for command in others() if command[0] == "chroot"]
    return [[python, str(program)] for python in pythons(context)] + chroots


@case()
def python_walk_sees_what_python_sees(context):
    """The payload's walk from inside, against sys._getframe()."""
    library = context.tool("python_walks.so")
    if not os.path.exists(library):
        raise Skip("python_walks.so was not built")
    for python in pythons(context):
        result = subprocess.run([python, "-c", COMPARING, library], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE,
                                env={**os.environ, "PYTHON_WALKS": context.path("walks"), "LD_PRELOAD": library}, check=False)
        assert result.returncode == 0 and re.match(r"\d{3,} looks", result.stdout), result.stderr[-2000:]
        log(f"{python}: {result.stdout.strip()}")


@case(label="stress", timeout=7200)
def python_walks_at_every_malloc(context):
    """The payload's walk, at each call of malloc of python3 with PYTHONMALLOC=malloc: never lost, never a fault."""
    if not os.path.exists(context.tool("python_walks.so")):
        raise Skip("python_walks.so was not built")
    for number, python in enumerate(pythons(context)):
        log_file = context.path(f"walks-{number}")
        environment = {**os.environ, "PYTHONMALLOC": "malloc", "PYTHON_WALKS": log_file, "LD_PRELOAD": context.tool("python_walks.so")}
        subprocess.run([python, str(PROGRAM)], env=environment, input=b"end\n", stdout=subprocess.DEVNULL, timeout=600, check=True)
        if subprocess.run([python, "-c", "import test.test_generators"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            # What fails with it fails without it: not what is looked at here. A fault would end the first process.
            ended = subprocess.run([python, "-m", "test", *MODULES], env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=3600, check=False, cwd=context.work)
            assert ended.returncode >= 0, ended
        walks, frames, no_thread, truncated, lost, nameless = walks_in(log_file)
        log(f"{python}: {walks} walks, {frames} frames, {no_thread} without a thread, {truncated} truncated, {lost} lost, {nameless} frames without a name")
        assert walks > 100000 and frames > walks and lost == 0 and no_thread < walks / 2 and nameless < frames / 1000


IMPOSTORS = {
    "release": ("CPython 3.11.2", ""),
    "debug": ("CPython 3.13.5, a debug build,", "it is a debug build"),
    "free_word": ("CPython 3.13.5, a free-threaded build,", "it is a free-threaded build"),
    "free_name": ("CPython 3.13.5, a free-threaded build,", "it is a free-threaded build"),
    "early": ("CPython 3.14.0rc1", "it was made before the release of its version"),
    "later": ("CPython 3.15.2", "the structures of this version are not known"),
    "mute": ("CPython 3.13.5", "it does not describe itself"),
    "contrary": ("CPython", "its version cannot be told"),
    "section": ("CPython 3.12.7", ""),
}
# As of any such build: of one that is none too little is promised.
OF_FREE = ["  objects of Python of any size are not recorded: a free-threaded build takes them from an allocator of its own"]


@case(sanitized=True)
def doctor_believes_no_impostor(context):
    """Programs that have the names of an interpreter, and noise that changes all the time behind them."""
    for name, (version, reason) in IMPOSTORS.items():
        victim = Victim(context, f"python_impostor_{name}")
        for _ in range(1 if reason else 5):
            lines = verbose(context, victim)
            assert lines[0] == f"{version} in the program python_impostor_{name}", lines
            assert lines[1].startswith("  Python frames cannot be read: ") and reason in lines[1], lines
            assert lines[2:] == (OF_FREE if name.startswith("free") else []), lines
        log(f"{name}: {lines[1].strip()}")
        victim.finish()
