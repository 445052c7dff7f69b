#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_progress.py MEMANALYZE CLOCK_LEAP LARGE_DUMP DUMP: what a long run shows on a terminal, and what it leaves there."""
import fcntl
import os
import re
import signal
import subprocess
import sys
import tempfile
import termios

ERASE = b"\r\033[K"
PATIENCE = 170
LINE = re.compile(rb"\r\033\[Kmemanalyze: [a-z ]*[a-z]( \d+ %)?")


class Terminal:
    """A terminal of which a program is the session's leader; what is written to it is kept."""

    def __init__(self):
        self.master, self.slave = os.openpty()
        attributes = termios.tcgetattr(self.slave)
        attributes[1] &= ~termios.OPOST
        attributes[3] = attributes[3] & ~termios.ECHO | termios.NOFLSH  # an interrupt drops nothing that was written
        termios.tcsetattr(self.slave, termios.TCSANOW, attributes)
        self.text = b""

    def own(self):
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it, and so do their children
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def start(self, command, slow, **streams):
        environment = dict(os.environ, TERM="xterm")
        if slow:
            environment.update(LD_PRELOAD=slow, ASAN_OPTIONS="verify_asan_link_order=0")
        process = subprocess.Popen(command, env=environment, preexec_fn=self.own, **{"stderr": self.slave, **streams})
        os.close(self.slave)
        return process

    def read(self, until=None):
        """Until the pattern is there, or the end."""
        while until is None or not re.search(until, self.text):
            try:
                more = os.read(self.master, 65536)
            except OSError:  # the last one has closed it
                more = b""
            if not more:
                break
            self.text += more
        return self.text


def check_erased(memanalyze, leap, dump):
    plain = subprocess.run([memanalyze, "--json", dump], stdout=subprocess.PIPE, check=True).stdout
    terminal = Terminal()
    with tempfile.TemporaryFile() as output:
        process = terminal.start([memanalyze, "--json", dump], leap, stdout=output)
        text = terminal.read()
        assert process.wait() == 0
        output.seek(0)
        assert output.read() == plain
    for what in (b"reading samples", b"adding up stacks", b"writing"):
        assert b"memanalyze: " + what in text, (what, text)
    assert LINE.sub(b"", text) == ERASE, LINE.sub(b"", text)
    return plain


def check_quick(memanalyze, dump):
    """Where the clock stands still, nothing is slow."""
    terminal = Terminal()
    process = terminal.start([memanalyze, "--top=1", dump], None, stdout=subprocess.DEVNULL)
    text = terminal.read()
    assert process.wait() == 0
    assert LINE.sub(b"", text) in (b"", ERASE), text  # a machine that is very busy makes it slow


def check_same_terminal(memanalyze, leap, dump, plain):
    """The report and the line on one terminal: the line is gone before the report begins."""
    terminal = Terminal()
    process = terminal.start([memanalyze, "--json", dump], leap, stdout=terminal.slave)
    text = terminal.read()
    assert process.wait() == 0
    assert text.endswith(ERASE + plain), text[:1000]
    assert b"memanalyze: reading" in text and b"memanalyze: writing" not in text


def check_interrupt(memanalyze, leap, dump):
    """Ctrl-C while it waits for whoever reads the report, who does not: the line is gone since the report began."""
    out, into = os.pipe()
    terminal = Terminal()
    process = terminal.start([memanalyze, "--json", dump], leap, stdout=into)
    os.close(into)
    assert os.read(out, 1) == b"{"
    os.write(terminal.master, b"\x03")
    text = terminal.read()
    assert process.wait() == -signal.SIGINT, process.returncode
    assert text.endswith(ERASE) and LINE.sub(b"", text) == ERASE, text
    os.close(out)


def check_closed_pipe(memanalyze, leap, dump):
    """As with head: nobody wants the rest, and the line is gone before the pipe is."""
    terminal = Terminal()
    process = terminal.start([memanalyze, "--json", dump], leap, stdout=subprocess.PIPE)
    process.stdout.read(1000)
    process.stdout.close()
    text = terminal.read()
    assert process.wait() == -signal.SIGPIPE, process.returncode
    assert text.endswith(ERASE) and LINE.sub(b"", text) == ERASE, text


def main():
    memanalyze, leap, large_dump, dump = sys.argv[1:]
    os.environ["XDG_CACHE_HOME"] = "/nonexistent"  # not the user's own
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.alarm(PATIENCE)  # whose end closes the pipes on which memanalyze may wait
    subprocess.run([large_dump, dump, "2000", "5000", "400"], check=True)
    plain = check_erased(memanalyze, leap, dump)
    check_quick(memanalyze, dump)
    check_same_terminal(memanalyze, leap, dump, plain)
    check_interrupt(memanalyze, leap, dump)
    check_closed_pipe(memanalyze, leap, dump)
    os.unlink(dump)


main()
