# SPDX-License-Identifier: MIT
"""The sum of the resident memory in a report: what has grown during a session, by kind, held against what the program says."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

from harness import PATIENCE, Session, Skip, Victim, case, check_receipt
from procfs import describe, read_text
from reports import analyze, analyze_text, until

MIB = 1 << 20
FIRST_LINES = 10


def tell(victim, *lines):
    for line in lines:
        victim.send(line)
        victim.wait(r"^DONE$")
        victim.lines.seen.clear()


def rss_line(text):
    """The first lines have it, whatever it is wrapped to."""
    lines = text.splitlines()[:FIRST_LINES + 4]
    at = next((i for i, line in enumerate(lines[:FIRST_LINES]) if line.startswith("  RSS ")), None)
    assert at is not None, text
    end = next(i for i in range(at, len(lines)) if not lines[i + 1].startswith("     "))
    return " ".join(line.strip() for line in lines[at:end + 1])


def parts(report, kind):
    return [part for part in report["resident"]["parts"] if part["kind"] == kind]


def check_sum(report):
    """All of it is attributed, but for what VmRSS is not exact to."""
    resident = report["resident"]
    assert resident["known"] is True, resident
    for moment in ("start", "end"):
        counted = sum(part[f"{moment}_bytes"] for part in resident["parts"])
        assert abs(counted - resident[f"{moment}_bytes"]) <= 0.005 * counted + MIB, (moment, counted, resident)


def grown(context, before, during, rate="64k"):
    """The report and its text over what a victim did in the session; sets of lines."""
    victim = Victim(context, "memory_kinds")
    tell(victim, *before)
    session = Session(context, victim.pid, "--max-overhead", "off", rate=rate)
    tell(victim, *during)
    check_receipt(session.stop(), victim.pid)
    victim.finish_by_stdin()
    report = analyze(context, session.dump)
    check_sum(report)
    return report, rss_line(analyze_text(context, session.dump))


@case()
def resident_memory_by_kind(context):
    """What grows is named by the first lines, whatever it is."""
    cached = context.path("cached-file")
    kinds = {"freed 70": r"= (69|70)\.\d MiB freed, kept by malloc",
             "memfd 60": r"= 6\d\.\d MiB shared memory memfd:cache",
             f"file 50 {cached}": r"= 5\d\.\d MiB file cached-file",
             "stacks 20": r"= 2\d\.\d MiB stacks of 22 threads",
             "live 50": r"= 50\.\d MiB live in malloc \(stacks below\)"}
    for line, pattern in kinds.items():
        report, text = grown(context, ["stacks 1"], [line])
        assert re.search(pattern, text), (line, text)
        assert report["trust"]["live_bytes"]["value"] == "measured", (line, report["trust"])
        assert "the kernel says" not in text, text


@case()
def resident_memory_closes_the_sum(context):
    """Three at once: each with the size that it has."""
    report, text = grown(context, [], ["live 51", "freed 30", "memfd 28"])
    assert re.search(r"= 51\.\d MiB live in malloc \(stacks below\) \+ (29|30)\.\d MiB freed, kept by malloc \+ 2[89]\.\d MiB shared memory", text), text
    live, freed = parts(report, "malloc-live")[0], parts(report, "malloc-freed")[0]
    assert live["holds_live"] and not freed["holds_live"] and report["resident"]["live"] == "fits", report["resident"]
    assert report["resident"]["not_attributed_bytes"] < MIB, report["resident"]


@case()
def resident_memory_that_is_used_again(context):
    """What is live was allocated in memory that was freed meanwhile, or is not touched: more than has grown, and it is said by how much."""
    report, text = grown(context, ["live 60"], ["release", "live 70"])
    assert report["resident"]["live"] == "more" and report["resident"]["beside_low_bytes"] > 40 * MIB, report["resident"]
    assert re.search(r"= 1\d\.\d MiB live in malloc", text) and "(stacks below)" not in text, text
    report, text = grown(context, [], ["untouched 300"])
    assert report["resident"]["live"] == "more" and 290 * MIB < report["resident"]["beside_low_bytes"] <= 300 * MIB, report["resident"]
    assert ", no part of it by 1.00 MiB" in text and "at least 300 MiB more" in text, text


@case()
def residency_of_live_blocks(context):
    """What is live and was written is present; what nobody has touched, or was given back, is not: by the blocks, and by what stands in
    their stacks."""
    victim = Victim(context, "memory_kinds")
    session = Session(context, victim.pid, "--max-overhead", "off")
    tell(victim, "live 30", "untouched 200", "emptied 100")
    check_receipt(session.stop(), victim.pid)
    victim.finish_by_stdin()
    by = {group["residency"]: group for group in analyze(context, session.dump, "--by", "residency")["groups"]}
    assert set(by) <= {"present", "not resident", "partly present"}, by
    assert by["not resident"]["live_bytes"]["estimate"] == 300 * MIB and by["not resident"]["live_count"]["estimate"] == 2, by
    assert 20 * MIB < by["present"]["live_bytes"]["estimate"] < 40 * MIB, by
    kept = {group["residency"] for group in analyze(context, session.dump, "--by", "residency", "--focus", "keep_block")["groups"]}
    assert "not resident" not in kept and "present" in kept, kept


PYTHON = """
import os, sys
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.readline()
kept = [object() for _ in range(2000000)]
print("DONE", flush=True)
sys.stdin.read()
"""


@case()
def resident_memory_of_python(context):
    """Two million objects of 16 bytes and their list, which is one block of malloc's."""
    victim = Victim(context, [context.program("python3"), "-c", PYTHON])
    session = Session(context, victim.pid, "--python-allocators", "off")
    tell(victim, "go")
    check_receipt(session.stop(), victim.pid)
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0
    report = analyze(context, session.dump)
    check_sum(report)
    (small,) = parts(report, "python")
    assert 30 * MIB <= small["growth_bytes"] <= 40 * MIB, report["resident"]
    assert re.search(r"3\d\.\d MiB small objects of Python", rss_line(analyze_text(context, session.dump))), report["resident"]


@case()
def resident_memory_of_redis(context):
    """What is live is in the memory of its allocator, whichever that is."""
    if not shutil.which("redis-cli"):
        raise Skip("redis-cli is not installed")
    # By a name without folders: a socket's path has 107 bytes at most.
    redis = context.start([context.program("redis-server"), "--port", "0", "--save", "", "--unixsocket", "socket", "--enable-debug-command", "yes"],
                          stdout=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE
    while not os.path.exists(context.path("socket")) and time.monotonic() < end:
        time.sleep(0.05)
    session = Session(context, redis.pid)
    subprocess.run(["redis-cli", "-s", "socket", "debug", "populate", "200000", "key", "300"], check=True, stdout=subprocess.DEVNULL,
                   timeout=PATIENCE, cwd=context.work)
    check_receipt(session.stop(), redis.pid)
    report = analyze(context, session.dump)
    check_sum(report)
    jemalloc = "libjemalloc" in read_text(f"/proc/{redis.pid}/maps")
    (part,) = [part for part in report["resident"]["parts"] if part["holds_live"]]
    assert part["kind"] == ("other-live" if jemalloc else "malloc-live") and part["growth_bytes"] > 60 * MIB, report["resident"]
    assert (report["resident"]["allocator"] == "jemalloc") == jemalloc == report["resident"]["allocator_known"], report["resident"]
    assert "(stacks below" in rss_line(analyze_text(context, session.dump)), report["resident"]
    assert redis.poll() is None


JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"


@case()
def resident_memory_of_jemalloc(context):
    """What is live in another malloc, and what that keeps of what was freed."""
    if not os.path.exists(JEMALLOC):
        raise Skip("libjemalloc2 is not installed")
    victim = Victim(context, "memory_kinds", environment={"LD_PRELOAD": JEMALLOC, "MALLOC_CONF": "dirty_decay_ms:-1"})
    session = Session(context, victim.pid, "--max-overhead", "off")
    tell(victim, "live 51", "freed 30")
    check_receipt(session.stop(), victim.pid)
    victim.finish_by_stdin()
    report = analyze(context, session.dump)
    check_sum(report)
    assert report["resident"]["allocator_known"] and report["resident"]["allocator"] == "jemalloc", report["resident"]
    live, freed = parts(report, "other-live")[0], parts(report, "other-freed")[0]
    assert live["holds_live"] and 50 * MIB <= live["growth_bytes"] <= 53 * MIB and 29 * MIB <= freed["growth_bytes"] <= 32 * MIB, report["resident"]
    assert re.search(r"= 5[0-3]\.\d MiB live in jemalloc \(stacks below\) \+ (29|3[0-2])\.\d MiB freed, kept by jemalloc", rss_line(analyze_text(context, session.dump)))


@case()
def resident_memory_of_musl(context):
    """Also where no block is sampled: the rows are those of a census."""
    if not os.path.exists(context.target("other_heap_musl")):
        raise Skip("musl-gcc is not installed")
    victim = Victim(context, "other_heap_musl")
    session = Session(context, victim.pid)
    victim.send("more")
    victim.wait(r"^MADE$")
    check_receipt(session.stop(), victim.pid)
    heap = json.loads(subprocess.run([context.memattach, "--census", "--json", "-p", str(victim.pid)], stdout=subprocess.PIPE, check=True).stdout)["allocator"]
    victim.finish_by_stdin()
    report = analyze(context, session.dump)
    check_sum(report)
    assert report["resident"]["allocator_known"] and report["resident"]["allocator"] == "musl", report["resident"]
    live, freed = parts(report, "other-live")[0], parts(report, "other-freed")[0]
    assert (live["end_bytes"], freed["end_bytes"]) == (heap["live_resident"], heap["freed_resident"]), (report["resident"], heap)


RESERVED = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
reserved = libc.mmap(None, ctypes.c_size_t(8 << 40), 3, 0x4022, -1, ctypes.c_long(0))
assert reserved != ctypes.c_void_p(-1).value
ctypes.memset(reserved + (4 << 40), 1, 1 << 20)
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.readline()
ctypes.memset(reserved + (6 << 40), 1, 20 << 20)
print("DONE", flush=True)
sys.stdin.read()
"""


@case()
def resident_memory_of_a_reservation(context):
    """8 TiB are reserved: what of them is there is counted, and nothing is brought in."""
    victim = Victim(context, [context.program("python3"), "-c", RESERVED])
    session = Session(context, victim.pid)
    tell(victim, "go")
    check_receipt(session.stop(), victim.pid)
    report = analyze(context, session.dump)
    check_sum(report)
    (part,) = parts(report, "anonymous")
    assert 20 * MIB <= part["growth_bytes"] <= 24 * MIB, report["resident"]  # in pages of at most 2 MiB
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


@case()
def resident_memory_meanwhile(context):
    """While a session lasts its dump tells what is resident, by kind, without what memattach has there: live, then freed and kept, then shared.

    Where it rests the parts are its size.
    """
    victim = Victim(context, "memory_kinds")
    session = Session(context, victim.pid)

    def await_look(kind, least):
        def holds(report):
            return any(point["looked_at"] and point["parts"].get(kind, 0) >= least * MIB and
                       abs(sum(point["parts"].values()) - point["resident"]) <= 2 * MIB for point in report["resident_timeline"])
        until(context, session, kind, holds, "--timeline")

    tell(victim, "live 60")
    await_look("malloc-live", 58)
    tell(victim, "freed 100")
    await_look("malloc-freed", 95)
    tell(victim, "memfd 40")
    await_look("shared", 40)
    check_receipt(session.stop(), victim.pid)
    points = [point for point in analyze(context, session.dump, "--timeline")["resident_timeline"] if point["looked_at"]]
    sums = [sum(point["parts"].values()) for point in points]  # while it grows, of a moment before or after its size
    for before, now, after in zip([points[0], *points], sums, [*points[1:], points[-1]]):
        assert before["resident"] - 2 * MIB <= now <= after["resident"] + 2 * MIB, points
    assert all(point["parts"].get("shared", 0) <= 41 * MIB for point in points), points
    assert 198 * MIB <= points[-1]["resident"] <= 206 * MIB and points[0]["resident"] < 20 * MIB, points
    assert [point["seconds"] for point in points] == sorted({point["seconds"] for point in points})
    victim.finish_by_stdin()


@case()
def resident_memory_without_an_end(context):
    """The process ends by itself: there is one look, and the report says what the kernel said, as before."""
    victim = Victim(context, "memory_kinds")
    session = Session(context, victim.pid)
    tell(victim, "live 20")
    victim.finish_by_stdin()
    session.end()
    report = analyze(context, session.dump)
    assert report["resident"] == {"known": False} and report["memory"] is not None, report
    assert "  RSS " not in analyze_text(context, session.dump)


MAPPINGS = 20000  # a look at so many takes long enough to be met
TRIES = 8


def looker(memattach, target):
    """The child of memattach that has the page map of the target open, stopped; None: it cannot be met any more."""
    while memattach.poll() is None:
        for child in read_text(f"/proc/{memattach.pid}/task/{memattach.pid}/children", "").split():
            try:
                if any(os.readlink(f"/proc/{child}/fd/{fd}").endswith("/pagemap") for fd in os.listdir(f"/proc/{child}/fd")):
                    os.kill(int(child), signal.SIGSTOP)
                    return int(child)
            except OSError:
                continue
    return None


def begun(context, victim):
    """A session of which the first look of meanwhile is over, so that the next one may be the last."""
    session = Session(context, victim.pid, "-v")
    until(context, session, "a look", lambda report: any(point["looked_at"] for point in report["resident_timeline"]), "--timeline")
    return session


def has_ended(pid):
    return "State:\tZ" in read_text(f"/proc/{pid}/status", "State:\tZ")


@case()
def resident_memory_keeps_nobody_waiting(context):
    """The first look stands still: Ctrl-C ends it, and memattach, and nothing was done. The last one: another Ctrl-C."""
    victim = Victim(context, "memory_kinds")
    tell(victim, f"mappings {MAPPINGS}")
    for _ in range(TRIES):
        session = Session(context, victim.pid, "-v", wait=False)
        child = looker(session.process, victim.pid)
        if not child or any("attached to" in line for line in session.lines.seen):
            session.stop()
            continue
        os.kill(session.process.pid, signal.SIGINT)
        session.process.wait(PATIENCE)
        session.lines.thread.join(PATIENCE)
        assert has_ended(child), describe(child)
        assert "cannot be looked at: interrupted" in session.said(), session.said()
        assert "attached to" not in session.said() and not os.path.exists(session.dump), session.said()
        break
    else:
        raise Skip("no look was met")
    for _ in range(TRIES):
        session = begun(context, victim)
        os.kill(session.process.pid, signal.SIGINT)
        child = looker(session.process, victim.pid)
        if not child:
            session.end()
            continue
        while not has_ended(child):  # two within a moment are one
            os.kill(session.process.pid, signal.SIGINT)
            time.sleep(0.5)
        check_receipt(session.end(), victim.pid)
        assert has_ended(child), describe(child)
        if "cannot be looked at" not in session.said():
            continue  # that was a look of meanwhile, or it came to its end just before
        assert "cannot be looked at: interrupted" in session.said(), session.said()
        assert analyze(context, session.dump)["resident"] == {"known": False, "why": "interrupted"}
        break
    else:
        raise Skip("no last look was met")
    victim.finish_by_stdin()


@case()
def resident_memory_is_not_that_of_another_program(context):
    """The process executes another program while the last look reads it: what was read is not said to be its memory."""
    for _ in range(TRIES):
        victim = Victim(context, "memory_kinds")
        tell(victim, f"mappings {MAPPINGS}")
        session = begun(context, victim)
        os.kill(session.process.pid, signal.SIGINT)
        child = looker(session.process, victim.pid)
        if child:
            victim.send("execute")
            while "cat" not in read_text(f"/proc/{victim.pid}/comm"):
                pass
            os.kill(child, signal.SIGCONT)
        session.end()
        os.kill(victim.pid, signal.SIGKILL)
        if child and "restored" in session.said():  # else that was a look of meanwhile
            resident = analyze(context, session.dump)["resident"]
            assert resident == {"known": False, "why": "it has ended, or executed another program, meanwhile"}, resident
            return
    raise Skip("no last look was met")


WORKER = """
import os
kept = [b"x" * (1000 + i % 8) for i in range(100000)]
kept += [b"x" * (200 + i % 8) for i in range(100000)]
if not os.fork():
    import signal
    print("PID", os.getpid())
    print("READY", flush=True)
    signal.pause()
os.wait()
"""


@case()
def shared_pages_stay_shared(context):
    """Whoever reads a worker leaves it as it was: its pages are its master's as long as nobody writes them."""
    def shared():
        return int(re.search(r"^Shared_Dirty: +(\d+) kB$", read_text(f"/proc/{victim.pid}/smaps_rollup"), re.M)[1])

    victim = Victim(context, [context.program("python3"), "-c", WORKER])
    before = shared()
    assert before > 100 << 10, before
    for options in ((), ("--by", "type"), ("--unreachable", "--freeze")):
        subprocess.run([context.memattach, "--census", "-p", str(victim.pid), *options], stdout=subprocess.DEVNULL, timeout=PATIENCE, check=True)
        assert before - shared() < 2 << 10, (options, before, shared())
    session = Session(context, victim.pid, "--holders")
    check_receipt(session.stop(), victim.pid)
    assert before - shared() < 2 << 10, (before, shared())  # what the session itself has written
    os.kill(victim.pid, signal.SIGKILL)
