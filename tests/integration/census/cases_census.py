# SPDX-License-Identifier: MIT
"""--census: what the resident memory of a process is."""
import json
import os
import re
import shutil
import subprocess
import time

from harness import PATIENCE, Skip, Victim, case
from procfs import read_text
from snapshot import Snapshot, check_same

MIB = 1 << 20
# A memfd of which 48 of 64 MiB are there, 1 TiB that is only reserved, and code of its own.
REGIONS = """
import ctypes, mmap, os, sys
memory = os.memfd_create("census-cache")
os.truncate(memory, 64 << 20)
shared = mmap.mmap(memory, 64 << 20)
for at in range(0, 48 << 20, 4096):
    shared[at] = 1
private = mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
for at in range(0, 16 << 20, 4096):
    private[at] = 1
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
reserved = libc.mmap(None, ctypes.c_size_t(1 << 40), 3, 0x4022, -1, ctypes.c_long(0))
assert reserved != ctypes.c_void_p(-1).value
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.read()
"""


OBJECTS = """
import os, sys
class Slot:
    __slots__ = ("value",)
objects = [object() for _ in range(200000)]
slots = [Slot() for _ in range(30000)]
print("PID", os.getpid())
print('TRUTH {"blocks":%d}' % sys.getallocatedblocks())
print("READY", flush=True)
sys.stdin.read()
"""


def take(context, pid, *options):
    result = subprocess.run([context.memattach, "--census", *options, "-p", str(pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, timeout=PATIENCE, check=False)
    assert result.returncode == 0 and not result.stderr, result
    return result.stdout


def rows(census, kind, name=None):
    return [row for row in census["regions"] if row["kind"] == kind and name in (None, row["name"])]


def check_sum(census):
    """Each byte is in one row, and they are those that the kernel counts, within 0.5 % of what that said meanwhile."""
    assert census["resident"] == sum(row["resident"] for row in census["regions"]), census
    said = [census[key] for key in ("vm_rss_before", "vm_rss_after", "rss_exact") if key in census]
    assert 0.995 * min(said) <= census["resident"] <= 1.005 * max(said), census


@case()
def census_accounts_for_all(context):
    """A memfd, generated code and a reservation that are known; the sum is VmRSS, which the census does not change."""
    victim = Victim(context, [context.program("python3"), "-c", REGIONS])
    census = json.loads(take(context, victim.pid, "--json"))
    check_sum(census)
    again = json.loads(take(context, victim.pid, "--json"))
    check_sum(again)
    assert again["resident"] - census["vm_rss_before"] < 2 * MIB, (census, again)  # 32 MiB could have come by reading
    (memfd,), (code,) = rows(census, "shared", "/memfd:census-cache"), rows(census, "code")
    assert 48 * MIB <= memfd["resident"] <= 50 * MIB and memfd["reserved"] == 64 * MIB, memfd  # in pages of at most 2 MiB
    assert 16 * MIB <= code["resident"] <= 20 * MIB, code
    assert sum(row["reserved"] for row in rows(census, "anonymous")) >= 1 << 40, census
    text = take(context, victim.pid).splitlines()
    assert "all accounted for" in text[0] and f"(PID {victim.pid})" in text[0], text
    assert text[1].endswith("is shared memory, /memfd:census-cache.") and text[-1].startswith("Next: "), text
    assert any(re.search(r" (4[89]|50)\.\d MiB .* memfd:census-cache$", line) for line in text[:10]), text
    assert max(map(len, text)) <= 80, text
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


# 64 MiB whose missing pages are another's to fill, and nobody does; four are there.
UNSERVED = """
import ctypes, fcntl, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
handler = libc.syscall(323, os.O_CLOEXEC | os.O_NONBLOCK)
if handler < 0:
    print("NONE"); print("READY", flush=True); sys.exit()
fcntl.ioctl(handler, 0xc018aa3f, struct.pack("QQQ", 0xaa, 0, 0))
memory = libc.mmap(None, ctypes.c_size_t(64 << 20), 3, 0x22, -1, ctypes.c_long(0))
fcntl.ioctl(handler, 0xc020aa00, struct.pack("QQQQ", memory, 64 << 20, 1, 0))
fcntl.ioctl(handler, 0xc020aa04, struct.pack("QQQQ", memory + (32 << 20), 4 * 4096, 0, 0))
held = [ctypes.c_void_p(memory + 4096 * i) for i in range(16384)]
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.read()
"""


@case()
def census_waits_for_no_userfaultfd(context):
    """Pages that are not there are not asked for, by whatever it looks for: nobody would bring them."""
    victim = Victim(context, [context.program("python3"), "-c", UNSERVED])
    if "NONE" in victim.lines.seen:
        raise Skip("there is no userfaultfd")
    for options in ((), ("--by", "holder"), ("--unreachable",)):
        census = json.loads(take(context, victim.pid, "--json", *options))
        check_sum(census)
        assert sum(row["reserved"] for row in rows(census, "anonymous")) >= 64 * MIB > census["resident"], census
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


@case()
def census_of_redis(context):
    redis = context.start([context.program("redis-server"), "--port", "0", "--save", "", "--unixsocket", context.path("redis.socket")],
                          stdout=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE
    while not os.path.exists(context.path("redis.socket")) and time.monotonic() < end:
        time.sleep(0.05)
    check_sum(json.loads(take(context, redis.pid, "--json")))
    other = "libjemalloc" in read_text(f"/proc/{redis.pid}/maps")  # Debian's
    assert ("malloc (jemalloc 5.3)" if other else "malloc (glibc 2.") in take(context, redis.pid)
    end = time.monotonic() + PATIENCE
    while other and shutil.which("redis-cli"):  # it asks jemalloc ten times a second, between which it may allocate
        heap = json.loads(take(context, redis.pid, "--json"))["allocator"]
        info = subprocess.run(["redis-cli", "-s", "redis.socket", "info", "memory"], stdout=subprocess.PIPE, text=True, check=True, cwd=context.work).stdout
        if int(re.search(r"allocator_allocated:(\d+)", info)[1]) == heap["live_bytes"] + heap["in_caches"]:
            break
        assert time.monotonic() < end, (heap, info)
    assert redis.poll() is None


LIBRARIES = f"/usr/lib/{os.uname().machine}-linux-gnu"
JEMALLOC = f"{LIBRARIES}/libjemalloc.so.2"


@case()
def census_of_jemalloc(context):
    """Its live blocks are those of the program, and what jemalloc counts itself, also of what nobody has touched."""
    if not os.path.exists(JEMALLOC):
        raise Skip("libjemalloc2 is not installed")
    victim = Victim(context, "other_heap", environment={"LD_PRELOAD": JEMALLOC})
    files, known = [context.path("a.census"), context.path("b.census")], truth(victim)
    census = json.loads(take(context, victim.pid, "--json", "-o", files[0]))
    check_sum(census)
    heap = census["allocator"]
    assert (heap["name"], heap["release"], heap["lost_bytes"]) == ("jemalloc", "5.3", 0), heap
    assert 0 <= heap["live_blocks"] - known["live_blocks"] <= OWN_BLOCKS, (heap, known)
    assert 0 <= heap["live_bytes"] - known["live_bytes"] <= OWN_BYTES and abs(heap["live_bytes"] + heap["in_caches"] - known["counted"]) <= 16384, (heap, known)
    assert heap["live_bytes"] - heap["live_resident"] >= 64 * MIB - 4096 and heap["freed_resident"] > MIB, heap
    (row,) = rows(census, "allocator")
    assert row["name"] == "jemalloc" and row["resident"] == heap["live_resident"] + heap["freed_resident"], (row, heap)
    text = take(context, victim.pid).splitlines()
    assert re.search(r"is live in jemalloc: \d+ blocks of ", text[1]) and any("malloc (jemalloc 5.3)" in line for line in text[:6]), text
    victim.send("more")
    victim.wait(r"^MADE$")
    take(context, victim.pid, "-o", files[1])
    growth = subprocess.run([context.memanalyze, "--diff", *files], stdout=subprocess.PIPE, text=True, check=True).stdout
    more = int(re.search(r"\+(\d+) .*1\.00 KiB of jemalloc", growth)[1])
    assert 1000 <= more <= 1000 + OWN_BLOCKS, growth  # and what its thread has fetched at once
    victim.finish_by_stdin()


MIMALLOC = f"{LIBRARIES}/libmimalloc.so.2"


TCMALLOC = f"{LIBRARIES}/libtcmalloc_minimal.so.4"


def check_other_heap(context, library, name, release):
    """A census of the victim finds its live blocks, and a thousand more."""
    if not os.path.exists(library):
        raise Skip(f"{library} is not installed")
    victim = Victim(context, "other_heap", environment={"LD_PRELOAD": library})
    census, known = json.loads(take(context, victim.pid, "--json")), truth(victim)
    check_sum(census)
    heap = census["allocator"]
    assert (heap["name"], heap["release"], heap["lost_bytes"]) == (name, release, 0), heap
    assert 0 <= heap["live_blocks"] - known["live_blocks"] <= OWN_BLOCKS and 0 <= heap["live_bytes"] - known["live_bytes"] <= OWN_BYTES, (heap, known)
    (row,) = rows(census, "allocator")
    assert row["resident"] == heap["live_resident"] + heap["freed_resident"] and heap["freed_resident"] > MIB, (row, heap)
    victim.send("more")
    victim.wait(r"^MADE$")
    more = json.loads(take(context, victim.pid, "--json"))["allocator"]
    assert more["live_blocks"] - heap["live_blocks"] == 1000, (heap, more)
    victim.finish_by_stdin()
    return heap, known


@case()
def census_of_mimalloc(context):
    """Its live blocks are those of the program: what another thread has freed is not, wherever it waits for its owner."""
    check_other_heap(context, MIMALLOC, "mimalloc", "2.0")


@case()
def census_of_tcmalloc(context):
    """Its live blocks are those of the program, and what tcmalloc counts itself: what is in its caches is not."""
    if os.path.exists(TCMALLOC) and not os.path.realpath(TCMALLOC).endswith(".so.4.5.10"):
        raise Skip("this is not gperftools 2.10")
    heap, known = check_other_heap(context, TCMALLOC, "tcmalloc", "2.10")
    assert abs(heap["live_bytes"] - known["counted"]) <= OWN_BYTES and heap["live_bytes"] - heap["live_resident"] >= 64 * MIB - 8192, (heap, known)


@case()
def census_of_debugging_tcmalloc(context):
    """Nothing tells what it keeps to check it from live blocks: how many are live is not said, but whose the memory is."""
    library = TCMALLOC.replace("_minimal", "_minimal_debug")
    if not os.path.exists(library):
        raise Skip(f"{library} is not installed")
    victim = Victim(context, "other_heap", environment={"LD_PRELOAD": library})
    text = take(context, victim.pid)
    assert text.count("of tcmalloc and others") >= 2 and "blocks" not in text, text
    victim.finish_by_stdin()


@case()
def census_of_linked_allocators(context):
    """Inside of a stripped program, which has a table of its blocks in its data."""
    for name in ("jemalloc", "tcmalloc"):
        if not os.path.exists(context.target(f"other_heap_{name}")):
            continue
        stripped = context.path(f"other_heap_{name}")
        subprocess.run(["strip", "-o", stripped, context.target(f"other_heap_{name}")], check=True)
        victim = Victim(context, [stripped])
        heap, known = json.loads(take(context, victim.pid, "--json"))["allocator"], truth(victim)
        assert heap["name"] == name and heap["lost_bytes"] == 0, heap
        assert 0 <= heap["live_blocks"] - known["live_blocks"] <= OWN_BLOCKS, (heap, known)
        victim.finish_by_stdin()


@case()
def census_of_musl(context):
    """Its live blocks are those of the program; groups that lie in slots of others are none."""
    if not os.path.exists(context.target("other_heap_musl")):
        raise Skip("musl-gcc is not installed")
    victim = Victim(context, "other_heap_musl")
    census, known = json.loads(take(context, victim.pid, "--json")), truth(victim)
    check_sum(census)
    heap = census["allocator"]
    assert (heap["name"], heap["lost_bytes"]) == ("musl", 0), heap
    assert 0 <= heap["live_blocks"] - known["live_blocks"] <= OWN_BLOCKS, (heap, known)
    assert known["live_bytes"] <= heap["live_bytes"] <= 1.1 * known["live_bytes"], (heap, known)  # with what rounding adds
    (row,) = rows(census, "allocator")
    assert row["resident"] == heap["live_resident"] + heap["freed_resident"] and heap["freed_resident"] > MIB, (row, heap)
    victim.send("more")
    victim.wait(r"^MADE$")
    more = json.loads(take(context, victim.pid, "--json"))["allocator"]
    assert more["live_blocks"] - heap["live_blocks"] == 1000, (heap, more)
    victim.finish_by_stdin()


@case()
def census_names_stacks(context):
    """Threads that sleep have their stacks under their names, what they allocated is in arenas."""
    victim = Victim(context, "named_threads")
    victim.send("go")
    victim.wait(r"^TRUTH-END")  # whose arenas grow until then
    wanted, found, end = {"steady", "renamed", "newborn", "main"}, set(), time.monotonic() + PATIENCE
    while not wanted <= found and time.monotonic() < end:  # one that still runs has no stack pointer that could be asked for
        census = json.loads(take(context, victim.pid, "--json"))
        found = {row["name"] for row in rows(census, "stack")}
    assert wanted <= found, (found, census)
    check_sum(census)
    assert sum(row["resident"] for row in rows(census, "arena")) >= 2000 * 4000 + 300 * 40000 + 3000 * 2000 + 1000 * 8000, census
    victim.send("end")
    victim.check_alive()


def truth(victim):
    (line,) = [line for line in victim.lines.seen if line.startswith("TRUTH {")]
    return json.loads(line[len("TRUTH "):])


OWN_BLOCKS = 40  # what the C library has for itself: stdio, threads, tcaches
OWN_BYTES = 200000


def check_live(census, known):
    """Counted by the program, headers included; nothing is lost while it sleeps, and all of malloc's memory is walked."""
    malloc = census["malloc"]
    assert 0 <= malloc["live_blocks"] - known["live_blocks"] <= OWN_BLOCKS, (malloc, known)
    assert 0 <= malloc["live_bytes"] - known["live_bytes"] <= OWN_BYTES, (malloc, known)
    assert malloc["lost_bytes"] == malloc["contradictions"] == 0 and malloc["arenas"] >= 1, malloc
    assert sum(size["blocks"] for size in malloc["sizes"]) == malloc["live_blocks"], malloc
    assert malloc["resident"] == malloc["live_resident"] + malloc["freed_beside_live"] + malloc["freed_whole_pages"], malloc
    assert abs(malloc["arena_bytes_by_malloc"] - malloc["arena_bytes_walked"]) <= 16384 * malloc["arenas"], malloc
    assert malloc["mapped_blocks"] == malloc.get("mapped_blocks_by_malloc", malloc["mapped_blocks"]), malloc


@case()
def census_of_a_mixed_heap(context):
    """Live blocks in two arenas and in mappings of their own are those of the program; malloc_trim returns what was said."""
    victim = Victim(context, "heap_states", "mixed")
    census = json.loads(take(context, victim.pid, "--json"))
    check_sum(census)
    check_live(census, truth(victim))
    malloc = census["malloc"]
    assert malloc["arenas"] == 2 and malloc["mapped_blocks"] >= 6 and malloc["in_tcaches"] > 0, malloc
    assert malloc["trim_returns"] > MIB and malloc["sparse_pages"] > 0, malloc
    victim.send("trim")
    victim.wait(r"^TRIMMED$")
    after = json.loads(take(context, victim.pid, "--json"))
    returned = census["resident"] - after["resident"]
    assert abs(returned - malloc["trim_returns"]) <= 64 << 10, (returned, malloc)
    assert after["malloc"]["trim_returns"] <= 64 << 10, after["malloc"]
    victim.finish_by_stdin()


@case()
def census_of_a_static_program(context):
    """What is in its fastbins and tcaches is free: that its release is 2.35 or later is known by a setting."""
    stripped = context.path("heap_states_static")
    subprocess.run(["strip", "-o", stripped, context.target("heap_states_static")], check=True)
    victim = Victim(context, [stripped, "mixed"])
    census = json.loads(take(context, victim.pid, "--json"))
    check_live(census, truth(victim))
    assert census["malloc"]["or_later"] and census["malloc"]["in_tcaches"] > 0, census["malloc"]
    assert "malloc (glibc 2.35 or later, 2 arenas)" in take(context, victim.pid), census["malloc"]
    victim.finish_by_stdin()


@case()
def census_answers_in_ten_lines(context):
    """Freed and kept; live and not growing; stacks: each is said by the first lines."""
    expected = {"freed": (r"MiB was freed and is kept by malloc; malloc_trim\(0\) would return (69|70)\.\d MiB", r"^ +70\.\d MiB .*freed, kept"),
                "live": (r"^Most of it \(9\d %\) is live in malloc: (9\d|100) % in 60\d{4} blocks of 104 bytes", r"^ +6\d\.\d MiB .*live, 60\d{4} blocks"),
                "stacks": (r"^Most of it \(9\d %\) is stacks of 101 threads", r"^ +10\d MiB .*stacks of 101 threads$")}
    for what, patterns in expected.items():
        victim = Victim(context, "heap_states", what)
        end = time.monotonic() + PATIENCE
        while True:  # a thread that still runs has no stack pointer that could be asked for
            text = take(context, victim.pid, "--for", "200ms").splitlines()
            if what != "stacks" or "101 threads" in text[1] or time.monotonic() > end:
                break
        for pattern in patterns:
            assert any(re.search(pattern, line) for line in text[:10]), (what, pattern, text)
        assert text[0].endswith("all accounted for; 0 B/min") and max(map(len, text)) <= 80, text
        victim.finish_by_stdin()


@case()
def census_of_python_objects(context):
    """The blocks of CPython's pools are those that sys.getallocatedblocks() has, but for those of malloc."""
    victim = Victim(context, [context.program("python3"), "-c", OBJECTS])
    census = json.loads(take(context, victim.pid, "--json"))
    check_sum(census)
    known = truth(victim)["blocks"]
    assert 0.98 * known <= census["python"]["live_blocks"] <= known, (census["python"], known)
    types = {row["name"]: row["blocks"] for row in census["types"] if row["by"] == "python"}
    assert 200000 <= types["object"] <= 200500 and types["Slot"] == 30000, types
    (row,) = rows(census, "python")
    assert row["resident"] >= 200000 * 16, row
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


@case()
def census_by_type(context):
    """Classes by their vtables, without symbols; text and zeros by content."""
    stripped = context.path("heap_types")
    subprocess.run(["strip", "-o", stripped, context.target("heap_types")], check=True)
    victim = Victim(context, [stripped])
    census = json.loads(take(context, victim.pid, "--json"))
    types = {row["name"]: row["blocks"] for row in census["types"]}
    for name, count in truth(victim).items():
        assert count <= types[name] <= count + OWN_BLOCKS, (name, count, types)
    assert abs(sum(row["blocks"] for row in census["types"]) - census["malloc"]["live_blocks"]) <= 1, census
    text = take(context, victim.pid, "--by", "type", "--for", "50ms").splitlines()
    assert any(re.search(r"^ +1\.\d+ MiB .* 30000 +0 B  vtable  shop::Book$", line) for line in text), text
    victim.finish_by_stdin()


@case()
def census_of_aligned_blocks(context):
    """Blocks of memalign() with mappings of their own: where they begin is at another place than behind the first header."""
    victim = Victim(context, "memory_kinds")
    victim.send("aligned 32")
    victim.wait(r"^DONE$")
    census = json.loads(take(context, victim.pid, "--json"))
    assert census["malloc"]["mapped_blocks"] == 32, census["malloc"]
    (text,) = [row for row in census["types"] if row["name"] == "text"]
    assert text["blocks"] == 32 and 32 * MIB <= text["bytes"] <= 40 * MIB, text  # with what malloc leaves behind them
    victim.finish_by_stdin()


@case()
def census_files_show_growth(context):
    """Two files of one process: the blocks that came between them, exactly."""
    victim = Victim(context, "heap_types")
    files = [context.path("a.census"), context.path("b.census")]
    take(context, victim.pid, "-o", files[0])
    victim.send("more")
    victim.wait(r"^MADE$")
    take(context, victim.pid, "--output", files[1])
    show = lambda *options: subprocess.run([context.memanalyze, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                           timeout=PATIENCE, check=False)
    result = show("--diff", "--json", *files)
    assert result.returncode == 0, result
    growth = json.loads(result.stdout)
    (books,) = [row for row in growth["types"] if row["name"] == "shop::Book"]
    assert growth["same_process"] and (books["count_before"], books["count"]) == (30000, 31000), growth
    assert books["bytes"] - books["bytes_before"] == 1000 * 56 and 0 < growth["malloc_live"] - growth["malloc_live_before"] < MIB, growth
    text = show("--diff", *files).stdout.splitlines()
    assert text[0].startswith(f"heap_types (PID {victim.pid}): +") and any(re.search(r"^ +\+54\.7 KiB +\+1000 .*vtable shop::Book$", line) for line in text), text
    for options in ((files[0],), ("--diff", files[0], context.memanalyze), ("--diff", "-o", "x.html", *files), ("--diff", "--format", "html", *files)):
        assert show(*options).returncode == 2, options
    victim.finish_by_stdin()


@case()
def census_of_a_forged_heap(context):
    """Headers, chunks and lists that lead anywhere: a report that says what was lost, soon, and nothing else."""
    victim = Victim(context, "heap_states", "forged")
    victim.send("go")
    victim.wait(r"^FORGED$")
    for options in ((), ("--by", "size"), ("--by", "region"), ("--by", "type"), ("--json",)):
        text = take(context, victim.pid, *options)
    malloc = json.loads(text)["malloc"]
    assert malloc["resyncs"] > 0 and malloc["lost_bytes"] > 0, malloc
    check_sum(json.loads(text))
    victim.finish_by_stdin()


RESERVING = """
import ctypes, sys, os
sbrk = ctypes.CDLL(None).sbrk
sbrk.argtypes, sbrk.restype = [ctypes.c_ssize_t], ctypes.c_void_p
for _ in range(128):
    assert sbrk(8 << 30) != ctypes.c_void_p(-1).value
print("PID", os.getpid())
print("READY", flush=True)
sys.stdin.readline()
"""


@case()
def census_of_a_reserved_heap(context):
    """1 TiB of brk of which next to nothing is there: no memory is taken for it, and its blocks are not known."""
    victim = Victim(context, [context.program("python3"), "-c", RESERVING])
    text = take(context, victim.pid)
    assert "what is live in the heap is not known" in text and "of an allocator that is not known" in text, text
    check_sum(json.loads(take(context, victim.pid, "--json")))
    victim.send("end")
    assert victim.process.wait(PATIENCE) == 0


@case()
def census_again_and_again(context):
    """--every shows growth since the look before, until the process has ended."""
    victim = Victim(context, "heap_states", "live")
    looking = context.start([context.memattach, "--census", "--every", "50ms", str(victim.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    heads = [line for line, _ in zip((line for line in looking.stdout if f"(PID {victim.pid})" in line), range(3))]
    assert "/min" not in heads[0] and all("/min" in line for line in heads[1:]), heads
    victim.process.kill()
    looking.stdout.read()
    assert looking.wait(PATIENCE) == 1 and "it has ended" in looking.stderr.read()


@case()
def census_touches_nothing(context):
    """No ptrace request, no write, no page more; the process is as before."""
    victim = Victim(context, "alloc_loop", "calm")
    before = Snapshot(victim.pid)
    trace, prefix = context.path("census.strace"), []
    if shutil.which("strace"):
        prefix = ["strace", "-f", "-qq", "-o", trace, "-e", "signal=none", "-e",
                  "trace=ptrace,process_vm_writev,kill,tgkill,pidfd_send_signal,pwrite64"]
    result = subprocess.run([*prefix, context.memattach, "--census", str(victim.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, timeout=PATIENCE, check=False)
    assert result.returncode == 0 and not result.stderr and " resident, " in result.stdout, result
    assert not prefix or not read_text(trace).strip(), read_text(trace)
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.finish()


@case()
def census_refuses_by_name(context):
    for status, options in ((1, ["--census", "-p", "1999999999"]), (64, ["--census", "--name", "x", str(os.getpid())]),
                            (64, ["--json", "-p", str(os.getpid())]),
                            (64, ["--for", "1s", "-p", str(os.getpid())]), (64, ["--by", "size", "-p", str(os.getpid())]),
                            (64, ["--census", "--by", "wish", "-p", str(os.getpid())]), (64, ["--census", "--for", "1s", "--every", "1s", "-p", str(os.getpid())]), (64, ["--census", "--children", "-p", str(os.getpid())])):
        result = subprocess.run([context.memattach, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE,
                                check=False)
        assert result.returncode == status and result.stderr and not result.stdout, (options, result)
