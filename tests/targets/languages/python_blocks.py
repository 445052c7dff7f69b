# SPDX-License-Identifier: MIT
"""Makes blocks of known sizes on known lines, one kind of Python code each, for CPython 3.9 to 3.14.

    PID n
    READY
then, for the line "go" on stdin: makes them, and says how many bytes each line has asked malloc for,

    MADE [[function, file, line, bytes, outer], …]     outer: functions around it, innermost first
and waits for another line, checks that all blocks still hold what they held, and prints OK or WRONG.

Blocks of more than 512 bytes come from malloc one by one; smaller ones do not, and are none of these.
"""
import asyncio
import functools
import json
import os
import re
import sys
import threading
import unicodedata  # noqa: F401: the compiler needs it for names that are not ASCII

SIZE = 3000
ROOM = 4096
kept = [None] * ROOM
used = iter(range(ROOM))
made = {}
lock = threading.Lock()


def make(block, size, above=0):
    """The caller's line, or one above it, has made this block, for which malloc was asked for size bytes."""
    frame, outer = sys._getframe(1), []
    code, line, around = frame.f_code, frame.f_lineno - above, frame.f_back
    while around:
        outer.append(getattr(around.f_code, "co_qualname", around.f_code.co_name))
        around = around.f_back
    with lock:
        kept[next(used)] = block
        key = (getattr(code, "co_qualname", code.co_name), code.co_filename, line, tuple(outer))
        made[key] = made.get(key, 0) + size


HEAD = sys.getsizeof(b"")


def plain():
    make(bytes(SIZE), HEAD + SIZE)
    make(bytearray(SIZE + 1), SIZE + 2)
    make([None] * 700, 5600); make("x" * SIZE, sys.getsizeof("") + SIZE)  # noqa: E702: two on a line
    block = (
        bytes(SIZE + 7)
    )
    make(block, HEAD + SIZE + 7, 2)


class Maker:
    class Inner:
        def __init__(self):
            make(bytes(SIZE + 10), HEAD + SIZE + 10)

    def __call__(self):
        self.Inner()


def numbers():
    yield 1
    make(bytes(SIZE + 20), HEAD + SIZE + 20)
    yield from (make(bytes(SIZE + i), HEAD + SIZE + i) for i in range(5))


def generators():
    return list(numbers())


async def inner(n):
    await asyncio.sleep(0)
    make(bytes(SIZE + n), HEAD + SIZE + n)


async def outer():
    await asyncio.gather(*(inner(n) for n in range(5)))

    async def values():
        yield make(bytes(SIZE), HEAD + SIZE)
    return [value async for value in values()]


def tasks():
    asyncio.run(outer())


def from_c():
    """Functions of C that call back: each is a new evaluator on the native stack."""
    class Key:
        def __lt__(self, other):
            functools.reduce(lambda a, b: re.sub("x", lambda match: make(bytes(SIZE), HEAD + SIZE) or "", b), ["y", "x"])
            return False
    sorted([Key(), Key()])


def recursion(n=40):
    return make(bytes(SIZE), HEAD + SIZE) if n == 0 else recursion(n - 1)


def strange_names():
    space = {"make": make, "HEAD": HEAD, "SIZE": SIZE}
    exec(compile("\n\ndef größe():\n    make(bytes(SIZE), HEAD + SIZE)\n", "Maße.py", "exec"), space)
    exec(compile("def λόγος():\n    größe(); make(bytes(SIZE), HEAD + SIZE)\n", "/π/λ.py", "exec"), space)
    exec(compile("x = lambda: (λόγος(), make(bytes(SIZE), HEAD + SIZE))\n", "\U0001f40d.py", "exec"), space)
    exec(compile("\n" * 70000 + "def far():\n    x(); make(bytes(SIZE), HEAD + SIZE)\n", "a\x1b[31mred\n.py", "exec"), space)
    space["far"]()


class Deleted:
    def __del__(self):
        make(bytes(SIZE), HEAD + SIZE)


def finaliser():
    x = Deleted()
    x = None  # noqa: F841


def code_that_comes_and_goes():
    """Each code object is freed before the next is made, which then is often at the same address, with its strings and table."""
    for i in range(600):
        source = "def work_%d():\n%s    make(bytes(SIZE), HEAD + SIZE)\nwork_%d()\n" % (i % 7, "\n" * (i % 5), i % 7)
        exec(compile(source, "<cell %d>" % (i % 11), "exec"), {"make": make, "HEAD": HEAD, "SIZE": SIZE})


def in_threads():
    """Eight at a time, which hand the interpreter's lock to each other."""
    gate = threading.Barrier(8)

    def body(n):
        gate.wait()
        for _ in range(20):
            make(bytes(SIZE + n), HEAD + SIZE + n)
            plain()
    threads = [threading.Thread(target=body, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


KINDS = [plain, Maker(), generators, tasks, from_c, recursion, strange_names, finaliser, code_that_comes_and_goes, in_threads]


def main():
    thread = threading.Thread(target=id, args=(0,))  # the first one has the C library install a handler
    thread.start()
    thread.join()
    print("PID", os.getpid(), flush=True)
    print("READY", flush=True)
    sys.stdin.readline()
    sys.setswitchinterval(1e-4)
    for kind in KINDS:
        kind()
    print("MADE", json.dumps([[*key[:3], size, key[3]] for key, size in made.items()]), flush=True)
    sys.stdin.readline()
    right = sum(block is not None and set(block) <= {0, None, "x"} for block in kept)
    print("OK python_blocks rounds=1" if right == next(used) else "WRONG blocks", flush=True)


main()
