# SPDX-License-Identifier: MIT
"""Functions that are hooked at their entries: every call is seen once, and the code is as before afterwards."""
import json
import os
import re
import signal
import subprocess
import sys
from ctypes.util import find_library

from cases_figures import check_exact, known_session
from cases_trust import session_over, worth
from harness import PATIENCE, Session, Victim, case, check_receipt, cycle, run_memattach, run_session
from procfs import Skip, read_text
from reports import analyze


def built(context, name):
    if not os.path.exists(context.target(name)):
        raise Skip(f"{name} was not built: its allocator is not installed")
    return name


def check_hooked(session, entries):
    receipt = session.receipt
    assert receipt["functions"]["hooked"] > 0 and receipt["functions"]["restored"] == receipt["functions"]["hooked"], receipt
    assert entries is None or receipt["slots"]["patched"] == entries, receipt


def check_entries_exact(context, program, *options, entries=0):
    report, truth, session = known_session(context, built(context, program), "1", *options)
    check_exact(report, truth)
    check_hooked(session, entries)
    assert set(worth(report).values()) == {"measured"}, report["trust"]


@case()
def linked_allocators_exact(context):
    """jemalloc and tcmalloc that are linked into the program, exported or not: hooked at their entries without being asked."""
    check_entries_exact(context, "known_heap_jemalloc")
    check_entries_exact(context, "known_heap_tcmalloc")
    check_entries_exact(context, "known_heap_hidden", entries=None)


@case()
def doctor_tells_what_would_be_changed(context):
    """memattach --doctor --verbose names each kind of change that the session then makes, with who undoes it, and as many."""
    victim = Victim(context, "alloc_loop")
    told = run_memattach(context, "--doctor", "--verbose", "-p", victim.pid).stdout
    table = re.sub(r"\s+", " ", told[told.index("changes of an attach"):told.index("unwind tables:")])
    _, receipt = run_session(context, victim)
    assert len(receipt["changes"]) > 8, receipt
    for change in receipt["changes"]:
        rest = re.search(rf"(\d+) {re.escape(change['what'])}: [a-z].*?; dead: \w", table)
        assert rest, (change, table)
        if change["what"].startswith("a jump at"):
            assert int(rest[1]) == change["made"] == receipt["functions"]["hooked"], (change, table)
    victim.finish()


def mapped_code(pid, library):
    """Of each mapping of the library's code: its size, how much of it is a private copy, and the kernel's flags."""
    parts = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", read_text(f"/proc/{pid}/smaps"), flags=re.M)
    code = [part for part in parts if re.match(rf"\S+ r-xp .*/{re.escape(library)}$", part.split("\n")[0])]
    return [(int(re.search(r"^Size: +(\d+)", part, re.M)[1]), int(re.search(r"^Anonymous: +(\d+)", part, re.M)[1]),
             re.search(r"^VmFlags: (.*?) *$", part, re.M)[1]) for part in code]


def check_code_is_whole(context, pid, library, most, copies=False, killed=False):
    """The pages of a session's jumps are at most so many KiB, and a mapping of their own meanwhile. copies: they may stay. killed: memattach is, and
    --detach ends the session."""
    before = mapped_code(pid, library)
    session = Session(context, pid, "--hooks", "entry")
    session.sampled()
    during = mapped_code(pid, library)
    if killed:
        session.process.kill()
        session.process.wait(PATIENCE)
        result = run_memattach(context, "--detach", "-p", pid)
        assert result.returncode == 0, result
    else:
        session.stop()
    after = mapped_code(pid, library)
    assert [copied for _, copied, _ in before] == [0], before
    assert sum(size for size, _, _ in during) == before[0][0], (before, during)
    assert 0 < sum(size for size, copied, _ in during if copied) <= most, during
    if copies:
        after = [(size, 0, flags) for size, _, flags in after]
    assert after == before, (before, during, after)
    os.kill(pid, 0)


def start_python(context, preload=""):
    """A program of one thread that allocates."""
    process = context.start([sys.executable, "-c", "print(flush=True)\nwhile True: bytes(100000)"], stdout=subprocess.PIPE,
                            env={**os.environ, "LD_PRELOAD": preload})
    process.stdout.readline()
    return process.pid


@case()
def hooked_code_is_that_of_the_file_again(context):
    """While jumps are in them, pages of code are a mapping of their own, or else each fork copied all of it; afterwards they are the file's."""
    if tuple(int(n) for n in re.match(r"(\d+)\.(\d+)", os.uname().release).groups()) < (5, 13):
        raise Skip("Linux before 5.13 keeps private copies of pages of code")
    victim = Victim(context, "alloc_loop", "2")
    check_code_is_whole(context, victim.pid, "libc.so.6", 64, copies=True)
    victim.finish()
    for killed in (False, True):
        check_code_is_whole(context, start_python(context), "libc.so.6", 64, killed=killed)
    jemalloc = find_library("jemalloc")
    if not jemalloc:
        raise Skip("libjemalloc is not installed")
    check_code_is_whole(context, start_python(context, jemalloc), "libjemalloc.so.2", 1024)


@case()
def code_that_others_change_stays_theirs(context):
    """Who writes to these pages meanwhile, as a tracer of functions does, finds that there afterwards."""
    nop = b"\x0f\x1f\x84\x00\x00\x00\x00"  # and one byte more, which may be anything
    victim = Victim(context, "alloc_loop", "2")
    session = Session(context, victim.pid, "--hooks", "entry")
    session.sampled()
    maps = re.findall(r"^(\S+)-(\S+) r-xp .*/libc\.so\.6$", read_text(f"/proc/{victim.pid}/maps"), re.M)
    start, end = next((int(a, 16), int(b, 16)) for (a, b), row in zip(maps, mapped_code(victim.pid, "libc.so.6")) if row[1])
    with open(f"/proc/{victim.pid}/mem", "r+b", buffering=0) as memory:
        at = start + os.pread(memory.fileno(), end - start, start).index(nop) + len(nop)
        os.pwrite(memory.fileno(), b"\x01", at)
        session.stop()
        assert os.pread(memory.fileno(), 1, at) == b"\x01"
    check_receipt(session.receipt, victim.pid)
    rows = mapped_code(victim.pid, "libc.so.6")
    assert len(rows) == 1 and "rr" not in rows[0][2].split() and rows[0][1], rows
    victim.finish()


@case()
def code_that_moves_before_it_is_given_back(context):
    """A program that moves its code into anonymous memory while a detach waits keeps it: it is no page of a file any more."""
    victim = Victim(context, "moved_code")
    session = Session(context, victim.pid, "--hooks", "entry")
    session.sampled()
    os.kill(victim.pid, signal.SIGUSR2)
    check_receipt(session.stop(), victim.pid)
    victim.wait("^MOVED$")
    assert not mapped_code(victim.pid, "libc.so.6")
    victim.rounds_go_on()
    cycle(context, victim.pid)
    victim.finish()


@case()
def linked_allocator_without_names(context):
    """A stripped program with jemalloc in it: nothing of that is seen, which memattach and the report say."""
    context.program("objcopy")
    program = context.path("nameless")
    subprocess.run(["objcopy", "--strip-all", context.target(built(context, "known_heap_hidden")), program], check=True, timeout=PATIENCE)
    report, _, session = known_session(context, [program], "1")
    assert re.search(r"messages of jemalloc in it, but no symbols .* what it allocates by that is not seen", session.said()), session.said()
    assert set(worth(report).values()) == {"unknown"} and report["exact"] is False, report["trust"]
    assert "allocator_inside" in json.dumps(report["trust"]), report["trust"]


@case(sanitized=True)
def entry_hooks_exact(context):
    """The C library's own allocator, and one in a library, where entry hooks are asked for."""
    check_entries_exact(context, "known_heap", "--hooks", "entry")
    check_entries_exact(context, "known_heap_nopie", "--hooks", "entry")
    check_entries_exact(context, "known_heap_mimalloc", "--hooks", "entry")


@case(sanitized=True)
def static_programs_exact(context):
    """Without a loader: the payload is mapped by memattach, and nothing of it stays."""
    for program in ("known_heap_static", "known_heap_static_pie"):
        check_entries_exact(context, program)


@case()
def static_program_that_allocates_all_the_time(context):
    """Six threads of a static program, and others that end: attached to and detached from again and again."""
    victim = Victim(context, "static_churn", "churn")
    for _ in range(5):
        session = Session(context, victim.pid, rate="4k")
        session.sampled(100)
        check_receipt(session.stop(), victim.pid)
        check_hooked(session, 0)
        victim.rounds_go_on()
    victim.finish()


def all_functions(context, program, *arguments, options=()):
    victim = Victim(context, built(context, program), *arguments)
    session = Session(context, victim.pid, *options, rate="1")
    victim.send("go")
    truth = victim.truth()["all"]
    check_receipt(session.stop(), victim.pid)
    total = analyze(context, session.dump)["total"]
    victim.finish_by_stdin()
    del truth["function"]
    return {key: total[key]["estimate"] for key in truth}, truth, session


@case()
def functions_that_call_each_other(context):
    """realloc(NULL) that calls malloc, posix_memalign, operator new …: the outer call counts, and only that."""
    for program, mode in (("all_functions", "got"), ("all_functions", "entry"), ("all_functions_jemalloc", "auto"),
                          ("all_functions_tcmalloc", "auto"), ("all_functions_mimalloc", "entry"),
                          ("all_functions_jemalloc_static", "auto"), ("all_functions_tcmalloc_static", "auto")):
        told, truth, session = all_functions(context, program, options=("--hooks", mode))
        assert told == truth, (program, mode, told, truth)
        assert (session.receipt["functions"]["hooked"] > 0) == (mode != "got"), session.receipt


@case()
def calls_that_throw(context):
    """After an operator new that was left by an exception all is seen that comes after it."""
    for program in ("all_functions", "all_functions_jemalloc", "all_functions_tcmalloc", "all_functions_jemalloc_static",
                    "all_functions_tcmalloc_static"):
        told, truth, _ = all_functions(context, program, "throw", options=("--hooks", "entry"))
        exceptions = told["allocated_count"] - truth["allocated_count"]
        assert 0 <= exceptions <= 40, (program, told, truth)
        assert told["live_count"] == truth["live_count"] and told["live_bytes"] == truth["live_bytes"], (program, told, truth)


@case()
def frees_by_a_kept_pointer_are_seen(context):
    """A pointer to free that was stored before the attach is found, and free hooked at its entry."""
    for rate in ("1", "64k"):
        _, session = session_over(context, "held_free", "100", rate=rate)
        report = analyze(context, session.dump)
        check_hooked(session, 0)
        assert set(worth(report).values()) == {"measured"}, (rate, report["trust"])
        live = report["total"]["live_count"]
        assert (live["low"], live["high"]) == (256, 256) if rate == "1" else live["high"] < 3000, (rate, live)


@case()
def hooks_as_told(context):
    """--hooks got changes no code; what cannot be hooked at its entry is refused by name."""
    victim = Victim(context, built(context, "known_heap_jemalloc"))
    session = Session(context, victim.pid, "--hooks", "got", rate="64k")
    victim.send("go")
    victim.truth()
    receipt = session.stop()
    assert receipt["functions"] == {"hooked": 0, "restored": 0} and receipt["slots"]["patched"] > 0, receipt
    victim.finish_by_stdin()
    done = subprocess.run([context.memattach, "-p", "1", "--hooks", "some"], capture_output=True, text=True, check=False)
    assert done.returncode == 64 and "--hooks some: it is auto, got or entry" in done.stderr, done


@case()
def pools_that_are_named(context):
    """--hook: a program's own pool, its size in the second argument; the blocks that the pool takes from malloc are not counted again."""
    options = ("--hook", "pool_get=malloc:1", "--hook", "pool_put=free")
    report, truth, session = known_session(context, "named_pool", "1", *options)
    check_exact(report, truth)
    functions = session.receipt["functions"]  # those of the C library, too, since it may copy what its own GOT entries hold
    assert functions["hooked"] == functions["restored"] > 2, session.receipt
    victim = Victim(context, "named_pool")
    for option, status, text in (("pool_take=malloc", 1, "--hook pool_take: no module has a function of that name"),
                                 ("pool_get=malloc:3", 64, "it is NAME=malloc"), ("pool_get", 64, "it is NAME=malloc")):
        done = subprocess.run([context.memattach, "-p", str(victim.pid), "--hook", option, "-o", context.path("none.dump")],
                              capture_output=True, text=True, check=False)
        assert done.returncode == status and text in done.stderr, done
    victim.send("go")
    victim.truth()
    victim.finish_by_stdin()


def code_of(pid):
    """What is mapped executable and private, with what it holds."""
    found = {}
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in read_text(f"/proc/{pid}/maps").splitlines():
            place, mode = line.split()[:2]
            if "x" in mode and "[vsyscall]" not in line:
                start, end = (int(part, 16) for part in place.split("-"))
                memory.seek(start)
                found[start, end, line.split()[-1]] = memory.read(end - start)
    return found


@case()
def code_is_as_before(context):
    """All code of the program is byte for byte what it was, and no more and no less is mapped."""
    for program, mode in (("alloc_loop", "entry"), ("static_jemalloc", "auto")):
        victim = Victim(context, built(context, program), *(("churn",) if program != "alloc_loop" else ()))
        before = code_of(victim.pid)
        session = Session(context, victim.pid, "--hooks", mode, rate="4k")
        during = code_of(victim.pid)
        changed = [key for key in before if during.get(key) != before[key]]
        assert changed, "no code was changed"
        check_receipt(session.stop(), victim.pid)
        check_hooked(session, None)
        after = code_of(victim.pid)
        assert after.keys() == before.keys() and all(after[key] == before[key] for key in before)
        victim.rounds_go_on()
        victim.finish()
