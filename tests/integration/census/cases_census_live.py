# SPDX-License-Identifier: MIT
"""--census --live: the census on a terminal, again and again."""
import os
import re
import signal
import subprocess

from harness import PATIENCE, Victim, case
from procfs import read_text
from snapshot import Snapshot, check_same
from terminal import ESCAPE, Terminal

LEAVE, ENTER = b"\033[?1049l", b"\033[?1049h"
# Each line that comes is 8 MiB more.
GROWS = """
import os, sys
held = []
print("PID", os.getpid()); print("READY", flush=True)
for line in sys.stdin:
    held.append(bytes([1]) * (8 << 20))
    print("GROWN", flush=True)
"""
# 96 MiB in blocks that are looked at one by one.
MANY = """
import os, sys
held = [bytes(600) for _ in range(160000)]
print("PID", os.getpid()); print("READY", flush=True)
sys.stdin.read()
"""


class Live(Terminal):
    def __init__(self, context, pid, *options, columns=80):
        super().__init__(context, [context.memattach, "--census", "--live", *options, "-p", str(pid)], columns)

    def child(self):
        return int(read_text(f"/proc/{self.process.pid}/task/{self.process.pid}/children").split()[0])

    def screen(self):
        """The lines of one that is drawn from now on, not the first: that may have been begun before."""
        after = len(self.text)
        self.until("a screen", lambda: self.text.count(b"\033[J", after) >= 3)
        end = self.text.rindex(b"\033[J")
        return ESCAPE.sub("", self.text[self.text.rindex(b"\033[H", 0, end):end].decode()).replace("\r", "").split("\n")

    def check_left(self, code):
        assert self.end() == code, (self.process.returncode, self.text[-2000:])
        assert self.text.count(LEAVE) >= 1 and self.text.rfind(LEAVE) > self.text.rfind(ENTER), self.text[-2000:]


def end_victim(victim):
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


@case()
def census_live_shows_growth(context):
    """What was added since the first look, at any size of the terminal; by region, size and type; nothing of the process is touched."""
    victim = Victim(context, [context.program("python3"), "-c", GROWS])
    before = Snapshot(victim.pid)
    live = Live(context, victim.pid, "--every", "50ms")
    live.sees(rb"look \d+.*, every ")
    live.sees(rb" all accounted for")
    live.sees(rb"change of ")
    check_same(before, Snapshot(victim.pid), True)
    for _ in range(4):
        victim.send("more")
        victim.lines.wait("GROWN")
    live.sees(rb"\+3[2-9](\.\d)? MiB")
    for columns, lines in ((10, 3), (1, 1), (200, 60), (40, 12)):
        live.resize(columns, lines)
        screen = live.screen()
        assert len(screen) <= lines and max(map(len, screen)) <= columns and screen[0].startswith("look "[:columns]), screen
    live.resize(80, 40)
    for title in (rb"\[heap\]|arena|stack", rb"by size", rb"by type"):
        after = len(live.text)
        live.type(b"b")
        live.sees(title, after)
    live.type(b"p")
    live.sees(rb"paused")
    live.type(b"q")
    live.check_left(0)
    end_victim(victim)


@case()
def census_live_gives_the_terminal_back(context):
    """Whoever ends it, by whichever signal; stopped and continued it goes on."""
    victim = Victim(context, [context.program("python3"), "-c", GROWS])
    for number, ends in enumerate((lambda live: live.type(b"\x03"), lambda live: live.kill(signal.SIGTERM), lambda live: live.kill(signal.SIGHUP),
                                   lambda live: os.kill(live.child(), signal.SIGKILL), lambda live: live.kill(signal.SIGKILL))):
        live = Live(context, victim.pid, "--every", "100ms")
        live.sees(rb"look \d")
        live.kill(signal.SIGSTOP)
        live.kill(signal.SIGCONT)
        after = len(live.text)
        live.sees(rb"look \d", after)
        ends(live)
        live.sees(re.escape(LEAVE))  # by the child where the guard was killed
        live.check_left((-signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP, 1, -signal.SIGKILL)[number])
    end_victim(victim)


@case()
def census_live_ends_with_the_process(context):
    """The last look stays, and it is said."""
    victim = Victim(context, [context.program("python3"), "-c", GROWS])
    live = Live(context, victim.pid, "--every", "1h")  # it is not looked for
    live.sees(rb"look 1,")
    os.kill(victim.pid, signal.SIGKILL)
    live.sees(rb"it has ended")
    live.check_left(0)
    left = live.text[live.text.rfind(LEAVE):]
    assert b"all accounted for" in left and b"Trust: " in left, left


@case()
def census_live_costs_little(context):
    """Where a look takes more than a 20th of the time between looks, they are further apart, and it says so."""
    victim = Victim(context, [context.program("python3"), "-c", MANY])
    live = Live(context, victim.pid, "--every", "1ms")
    pattern = rb"look \d+ \((\d+) ms\), every ([\d.]+) (m?)s: 5 % of a CPU"
    live.sees(pattern)
    takes, every, unit = re.search(pattern, live.text).groups()
    assert 20 * (int(takes) - 1) <= float(every) * (1 if unit else 1000), (every, unit, takes)
    live.type(b"q")
    live.check_left(0)
    end_victim(victim)


@case()
def census_live_refuses_by_name(context):
    victim = Victim(context, [context.program("python3"), "-c", GROWS])
    for options, text in (((), "--live needs a terminal"), (("--by", "holder"), "--by holder"), (("--unreachable",), "--unreachable"),
                          (("--json",), "--json"), (("--for", "1s"), "--for"), (("-o", "/dev/null"), "--output")):
        result = subprocess.run([context.memattach, "--census", "--live", *options, "-p", str(victim.pid)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
        assert result.returncode == 64 and text in result.stderr and not result.stdout, (options, result)
    end_victim(victim)
