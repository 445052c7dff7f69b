# SPDX-License-Identifier: MIT
"""What each service counts, in a file that bench/python-services maps: how many requests or rounds it has done, and for each when that was,
the bytes that malloc has given until then to what is kept, and those of its objects, which come from CPython's arenas.

That is all that is allocated on the leaking line: what is kept hangs in a list that has its room from the start, because a list that grows
takes a new block, as large as all of it.
"""
import itertools
import mmap
import os
import struct
import threading
import time

ROOM = 1 << 21
KEPT = [None] * ROOM
NUMBERS = itertools.count()
LOCK = threading.Lock()
BYTES = 1200  # of each request: above what CPython takes from its arenas
COUNT, RECORD = struct.Struct("<Q"), struct.Struct("<QQQ")
with open(os.environ["COUNTED"], "r+b") as file:
    file.truncate(COUNT.size + ROOM * RECORD.size)
    COUNTED = mmap.mmap(file.fileno(), 0)
state = [0, 0, 0]


def keep(things, size):
    """What one request or round has made, all of one type, and what malloc was asked for each of them."""
    with LOCK:
        for thing in things:
            KEPT[next(NUMBERS)] = thing
        done, kept, objects = state
        state[:] = done + 1, kept + len(things) * size, objects + len(things) * type(things[0]).__basicsize__
        RECORD.pack_into(COUNTED, COUNT.size + done * RECORD.size, time.time_ns(), *state[1:])
        COUNT.pack_into(COUNTED, 0, done + 1)


def remember(request):
    kept = bytearray(BYTES)  # leaks
    keep([kept], kept.__alloc__())
    return request
