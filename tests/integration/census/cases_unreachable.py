# SPDX-License-Identifier: MIT
"""--census --unreachable: blocks that nothing points to, found in a stop that leaves nothing; --by holder: who holds the others."""
import json
import os
import random
import re
import signal
import subprocess
import time

from cases_census import OBJECTS, take
from harm_kills import count_calls, kill_points
from harness import PATIENCE, Victim, case
from procfs import Failure, read_text, tasks_of
from snapshot import Snapshot, check_same

RUNS = 6
KILLS, FEW_KILLS = 30, 8
CALLS_THAT_MATTER = ("ptrace", "waitid", "process_vm_readv", "ioctl", "sched_setscheduler", "rt_sigprocmask", "setitimer")
# A thread that sleeps in a write of which a part is done: a stop would make it return less.
WRITING = """
import os, sys, threading
reader, writer = os.pipe()
threading.Thread(target=os.write, args=(writer, bytes(1 << 20)), daemon=True).start()
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.read()
assert len(os.read(reader, 65536)) == 65536
"""

# A child that has not touched what it shares with its parent; with an argument it has read all of it.
SHARING = """
import mmap, os, sys
shared = mmap.mmap(-1, 1 << 20)
shared.write(b"x" * (1 << 20))
if os.fork() == 0:
    if len(sys.argv) > 1: assert shared[:] == b"x" * (1 << 20)
    print("PID", os.getpid()); print("READY", flush=True)
    sys.stdin.read()
else:
    os.wait()
"""

# Objects, buffers, tables and threads that come and go: what is freed is taken again at once, at the same addresses.
CHURNING = """
import os, sys, threading, time
def churn(n=0):
    table = {}
    while True:
        n += 1
        table[n % 5000] = "x" * (n % 900)
        if n % 100 == 0:
            table.setdefault("buffers", []).append(bytearray(n % 3000))
            time.sleep(0.001)
        if n % 5000 == 0:
            table.clear()
def make_threads():
    while True:
        threads = [threading.Thread(target=lambda: [dict(a=i, b="z" * 600) for i in range(200)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.readline()
for work in (churn, churn, make_threads):
    threading.Thread(target=work, daemon=True).start()
print("GOES", flush=True)
sys.stdin.read()
os._exit(0)
"""


# 28 MB a second at the end of its heap, and 1000 blocks of 5000 bytes that were lost before.
GROWING = """
import ctypes, os, sys, threading, time
libc, held = ctypes.CDLL(None), []
for _ in range(1000):
    libc.malloc(5000)
def grow():
    while True:
        for _ in range(280):
            held.append(bytearray(1000))
        if len(held) > 500000:
            held.clear()
        time.sleep(0.01)
threading.Thread(target=grow, daemon=True).start()
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.read()
os._exit(0)
"""


def unreachable(context, pid, *options):
    return json.loads(take(context, pid, "--unreachable", "--json", *options))["unreachable"]


def truth(victim):
    (line,) = [line for line in victim.lines.seen if line.startswith("TRUTH {")]
    return json.loads(line[len("TRUTH "):])


def check_found(found, known):
    """What was lost, and nothing else: what is pointed to has other classes."""
    assert found.get("known"), found
    types = {row["name"]: row["blocks"] for row in found["types"]}
    assert types == known and found["blocks"] == sum(known.values()) and found["bytes"] >= 72 * found["blocks"] / 2, (found, known)


def check_held(census):
    """Each live block that is not lost has a holder, also those of stacks and registers, but for few that came and went."""
    lost, held = census["unreachable"], census["holders"]
    blocks = sum(row["blocks"] for row in held)
    assert 0 <= lost["of_blocks"] - lost["blocks"] - blocks <= lost["of_blocks"] / 1000, (lost, held)
    assert any(row["name"].startswith("stack") and row["blocks"] for row in held), held


@case()
def unreachable_blocks(context):
    """Planted ones, exactly; none of those that are pointed to from anywhere, whether or not the process is busy."""
    for arguments in ((), ("busy",)):
        victim = Victim(context, "heap_pointers", *arguments)
        known, before = truth(victim), Snapshot(victim.pid)
        for _ in range(RUNS):
            census = json.loads(take(context, victim.pid, "--unreachable", "--json"))
            check_found(census["unreachable"], known)
            check_held(census)
        check_same(before, Snapshot(victim.pid), busy=True)
        text = take(context, victim.pid, "--unreachable").splitlines()
        at = next(number for number, line in enumerate(text) if line.startswith("No pointer to "))
        assert re.match(r"^No pointer to 1\.\d+ MiB in 34095 blocks, \d+\.\d+ % of live \(cloned, stopped \d+ ms\)$", text[at]), text
        assert text[at + 1].endswith(" 20000  vtable  LostSingle") and text[at + 2].endswith(" 14095  vtable  LostNode"), text
        assert text[at + 3] == "A pointer in the kernel, compressed or encrypted would not be seen." and max(map(len, text)) <= 80, text
        victim.finish_by_stdin()


@case()
def unreachable_after_the_first_thread(context):
    """It has ended, and its directory in /proc has no descriptors: what epoll was told still keeps its block."""
    victim = Victim(context, "heap_pointers", "main-exits")
    end = time.monotonic() + PATIENCE
    while not re.search(r"^State:\s+Z", read_text(f"/proc/{victim.pid}/status"), re.M) and time.monotonic() < end:
        time.sleep(0.01)
    found = unreachable(context, victim.pid)
    assert found.get("known") and {row["name"] for row in found["types"]} == {"LostSingle", "LostNode"}, found
    victim.finish_by_stdin()


def holders_of(census):
    return {row["name"]: row for row in census["holders"]}


@case()
def census_by_holder(context):
    """Each block is held by one: containers by their variables, the path to a list, and without symbols its place; nothing is stopped."""
    stripped = context.path("heap_pointers")
    subprocess.run(["strip", "-o", stripped, context.target("heap_pointers")], check=True)
    for command in ("heap_pointers", [stripped]):
        victim = Victim(context, command)
        census = json.loads(take(context, victim.pid, "--by", "holder", "--json"))
        held = holders_of(census)
        lists = [row for row in held.values() if row["path"] and row["path"][0]["what"] == "KeptNode"]
        assert len(lists) == 1 and abs(lists[0]["blocks"] - 20000) <= 3, held
        assert lists[0]["path"][0]["blocks"] + lists[0]["blocks_below"] in range(19990, 20003), lists
        if command == "heap_pointers":
            assert lists[0]["name"] == "kept_list (heap_pointers)", lists
            assert abs(held["names (heap_pointers)"]["blocks"] - 40000) <= 3 and held["shared (heap_pointers)"]["blocks"] == 10000, held
        else:
            assert re.match(r"^heap_pointers\+0x[0-9a-f]+ \(no name\)$", lists[0]["name"]), lists
        assert "unreachable" not in census
        live = sum(row["blocks"] for row in census["types"])
        reached = sum(row["blocks"] for row in held.values())
        assert live - sum(truth(victim).values()) - 10 <= reached <= live, (live, reached)  # what is lost may be on a stack still
        text = take(context, victim.pid, "--by", "holder").splitlines()
        assert any(line.endswith("  by holder (one path of possibly several)") for line in text) and max(map(len, text)) <= 80, text
        victim.finish_by_stdin()


@case()
def census_by_holder_of_stacks(context):
    """A list that only a stack knows is held by that: malloc's own words, which lead to the rest behind its last block, hold nothing."""
    victim = Victim(context, "live_types")
    victim.send("go")
    victim.wait(r"^DONE$")
    census = json.loads(take(context, victim.pid, "--by", "holder", "--json"))
    held = holders_of(census)
    first = held["stack of the first thread"]
    keeper = held.get("stacks of threads 'keeper'") or held["stack of a thread"]  # it may not sleep yet
    assert first["path"][0]["what"] == "shop::Stage" and 6000 <= first["blocks"] <= 6003, held
    assert keeper["path"][0]["what"] == "shop::Depot" and 8002 <= keeper["blocks"] <= 8010, held
    assert not [name for name in held if name.startswith(("libc.so", "malloc"))], held
    victim.finish_by_stdin()


PYTHON_HOLDERS = """
import os, sys
class Shelf:
    pass
shelf = Shelf()
shelf.books = [bytearray(5000) for _ in range(3000)]
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.read()
"""


@case()
def census_by_holder_of_python(context):
    """A word in a small object of CPython is that object's: a bytearray has the block of its bytes."""
    victim = Victim(context, [context.program("python3"), "-c", PYTHON_HOLDERS])
    held = holders_of(json.loads(take(context, victim.pid, "--by", "holder", "--json")))
    assert 2990 <= held["Python bytearray"]["blocks"] <= 3010 and held["Python list"]["bytes"] >= 24000, held
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


@case()
def census_files_show_growth_by_holder(context):
    """Two files: who holds what has come between them, and what was lost; exactly."""
    victim = Victim(context, "heap_pointers")
    files = [context.path("a.census"), context.path("b.census")]
    take(context, victim.pid, "--unreachable", "-o", files[0])
    victim.send("more")
    victim.wait(r"^MADE$")
    take(context, victim.pid, "--unreachable", "-o", files[1])
    result = subprocess.run([context.memanalyze, "--diff", "--json", *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            timeout=PATIENCE, check=False)
    assert result.returncode == 0, result
    growth = json.loads(result.stdout)
    (kept,) = [row for row in growth["holders"] if row["name"] == "kept_list (heap_pointers)"]
    (lost,) = [row for row in growth["unreachable"] if row["name"] == "LostSingle"]
    assert kept["count"] - kept["count_before"] == 1000 and 495 <= lost["count"] - lost["count_before"] <= 500, growth  # the last ones may be on a stack still
    assert growth["holders"][0] == kept and growth["unreachable"][0] == lost, growth
    victim.finish_by_stdin()


@case()
def unreachable_shows_progress(context):
    """On a terminal, while its heap is read and pointers are followed; elsewhere nothing."""
    victim = Victim(context, "heap_pointers")
    ours, theirs = os.openpty()
    result = subprocess.run([context.memattach, "--census", "--unreachable", "-p", str(victim.pid)], stdout=subprocess.PIPE, stderr=theirs,
                            timeout=PATIENCE, check=False, env={**os.environ, "TERM": "xterm"}, text=True)
    os.close(theirs)
    said = os.read(ours, 65536).decode()
    assert result.returncode == 0 and "No pointer to " in result.stdout and "following pointers: 65536 blocks" in said, (result, said)
    assert re.search(r"reading its heap: [\d.]+ MiB", said) and said.endswith("\r\033[K"), said  # wiped
    victim.finish_by_stdin()


@case()
def unreachable_objects_of_python(context):
    """What only objects of CPython's pools point to is reachable."""
    victim = Victim(context, [context.program("python3"), "-c", OBJECTS.replace("object() for", "bytearray(700) for")])
    found = unreachable(context, victim.pid)
    assert found.get("known") and found["of_blocks"] > 200000 and found["blocks"] < 20, found
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


# Memory of its own, of which a page in the middle begins as a block of malloc with a mapping of its own does.
LIKE_A_BLOCK = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
area = mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
words = (ctypes.c_uint64 * (1 << 19)).from_buffer(area)
words[8193] = (1 << 20) + 2
for k in range(10000):
    words[9000 + k] = libc.malloc(500)
for k in range(1000):
    libc.malloc(700)
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.read()
"""


@case()
def unreachable_beside_what_looks_like_a_block(context):
    """What more looks like mapped blocks than malloc counts is followed, as other memory is."""
    victim = Victim(context, [context.program("python3"), "-c", LIKE_A_BLOCK])
    found = unreachable(context, victim.pid)
    assert found.get("known") and 990 <= found["blocks"] <= 1005, found
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


# The only pointers are in an epoll instance, and move to a new one all the time.
EPOLLS = """
import ctypes, os, select, sys, threading, time
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
class Event(ctypes.Structure): _pack_, _fields_ = 1, [("events", ctypes.c_uint32), ("data", ctypes.c_uint64)]
ends = [os.pipe()[1] for _ in range(200)]
others = [os.open("/dev/null", os.O_RDONLY) for _ in range(2000 if "many" in sys.argv else 0)]
events, fd = (Event * 200)(), libc.epoll_create1(0)
for k in range(200):
    events[k] = Event(4, libc.malloc(3000))
    libc.epoll_ctl(fd, 1, ends[k], ctypes.byref(events[k]))
ctypes.memset(events, 0, ctypes.sizeof(events))
def move():
    global fd
    while True:
        new = libc.epoll_create1(0)
        libc.epoll_wait(fd, events, 200, 0)
        for k in range(200):
            libc.epoll_ctl(new, 1, ends[k], ctypes.byref(events[k]))
        ctypes.memset(events, 0, ctypes.sizeof(events))
        for end in ends:
            libc.epoll_ctl(fd, 2, end, None)
        if "closes" in sys.argv:
            os.close(fd)
        fd = new
        time.sleep(0.01)
threading.Thread(target=move, daemon=True).start()
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.readline()
os._exit(0)
"""


@case()
def unreachable_of_new_epolls(context):
    """Pointers that have moved to a new epoll descriptor are read, also where that has the number of the one before last. Of
    more descriptors than can be looked at while the process stands still, nothing is said where others have come."""
    for how in ("keeps", "closes", "many"):
        victim = Victim(context, [context.program("python3"), "-c", EPOLLS, how])
        for _ in range(2 * RUNS):
            found = unreachable(context, victim.pid)
            if found.get("known"):
                assert found["blocks"] < 30, (how, found)
            else:
                assert how != "closes" and "epoll" in found["why"], (how, found)
        victim.send("end")
        assert victim.process.wait(PATIENCE) == 0


@case()
def unreachable_while_all_changes(context):
    """A process that leaks nothing, and allocates at full speed: nothing is lost of it but what was before."""
    victim = Victim(context, [context.program("python3"), "-c", CHURNING])
    before = unreachable(context, victim.pid)
    assert before.get("known"), before
    victim.send("go")
    victim.wait(r"^GOES$")
    known = 0
    for _ in range(3 * RUNS):
        found = unreachable(context, victim.pid)
        known += bool(found.get("known"))
        assert not found.get("known") or found["blocks"] <= before["blocks"], (before, found)
    assert known >= RUNS, known
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


@case()
def unreachable_while_it_grows(context):
    """A heap that is longer each time that its end is reached: what was lost before is found, and nothing of what has come meanwhile."""
    victim = Victim(context, [context.program("python3"), "-c", GROWING])
    resident = 0
    for options in ((), (), ("--freeze",)):
        census = json.loads(take(context, victim.pid, "--unreachable", "--json", *options))
        lost = census["unreachable"]
        assert lost["known"] and lost.get("cloned", False) == (not options), lost
        assert 990 <= lost["blocks"] <= 1005 and 4950000 <= lost["bytes"] <= 5100000, lost
        assert census["resident"] != resident, "it does not grow"
        resident = census["resident"]
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


@case()
def unreachable_takes_little_memory(context):
    """Of 100 MiB in 150,000 blocks it takes 20 MiB itself; what it keeps of pages that were read is not more than it needs."""
    many = OBJECTS.replace("object() for _ in range(200000)", "bytearray(640) for _ in range(150000)")
    victim = Victim(context, [context.program("python3"), "-c", many])
    process = context.start([context.memattach, "--census", "--unreachable", "-p", str(victim.pid)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0 and used.ru_maxrss < 27 << 10, (status, used)
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


def link_of(pid, name):
    try:
        return os.readlink(f"/proc/{pid}/fd/{name}")
    except FileNotFoundError:
        return ""


@case()
def unreachable_is_not_known(context):
    """Where a stop would harm, or last too long, or is not all: the reason is said, and the rest of the census."""
    victim = Victim(context, "heap_pointers")
    for options, why in ((("--max-stop", "1ms"), r"it would be stopped for \d+ ms, more than --max-stop"),
                         (("--budget", "1ms"), "to follow all pointers takes longer than --budget")):
        found = unreachable(context, victim.pid, *options)
        assert not found.get("known") and re.fullmatch(why, found["why"]) and found["stopped_ms"] == 0, found
        text = take(context, victim.pid, "--unreachable", *options)
        assert re.search(f"^No pointer to: not known, {why}", text, re.M) and "live, " in text, text
    victim.finish_by_stdin()
    victim = Victim(context, [context.program("python3"), "-c", WRITING])
    found = unreachable(context, victim.pid)
    assert not found.get("known") and re.match(r"^thread \d+ sleeps in a call that a stop would harm$", found["why"]), found
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0
    for touched in (False, True):
        victim = Victim(context, [context.program("python3"), "-c", SHARING, *["touch"] * touched])
        found = unreachable(context, victim.pid)
        unseen = found.get("why") == "it shares memory that it has not touched, which is not read"
        assert not unseen or f"\nNo pointer to: not known, {found['why']}.\n" in take(context, victim.pid, "--unreachable")
        assert unseen != touched, (touched, found)
        victim.process.stdin.close()
        assert victim.process.wait(PATIENCE) == 0
    victim = Victim(context, "io_uring_poller")  # whose queue is mapped nowhere
    if any("io_uring" in link_of(victim.pid, name) for name in os.listdir(f"/proc/{victim.pid}/fd")):
        found = unreachable(context, victim.pid)
        assert not found.get("known") and found["why"] == "it makes requests by io_uring or aio, which hold pointers in the kernel", found
    victim.finish()
    victim = Victim(context, "lives", "vfork")  # what its thread had in registers is in the kernel
    victim.send("go")
    end = time.monotonic() + PATIENCE
    while not re.search(r"^State:\s+D", read_text(f"/proc/{victim.pid}/status"), re.M) and time.monotonic() < end:
        time.sleep(0.01)
    found = unreachable(context, victim.pid)
    assert not found.get("known") and found["why"] == f"thread {victim.pid} waits for its child of vfork", found
    victim.send("on")
    victim.wait(r"^BACK$")
    victim.finish_by_stdin()
    victim = Victim(context, "heap_states", "forged")
    victim.send("go")
    victim.wait(r"^FORGED$")
    found = unreachable(context, victim.pid)
    assert not found.get("known") and "heap" in found["why"], found
    victim.finish_by_stdin()


@case()
def unreachable_disturbs_nobody(context):
    """Calls that are slept in go on as if there had been no stop; signals are handled by whom they were."""
    for command in (("sleeper", "nanosleep"), ("sleeper", "poll"), ("sleeper", "futex_timed"), ("sleeper", "read"), ("sleeper", "epoll_wait_forever"),
                    ("sleeper", "semop"), ("signals",), ("first_thread",), ("fork_storm",), ("thread_churn",), ("alloc_loop",)):
        victim = Victim(context, *command)
        for number in range(2 * RUNS):
            take(context, victim.pid, "--unreachable", *["--freeze"] * (number % 2))
        victim.check_alive()
        victim.finish()


def check_free(pid, states_of_none="tTZ"):
    """No thread of it is traced, stopped or of another state than it would be."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        states = [read_text(f"/proc/{pid}/task/{tid}/status") for tid in tasks_of(pid)]
        if states and not any(re.search(rf"^State:\s+[{states_of_none}]|^TracerPid:\s+[1-9]", state, re.M) for state in states):
            return
        time.sleep(0.01)
    raise Failure(f"process {pid} is held: {states}")


def calls_of_a_stop(context, line):
    """How many there are of each kind that matters, of a look that came to its stop: not each does in a process that is busy."""
    for _ in range(20):
        calls = count_calls(context, line, CALLS_THAT_MATTER)
        if any(call[0] == "ptrace" for call in calls):
            return calls
    raise Failure(f"no look in 20 came to its stop: {calls}")


def kill_often(context, line, calls, kills, check):
    """A census at its calls and at random, how often; the victim is checked after each. How many were killed before their end."""
    # The calls are the same for each victim: all kinds of them once, then some of each, and other ones the next time.
    points = kill_points(calls, KILLS)
    points = points if kills == KILLS else random.sample(points, kills)
    began = time.monotonic()
    subprocess.run(line, stdout=subprocess.DEVNULL, check=True)
    lasts, killed = time.monotonic() - began, 0
    for (_, number), count in points:
        process = context.start([context.tool("kill_at"), str(number), str(count), *line], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        killed += process.wait(PATIENCE) == -signal.SIGKILL
        check()
    for _ in range(kills):
        process = context.start(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.random() * lasts)
        process.kill()
        was_killed = process.wait(PATIENCE) == -signal.SIGKILL
        killed += was_killed
        lasts *= 1 if was_killed else 0.8  # the one that was timed had to wait for a processor
        check()
    return killed


@case()
def unreachable_killed(context):
    """SIGKILL at each kind of system call and at random, while it is frozen: no thread stays stopped, no process is left, nothing has changed."""
    for command, kills in ((("heap_pointers", "busy"), KILLS), (("alloc_loop",), FEW_KILLS), (("signals",), FEW_KILLS), (("sleeper", "poll"), FEW_KILLS)):
        victim = Victim(context, *command)
        before = Snapshot(victim.pid)
        line = [context.memattach, "--census", "--unreachable", "--freeze", "-p", str(victim.pid)]
        killed = kill_often(context, line, calls_of_a_stop(context, line), kills, lambda: check_free(victim.pid))
        assert killed >= kills, (command, killed)
        assert not read_text(f"/proc/{victim.pid}/task/{victim.pid}/children").strip()
        check_same(before, Snapshot(victim.pid), busy=True)
        victim.check_alive()
        (victim.finish_by_stdin if command[0] == "heap_pointers" else victim.finish)()


@case()
def unreachable_is_interrupted(context):
    """Ctrl-C at any moment: it ends, and nothing is held."""
    victim = Victim(context, "heap_pointers", "busy")
    for number in range(KILLS):
        process = context.start([context.memattach, "--census", "--unreachable", *["--freeze"] * (number % 2), "-p", str(victim.pid)], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        time.sleep(random.random() * 0.5)
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
        check_free(victim.pid)
        assert not read_text(f"/proc/{victim.pid}/task/{victim.pid}/children").strip()
    victim.finish_by_stdin()
