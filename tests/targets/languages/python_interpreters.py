# SPDX-License-Identifier: MIT
"""Makes blocks in the main interpreter and in subinterpreters, by the thread that made one and by others; says what is right.

    PID n
    READY
waits for a line on stdin, makes the blocks and keeps them,
    MADE {"SIZE": [interpreter, [function, …]], …}     innermost first; the functions of that interpreter alone
waits for a line, and prints OK.
"""
import json
import os
import sys
import threading

try:
    import _interpreters as module
except ImportError:
    import _xxsubinterpreters as module

INSIDE = """
def make(size):
    return bytes(size)
def twice(size):
    return sorted([size, size + 1], key=lambda n: kept.append(make(n)) or n)
def work(size):
    return twice(size), kept.append(make(size + 2))
kept = globals().get("kept", [])
work(%d)
"""
STACKS = [["make", "twice.<locals>.<lambda>", "twice", "work", "<module>"]] * 2 + [["make", "work", "<module>"]]
kept, made = [], {}
STEP = 10000


def of_main(size):
    kept.append(bytes(size))
    made[size] = [0, ["of_main", "calls", "<module>"]]


def run(number, size):
    module.run_string(number, INSIDE % size)
    for i, stack in enumerate(STACKS):
        made[size + i] = [int(number), stack]


def calls():
    """Around and between, so that states change hands."""
    numbers = [module.create(), module.create()]
    sizes = iter(range(STEP, 100 * STEP, STEP))
    first = threading.Thread(target=len, args=("",))  # with it the C library catches a signal
    first.start()
    first.join()
    print("PID %d\nREADY" % os.getpid(), flush=True)
    sys.stdin.readline()
    of_main(next(sizes))
    for number in numbers:
        run(number, next(sizes))
        of_main(next(sizes))
        thread = threading.Thread(target=run, args=(number, next(sizes)))
        thread.start()
        thread.join()
        of_main(next(sizes))
    print("MADE " + json.dumps(made), flush=True)
    sys.stdin.readline()
    for number in numbers:
        module.destroy(number)


if not hasattr(sys._getframe().f_code, "co_qualname"):
    STACKS[0][1] = "<lambda>"
calls()
print("OK interpreters rounds=1", flush=True)
