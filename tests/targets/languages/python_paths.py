# SPDX-License-Identifier: MIT
"""Blocks of modules that lie in several entries of sys.path.

    python_paths.py DIRECTORY

works in the directory, which has rel/by_rel.py, late/by_late.py and archive.zip with by_zip.py; PYTHONPATH has package/inner.py. Each has a function
make(size) for a block, and so has this one. It prints

    PID n
    READY

waits for a line on stdin, makes one block in each, the last one in by_late, whose entry comes only then, and prints MADE; waits for a line, and prints OK.
"""
import os
import sys

os.chdir(sys.argv[1])
sys.path += ["rel", os.path.join(sys.argv[1], "archive.zip")]
import by_rel  # noqa: E402
import by_zip  # noqa: E402
import package.inner  # noqa: E402


def make(size):
    return bytearray(size)


print(f"PID {os.getpid()}\nREADY", flush=True)
sys.stdin.readline()
kept = [make(10000), by_rel.make(20000), by_zip.make(30000), package.inner.make(40000)]
sys.path.append(os.path.join(sys.argv[1], "rel", "..", "late"))
import by_late  # noqa: E402

kept.append(by_late.make(50000))
print("MADE", flush=True)
sys.stdin.readline()
print("OK", len(kept), flush=True)
