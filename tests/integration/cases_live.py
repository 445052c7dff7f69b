# SPDX-License-Identifier: MIT
"""The live view: memattach --live on a terminal, and what memanalyze says of a dump that is still being written."""
import fcntl
import json
import os
import re
import select
import shutil
import signal
import struct
import termios
import time

from harness import Session, Victim, case, check_receipt
from procfs import Failure, PATIENCE, Skip, read_text
from reports import analyze_text
from snapshot import Snapshot, check_same


class LiveSession:
    """memattach --live as the leader of a session on a terminal of its own."""

    def __init__(self, context, pid):
        self.master, self.slave = os.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
        self.modes, self.text = termios.tcgetattr(self.slave), b""
        self.receipt = context.unique("receipt", ".json")
        self.process = context.start([context.memattach, "-p", str(pid), "-r", "4k", "--live", "-o", context.unique("live", ".dump"),
                                      "--receipt", self.receipt, "--deadline", "20s", *context.options], stdin=self.slave, stdout=self.slave,
                                     stderr=self.slave, env=dict(os.environ, TERM="xterm"), preexec_fn=self.own)

    def own(self):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def until(self, what, holds):
        end = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > end:
                raise Failure(f"{what} does not come: {self.text[-2000:]}")
            if select.select([self.master], [], [], 0.1)[0]:
                self.text += os.read(self.master, 65536)

    def sees(self, pattern):
        self.until(pattern, lambda: re.search(pattern, self.text))

    def view(self):
        """The process that memattach has started for it."""
        children = read_text(f"/proc/{self.process.pid}/task/{self.process.pid}/children").split()
        return next(int(pid) for pid in children if "--live" in read_text(f"/proc/{pid}/cmdline", ""))

    def check_ended(self, pid):
        self.until("the end", lambda: self.process.poll() is not None)
        self.sees(rb"the process is as before")
        assert self.process.returncode == 0, (self.process.returncode, self.text[-2000:])
        assert termios.tcgetattr(self.slave) == self.modes
        assert self.text.rfind(b"\033[?1049l") > self.text.rfind(b"\033[?1049h"), self.text[-2000:]
        assert b"detached from" in self.text[self.text.rfind(b"\033[?1049l"):], self.text[-2000:]
        check_receipt(json.loads(read_text(self.receipt)), pid)
        os.close(self.master)
        os.close(self.slave)


@case()
def live_view_of_a_session(context):
    """It shows the target's functions, without a capability; q and Ctrl-C end the session; killed, it does not."""
    victim = Victim(context, "known_heap")
    before = Snapshot(victim.pid)
    session = LiveSession(context, victim.pid)
    session.sees(rb"known_heap \(PID \d+ on ")
    victim.send("go")
    truth = victim.truth()
    session.sees(rb" \d+ a known_heap.c:\d+")
    status = read_text(f"/proc/{session.view()}/status")
    assert re.search(r"CapPrm:\s+0+\n", status) and re.search(r"NoNewPrivs:\s+1\n", status), status
    os.write(session.master, b"q")
    session.check_ended(victim.pid)
    session = LiveSession(context, victim.pid)
    session.sees(rb"SAMPLES")
    os.kill(session.view(), signal.SIGKILL)
    session.sees(rb"the live view was ended by signal 9; the session goes on")
    assert session.process.poll() is None
    session.process.send_signal(signal.SIGTERM)
    session.check_ended(victim.pid)
    session = LiveSession(context, victim.pid)
    session.sees(rb"SAMPLES")
    os.write(session.master, b"\x03")
    session.check_ended(victim.pid)
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
    victim = Victim(context, "alloc_loop")
    master, slave = os.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    bash = shutil.which("bash")
    if not bash:
        raise Skip("bash is not installed")

    def own():
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    script = (f"{context.memattach} -p {victim.pid} -r 4k --live -o {context.path('live.dump')} --deadline 20s & read line; jobs; fg; "
              "echo ENDED $?; read line")
    shell = context.start([bash, "--norc", "-m", "-c", script], stdin=slave, stdout=slave, stderr=slave, env=dict(os.environ, TERM="xterm"),
                          preexec_fn=own)
    text = b""

    def sees(pattern):
        nonlocal text
        end = time.monotonic() + PATIENCE
        while not re.search(pattern, text):
            if time.monotonic() > end:
                raise Failure(f"{pattern} does not come: {text[-2000:]}")
            if select.select([master], [], [], 0.1)[0]:
                text += os.read(master, 65536)

    sees(b"in the background there is no live view")
    time.sleep(0.5)
    os.write(master, b"\n")
    sees(b"Running")
    sees(rb"\x1b\[\?1049h")
    sees(b"alloc_loop")
    os.write(master, b"q")
    sees(b"ENDED 0")
    os.write(master, b"\n")
    shell.wait(PATIENCE)
    os.close(master)
    os.close(slave)
    victim.finish()
