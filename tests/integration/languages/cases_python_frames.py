# SPDX-License-Identifier: MIT
"""What a session records of Python: which lines have made which blocks. tests/targets/python_blocks.py says what is right."""
import collections
import json
import pathlib
import re
import shutil

from cases_python import pythons, running
from harness import Snapshot, Session, Victim, case, check_receipt, check_same, log
from python_dump import CUT, DEEP, TRUNCATED, PythonDump

TARGETS = pathlib.Path(__file__).resolve().parents[2] / "targets" / "languages"


def blocks_of(context, command, rate="1"):
    """A session over python_blocks.py: the dump, and what the program says that it has made."""
    victim = Victim(context, command, environment={"PYTHONIOENCODING": "utf-8"})
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid, "--python-allocators", "off", rate=rate)
    assert "the Python frames" not in session.said() and "not seen: single objects of Python" in session.said(), session.said()
    victim.send("go")
    made = json.loads(victim.wait(r"^MADE ").split(" ", 1)[1])
    check_receipt(session.stop(), victim.pid)
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.send("end")
    assert victim.process.wait(60) == 0
    victim.lines.thread.join(60)
    assert victim.lines.seen[-1].startswith("OK "), victim.lines.seen[-3:]
    return PythonDump(session.dump), made


LEAST = 3000  # bytes of the program's own blocks; those of the interpreter are smaller: frames of 3.9 and 3.10, tables


def sums_of(dump):
    """(function, file, line, functions around) -> bytes that live in blocks of the program's own."""
    found = collections.Counter()
    for size, reference in dump.live():
        frames = dump.stacks[reference].python
        if frames and size >= LEAST:
            found[(*frames[0][:3], tuple(frame.function for frame in frames[1:]))] += size
    return found


def check_evaluators(dump):
    """As often as the native stack is in the evaluator, Python frames say that it was entered (the last need not, it is outermost)."""
    checked = 0
    for stack in dump.stacks.values():
        if stack.flags or not stack.python:
            continue
        native = sum(dump.in_evaluator(address) for address in stack.native)
        entered = sum(frame.entry for frame in stack.python[:-1]) + 1
        assert native == entered, (native, entered, stack)
        checked += 1
    assert checked > 20, checked


@case(sanitized=True)
def python_lines_have_made_their_blocks(context):
    """At rate 1: each line has exactly what the program says, below the right functions, code at addresses used before too."""
    for command in running(context, TARGETS / "python_blocks.py"):
        python = " ".join(command)[:60]
        dump, made = blocks_of(context, command)
        found = sums_of(dump)
        for function, file, line, size, outer in made:
            key = (function, file, line, tuple(outer))
            assert found[key] == size, (python, key, found[key], size, [k for k in found if k[0] == function][:5])
        assert dump.version >> 24 == 3 and not any(code.flags & CUT for code in dump.codes.values())
        used_again = collections.Counter(code.address for code in dump.codes.values()).most_common(1)[0]
        taken = collections.Counter()
        for stack in dump.stacks.values():
            taken[stack.flags & (TRUNCATED | DEEP)] += stack.taken
        log(f"{python}: {len(made)} lines, {len(dump.codes)} code objects, {used_again[1]} at one address, {len(dump.stacks)} stacks, "
            f"samples by flags {dict(taken)}")
        assert used_again[1] >= 5, "no address was used again: this tells nothing"
        assert not taken[TRUNCATED] and not taken[DEEP], taken
        check_evaluators(dump)


DEEP_ONE = r"""
import os, sys, threading
sys.setrecursionlimit(5000)
threading.stack_size(256 << 20)
def deep(n):
    return bytes(3000) if n == 0 else deep(n - 1)
print("PID %d\nREADY" % os.getpid(), flush=True)
sys.stdin.readline()
kept = []
thread = threading.Thread(target=lambda: kept.append(deep(2000)))
thread.start(); thread.join()
print("DONE", flush=True)
sys.stdin.readline()
print("OK deep rounds=1", flush=True)
"""


@case()
def python_stacks_are_cut_at_their_limit(context):
    for python in pythons(context):
        victim = Victim(context, [python, "-c", DEEP_ONE])
        session = Session(context, victim.pid, rate="1")
        victim.send("go")
        victim.wait("^DONE$")
        check_receipt(session.stop(), victim.pid)
        dump = PythonDump(session.dump)
        deep = [stack for stack in dump.stacks.values() if stack.flags & DEEP]
        assert deep and all(len(stack.python) == 128 for stack in deep), deep
        assert any({frame.function for frame in stack.python} == {"deep"} for stack in deep)
        victim.send("end")
        assert victim.process.wait(60) == 0




GREENLETS = r"""
import greenlet, os, sys
kept, begun = [], []
def leaf(n):
    greenlet.getcurrent().parent.switch()
    kept.append(bytearray(n))
    return n
def down(depth, n):
    return down(depth - 1, n) if depth else sorted([n], key=leaf)
def begin(depth):  # further down the stack each time
    if depth:
        return sorted([depth - 1], key=begin)
    begun.append(greenlet.greenlet(lambda: down(len(begun) % 3, 5000)))
    begun[-1].switch()
    return 0
def other(depth):  # so that there is something else where it was
    return sorted([depth - 1], key=other) if depth else [one.switch() for one in begun if not one.dead]
print("PID %d\nREADY" % os.getpid(), flush=True)
sys.stdin.readline()
for round in range(50):
    for depth in (0, 6, 2, 4):
        begin(depth)
    other(round % 8)
    begun.clear()
print("DONE", flush=True)
sys.stdin.readline()
print("OK greenlets rounds=1", flush=True)
"""


@case()
def python_coroutines_begin_on_a_used_stack(context):
    """greenlet: what is further out on the stack than a coroutine has not called it, and is no part of its stacks."""
    victim = Victim(context, [context.program("/usr/bin/python3"), "-c", GREENLETS])
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid, rate="1")
    victim.send("go")
    victim.wait("^DONE$")
    check_receipt(session.stop(), victim.pid)
    check_same(before, Snapshot(victim.pid), busy=True)
    dump = PythonDump(session.dump)
    made = collections.Counter()
    for size, reference in dump.live():
        names = tuple(frame.function for frame in dump.stacks[reference].python)
        if size > 5000 and names and names[0] == "leaf":
            made[names] += 1
    assert made == {("leaf", *("down",) * (depth + 1), "begin.<locals>.<lambda>"): made_of for depth, made_of in enumerate((50, 100, 50))}, made
    check_evaluators(dump)
    victim.send("end")
    assert victim.process.wait(60) == 0


LEAVING = r"""
import _thread, ctypes, os, sys, time
c = ctypes.CDLL(None)
text = ctypes.create_string_buffer(b"x" * 3000)
key = ctypes.c_uint()
assert c.pthread_key_create(ctypes.byref(key), c.strdup) == 0  # a destructor that allocates
c.pthread_setspecific.argtypes = [ctypes.c_uint, ctypes.c_void_p]
def leave(n):
    if n:
        leave(n - 1)
    c.pthread_setspecific(key, ctypes.addressof(text))
    c.pthread_exit(None)
def start():
    for _ in range(40):
        _thread.start_new_thread(leave, (20,))
        time.sleep(0.001)
    while len(os.listdir("/proc/self/task")) > 1:
        time.sleep(0.001)
_thread.stack_size(64 << 20)  # too large for glibc to keep it
start()
print("PID %d\nREADY" % os.getpid(), flush=True)
sys.stdin.readline()
start()
print("DONE", flush=True)
sys.stdin.readline()
print("OK leave rounds=1", flush=True)
"""


@case()
def python_threads_that_were_left_by_pthread_exit(context):
    """Their states stay in the interpreter's list and lead to nothing: frames are proved and recorded all the same."""
    for python in pythons(context):
        victim = Victim(context, [python, "-c", LEAVING])
        session = Session(context, victim.pid, rate="1")
        assert "are not recorded" not in session.said(), session.said()
        victim.send("go")
        victim.wait("^DONE")
        check_receipt(session.stop(), victim.pid)
        dump = PythonDump(session.dump)
        copies = [dump.stacks[reference] for size, reference in dump.live() if 3001 <= size < 3016]
        starts = [stack for stack in dump.stacks.values() if stack.python and stack.python[0].function == "start"]
        assert len(copies) == 40 and not any(stack.python for stack in copies) and starts, (len(copies), len(starts))
        victim.send("end")
        assert victim.process.wait(60) == 0


def refused_for(context, claim, why, objects):
    """What the session said."""
    victim = Victim(context, f"python_impostor_{claim}")
    session = Session(context, victim.pid, "--python-allocators", "on")
    check_receipt(session.stop(), victim.pid)
    said = session.said()
    assert f"not seen: the Python frames of CPython 3.13.5 in python_impostor_{claim} are not recorded: {why}" in said, said
    assert f"not seen: {objects}" in said, said
    dump = PythonDump(session.dump)
    assert dump.stacks and dump.version == 0 and not dump.codes and not any(size for _, size in dump.evaluators)
    victim.finish()
    return said


@case()
def python_frames_are_refused_with_a_reason(context):
    """A program that has the names of an interpreter: native frames go on, a note says why there are no others."""
    refused_for(context, "free_word", "it is a free-threaded build", "objects of Python of any size are not recorded: ")
    said = refused_for(context, "debug", "it is a debug build", "single objects of Python of up to 512 bytes are not recorded: ")
    assert "not seen: its objects of up to 512 bytes are not recorded either" in said, said


OPENS = r"""
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
print("PID %d\nREADY" % os.getpid(), flush=True)
sys.stdin.readline()
kept = bytes(3000)
print("DONE", flush=True)
sys.stdin.readline()
"""


@case()
def python_other_than_cpython_is_named(context):
    library = context.path("libpypy3.9-c.so")
    shutil.copy(context.target("plugin.so"), library)
    victim = Victim(context, [context.program("/usr/bin/python3"), "-c", OPENS, library])
    session = Session(context, victim.pid)
    assert "not seen: the Python frames of PyPy in libpypy3.9-c.so are not recorded" in session.said(), session.said()
    assert "frames of CPython" not in session.said(), session.said()
    victim.send("go")
    victim.wait("^DONE$")
    check_receipt(session.stop(), victim.pid)
    victim.send("end")
    assert victim.process.wait(60) == 0


@case()
def python_that_may_be_unloaded_is_passed_over(context):
    """The payload would read its variables after dlclose."""
    library = context.target("libpython_impostor_library.so")
    victim = Victim(context, [context.program("/usr/bin/python3"), "-c", OPENS, library])
    session = Session(context, victim.pid, rate="1")
    assert re.search(r"not seen: the Python frames of CPython 3.11.2 in libpython_impostor_library.so are not recorded: the program has "
                     r"loaded it by dlopen, and may unload it", session.said()), session.said()
    assert "512 bytes are not recorded: the program may unload libpython_impostor_library.so" in session.said(), session.said()
    victim.send("go")
    victim.wait("^DONE$")
    check_receipt(session.stop(), victim.pid)
    assert sums_of(PythonDump(session.dump))["<module>", "<string>", 6, ()] == 3033
    victim.send("end")
    assert victim.process.wait(60) == 0
