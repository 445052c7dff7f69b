#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_live.py MEMANALYZE DUMP DIRECTORY: the live view on a terminal, and that the terminal is given back after every kind of end."""
import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

PATIENCE = 60
ENTER, LEAVE = b"\033[?1049h", b"\033[?1049l"
HOSTILE = b"ev\033]0;il\x07\xe2\x80\xae\xff\033[2Jname"
STATE, COMMAND, LEASE_REALTIME = 24, 80, 528  # offsets in the header: memattach-dump(5)
RUNNING, DETACHED = 1, 2
DRAWN = re.compile(rb"\033\[(H|K|J|\?1049[hl]|\?25[hl]|\?7[hl]|2J|[0-9;]*m)")


def write_dump(source, path, state):
    """Put in its place as memattach does."""
    with open(source, "rb") as file:
        data = bytearray(file.read())
    struct.pack_into("<I", data, STATE, state)
    struct.pack_into("<Q", data, LEASE_REALTIME, (int(time.time()) + 3600) * 10**9)
    struct.pack_into("64s", data, COMMAND, HOSTILE)
    with open(path + ".part", "wb") as file:
        file.write(data)
    os.rename(path + ".part", path)


class View:
    """The live view as the leader of a session on a terminal of its own."""

    def __init__(self, memanalyze, *arguments, columns=120, lines=24):
        self.master, self.slave = os.openpty()
        self.resize(columns, lines)
        self.modes = termios.tcgetattr(self.slave)
        self.text = b""
        self.process = subprocess.Popen([memanalyze, "--live", *arguments], stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                        env=dict(os.environ, TERM="xterm", ASAN_OPTIONS="handle_segv=0"), preexec_fn=self.own)

    def own(self):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def resize(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, milliseconds=100):
        if select.select([self.master], [], [], milliseconds / 1000)[0]:
            self.text += os.read(self.master, 65536)

    def until(self, what, holds, runs=True):
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, (what, self.text[-3000:])
            assert not runs or self.process.poll() is None or select.select([self.master], [], [], 0)[0], (what, self.text[-3000:])
            self.read()

    def sees(self, pattern):
        """Waits for it in what comes from now on."""
        begin = len(self.text)
        self.until(pattern, lambda: re.search(pattern, self.text[begin:]))

    def started(self):
        self.until("a screen", lambda: b"SAMPLES" in self.text)
        assert ENTER in self.text and LEAVE not in self.text, self.text
        assert not termios.tcgetattr(self.slave)[3] & (termios.ICANON | termios.ECHO)
        return self

    def type(self, keys):
        os.write(self.master, keys)

    def is_given_back(self):
        return termios.tcgetattr(self.slave) == self.modes and self.text.rfind(LEAVE) > self.text.rfind(ENTER)

    def child(self):
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(path, encoding="ascii") as file:
            return int(file.read().split()[0])

    def ends(self, status, *said):
        """said: what comes once the terminal is given back; it may be read later than that."""
        self.until("the end", lambda: self.process.poll() is not None, runs=False)
        assert self.process.returncode == status, (self.process.returncode, self.text[-2000:])
        self.until("the terminal", self.is_given_back, runs=False)
        for text in said:
            self.until(text, lambda text=text: text in self.text[self.text.rfind(LEAVE):], runs=False)
        left = re.sub(rb"\r+\n", b"", DRAWN.sub(b"", self.text))
        assert not re.search(rb"[\x00-\x1f\x7f]", left), left
        left.decode()  # UTF-8
        assert "\u202e" not in left.decode()
        os.close(self.master)
        os.close(self.slave)


def check_keys(memanalyze, dump):
    view = View(memanalyze, dump).started()
    assert b"by stack, sorted by live" in view.text, view.text
    for key, shown in ((b"\r", b"THE WHOLE STACK"), (b"\033", b"FUNCTION < CALLERS"), (b"/", b"Esc clears"), (b"no such text", b"/no such text_"),
                       (b"\r", b"; only /no such text"), (b"\033", b"sorted by live; growth"), (b"s", b"by stack, sorted by growth"), (b"b", b"by function, sorted by growth"), (b"p", b"PAUSED"), (b"h", b"scroll"),
                       (b"\033[B", b"SAMPLES")):
        view.type(key)
        view.sees(shown)
    view.type(b"q")
    view.ends(0)


def check_signals(memanalyze, dump):
    view = View(memanalyze, dump).started()
    view.type(b"\x03")
    view.ends(-signal.SIGINT)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        view = View(memanalyze, dump).started()
        view.process.send_signal(number)
        view.ends(-number)


def check_crash(memanalyze, dump):
    for number in (signal.SIGKILL, signal.SIGSEGV):
        view = View(memanalyze, dump).started()
        os.kill(view.child(), number)
        view.ends(2, b"was ended by signal %d" % number)
    view = View(memanalyze, dump).started()
    os.kill(view.child(), signal.SIGTERM)
    view.ends(-signal.SIGTERM)
    view = View(memanalyze, dump).started()  # of the guard: the view gives the terminal back
    view.process.kill()
    view.ends(-signal.SIGKILL)


def check_stop(memanalyze, dump):
    for stop in (lambda view: view.type(b"\x1a"), lambda view: view.process.send_signal(signal.SIGTSTP)):
        view = View(memanalyze, dump).started()
        # The kernel stops no process of an orphaned group by a key.
        stop(view)
        view.until("the terminal", view.is_given_back)
        _, status = os.waitpid(view.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status
        view.text = b""
        view.process.send_signal(signal.SIGCONT)
        view.started()
        view.type(b"q")
        view.ends(0)


def check_sizes(memanalyze, dump):
    view = View(memanalyze, dump).started()
    for columns, lines in ((40, 10), (12, 3), (1, 1), (200, 60)):
        view.resize(columns, lines)
        begin = len(view.text)
        view.sees(rb"\033\[H[^\0]*\033\[J")
        view.until("a screen of the new size", lambda: fits(view.text[begin:], columns, lines))
    view.type(b"q")
    view.ends(0)


def fits(text, columns, lines):
    screen = re.findall(rb"\033\[H(.*?)\033\[J", text, re.S)[-1]
    rows = re.split(rb"\r+\n", DRAWN.sub(b"", screen))
    return len(rows) <= lines + 1 and all(len(row.decode()) <= max(columns, 11) for row in rows)


def check_end(memanalyze, source, dump):
    view = View(memanalyze, dump).started()
    write_dump(source, dump, DETACHED)
    view.ends(0, b"detached", b"SAMPLES")
    write_dump(source, dump, RUNNING)
    view = View(memanalyze, dump).started()
    os.unlink(dump)
    view.sees(b"cannot be read any more")
    view.type(b"q")
    view.ends(0)
    write_dump(source, dump, RUNNING)


def check_refusals(memanalyze, dump):
    for arguments, status, text in (([], 2, "needs a terminal"), (["--by=thread"], 64, "--live shows"), (["--at=1s"], 64, "as it is"),
                                    (["-o", "x.json"], 64, "not with -o"), (["--batch=0"], 64, "at least 1")):
        done = subprocess.run([memanalyze, "--live", *arguments, dump], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode == status and text in done.stderr, (arguments, done)


def check_batch(memanalyze, source, dump):
    """What it says is what a report says, and a session that has ended is shown once."""
    write_dump(source, dump, DETACHED)
    done = subprocess.run([memanalyze, "--batch=5", "--top=3", dump], capture_output=True, text=True, check=True).stdout
    report = subprocess.run([memanalyze, "--json", "--top=0", dump], capture_output=True, text=True, check=True).stdout
    total = json.loads(report)["total"]["live_bytes"]
    assert done.count("# ") == done.count("\n\n") == 1, done
    lines = done.splitlines()
    names, row = lines[1].split("\t"), lines[2].split("\t")
    assert names[0] == "live" and names[-1] == "name" and row[-1] == "total" and len(lines) <= 3 + 3 + 1, done
    for i, name in enumerate(("estimate", "low", "high")):
        assert abs(float(row[i]) - total[name]) <= 1, (row, total)
    write_dump(source, dump, RUNNING)
    done = subprocess.run([memanalyze, "--batch=2", dump], capture_output=True, text=True, check=True).stdout
    assert done.count("\n\n") == 2, done


def main():
    memanalyze, source, directory = sys.argv[1:]
    with tempfile.TemporaryDirectory(dir=directory) as own:  # a memanalyze that is run there without arguments takes *.dump
        check(memanalyze, source, os.path.join(own, "live.dump"))


def check(memanalyze, source, dump):
    write_dump(source, dump, RUNNING)
    check_keys(memanalyze, dump)
    check_signals(memanalyze, dump)
    check_crash(memanalyze, dump)
    check_stop(memanalyze, dump)
    check_sizes(memanalyze, dump)
    check_end(memanalyze, source, dump)
    check_refusals(memanalyze, dump)
    check_batch(memanalyze, source, dump)


main()
