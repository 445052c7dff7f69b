# SPDX-License-Identifier: MIT
"""Programs on a terminal of their own, whose session they lead."""
import fcntl
import os
import re
import select
import signal
import struct
import termios
import time

from procfs import PATIENCE, Failure

ESCAPE = re.compile(r"\033\[[0-9;?]*[A-Za-z]")


class Terminal:
    def __init__(self, context, command, columns=120):
        self.master, self.slave = os.openpty()
        self.resize(columns)
        self.modes, self.text = termios.tcgetattr(self.slave), b""
        self.process = context.start(command, stdin=self.slave, stdout=self.slave, stderr=self.slave, env=dict(os.environ, TERM="xterm"),
                                     preexec_fn=self.own)

    def own(self):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def resize(self, columns, lines=24):
        """The foreground gets SIGWINCH from the kernel."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, wait=0.1):
        """Takes what there is; False: nothing."""
        if not select.select([self.master], [], [], wait)[0]:
            return False
        self.text += os.read(self.master, 65536)
        return True

    def until(self, what, holds):
        end = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > end:
                raise Failure(f"{what} does not come: {self.text[-2000:]}")
            self.read()

    def sees(self, pattern, after=0):
        """A blank of the pattern may be where a line was broken."""
        self.until(pattern, lambda: re.search(pattern.replace(b" ", rb"\s+"), self.text[after:]))

    def type(self, keys):
        os.write(self.master, keys)

    def kill(self, number):
        self.process.send_signal(number)

    def end(self):
        """The program's exit code, when it has left the terminal as it was."""
        self.until("the end", lambda: self.process.poll() is not None)
        # By another process, where the one that was started has been killed.
        self.until("the modes of the terminal", lambda: termios.tcgetattr(self.slave) == self.modes)
        while self.read(0):
            pass
        assert self.text.rfind(b"\033[?25l") <= self.text.rfind(b"\033[?25h"), "no cursor"
        assert self.process.returncode != -signal.SIGABRT, self.text[-2000:]
        os.close(self.master)
        os.close(self.slave)
        return self.process.returncode

    def wide_lines(self, columns, start=0):
        """Those of more columns; a line of one word is a path, or the like."""
        text = self.text[start:].decode("utf-8")
        lines = [ESCAPE.sub("", line) for line in re.split(r"[\r\n]|\033\[\d*;?\d*H", text)]
        return [line for line in lines if len(line) > columns and len(line.split()) > 1]
