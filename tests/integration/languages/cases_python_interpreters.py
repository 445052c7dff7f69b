# SPDX-License-Identifier: MIT
"""Several interpreters: subinterpreters of one CPython, and two CPythons in one process."""
import glob
import json
import pathlib
import re
import shutil
import struct
import subprocess

from cases_allocators import doctor
from cases_python import pythons, running
from cases_python_frames import TARGETS
from harness import Session, Skip, Snapshot, Victim, case, check_receipt, check_same, log, run_memattach
from python_dump import PythonDump
from reports import analyze

INNER, OUTER = 32, 64
HEAD = 33  # bytes of a bytes object around what it holds


def has_more(dump, stack):
    """The native frames are in the evaluator more often than the Python frames tell."""
    return sum(dump.in_evaluator(address) for address in stack.native) > sum(frame.entry for frame in stack.python[:-1]) + 1


def end(victim):
    victim.send("end")
    assert victim.process.wait(60) == 0
    victim.lines.thread.join(60)
    assert victim.lines.seen[-1].startswith("OK "), victim.lines.seen[-3:]


@case(sanitized=True)
def python_subinterpreters_are_told_apart(context):
    """Blocks of subinterpreters, on the thread that made them and on others: the right frames, or none of them; and said so."""
    for command in running(context, TARGETS / "python_interpreters.py"):
        victim = Victim(context, command)
        before = Snapshot(victim.pid)
        session = Session(context, victim.pid, "--python-allocators", "off", rate="1")
        victim.send("go")
        made = json.loads(victim.wait(r"^MADE ").split(" ", 1)[1])
        check_receipt(session.stop(), victim.pid)
        check_same(before, Snapshot(victim.pid), busy=True)
        dump = PythonDump(session.dump)
        attached = dump.version >> 16 & 255 >= 12
        note = "Python frames of the subinterpreters of CPython" in session.said()
        assert note != attached, session.said()
        found = {size - HEAD: dump.stacks[reference] for size, reference in dump.live() if str(size - HEAD) in made}
        for size, (interpreter, functions) in made.items():
            stack = found[int(size)]
            seen = [frame.function for frame in stack.python]
            if not interpreter:
                assert seen == functions and not stack.flags, (size, stack)
            elif attached:
                assert seen == functions and stack.flags == OUTER, (size, stack)
            else:  # those of the main interpreter, which has called it
                assert seen[0] == "run" and stack.flags == INNER, (size, stack)
            assert has_more(dump, stack) == bool(interpreter), (size, stack)
        # None of those stacks passes for whole.
        cut = sum(stack.taken for stack in dump.stacks.values() if stack.flags & (INNER | OUTER) and has_more(dump, stack))
        python = analyze(context, dump.path)["python"]
        assert python["samples"] - python["samples_complete"] >= cut >= len(made) / 2, (python, cut)
        log(f"{' '.join(command)[:60]}: {len(made)} blocks, {'the frames of' if attached else 'not those of'} subinterpreters")
        end(victim)


@case()
def python_of_two_follows_one(context):
    """A second CPython, of the same version, opened by the program: said which one is followed; no frame of one is taken for one of the other."""
    python = context.program("/usr/bin/python3")
    version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], stdout=subprocess.PIPE, text=True, check=True)
    libraries = glob.glob(f"/usr/lib/*/libpython{version.stdout.strip()}.so.1.0")
    if not libraries:
        raise Skip("the library of python3 is not installed")
    other = context.path("libother.so")
    shutil.copy(libraries[0], other)
    victim = Victim(context, [python, str(TARGETS / "two_pythons.py"), other])
    before = Snapshot(victim.pid)
    told = "\n".join(doctor(context, victim)["python"])
    assert re.search(r"CPython [0-9.]+ in the program .*a thread finds its own frames.*CPython [0-9.]+ in libother.so.*the Python frames of CPython [0-9.]+ "
                     r"in libother.so are not recorded: the program has loaded it by dlopen", told, re.DOTALL), told
    session = Session(context, victim.pid, "--verbose", "--python-allocators", "off", rate="1")
    assert re.search(r"CPython [0-9.]+ in python[0-9.]+: its frames are recorded", session.said()), session.said()
    assert re.search(r"the Python frames of CPython [0-9.]+ in libother.so are not recorded: the program has loaded it by dlopen", session.said())
    victim.send("go")
    victim.wait("^MADE")
    check_receipt(session.stop(), victim.pid)
    check_same(before, Snapshot(victim.pid), busy=True)
    dump = PythonDump(session.dump)
    seen = {size - HEAD: [frame.function for frame in dump.stacks[reference].python] for size, reference in dump.live()}
    # Called from here: what has called it. On a thread of its own: nothing of this one.
    assert seen[10000] == ["here", "main", "<module>"] and seen[20000] == ["run", "main", "<module>"] and seen[30000] == [], seen
    end(victim)


@case()
def python_embedded_in_a_server(context):
    """libpython, and threads that run a subinterpreter alone: all frames of a thread that has run no other one before."""
    victim = Victim(context, "python_embedded")
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid, "--python-allocators", "off", rate="1")
    victim.send("go")
    victim.wait("^MADE")
    check_receipt(session.stop(), victim.pid)
    check_same(before, Snapshot(victim.pid), busy=True)
    dump = PythonDump(session.dump)
    attached = dump.version >> 16 & 255 >= 12
    stacks = {size - HEAD: dump.stacks[reference] for size, reference in dump.live()}
    for size, seen in ((30000, attached), (40000, True)):
        functions = [frame.function for frame in stacks[size].python]
        assert functions == (["make", "handle", "<module>"] if seen else []), (size, stacks[size])
        assert not seen or not has_more(dump, stacks[size]), stacks[size]
    end(victim)


@case(sanitized=True)
def python_that_cannot_be_proved_yet(context):
    """At the attach no interpreter is started, or no thread runs Python: its frames are recorded from the moment on that one does; said, and noted in the dump."""
    for how in ("late", "idle"):
        victim = Victim(context, "python_again", how)
        told = "\n".join(doctor(context, victim)["python"])
        assert re.search("a session looks again at CPython in libpython.* until they can", told), told
        before = Snapshot(victim.pid)
        session = Session(context, victim.pid, "--python-allocators", "off", rate="1")
        session.lines.wait("were not recorded at first")
        victim.send("begin")
        victim.wait("^RESTS$")
        session.lines.wait("are recorded from")
        victim.send("go")
        victim.wait("^MADE")
        victim.send("end")
        victim.wait("^ENDED")
        check_receipt(session.stop(), victim.pid)
        if how == "idle":  # else Python has mapped its own files meanwhile
            check_same(before, Snapshot(victim.pid), busy=True)
        notes = "\n".join(note["text"] for note in analyze(context, session.dump)["notes"])
        assert re.search("were not recorded at first: .*\n.* are recorded from [0-9.]+ s after the attach on", notes), notes
        dump = PythonDump(session.dump)
        stacks = {size: dump.stacks[reference] for size, reference in dump.live()}
        for turn in range(3):
            for made, functions in ((30000, ["make", "handle", "<module>"]), (40000, []), (50000, ["make", "handle", "<module>"])):
                stack = stacks[made + turn]
                assert [frame.function for frame in stack.python] == functions and not stack.flags, (how, made + turn, stack)
        end(victim)


def bound_to_itself(source, path):
    """A copy of a library that finds its own symbols before those of libraries that came earlier: DT_SYMBOLIC in place of the first DT_NULL."""
    data = bytearray(pathlib.Path(source).read_bytes())
    headers, = struct.unpack_from("<Q", data, 32)
    for at in range(headers, headers + 56 * struct.unpack_from("<H", data, 56)[0], 56):
        kind, _, offset, _, _, size = struct.unpack_from("<IIQQQQ", data, at)
        if kind != 2:  # PT_DYNAMIC
            continue
        ends = [entry for entry in range(offset, offset + size, 16) if struct.unpack_from("<Q", data, entry)[0] == 0]
        if len(ends) < 2:
            raise Skip(f"{source} has no room for another dynamic entry")
        struct.pack_into("<QQ", data, ends[0], 16, 0)
    pathlib.Path(path).write_bytes(data)


@case()
def python_of_two_is_not_changed(context):
    """Of two CPythons the first is not started at the attach, the other runs and is followed: it stays the one, and no frame of one is taken for one of the other."""
    libraries = sorted(glob.glob("/usr/lib/*/libpython3.[0-9]*.so.1.0"))
    if not libraries:
        raise Skip("no library of Python is installed")
    other = context.path("libpythonother.so")
    bound_to_itself(libraries[0], other)
    victim = Victim(context, "python_two", other, environment={"LD_PRELOAD": f"{libraries[0]}:{other}"})
    session = Session(context, victim.pid, "--python-allocators", "off", rate="1")
    assert re.search(r"the Python frames of CPython [0-9.]+ in libpython3[^ ]* are not recorded: those of another one are", session.said()), session.said()
    victim.send("go")
    victim.wait("^MADE")
    check_receipt(session.stop(), victim.pid)
    dump = PythonDump(session.dump)
    seen = {size - 1: [frame.function for frame in dump.stacks[reference].python] for size, reference in dump.live()}
    for i in range(50):
        assert seen[60000 + i] == [] and seen[80000 + i] == ["late", "<module>"], (i, seen[60000 + i], seen[80000 + i])
    victim.send("end")
    victim.wait("^OK")


@case()
def python_that_is_never_proved(context):
    """A session that ends, or whose target does, before a thread runs Python says so."""
    for how in ("late", "idle"):
        victim = Victim(context, "python_again", how)
        session = Session(context, victim.pid, "--duration", "0.3")
        assert session.process.wait(60) == 0, session.said()
        assert "were not recorded: " in session.said(), session.said()
        assert any("were not recorded: " in note["text"] for note in analyze(context, session.dump)["notes"])
        victim.process.kill()
        victim.process.wait(60)


@case()
def python_that_is_launched(context):
    """memattach starts it, long before there is an interpreter: a little later its frames are recorded."""
    program = "import time\ntime.sleep(1)\ndef keep(n):\n    return bytearray(n)\nkept = [keep(100000) for _ in range(100)]\nimport os\nos._exit(0)\n"
    for python in pythons(context):
        dump = context.path("launched.dump")
        result = run_memattach(context, "--rate", "1", "--python-allocators", "off", "-o", dump, "--", python, "-c", program)
        assert result.returncode == 0 and "are recorded from 0." in result.stderr, result
        dump = PythonDump(dump)
        made = [dump.stacks[reference].python for size, reference in dump.live() if size == 100001]
        assert len(made) == 100 and all([frame.function for frame in frames][0] == "keep" for frames in made), len(made)
        pathlib.Path(context.path("launched.dump")).unlink()


@case()
def python_that_is_started_again(context):
    """Py_Finalize and Py_Initialize during a session: the frames of each interpreter, and none for a thread that is in none of them."""
    victim = Victim(context, "python_again")
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid, "--python-allocators", "off", rate="1")
    victim.send("go")
    victim.wait("^MADE")
    victim.send("end")
    victim.wait("^ENDED")
    check_receipt(session.stop(), victim.pid)
    check_same(before, Snapshot(victim.pid), busy=True)
    assert "Python frames" not in session.said(), session.said()
    dump = PythonDump(session.dump)
    stacks = {size: dump.stacks[reference] for size, reference in dump.live()}
    for turn in range(3):
        for made, functions in ((30000, ["make", "handle", "<module>"]), (40000, []), (50000, ["make", "handle", "<module>"])):
            stack = stacks[made + turn]
            assert [frame.function for frame in stack.python] == functions and not stack.flags, (made + turn, stack)
    end(victim)
