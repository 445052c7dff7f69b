# SPDX-License-Identifier: MIT
"""Python frames are walked while the interpreter makes and ends them in all ways, and while it ends itself."""
import random
import subprocess

from cases_python import PROGRAM, pythons
from cases_python_objects import Objects
from harm_kills import Sufferer
from harness import PATIENCE, Session, Victim, case, log, run_memattach
from python_dump import DEEP, TRUNCATED, PythonDump

BUSY = str(PROGRAM.with_name("python_busy.py"))
QUIET = {"PYTHONWARNINGS": "ignore"}


@case()
def python_goes_on_while_its_frames_are_walked(context):
    """At rate 1, which walks at each call of malloc: the program checks all that it computes, and is as before after each session."""
    for python in pythons(context):
        for kinds in ((), ("forks", "generators", "made_code")):
            sufferer = Sufferer(context, Victim(context, [python, BUSY, *kinds], environment=QUIET))
            for _ in range(3):
                sufferer.cycle("-r", "1", duration="300ms")
            sufferer.finish()


@case()
def python_stacks_are_whole_while_it_is_busy(context):
    for python in pythons(context):
        victim = Victim(context, [python, BUSY], environment=QUIET)
        session = Session(context, victim.pid, rate="4k")
        session.sampled(500)
        session.stop()
        dump = PythonDump(session.dump)
        taken = sum(stack.taken for stack in dump.stacks.values())
        whole = sum(stack.taken for stack in dump.stacks.values() if stack.python and not stack.flags & TRUNCATED)
        lost = sum(stack.taken for stack in dump.stacks.values() if stack.flags & TRUNCATED)
        deep = sum(stack.taken for stack in dump.stacks.values() if stack.flags & DEEP)
        log(f"{python}: {taken} samples, {whole} with Python frames, {lost} truncated, {deep} deep")
        assert lost == 0 and whole > 0.9 * taken > 100
        victim.finish()


@case()
def python_ends_during_the_session(context):
    """With daemon threads that still run, in finalisers, at any moment: it ends as it would without a session."""
    for python in pythons(context):
        for _ in range(8):
            victim = Victim(context, [python, BUSY, "--for", f"{random.uniform(0.2, 0.8):.3f}"], environment=QUIET)
            session = Session(context, victim.pid, "-d", "5s", rate=random.choice(("1", "4k")), wait=False)
            assert victim.process.wait(PATIENCE) == 0, victim.process.returncode
            victim.lines.thread.join(PATIENCE)
            assert victim.lines.seen[-1].startswith("OK "), victim.lines.seen[-3:]
            try:
                session.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"memattach does not end: {session.said()}") from None
            assert session.process.returncode in (0, 1), session.said()


@case()
def python_objects_when_memattach_is_killed(context):
    """CPython's functions lead to trampolines that go on to them, and its words to nops before them; --detach puts all back."""
    for python in pythons(context):
        victim = Objects(context, python)
        first = victim.table()
        session = Session(context, victim.pid, "--python-allocators", "on")
        patched = victim.table()
        victim.ask("make", "MADE")
        session.process.kill()
        session.process.wait(PATIENCE)
        assert victim.table() == patched != first
        victim.ask("drop", "DROPPED")
        result = run_memattach(context, "--detach", "-p", victim.pid)
        assert result.returncode == 0, result.stderr
        assert victim.table() == first
        victim.ask("make", "MADE")
        victim.end()
