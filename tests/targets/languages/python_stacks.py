# SPDX-License-Identifier: MIT
"""Threads that rest in known places, one kind of Python code each; says what their stacks are, for CPython 3.9 to 3.14.

    PID n
    STACKS {"TID": [[function, file, line], …], …}     innermost first, as sys._current_frames() has them
    INNER [[function, file, line], …]                  of the subinterpreter, which the first one cannot see
    READY
then waits for a line on stdin, checks that all threads come back right, and prints OK or WRONG.
"""
import asyncio
import ctypes
import functools
import json
import os
import re
import signal
import sys
import threading

resting = threading.Semaphore(0)
results, frames_of_threads = {}, {}
pipes = []
DEEP = 3000


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)


def stack_of(frame):
    found = []
    while frame:
        found.append([name_of(frame.f_code), frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return found


def rest():
    end, start = os.pipe()
    pipes.append(start)
    frames_of_threads[threading.get_native_id()] = threading.get_ident()
    resting.release(); return os.read(end, 100).decode()  # noqa: E702: on one line, wherever the thread is


def plain():
    return (
        rest()
    )


class Maker:
    """Calls of classes have a frame of their own in 3.12 and later, which Python does not show."""

    class Inner:
        def __init__(self):
            self.text = rest()

    def __call__(self):
        return self.Inner().text


def numbers():
    yield "a"
    yield rest()


def delegating():
    yield from numbers()


def generators():
    return "".join(text for text in delegating())[1:]


class Context:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.text = rest()


def with_statement():
    with Context() as c:
        pass
    return c.text


async def inner():
    return rest()


async def outer():
    async def values():
        yield await inner()
    return [value async for value in values()][0]


def coroutines():
    return asyncio.run(outer())


def from_c():
    """Functions of C that call back: each is a new evaluator on the native stack."""
    class Key:
        def __lt__(self, other):
            results["key"] = functools.reduce(lambda a, b: re.sub("x", lambda match: rest(), b), ["y", "x"])
            return False
    sorted([Key(), Key()])
    return results.pop("key")


def from_ctypes():
    """C that knows nothing of Python: it takes the lock again by PyGILState_Ensure."""
    kept = []

    def compare(a, b):
        if not kept:
            kept.append(rest())
        return 0
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    array = (ctypes.c_int * 2)(1, 2)
    ctypes.CDLL(None).qsort(array, 2, 4, kind(compare))
    return kept[0]


def recursion(n=DEEP):
    return rest() if n == 0 else recursion(n - 1)


def strange_names():
    """Strings of one, two and four bytes a character, and one that must not reach a terminal."""
    space = {"rest": rest}
    exec(compile("\n\ndef größe():\n    return rest()\n", "Maße.py", "exec"), space)
    exec(compile("def λόγος():\n    return größe()\n", "/π/λ.py", "exec"), space)
    exec(compile("x = lambda: λόγος()\n", "\U0001f40d.py", "exec"), space)
    exec(compile("\n" * 70000 + "def far():\n    return x()\n", "a\x1b[31mred\n.py", "exec"), space)
    return space["far"]()


def no_names():
    return (lambda: [[rest() for _ in "1"] for _ in "1"][0][0])()


def traced():
    """A function for traces, which is called at each line."""
    sys.settrace(lambda *_: None)
    try:
        return plain()
    finally:
        sys.settrace(None)


class Deleted:
    def __del__(self):
        results["deleted"] = rest()


def finaliser():
    x = Deleted()
    x = None  # noqa: F841
    return results.pop("deleted")


KINDS = [plain, Maker(), generators, with_statement, coroutines, from_c, from_ctypes, recursion, strange_names, no_names, traced, finaliser]

SUBINTERPRETER = """
import os, sys, json
def text(frame):
    return (json.dumps([[getattr(f.f_code, "co_qualname", f.f_code.co_name), f.f_code.co_filename, f.f_lineno]
                        for f in (frame, frame.f_back)]) + "\\n").encode()
def inside(file, end):
    os.write(file, text(sys._getframe())); os.read(end, 100)
inside(%d, %d)
"""


def subinterpreter():
    """Runs in another interpreter, and rests there. None: this Python has none."""
    try:
        import _interpreters as module
    except ImportError:
        try:
            import _xxsubinterpreters as module
        except ImportError:
            return None
    said, say = os.pipe()
    end, start = os.pipe()
    number = module.create()

    def run():
        frames_of_threads[threading.get_native_id()] = threading.get_ident()
        module.run_string(number, SUBINTERPRETER % (say, end))
        results["subinterpreter"] = "done"
    thread = threading.Thread(target=run)
    thread.start()
    pipes.append(start)
    # The text of one line is one statement more: both are on it, the write and the read.
    return thread, os.read(said, 10000).decode(), lambda: module.destroy(number)


def start_thread(number, kind):
    def body():
        results[number] = kind()
    thread = threading.Thread(target=body)
    thread.start()
    return thread


def end_others(threads, inner):
    for number, pipe in enumerate(pipes):
        os.write(pipe, b"answer %d" % number)
    for thread in threads:
        thread.join(60)
    if inner:
        inner[0].join(60)
        inner[2]()


def main():
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    sys.setrecursionlimit(DEEP + 1000)
    threading.stack_size(64 << 20)
    print("PID", os.getpid(), flush=True)
    threads = []
    for number, kind in enumerate(KINDS):
        threads.append(start_thread(number, kind))
        resting.acquire()
    inner = subinterpreter() if "nosub" not in sys.argv else None
    print("INNER", inner[1].strip() if inner else "null", flush=True)
    current = {tid: stack_of(sys._current_frames()[ident]) for tid, ident in frames_of_threads.items()}
    wait(current)
    end_others(threads, inner)
    wrong = [number for number in range(len(KINDS)) if results.get(number) != "answer %d" % number]
    if wrong or (inner and results.get("subinterpreter") != "done"):
        print("WRONG", wrong, results, flush=True)
        sys.exit(1)
    print("OK python_stacks rounds=1", flush=True)


def wait(current):
    # fmt: off
    current[threading.get_native_id()] = stack_of(sys._getframe()); print("STACKS", json.dumps(current) + "\nREADY", flush=True); sys.stdin.readline()  # noqa: E702


main()
