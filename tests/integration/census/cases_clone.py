# SPDX-License-Identifier: MIT
"""--census --unreachable by clone: the same truth as by freezing, and nothing is left of the clone, whoever is killed when."""
import ctypes
import fcntl
import json
import os
import platform
import random
import re
import signal
import subprocess
import time

from cases_census import take
from cases_unreachable import calls_of_a_stop, check_free, kill_often, unreachable
from harness import PATIENCE, Session, Skip, Victim, case, run_memattach
from procfs import Failure, read_text, tasks_of
from snapshot import Snapshot, check_same

RUNS = 6
KILLS, FEW_KILLS = 30, 8
CLONE = "memattach-clone"
READ = {"x86_64": 0, "aarch64": 63}[platform.machine()]


def children_of(pid):
    """The children of a process: (pid, name, state)."""
    found = []
    for tid in tasks_of(pid):
        for child in read_text(f"/proc/{pid}/task/{tid}/children").split():
            stat = read_text(f"/proc/{child}/stat")
            if stat:
                found.append((int(child), stat[stat.index("(") + 1:stat.rindex(")")], stat[stat.rindex(")") + 2]))
    return found


def no_clone(pid):
    """None is left, alive or as a zombie: at once after a census, and soon after memattach was killed."""
    end = time.monotonic() + PATIENCE
    while found := [child for child in children_of(pid) if child[1] == CLONE]:
        if time.monotonic() > end:
            raise Failure(f"left in {pid}: {found}")
        time.sleep(0.01)


def resting(context, program):
    """A victim of python3 that has come to its wait for stdin: before that it still asks for memory."""
    victim = Victim(context, [context.program("python3"), "-c", program])
    end = time.monotonic() + PATIENCE
    while not read_text(f"/proc/{victim.pid}/syscall").startswith(f"{READ} 0x0 "):  # read(0, …)
        if time.monotonic() > end:
            raise Failure(f"{victim.pid} does not rest: {read_text(f'/proc/{victim.pid}/syscall')}")
        time.sleep(0.01)
    return victim


def census_line(context, pid, *options):
    return [context.memattach, "--census", "--unreachable", "-p", str(pid), *options]


@case()
def clone_and_freeze_say_the_same(context):
    """Which way it was done is said; what is found is the same, and the clone is gone when memattach is."""
    victim = Victim(context, "heap_pointers")
    before = Snapshot(victim.pid)
    cloned, frozen = unreachable(context, victim.pid), unreachable(context, victim.pid, "--freeze")
    assert cloned.pop("cloned") and "cloned" not in frozen and "why_not_cloned" not in frozen, (cloned, frozen)
    assert cloned.pop("stopped_ms") > 0 and frozen.pop("stopped_ms") > 0
    assert cloned["known"] and cloned["blocks"] == 34095 and cloned == frozen, (cloned, frozen)
    assert not children_of(victim.pid)
    assert re.search(r"^No pointer to .*\(cloned, stopped \d+ ms\)$", take(context, victim.pid, "--unreachable"), re.M)
    assert re.search(r"^No pointer to .*\(frozen, stopped \d+ ms\)$", take(context, victim.pid, "--unreachable", "--freeze"), re.M)
    check_same(before, Snapshot(victim.pid))
    victim.finish_by_stdin()


# What only memory leads to that a clone does not have, or that goes on changing: shared, MADV_DONTFORK, MADV_WIPEONFORK.
APART = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
places = [mmap.mmap(-1, 1 << 20, flags=how | mmap.MAP_ANONYMOUS) for how in (mmap.MAP_SHARED, mmap.MAP_PRIVATE, mmap.MAP_PRIVATE)]
places[1].madvise(mmap.MADV_DONTFORK)
places[2].madvise(18)
words = [(ctypes.c_uint64 * (1 << 17)).from_buffer(place) for place in places]
def fill():
    for k in range(30000):
        words[k % 3][1000 + k] = libc.malloc(1000 + k % 3)
    for k in range(2000):
        libc.malloc(2000)
fill()
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.readline()
"""


@case()
def clone_has_not_all_memory(context):
    """Pointers in memory that it does not have are followed all the same."""
    victim = resting(context, APART)
    for options in ((), ("--freeze",)):
        found = unreachable(context, victim.pid, *options)
        assert found["known"] and found.get("cloned", False) == (not options) and 1990 <= found["blocks"] <= 2020, found
    victim.send("end")
    assert victim.process.wait(PATIENCE) == 0


# As V8 takes memory: pages that its children do not get, all the time, which alone lead to blocks.
APART_AND_GROWING = """
import ctypes, mmap, os, sys, threading, time
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
for k in range(2000):
    libc.malloc(2000)
pages = []
def grow():
    while True:
        pages.append(mmap.mmap(-1, 1 << 19, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        pages[-1].madvise(mmap.MADV_DONTFORK, 0, 1 << 18)
        words = (ctypes.c_uint64 * 8).from_buffer(pages[-1])
        words[3] = libc.malloc(3000)
        time.sleep(0.002)
threading.Thread(target=grow, daemon=True).start()
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.readline()
os._exit(0)
"""


@case()
def clone_has_not_what_has_just_come(context):
    """Memory that came after it was looked at, and that a clone does not have, is read all the same; where processors are short
    more may come than is read, which is said."""
    victim = Victim(context, [context.program("python3"), "-c", APART_AND_GROWING])
    known = 0
    for _ in range(25):
        found = unreachable(context, victim.pid)
        if found.get("known"):
            known += 1
            assert found["cloned"] and 1990 <= found["blocks"] <= 2020, found
        else:
            assert found["why"] == "it keeps new memory from its children (MADV_DONTFORK)", found
        if known == 5:
            break
    assert known == 5, found
    victim.send("end")
    assert victim.process.wait(PATIENCE) == 0


# Pointers that move all the time to new memory that its children see as zeros, too large to be read because it might be so.
WIPED_AND_MOVING = """
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None)
for name in ("malloc", "mmap"):
    getattr(libc, name).restype = ctypes.c_void_p
libc.malloc.argtypes, libc.mmap.argtypes = [ctypes.c_size_t], [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
libc.munmap.argtypes, libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t], [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
SIZE = 32 << 20
def take():
    place = libc.mmap(None, SIZE, 3, 0x22, -1, 0)
    assert libc.madvise(place, SIZE, 18) == 0
    return place
place = take()
for k in range(1000):
    ctypes.c_uint64.from_address(place + 8 * k).value = libc.malloc(3000)
for k in range(2000):
    libc.malloc(2000)
def move():
    global place
    while True:
        new = take()
        ctypes.memmove(new, place, 8000)
        place, old = new, place
        libc.munmap(old, SIZE)
        time.sleep(0.001)
threading.Thread(target=move, daemon=True).start()
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.readline()
os._exit(0)
"""


@case()
def clone_has_zeros_for_what_has_just_come(context):
    """What came after it was looked at, and is zeros in a clone, is read from the process by another clone; else nothing is said."""
    victim = Victim(context, [context.program("python3"), "-c", WIPED_AND_MOVING])
    for _ in range(2 * RUNS):
        found = unreachable(context, victim.pid)
        assert 1990 <= found["blocks"] <= 2020 if found.get("known") else "MADV_WIPEONFORK" in found["why"], found
    victim.send("end")
    assert victim.process.wait(PATIENCE) == 0


# Everything that a second owner of the descriptors, or a child, could change: locks, ends of pipes, epoll, waits for anything, SIGCHLD.
HOLDING = """
import fcntl, os, select, signal, socket, sys, threading
signals = []
signal.signal(signal.SIGCHLD, lambda number, frame: signals.append(number))
path = sys.argv[1]
flocked, locked = open(path + ".flock", "w"), open(path + ".fcntl", "w")
fcntl.flock(flocked, fcntl.LOCK_EX)
fcntl.lockf(locked, fcntl.LOCK_EX)
here, there = socket.socketpair()
epoll = select.epoll(); epoll.register(here, select.EPOLLIN)
print("PID", os.getpid()); print("READY", flush=True)
for line in sys.stdin:
    if line == "wait\\n":
        try:
            os.waitpid(-1, os.WNOHANG); said = "a child"
        except ChildProcessError:
            said = "none"
        print("WAITED", said, len(signals), flush=True)
    if line == "close\\n":
        reader, writer = os.pipe()
        os.close(writer)
        print("CLOSED", os.read(reader, 1), flush=True)
        os.close(reader)
    if line == "exec\\n":
        os.set_inheritable(locked.fileno(), True)
        os.execv(sys.executable, [sys.executable, "-c", "import sys; print('EXECED', flush=True); sys.stdin.read()"])
"""


def is_locked(context, name, how):
    """By another process, which does not wait."""
    program = f"import fcntl, sys; file = open({name!r}, 'w')\ntry: fcntl.{how}(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept OSError: sys.exit(3)"
    return subprocess.run([context.program("python3"), "-c", program], check=False, timeout=PATIENCE).returncode == 3


@case()
def clone_disturbs_nobody(context):
    """While it is there, and afterwards: descriptors end when they are closed, locks stay, waits for anything and SIGCHLD hear nothing;
    a program that is executed meanwhile keeps its record locks."""
    path = context.path("held")
    victim = Victim(context, [context.program("python3"), "-c", HOLDING, path])
    before = Snapshot(victim.pid)
    for _ in range(RUNS):
        process = context.start(census_line(context, victim.pid), stdout=subprocess.DEVNULL)
        while process.poll() is None:
            victim.send("close")
            victim.wait(r"^CLOSED b''$")
            victim.send("wait")
            victim.wait(r"^WAITED none 0$")
        assert process.wait(PATIENCE) == 0
        assert not children_of(victim.pid)
    assert is_locked(context, path + ".flock", "flock") and is_locked(context, path + ".fcntl", "lockf")
    check_same(before, Snapshot(victim.pid))
    process = context.start(census_line(context, victim.pid), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE
    while process.poll() is None and not any(child[1] == CLONE for child in children_of(victim.pid)) and time.monotonic() < end:
        pass
    victim.send("exec")
    victim.wait(r"^EXECED$")
    process.wait(PATIENCE)
    no_clone(victim.pid)
    assert is_locked(context, path + ".fcntl", "lockf")
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


@case()
def clone_killed(context):
    """SIGKILL of memattach at each kind of system call and at random: no clone is left, no zombie, no thread is held, nothing has changed."""
    for command, kills in ((("heap_pointers", "busy"), KILLS), (("fork_storm",), FEW_KILLS), (("first_thread",), FEW_KILLS), (("sleeper", "poll"), FEW_KILLS)):
        victim = Victim(context, *command)
        before = Snapshot(victim.pid)
        line = census_line(context, victim.pid)
        def check():
            check_free(victim.pid)
            no_clone(victim.pid)
        killed = kill_often(context, line, calls_of_a_stop(context, line), kills, check)
        assert killed >= kills, (command, killed)
        clear_padding(context, victim.pid)
        check_same(before, Snapshot(victim.pid), busy=True)
        victim.check_alive()
        (victim.finish_by_stdin if command[0] == "heap_pointers" else victim.finish)()


def clear_padding(context, pid):
    """It may have the code of a stub until the next memattach, or for the moment that a guardian needs."""
    result = run_memattach(context, "--detach", "-p", pid)
    assert result.returncode == 0, result


def tree_of(pid):
    """A process and its children."""
    return [pid] + [child for child, _, _ in children_of(pid)]


@case()
def clone_and_guardian_killed(context):
    """Both are killed: the clone ends by itself, and --detach, a session or the next census has its zombie collected."""
    left = 0
    for command in (("heap_pointers", "busy"), ("first_thread",)):
        victim = Victim(context, *command)
        line = census_line(context, victim.pid)
        began = time.monotonic()
        subprocess.run(line, stdout=subprocess.DEVNULL, check=True)
        lasts = time.monotonic() - began
        for number in range(KILLS):
            process = context.start(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            end = time.monotonic() + 2 * lasts
            while number % 3 and not any(child[1] == CLONE for child in children_of(victim.pid)) and time.monotonic() < end:
                pass
            time.sleep(random.random() * lasts / (10 if number % 3 else 1))
            for pid in reversed(tree_of(process.pid)):
                os.kill(pid, signal.SIGKILL)
            process.wait(PATIENCE)
            check_free(victim.pid, "tT")
            left += bool(children_of(victim.pid))
            if number % 3 == 0:
                clear_padding(context, victim.pid)
            elif number % 3 == 1:
                subprocess.run(line, stdout=subprocess.DEVNULL, check=True)
            else:
                result = run_memattach(context, "-p", victim.pid, "-d", "10ms", "-o", context.unique("after", ".dump"))
                assert result.returncode == 0, result
            assert not [child for child in children_of(victim.pid) if child[1] == CLONE], (number, children_of(victim.pid))
        victim.check_alive()
        (victim.finish_by_stdin if command[0] == "heap_pointers" else victim.finish)()
    assert left >= KILLS // 3, left


# At a line of its input it makes a child that is named and silent as a clone of memattach's is.
IMITATES = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
print("PID", os.getpid()); print("READY", flush=True)
for line in sys.stdin:
    child = libc.syscall(56, 0, 0, 0, 0, 0)
    if child == 0:
        libc.prctl(15, b"memattach-clone", 0, 0, 0)
        time.sleep(1000)
    print("CHILD", child, flush=True)
os._exit(0)
"""


@case()
def clone_that_is_kept_from_its_parent(context):
    """A clone whose end another tracer keeps from the process cannot be collected: --detach says so, and takes the payload out all the same."""
    victim = Victim(context, [context.program("python3"), "-c", IMITATES])
    session = Session(context, victim.pid)
    session.process.kill()
    session.process.wait(PATIENCE)
    victim.send("clone")
    child = int(victim.wait("CHILD").split()[1])
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, child, None, None) < 0:  # PTRACE_SEIZE
        raise Skip("it may not be traced")
    result = run_memattach(context, "--detach", "-p", victim.pid, "-o", context.path("left.dump"))
    assert result.returncode == 2 and "the clone of the process has not ended" in result.stderr, result
    assert "memattach" not in read_text(f"/proc/{victim.pid}/maps"), result
    assert [state for pid, _, state in children_of(victim.pid) if pid == child] == ["Z"], children_of(victim.pid)
    os.waitpid(child, 0x40000000)  # __WALL
    result = run_memattach(context, "--detach", "-p", victim.pid)
    assert result.returncode == 0 and "collected 1 clone" in result.stderr, result
    assert not children_of(victim.pid)
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


# 180 MiB in small blocks, so that a clone takes a while to be read; at a line it ends, or executes another program.
LEAVES = """
import os, sys
held = [bytearray(600) for _ in range(300000)]
print("PID", os.getpid()); print("READY", flush=True)
if sys.stdin.readline() == "execve\\n":
    os.execv(sys.argv[1], [sys.argv[1], "1000"])
os._exit(0)
"""


def left(context, how, said):
    """It leaves while its clone is there; true if memattach says so of the clone, and not that all was read before, or nothing."""
    victim = Victim(context, [context.program("python3"), "-c", LEAVES, context.program("sleep")])
    process = context.start(census_line(context, victim.pid), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not any(child[1] == CLONE for child in children_of(victim.pid)):
        assert process.poll() is None, process.stdout.read()
    victim.send(how)
    text = process.communicate(timeout=PATIENCE)[0]
    nothing = process.returncode == 1 and text == f"memattach: PID {victim.pid}: it has ended\n"  # before it went on from its stop
    assert process.returncode == 0 or nothing, text
    if how == "execve":
        assert "No pointer to 0 B" in text, text  # of the program that was cloned
        no_clone(victim.pid)
        check_free(victim.pid)
        victim.process.kill()
    victim.process.wait(PATIENCE)
    seen = said in re.sub(r"\s+", " ", text)
    assert seen or nothing or "No pointer to 0 B" in text, text
    return seen


@case()
def clone_of_a_process_that_leaves(context):
    """It ends, or executes another program, while its clone is read: that is said, and the clone is collected soon where there is somebody to do it."""
    for how, said in (("exit", "not known, it has ended"), ("execve", "goes on to collect it: it has called execve")):
        assert any(left(context, how, said) for _ in range(10)), how


NOBODY = 65534


@case()
def clone_by_a_user(context):
    """One's own process is cloned without privileges; another's is refused, and nothing is touched."""
    if os.geteuid():
        raise Skip("only root can be others")
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    own, roots = Victim(context, [*as_nobody, context.target("alloc_loop"), "calm"]), Victim(context, "heap_pointers", "busy")
    before = Snapshot(roots.pid)
    for pid, code, said in ((own.pid, 0, "(cloned, stopped "), (roots.pid, 1, "it belongs to another user (0), and memattach has no CAP_SYS_PTRACE")):
        result = subprocess.run([*as_nobody, *census_line(context, pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                timeout=PATIENCE, check=False)
        assert result.returncode == code and said in result.stdout + result.stderr, result
        assert code == 0 or not result.stdout, result
    no_clone(own.pid)
    check_same(before, Snapshot(roots.pid), True)
    roots.check_alive()
    roots.finish_by_stdin()
    own.finish()


FILTERED = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
class Filter(ctypes.Structure): _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]
class Program(ctypes.Structure): _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.POINTER(Filter))]
allow = Filter(6, 0, 0, 0x7fff0000)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(Program(1, ctypes.pointer(allow)))) == 0
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.read()
"""


@case()
def clone_is_refused(context):
    """Where a clone could harm it is frozen, and the reason is said; as it is while another memattach acts on the process."""
    victim = resting(context, FILTERED)
    found = unreachable(context, victim.pid)
    assert found["known"] and "cloned" not in found and found["why_not_cloned"] == "its system calls are filtered (seccomp)", found
    assert "\nNot cloned: its system calls are filtered (seccomp).\n" in take(context, victim.pid, "--unreachable")
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0
    victim = Victim(context, "heap_pointers")
    with open(f"/proc/{victim.pid}/environ", encoding="latin-1") as file:  # as a memattach does that acts on it
        fcntl.flock(file, fcntl.LOCK_EX)
        found = unreachable(context, victim.pid)
        assert found["known"] and "cloned" not in found and str(os.getpid()) in found["why_not_cloned"], found
    assert unreachable(context, victim.pid).get("cloned")
    victim.finish_by_stdin()


BLOCKS = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
blocks = [libc.malloc(4000) for _ in range(30000)]
for block in blocks: ctypes.memset(block, 1, 4000)
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.read()
"""


@case()
def clone_is_read_without_copies(context):
    """The kernel copies what two processes share where it is read in the wrong way: all of a process that rests stays shared."""
    victim = resting(context, BLOCKS)
    seen = []
    while len(seen) < 20:
        process = context.start(census_line(context, victim.pid), stdout=subprocess.DEVNULL)
        while process.poll() is None:
            for child, _, _ in children_of(victim.pid):
                sums = dict(re.findall(r"^(\w+):\s+(\d+) kB$", read_text(f"/proc/{child}/smaps_rollup"), re.M))
                if int(sums.get("Anonymous", 0)) > 100000:
                    seen.append((int(sums["Anonymous"]), int(sums["Shared_Dirty"])))
        assert process.wait(PATIENCE) == 0
    assert all(shared > 0.95 * all_of_it for all_of_it, shared in seen), seen
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


@case()
def clone_that_somebody_kills(context):
    """At once, or when it has been read for a while: another one is made, or it is said that nothing is known."""
    victim = resting(context, BLOCKS)
    kills = []
    while len(kills) < KILLS // 2:
        process = context.start(census_line(context, victim.pid, "--json"), stdout=subprocess.PIPE, text=True)
        delay_s = random.Random(len(kills)).uniform(0, 0.005) * (len(kills) % 3)
        met = []
        while process.poll() is None and not met:
            met = [child for child, name, state in children_of(victim.pid) if name == CLONE and state != "Z"]
        time.sleep(delay_s)
        for child in met:  # its number is nobody else's before memattach has it collected, which a signal to a zombie does not change
            if child in [number for number, name, _ in children_of(victim.pid) if name == CLONE]:
                os.kill(child, signal.SIGKILL)
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, (len(kills), delay_s, process.returncode)
        found = json.loads(said)["unreachable"]
        assert found.get("known") or found["why"], found
        if met:
            kills.append("known" if found.get("known") else found["why"])
    no_clone(victim.pid)
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0
    assert len(set(kills)) > 1, kills


@case()
def clone_of_a_stopped_memattach(context):
    """SIGSTOP while there is a clone: it does not stay for as long as memattach is stopped, which makes another one, or says that nothing is known."""
    victim = resting(context, BLOCKS)
    met = None
    while not met:
        process = context.start(census_line(context, victim.pid, "--json"), stdout=subprocess.PIPE, text=True)
        while process.poll() is None and not met:
            met = [child for child, name, state in children_of(victim.pid) if name == CLONE and state != "Z"]
        process.send_signal(signal.SIGSTOP)
        met = [child for child, name, state in children_of(victim.pid) if name == CLONE and state != "Z"]  # it is not ended already
        if met:
            end = time.monotonic() + PATIENCE
            while any(state not in "ZX" for _, _, state in children_of(victim.pid)):
                assert time.monotonic() < end, children_of(victim.pid)
                time.sleep(0.1)
        process.send_signal(signal.SIGCONT)
        said, _ = process.communicate(timeout=PATIENCE)
        found = json.loads(said)["unreachable"]
        assert process.returncode == 0 and (found.get("known") or found["why"]), found
    no_clone(victim.pid)
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0
