# SPDX-License-Identifier: MIT
"""Targets that are large in one respect each, for the cases and for bench/scale."""
import subprocess

from harness import Lines
from procfs import PATIENCE


class Large:
    """A target of bench/scale.c: it waits for a line, works, says DONE, waits for another."""

    def __init__(self, context, kind, size):
        self.process = context.start([context.target("scale"), kind, str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     text=True)
        self.lines = Lines(self.process.stdout)
        self.pid = int(self.lines.wait(r"^PID \d+$").split()[1])

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def work(self, patience=PATIENCE):
        self.go()
        self.lines.wait(r"^DONE$", patience)

    def results(self):
        """What it measured of itself: name -> figure."""
        return {words[1]: float(words[2]) for words in map(str.split, self.lines.seen) if words[:1] == ["R"]}

    def value(self, what):
        return self.results()[what]

    def finish(self):
        self.go()
        assert self.process.wait(PATIENCE) == 0, self.process.returncode
