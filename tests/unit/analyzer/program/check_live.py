#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_live.py MEMANALYZE DUMP DIRECTORY: the live view on a terminal, and that the terminal is given back after every kind of end."""
import ctypes
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
STATE, COMMAND, LEASE_REALTIME, PRIVATE, CGROUP = 24, 80, 528, 552, 15616  # offsets in the header: memattach-dump(5)
RUNNING, DETACHED = 1, 2
DRAWN = re.compile(rb"\033\[(H|K|J|\?1049[hl]|\?25[hl]|\?7[hl]|2J|[0-9;]*m)")


def write_dump(source, path, state, command=HOSTILE, grown=0, cgroup=b""):
    """Put in its place as memattach does."""
    with open(source, "rb") as file:
        data = bytearray(file.read())
    struct.pack_into("<I", data, STATE, state)
    struct.pack_into("<Q", data, LEASE_REALTIME, (int(time.time()) + 3600) * 10**9)
    struct.pack_into("64s", data, COMMAND, command)
    struct.pack_into("<QQ", data, PRIVATE, 1 << 30, (1 << 30) + grown)
    struct.pack_into("512s", data, CGROUP, cgroup)
    with open(path + ".part", "wb") as file:
        file.write(data)
    os.rename(path + ".part", path)


LIBC = ctypes.CDLL(None)
PR_CAPBSET_DROP = 24
CAPABILITIES_TO_READ = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


class View:
    """The live view as the leader of a session on a terminal of its own."""

    def __init__(self, memanalyze, *arguments, columns=120, lines=24, plain=False):
        self.plain = plain
        self.master, self.slave = os.openpty()
        self.resize(columns, lines)
        self.modes = termios.tcgetattr(self.slave)
        self.text = b""
        self.process = subprocess.Popen([memanalyze, "--live", *arguments], stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                        env=dict(os.environ, TERM="xterm", ASAN_OPTIONS="handle_segv=0"), preexec_fn=self.own)

    def own(self):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        for capability in CAPABILITIES_TO_READ if self.plain else ():  # of root; nobody else has them
            LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)

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

    def started(self, title=b"SAMPLES"):
        self.until("a screen", lambda: title in self.text)
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


def screen_of(view):
    """The rows of the last whole screen."""
    screens = re.findall(rb"\033\[H(.*?)\033\[J", view.text, re.S)
    return [row.decode() for row in re.split(rb"\r+\n", DRAWN.sub(b"", screens[-1]))] if screens else []


def check_directory(memanalyze, source, dump):
    """The processes of a directory, those that grow first; Enter shows one, q comes back; new and gone dumps; any size; names of strangers."""
    folder = dump + ".d"
    os.mkdir(folder)
    for i in range(40):
        write_dump(source, f"{folder}/p{i}.dump", RUNNING if i < 30 else DETACHED, command=HOSTILE if i == 5 else b"worker%d" % i, grown=i << 20,
                   cgroup=b"/system.slice/web\x1b.service" if i == 6 else b"")
    view = View(memanalyze, folder, columns=80).started(b"PROCESS")
    view.until("live bytes", lambda: "MiB" in "".join(screen_of(view)[3:4]).split("+39.0 MiB")[-1])
    rows = screen_of(view)
    assert rows[0].startswith("40 processes, 10 ended; private memory 30.4 GiB (+780 MiB)  /"), rows[0]
    assert re.match(r"> +\+39\.0 MiB +detached +\S+ \w+ +\S+ \w+ +\d+ worker39$", rows[3]), rows[3]
    assert [row.split()[-1] for row in rows[3:8]] == [f"worker{i}" for i in (39, 38, 37, 36, 35)] and fits(view.text, 80, 24), rows
    for keys, shown in ((b"\033[B\r", b"FUNCTION < CALLERS"), (b"q", b"PROCESS"), (b"/", b"Esc clears"), (b"EB", b"/EB_"), (b"\r", b"only /EB"),
                        (b"\033", b"by growth since the attach; Enter"), (b"s", b"by growth of the last minute"), (b"s", b"by live bytes"), (b"s", b"by name"),
                        (b"p", b"PAUSED"), (b"h", b"PER MINUTE  the same"), (b"p", b"PROCESS"), (b"s", b"by growth since")):
        view.type(keys)
        view.sees(re.escape(shown))
    os.rename(f"{folder}/p39.dump", f"{folder}/p39.gone")
    write_dump(source, f"{folder}/new.dump", RUNNING, command=b"late", grown=1 << 30)
    view.until("a new one", lambda: any(row.endswith(" late") for row in screen_of(view)) and not any(row.endswith("worker39") for row in screen_of(view)))
    for columns, lines in ((40, 10), (12, 3), (1, 1), (200, 60)):
        view.resize(columns, lines)
        begin = len(view.text)
        view.until("a screen of the new size", lambda: b"\033[J" in view.text[begin:] and fits(view.text[begin:], columns, lines))
    view.until("all rows", lambda: any("ev" in row and row.endswith("name") for row in screen_of(view)))
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
    view.sees(b"cannot read the directory")
    view.type(b"q")
    view.ends(0)


def check_strangers(memanalyze, source, dump):
    """Dumps that may not be read are not said to be none."""
    folder = dump + ".s"
    os.mkdir(folder)
    write_dump(source, f"{folder}/closed.dump", RUNNING)
    os.chmod(f"{folder}/closed.dump", 0)
    view = View(memanalyze, folder, plain=True).started(b"PROCESS")
    assert screen_of(view)[0].startswith("0 processes, 1 are not read  /") and b"no dump is there" not in view.text, screen_of(view)
    view.type(b"q")
    view.ends(0)


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
    check_directory(memanalyze, source, dump)
    check_strangers(memanalyze, source, dump)


main()
