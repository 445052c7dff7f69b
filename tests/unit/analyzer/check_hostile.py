#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_hostile.py MEMANALYZE [--no-memory-limit]: dumps that ask for more than they hold.

Each is read within time and memory that go with its size. The limits are wide: what they are to find takes a hundred times as long, or all the
memory of the machine. Under a sanitizer, which has memory of its own, only the time is looked at.
"""
import json
import os
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile

import hostile_dump as dump

CPU_SECONDS = 60
MEMORY_BYTES = 256 << 20
MEMORY_FACTOR = 4


class Run:
    def __init__(self, program, arguments, memory):
        """Limits for the whole of it, and what it had at most. The last of the arguments is a dump."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS)))
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            for stream in (out, err):
                stream.seek(0)
            self.status, self.out, self.err = process.returncode, out.read().decode("utf-8"), err.read().decode("utf-8")
        allowed = MEMORY_BYTES + MEMORY_FACTOR * os.stat(arguments[-1]).st_blocks * 512
        assert self.status in (0, 1), (arguments, self.status, self.err)
        assert not memory or usage.ru_maxrss * 1024 <= allowed, (arguments, usage.ru_maxrss)


class Checks:
    def __init__(self, program, directory, memory):
        self.program, self.directory, self.memory = program, pathlib.Path(directory), memory

    def run(self, path, *arguments):
        return Run(self.program, [*arguments, path], self.memory)

    def path(self, name):
        return self.directory / (name + ".dump")

    def check_notes(self):
        """As many different notes as there is room for: some are shown, the others counted."""
        count = 500_000
        path = dump.write(self.path("notes"), [(dump.NOTES, dump.arena([dump.note(b"%d" % i) for i in range(count)]), 0)])
        text = self.run(path).out
        assert text.count("\n") < 200, text[:1000]
        assert f"... and {count - 64:,} more notes" in text, text[-1000:]
        report = json.loads(self.run(path, "--json").out)
        assert len(report["notes"]) == 1000 and report["notes_left_out"] == count - 1000

    def check_modules(self):
        """All the numbers that modules can have, in ten dumps whose modules are others."""
        paths = [self.path(f"modules-{k}") for k in range(10)]
        for k, path in enumerate(paths):
            records = [dump.module(i + 1, b"/a/%d" % i, struct.pack("<24xII", k, i)) for i in range(65535)]
            dump.write(path, [(dump.MODULES, dump.arena(records), 0)])
        self.run(paths[-1], *paths[:-1])

    def check_thinnings(self):
        """Every sample is older than every thinning."""
        count, samples = 300_000, 300_000
        table, entries = dump.live([(2 * dump.SECOND + i, dump.FIRST_STACK) for i in range(samples)])
        stacks = dump.arena([dump.stack([dump.frame(1, 0x500000)])])
        thinnings = dump.arena([dump.thinning((1 << 62) + i) for i in range(count)])
        self.run(dump.write(self.path("thinnings"), [(dump.STACKS, stacks, 0), (dump.LIVE, table, entries), (dump.RATES, thinnings, 0)]),
                 "--no-symbols")

    def check_stacks_that_overlap(self):
        """A stack of 128 frames begins at each 16 bytes: those that there is no room for side by side are left out."""
        count = 400_000
        body = b"".join(struct.pack("<QII", 1 << 48 | (0x500000 + 16 * i), 128, 0) for i in range(count))
        entries = 1 << count.bit_length()
        index = b"".join(struct.pack("<Q", 1 << 32 | (dump.FIRST_STACK + i)) for i in range(count - 80)).ljust(8 * entries, b"\0")
        path = dump.write(self.path("overlap"), [(dump.STACKS, dump.arena([body]), 0), (dump.STACK_INDEX, index, entries)])
        for view in ([], ["--leaks"], ["--since=1s"]):
            assert self.run(path, "--no-symbols", *view).status == 1, "what was left out is damage"

    def check_holes(self):
        """A terabyte that takes no room on the disk."""
        size = 1 << 40
        self.run(dump.write_hole(self.path("hole-live"), dump.LIVE, size, 1 << 34))
        self.run(dump.write_hole(self.path("hole-index"), dump.STACK_INDEX, size, 1 << 37))
        self.run(dump.write_hole(self.path("hole-history"), dump.HISTORY, size, size // dump.PAGE))

    def check_all(self):
        for name in sorted(name for name in dir(self) if name.startswith("check_") and name != "check_all"):
            getattr(self, name)()
            print(name)


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        os.environ["XDG_CACHE_HOME"] = directory
        Checks(program, directory, "--no-memory-limit" not in sys.argv[2:]).check_all()


if __name__ == "__main__":
    main()
