# SPDX-License-Identifier: MIT
"""Small objects of Python, which come from CPython's own arenas: tests/targets/python_objects.py says how many blocks are right."""
import collections
import json
import re
import signal
import subprocess

from cases_python import pythons, running
from cases_python_frames import TARGETS
from cases_rates import SURE
from harness import PATIENCE, Session, Skip, Snapshot, Victim, case, check_receipt, check_same, log
from python_dump import DEEP, TRUNCATED, PythonDump
from reports import analyze

OBJECTS = TARGETS / "python_objects.py"


class Objects(Victim):
    """python: an interpreter, or a command that ends with the program."""

    def __init__(self, context, python, **environment):
        super().__init__(context, python if isinstance(python, list) else [python, str(OBJECTS)], environment=environment or None)

    def ask(self, command, answer):
        """What follows the word of the answer, as JSON."""
        self.send(command)
        text = self.wait(rf"^{answer}\b").split(" ", 1)
        return json.loads(text[1]) if len(text) > 1 else None

    def table(self):
        return self.ask("table", "TABLE")

    def end(self):
        self.send("end")
        assert self.process.wait(PATIENCE) == 0, self.process.returncode
        self.lines.thread.join(PATIENCE)
        assert self.lines.seen[-1].startswith("OK "), self.lines.seen[-3:]


def blocks_of(dump):
    """(function, line, size) -> live blocks."""
    found = collections.Counter()
    for size, reference in dump.live():
        frames = dump.stacks[reference].python
        if frames:
            found[frames[0].function.split(".")[0], frames[0].line, size] += 1
    return found


def check_blocks(dump, wanted):
    found = blocks_of(dump)
    for function, line, size, blocks in wanted:
        got = found[function, line, size]
        assert got == blocks, (function, line, size, got, blocks, [(k, v) for k, v in found.items() if k[:2] == (function, line)])


@case(sanitized=True)
def python_objects_are_all_there(context):
    """At rate 1: each line has its blocks, whatever function made them, moved them and freed them. The table is as before."""
    for python in running(context, OBJECTS):
        victim = Objects(context, python)
        first = victim.table()
        before = Snapshot(victim.pid)
        session = Session(context, victim.pid, rate="1")
        patched = victim.table()
        assert patched[0] == first[0] and all(a != b for row in (1, 2) for a, b in zip(patched[row][1:], first[row][1:])), (first, patched)
        assert "single objects" not in session.said(), session.said()
        made = victim.ask("make", "MADE")
        victim.send("drop")
        left = json.loads(victim.wait("^DROPPED ").split(" ", 1)[1])
        receipt = session.stop()
        check_receipt(receipt, victim.pid)
        assert victim.table() == first
        check_same(before, Snapshot(victim.pid), busy=True)
        dump = PythonDump(session.dump)
        check_blocks(dump, left)
        taken = collections.Counter()
        for stack in dump.stacks.values():
            taken[stack.flags & (TRUNCATED | DEEP)] += stack.taken
        report = json.loads(subprocess.run([context.memanalyze, "--json", session.dump], stdout=subprocess.PIPE, check=True).stdout)
        counters = report["counters"]
        assert not taken[TRUNCATED] and not counters["frees_missed"] and not counters["lost_busy"], (taken, counters)
        notes = [note["text"] for note in report["notes"]]
        assert any(re.match("single objects of Python of up to 512 bytes are recorded, too$", note) for note in notes), notes
        log(f"{' '.join(python)[:60]}: {len(made)} kinds, {sum(taken.values())} samples")
        victim.end()


@case()
def python_objects_inside_intervals(context):
    """At 64k: what each line has made, and what of it lives after half was freed. No seed fixes what Python draws; the 8 intervals of an
    interpreter together miss the truth with 8e-7 at most."""
    for python in running(context, OBJECTS):
        victim = Objects(context, python)
        session = Session(context, victim.pid, "--python-allocators", "on", "--max-overhead", "off")
        many = victim.ask("many", "MANY")
        check_receipt(session.stop(), victim.pid)
        groups = {group["line"]: group["exclusive"] for group in analyze(context, session.dump, "--by=line", *SURE)["groups"]}
        said = []
        for file, line, size, blocks, left in many:
            for figure, true in (("allocated_bytes", size * blocks), ("live_bytes", size * left)):
                found = groups[f"{file}:{line}"][figure]
                said.append(f"{found['estimate'] / true:.2f}")
                assert found["low"] <= true <= found["high"], (python[0], line, figure, true, found)
                assert found["high"] < 3 * true, "this interval tells nothing"
        log(f"{' '.join(python)[:60]}: estimated / true {said}")
        victim.ask("make", "MADE")
        victim.end()


@case()
def python_objects_only_if_wanted(context):
    """By default the table is left alone, and the report says why."""
    python = context.program("/usr/bin/python3")
    for arguments, why in (((), r", as that may cost .*: --python-allocators on records them"),
                           (("--python-allocators", "off"), ": --python-allocators off")):
        victim = Objects(context, python)
        first = victim.table()
        session = Session(context, victim.pid, *arguments)
        assert victim.table() == first
        assert re.search(r"not seen: single objects of Python of up to 512 bytes are not recorded" + why, session.said()), session.said()
        check_receipt(session.stop(), victim.pid)
        victim.ask("make", "MADE")
        victim.end()


@case()
def python_objects_of_other_allocators(context):
    """What the environment or tracemalloc has set is left alone; objects from malloc need nothing."""
    python = context.program("/usr/bin/python3")
    for name, value, counts in (("PYTHONMALLOC", "malloc", True), ("PYTHONMALLOC", "debug", False), ("PYTHONTRACEMALLOC", "3", False)):
        victim = Objects(context, python, **{name: value})
        first = victim.table()
        session = Session(context, victim.pid, rate="1")
        assert victim.table() == first
        assert bool(re.search("not seen: single objects .*: the program has set another allocator", session.said())) != counts, session.said()
        made = victim.ask("make", "MADE")
        check_receipt(session.stop(), victim.pid)
        if counts:
            check_blocks(PythonDump(session.dump), made)
        victim.ask("drop", "DROPPED")
        victim.end()


@case()
def python_mimalloc_is_not_seen(context):
    """CPython 3.13 and later contain mimalloc: figures are a bound where it is in use, and only there."""
    looked = 0
    for python in running(context, OBJECTS):
        program = [*python[:-1], "-c"] if python[-1] == str(OBJECTS) else python[:-1]
        number = subprocess.run([*program, "import sys; print(sys.hexversion)"], stdout=subprocess.PIPE, text=True, timeout=PATIENCE, check=True)
        if int(number.stdout) < 0x030D0000:
            continue
        looked += 1
        for name, value, seen in (("MALLOC", "mimalloc", False), ("MALLOC", "mimalloc_debug", False), ("MALLOC", "malloc", True),
                                  ("MALLOC", "pymalloc_debug", True), ("TRACEMALLOC", "3", True), ("UTF8", "1", True)):
            victim = Objects(context, python, **{"PYTHON" + name: value})
            session = Session(context, victim.pid, "--python-allocators", "off", rate="64k")
            assert bool(re.search("not seen: .*mimalloc", session.said())) != seen, (value, session.said())
            victim.ask("make", "MADE")
            check_receipt(session.stop(), victim.pid)
            trust = json.dumps(analyze(context, session.dump)["trust"])
            assert ("allocator_inside" in trust or "nothing_hooked" in trust) != seen, (value, trust)
            victim.end()
    if not looked:
        raise Skip("no CPython of 3.13 or later is here; MEMATTACH_PYTHONS names others")


@case()
def python_objects_of_a_forged_table(context):
    """A word that leads nowhere: the table is not believed, and left as it is."""
    victim = Objects(context, context.program("/usr/bin/python3"))
    first = victim.table()
    victim.ask("forge", "FORGED")
    session = Session(context, victim.pid, rate="1")
    assert "single objects of Python of up to 512 bytes are not recorded: the program has set an allocator" in session.said(), session.said()
    victim.ask("mend", "MENDED")
    assert victim.table() == first
    check_receipt(session.stop(), victim.pid)
    victim.ask("make", "MADE")
    victim.end()


ARENA = 256 << 10  # 3.9; later ones are larger


@case()
def python_objects_and_their_arenas(context):
    """With --mmap arenas count where the objects in them do not, and only there. A payload that is mapped hooks the table, too."""
    for python in running(context, OBJECTS):
        for mode, loader, there in (("off", "auto", True), ("on", "auto", False), ("on", "own", False)):
            victim = Objects(context, python)
            session = Session(context, victim.pid, "--mmap", "--python-allocators", mode, "--loader", loader, rate="1")
            made = victim.ask("make", "MADE")
            check_receipt(session.stop(), victim.pid)
            dump = PythonDump(session.dump)
            arenas = [size for size, _ in dump.live() if size >= ARENA]
            assert bool(arenas) == there, (python, mode, loader, arenas)
            if mode == "on":
                check_blocks(dump, made)
            victim.end()


@case()
def python_objects_and_tracemalloc(context):
    """It copies the words when it starts, and puts them back when it ends, during the session or after it. All calls go on, and what it has copied is the
    program's own: nothing stays, and a next session sees all calls."""
    python = context.program("/usr/bin/python3")
    for order in ("trace untrace detach", "trace detach untrace", "trace untrace trace detach untrace"):
        victim = Objects(context, python)
        first = victim.table()
        session = Session(context, victim.pid, rate="1")
        patched = victim.table()
        for step in order.split():
            if step == "detach":
                session.process.send_signal(signal.SIGINT)
                assert session.process.wait(PATIENCE) == 0 and "stayed" not in session.said(), session.said()
            else:
                victim.ask(step, {"trace": "TRACED", "untrace": "UNTRACED"}[step])
        assert victim.table() == (first if order.endswith("detach") else patched), (order, first, patched)
        victim.ask("make", "MADE")
        victim.ask("drop", "DROPPED")
        session = Session(context, victim.pid, rate="1")
        made = victim.ask("make", "MADE")
        check_receipt(session.stop(), victim.pid)
        assert "any more" not in session.said(), session.said()
        check_blocks(PythonDump(session.dump), made)
        victim.end()


@case()
def python_objects_of_a_new_interpreter(context):
    """Py_Initialize after Py_Finalize sets the table to what it was: no figure is trusted that was right before."""
    python = context.program("/usr/bin/python3")
    victim = Objects(context, python)
    first = victim.table()
    session = Session(context, victim.pid, rate="1")
    assert victim.table() != first
    victim.ask("reset", "RESET")
    session.lines.wait("not seen: single objects .* not recorded any more")
    victim.ask("make", "MADE")
    check_receipt(session.stop(), victim.pid)
    assert victim.table() == first
    report = json.loads(subprocess.run([context.memanalyze, "--json", session.dump], stdout=subprocess.PIPE, check=True).stdout)
    assert [note["kind"] for note in report["notes"] if "any more" in note["text"]] == ["hooks_lost"], report["notes"]
    trust = report["trust"]
    assert trust["live_bytes"]["value"] == "unknown" and trust["allocated_bytes"]["value"] == "lower_bound", trust
    victim.ask("drop", "DROPPED")
    victim.end()
