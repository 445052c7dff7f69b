# SPDX-License-Identifier: MIT
"""A CPython that makes and ends frames in all ways at once, and checks what it computes; for 3.9 to 3.14.

    python_busy.py [KIND]...        PID n, READY; WRONG … for what came out wrong; at SIGUSR1 it ends with OK
    python_busy.py --for SECONDS    ends by itself after that time, while daemon threads still run

Each kind is a thread of its own. "forks" makes children that work like it, and end by themselves or with all their threads.
Without kinds all but two are there: "forks", and "short_threads": what an ended thread has left on its stack, which the C library
keeps, may look like a copy of a pointer, for which memattach leaves trampolines behind.
"""
import asyncio
import functools
import gc
import os
import re
import signal
import sys
import threading
import time
import weakref

ended = []  # a list, since a signal handler may not wait for the lock of an Event that it has interrupted
loop = asyncio.new_event_loop()  # one for all: each has descriptors of its own
rounds = 0


def wrong(*words):
    print("WRONG", *words, flush=True)


def expect(what, value, wanted):
    if value != wanted:
        wrong(what, value, wanted)


def numbers(n):
    for i in range(n):
        block = bytes(600 + i)
        yield len(block)


def delegating(n):
    yield from numbers(n)
    yield from (len(bytearray(700)) for _ in range(n))


def generators():
    expect("generators", sum(delegating(20)), sum(range(600, 620)) + 20 * 700)
    left = numbers(5)  # suspended, and closed from a destructor
    next(left)
    try:
        next(numbers(5)), [][1]
    except IndexError as error:
        expect("traceback", error.__traceback__.tb_frame.f_code.co_name, "generators")


async def one(n):
    await asyncio.sleep(0)
    return [value async for value in several(n)]


async def several(n):
    for i in range(n):
        yield len([None] * (100 + i))
        await asyncio.sleep(0)


async def all_of_them():
    return await asyncio.gather(*(one(n) for n in range(1, 8)))


def tasks():
    expect("tasks", [sum(found) for found in loop.run_until_complete(all_of_them())], [sum(range(100, 100 + n)) for n in range(1, 8)])


class Node:
    """A cycle, which the collector finds, with a destructor that makes more."""
    count = 0

    def __init__(self, depth=0):
        self.me = self
        self.block = bytearray(900)
        self.depth = depth

    def __del__(self):
        Node.count += 1
        if self.depth == 0:
            Node(1)
        sum(numbers(3))


def finalisers():
    for _ in range(10):
        Node()
    gc.collect()
    seen = []
    thing = Node(1)
    kept = weakref.ref(thing, lambda _: seen.append(bytes(600)))
    del thing
    for _ in range(1000):  # gc.collect() returns at once while another thread collects, as any that allocates may
        gc.collect()
        if not kept():
            break
        time.sleep(0.001)
    expect("weak references", (kept(), len(seen)), (None, 1))


def made_code():
    """Code that is made, run and thrown away: the next one has its address."""
    for i in range(20):
        space = {}
        exec(compile("def f(x):\n%s    return bytes(600 + x)\nr = len(f(%d))\n" % ("\n" * (i % 3), i), "<made %d>" % (i % 4), "exec"), space)
        expect("made code", space["r"], 600 + i)


class Key:
    def __init__(self, value):
        self.value, self.block = value, bytes(600)

    def __lt__(self, other):
        return functools.reduce(lambda a, b: a or b, [self.value < other.value])


def from_c():
    expect("sorted", [key.value for key in sorted(Key(i * 7 % 11) for i in range(11))], list(range(11)))
    expect("re", re.sub("[a-z]", lambda match: match[0] * 600, "a1b"), "a" * 600 + "1" + "b" * 600)


def recursion(n=150):
    return len(bytes(600)) + recursion(n - 1) if n else 0


def deep():
    expect("recursion", recursion(), 150 * 600)


def traced():
    calls = []
    sys.settrace(lambda frame, event, argument: calls.append(frame.f_code.co_name))
    try:
        deep()
    finally:
        sys.settrace(None)
    expect("traced", calls.count("recursion"), 151)


def short_threads():
    found = []
    threads = [threading.Thread(target=lambda: found.append(sum(numbers(10)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect("threads", found, [sum(range(600, 610))] * 4)


def forks():
    for status in range(3):
        child = os.fork()
        if child == 0:
            threading.Thread(target=generators).start()
            generators(), made_code()
            if status == 2:
                sys.exit(2)  # the whole interpreter ends, with its threads
            os._exit(status)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        expect("child", code, status)
    time.sleep(0.01)


KINDS = {kind.__name__: kind for kind in (generators, tasks, finalisers, made_code, from_c, deep, traced, short_threads, forks)}


def work(kind):
    global rounds
    while not ended:
        try:
            kind()
        except SystemExit:
            raise
        except RuntimeError as error:
            if "at interpreter shutdown" in str(error):  # 3.12 and later make no more threads then
                return
            wrong(kind.__name__, repr(error))
        except BaseException as error:  # whatever it is, it should not be
            wrong(kind.__name__, repr(error))
        rounds += 1
        time.sleep(0)


def main():
    arguments = sys.argv[1:]
    seconds = float(arguments[1]) if arguments[:1] == ["--for"] else 0
    kinds = [KINDS[name] for name in arguments if name in KINDS]
    if not kinds:
        kinds = [kind for kind in KINDS.values() if kind is not forks and (seconds or kind is not short_threads)]
    signal.signal(signal.SIGUSR1, lambda *_: ended.append(1))
    sys.setswitchinterval(5e-4)
    threads = [threading.Thread(target=work, args=(kind,), daemon=bool(seconds)) for kind in kinds if kind is not forks]
    print("PID", os.getpid(), flush=True)
    for thread in threads:
        thread.start()
    print("READY", flush=True)
    if forks in kinds:
        work(forks)
    elif seconds:
        time.sleep(seconds)
    else:
        while not ended:
            time.sleep(0.02)
    if not seconds:
        for thread in threads:
            thread.join()
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # it may come again
    print("OK python_busy rounds=%d" % rounds, flush=True)


main()
