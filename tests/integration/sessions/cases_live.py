# SPDX-License-Identifier: MIT
"""The live view: memattach --live on a terminal, and what memanalyze says of a dump that is still being written."""
import json
import os
import re
import shutil
import signal
import time

from harness import DEADLINE, Session, Victim, case, check_receipt
from procfs import Failure, PATIENCE, Skip, read_text
from reports import analyze_text
from snapshot import Snapshot, check_same
from terminal import Terminal


class LiveSession(Terminal):
    """memattach --live as the leader of a session on a terminal of its own."""

    def __init__(self, context, pid):
        self.receipt = context.unique("receipt", ".json")
        super().__init__(context, [context.memattach, "-p", str(pid), "-r", "4k", "--live", "-o", context.unique("live", ".dump"),
                                   "--receipt", self.receipt, "--deadline", DEADLINE, *context.options])

    def view(self):
        """The process that memattach has started for it."""
        children = read_text(f"/proc/{self.process.pid}/task/{self.process.pid}/children").split()
        return next(int(pid) for pid in children if "--show-live" in read_text(f"/proc/{pid}/cmdline", ""))

    def check_ended(self, pid):
        self.sees(rb"the process is as before")
        assert self.end() == 0, (self.process.returncode, self.text[-2000:])
        assert self.text.rfind(b"\033[?1049l") > self.text.rfind(b"\033[?1049h"), self.text[-2000:]
        assert b"detached from" in self.text[self.text.rfind(b"\033[?1049l"):], self.text[-2000:]
        check_receipt(json.loads(read_text(self.receipt)), pid)


@case()
def live_view_of_a_session(context):
    """It shows the target's functions, as a user of its own without a capability; q and Ctrl-C end the session; killed, it does not. The session
    ends it, also one that does not move."""
    victim = Victim(context, "known_heap")
    before = Snapshot(victim.pid)
    session = LiveSession(context, victim.pid)
    session.sees(rb"known_heap \(PID \d+ on ")
    victim.send("go")
    truth = victim.truth()
    session.sees(rb" \d+ a known_heap.c:\d+")
    status = read_text(f"/proc/{session.view()}/status")
    assert re.search(r"CapPrm:\s+0+\n", status) and re.search(r"NoNewPrivs:\s+1\n", status), status
    assert os.geteuid() or len(set(re.search(r"Uid:(.*)", status).group(1).split()) - {"0"}) == 1, status
    assert re.search(r"Seccomp:\s+2\n", status), status
    session.type(b"q")
    session.check_ended(victim.pid)
    session = LiveSession(context, victim.pid)
    session.sees(rb"SAMPLES")
    os.kill(session.view(), signal.SIGKILL)
    session.sees(rb"the live view was ended by signal 9; the session goes on")
    assert session.process.poll() is None
    session.kill(signal.SIGTERM)
    session.check_ended(victim.pid)
    session = LiveSession(context, victim.pid)
    session.sees(rb"SAMPLES")
    session.type(b"\x03")
    session.check_ended(victim.pid)
    session = LiveSession(context, victim.pid)
    session.sees(rb"SAMPLES")
    view = session.view()
    os.kill(view, signal.SIGSTOP)
    session.kill(signal.SIGTERM)
    session.sees(rb"the process is as before")
    assert not read_text(f"/proc/{view}/cmdline", ""), "the view is still there"
    assert session.process.wait(PATIENCE) == 0
    assert truth["a"]["live_bytes"]
    check_same(before, Snapshot(victim.pid), True)
    victim.finish_by_stdin()


def live_bytes(context, dump):
    """Live bytes of each function as --batch has them, and whether they are exact."""
    rows = [line.split("\t") for line in analyze_text(context, dump, "--batch=1", "--by=function").splitlines() if line.count("\t")]
    names = rows.pop(0)
    return {row[-1].split()[0]: [float(row[names.index(name)]) for name in ("live", "low", "high")] for row in rows}


@case()
def live_amounts_are_known(context):
    """While the session lasts, at --rate 1, the live bytes of each function are those that the victim says."""
    victim = Victim(context, "known_heap")
    session = Session(context, victim.pid, rate="1")
    victim.send("go")
    truth = victim.truth()
    expected = {name: [true["live_bytes"]] * 3 for name, true in truth.items() if true["live_bytes"]}
    seen, end = {}, time.monotonic() + PATIENCE  # until the next copy of the dump
    while {name: seen.get(name) for name in expected} != expected:
        if time.monotonic() > end:
            raise Failure(f"{seen} is not {expected}")
        time.sleep(0.2)
        seen = live_bytes(context, session.dump)
    assert len(expected) >= 3, truth
    check_receipt(session.stop(), victim.pid)
    victim.finish_by_stdin()


@case()
def live_in_the_background(context):
    """A job in the background is not stopped for what it may not do to the terminal; the view comes with the foreground."""
    bash = shutil.which("bash")
    if not bash:
        raise Skip("bash is not installed")
    victim = Victim(context, "alloc_loop", "calm")
    script = (f"{context.memattach} -p {victim.pid} -r 4k --live -o {context.path('live.dump')} --deadline 20s & read line; jobs; fg; "
              "echo ENDED $?; read line")
    shell = Terminal(context, [bash, "--norc", "-m", "-c", script])
    shell.sees(b"in the background there is no live view")
    time.sleep(0.5)
    shell.type(b"\n")
    shell.sees(b"Running")
    shell.sees(rb"\x1b\[\?1049h")
    shell.sees(b"alloc_loop")
    shell.type(b"q")
    shell.sees(b"ENDED 0")
    shell.type(b"\n")
    shell.end()
    victim.finish()
