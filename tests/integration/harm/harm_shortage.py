# SPDX-License-Identifier: MIT
"""memattach itself lacks something: descriptors, processes. What it says of the victim is true, and the victim is as before."""
import os
import re
import shutil
import subprocess

from harness import AT_ANY_COST, DEADLINE, UNCHANGED, Victim, case, cycle, run_memattach
from procfs import PATIENCE, Skip
from reports import analyze
from snapshot import Snapshot, check_same

POINTS = 8
END = r"has ended|ended during|there is no process|is a zombie|is about to end"


def under_strace(context, victim, call, fault, *options):
    """(exit code, what it said, its dump, how many such calls it made) of a session; fault: what strace does to some of these calls, or ""."""
    strace = shutil.which("strace")
    if not strace:
        raise Skip("strace is not installed")
    trace, dump = context.path("trace.txt"), context.unique("short", ".dump")
    inject = ["-e", f"inject={call}:{fault}"] if fault else []
    result = subprocess.run([strace, "-qq", "-o", trace, "-e", f"trace={call}", *inject, context.memattach, "-p", str(victim.pid), "-d", "100ms",
                             "-r", "1k", *AT_ANY_COST, "-o", dump, "--deadline", DEADLINE, *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, timeout=PATIENCE, cwd=context.work, check=False)
    with open(trace, encoding="utf-8", errors="replace") as file:
        return result.returncode, result.stderr, dump, sum(line.startswith(f"{call}(") for line in file)


@case()
def memattach_without_descriptors(context):
    """From some moment on it can open no file: nothing of the victim can be seen then, which is not that it has ended."""
    victim = Victim(context, "alloc_loop", "2")
    cycle(context, victim.pid)
    before = Snapshot(victim.pid)
    code, said, _, calls = under_strace(context, victim, "openat", "")
    assert code == 0, said
    codes = []
    for point in range(POINTS):
        # What the loader opens for it comes first.
        first = 20 + (calls - 20) * point // POINTS
        code, said, _, _ = under_strace(context, victim, "openat", f"error=EMFILE:when={first}+")
        assert not re.search(END, said), (first, said)
        assert (code == 0) == ("the process is as before" in said), (first, code, said)
        codes.append(code)
        result = run_memattach(context, "--detach", "-p", victim.pid)
        assert result.returncode == 0, (first, code, said, result)
        check_same(before, Snapshot(victim.pid), busy=True)
    assert {1, 2} <= set(codes), codes  # before it had changed something, and later
    victim.rounds_go_on()
    victim.finish()


@case()
def memattach_without_processes(context):
    """One of its processes cannot be made: what that was for is missing, and the reason is said; or nothing is changed."""
    victim = Victim(context, "alloc_loop", "calm")
    cycle(context, victim.pid)
    before = Snapshot(victim.pid)
    code, said, _, calls = under_strace(context, victim, "clone", "", "--holders")
    assert code == 0, said
    reasons = set()
    for number in range(1, calls + 1):
        code, said, dump, _ = under_strace(context, victim, "clone", f"error=EAGAIN:when={number}", "--holders")
        assert code == 0 or UNCHANGED in said, (number, code, said)
        assert not re.search(END, said), (number, said)
        if code == 0:
            reasons.add(analyze(context, dump, "--by", "holder").get("why"))
            os.unlink(dump)
        check_same(before, Snapshot(victim.pid), busy=True)
    assert any("no process can be made" in (reason or "") for reason in reasons), reasons
    victim.finish()
