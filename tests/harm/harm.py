# SPDX-License-Identifier: MIT
"""What the cases of this directory share, on top of tests/integration/harness.py."""
import collections
import os
import re
import subprocess
import time

from harness import PATIENCE, Failure, Maps, Skip, Victim, describe, read_text, tasks_of

KILLS = 40  # of the cases that kill memattach at random; --kills

UNCHANGED = "nothing was changed"


def harm_victim(context, name, *arguments, **options):
    """A victim of this directory, or of tests/targets if name starts with a slash; Skip if it says CANNOT."""
    if name.startswith("/"):
        return Victim(context, name[1:], *arguments, **options)
    victim = Victim(context, name, *arguments, **options)
    for line in victim.lines.seen:
        if line.startswith("CANNOT"):
            raise Skip(f"{name} {' '.join(arguments)}: {line[7:]}")
    return victim


def slow_allocator(context, name="slow"):
    """The environment of a victim with slow_malloc.c; "blind": without unwind information."""
    return {"LD_PRELOAD": context.tool(f"{name}_malloc.so")}


def run_memattach(context, *arguments, patience=PATIENCE, **options):
    return subprocess.run([context.memattach, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=patience, cwd=context.work, check=False, **options)


def cycle(context, pid, *arguments, duration="20ms", expected=(0,)):
    """One attach and detach that must succeed; returns when it ended (CLOCK_MONOTONIC, ns)."""
    dump = context.unique("cycle", ".dump")
    result = run_memattach(context, "-p", pid, "-d", duration, "-o", dump, "--deadline", "20s", *arguments)
    if os.path.exists(dump):
        os.unlink(dump)
    if result.returncode not in expected:
        raise Failure(f"memattach ended with {result.returncode}: {result.stderr}; target: {describe(pid)}")
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class State:
    """The part of a process's state that a kill of memattach could harm at once, cheap enough for each of 10 000 kills."""

    def __init__(self, pid, looks=1):
        """
        With several looks only descriptors count that are there each time: a library that is being opened has one for a moment. And
        what threads are like most of the time: in a handler a thread has another mask.
        """
        self.pid = pid
        status = read_text(f"/proc/{pid}/status")
        self.process = dict(re.findall(r"^(SigIgn|SigCgt|ShdPnd):\s*(\S+)", status, re.M))
        self.process.pop("ShdPnd", None)
        threads = {}
        descriptors = set(os.listdir(f"/proc/{pid}/fd"))
        for look in range(looks):
            if look:
                time.sleep(0.003)
                descriptors &= set(os.listdir(f"/proc/{pid}/fd"))
            for tid in tasks_of(pid):
                seen = self.thread(tid)
                if seen[0] is not None:  # else it has ended meanwhile
                    threads.setdefault(tid, collections.Counter())[seen] += 1
        self.threads = {tid: seen.most_common(1)[0][0] for tid, seen in threads.items()}
        self.descriptors = sorted(descriptors)

    def thread(self, tid):
        status = read_text(f"/proc/{self.pid}/task/{tid}/status")
        found = dict(re.findall(r"^(SigBlk|State|TracerPid):\s*(\S+)", status, re.M))
        return found.get("SigBlk"), found.get("State", "?") in "Tt", found.get("TracerPid")

    def differences(self, after):
        found = []
        if self.process != after.process:
            found.append(f"dispositions were {self.process}, are {after.process}")
        for tid, old in self.threads.items():
            if tid in after.threads and after.threads[tid] != old:
                found.append(f"thread {tid}: mask, stopped, tracer were {old}, are {after.threads[tid]}")
        if self.descriptors != after.descriptors:
            found.append(f"descriptors were {self.descriptors}, are {after.descriptors}")
        return found


def remains(pid):
    """What of memattach is mapped in the process."""
    return [line for line in Maps(pid).text() if "memfd:memattach" in line or line.split(" (deleted)")[0].endswith(".dump")]


def settle(state, patience=5.0):
    """Waits until the process looks as in state: a thread in a handler of its own, or a stub at its end, takes a moment."""
    end = time.monotonic() + patience
    while True:
        found = state.differences(State(state.pid))
        if not found:
            return
        if time.monotonic() > end:
            raise Failure(f"process {state.pid} is not as before: {'; '.join(found)}; {describe(state.pid)}")
        time.sleep(0.005)
