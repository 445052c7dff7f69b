# SPDX-License-Identifier: MIT
"""Shows whether code objects are read again, and the word that leads to their end, PyCode_Type.tp_dealloc.

    PID n
    READY
then answers lines on stdin:

    word    WORD n           what the word holds
    names   NAMES            makes BLOCKS blocks of 3000 bytes in the function before(), changes its name in place to behind, which no program does, and
                             makes as many of 4000 bytes; then has a code object freed, and makes as many of 5000
    cells   CELLS [[function, file, blocks], …]   runs code that comes and goes, whose functions make blocks of 6000 bytes
    drop    DROPPED          has 1000 code objects freed
    take    TAKEN            sets the word to a function of its own, that goes on to what was there
    return  RETURNED         and back
    end     OK
"""
import collections
import ctypes
import json
import mmap
import os
import struct
import sys
import types

BLOCKS = 50
HEAD = sys.getsizeof(b"")
kept = []
word = ctypes.c_uint64.from_address(id(types.CodeType) + 48)
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
stub = ctypes.addressof(ctypes.c_char.from_buffer(page))
keep = kept.append


def drop(count):
    for _ in range(count):
        exec("0")


def names():
    space = {"keep": keep, "HEAD": HEAD, "BLOCKS": BLOCKS}
    exec("def before(size):\n    for _ in range(BLOCKS):\n        keep(bytes(size - HEAD))", space)
    function = next(value for value in space.values() if isinstance(value, types.FunctionType))
    code = function.__code__
    for size in (3000, 4000, 5000):
        function(size)
        if size == 4000:
            drop(1)
        for name in {id(code.co_name), id(getattr(code, "co_qualname", code.co_name))}:
            ctypes.memmove(name + sys.getsizeof("") - 1, b"behind", 6)


def cells():
    made = collections.Counter()
    for i in range(300):
        name, file = "cell_%d" % (i % 7), "<cell %d>" % (i % 11)
        exec(compile("def %s():\n    for _ in range(12):\n        keep(bytes(6000 - HEAD))\n%s()" % (name, name), file, "exec"), {"keep": keep, "HEAD": HEAD})
        made[name, file] += 12
    return [[*key, blocks] for key, blocks in made.items()]


def take():
    page[:12] = b"\x48\xb8" + struct.pack("<Q", word.value) + b"\xff\xe0"  # movabs rax, jmp rax
    word.value = stub


def give_back():
    word.value = struct.unpack("<Q", page[2:10])[0]
    page[:12] = bytes(12)


ANSWERS = {"word": lambda: print("WORD", word.value, flush=True),
           "names": lambda: (names(), print("NAMES", flush=True)),
           "cells": lambda: print("CELLS", json.dumps(cells()), flush=True),
           "drop": lambda: (drop(1000), print("DROPPED", flush=True)),
           "take": lambda: (take(), print("TAKEN", flush=True)),
           "return": lambda: (give_back(), print("RETURNED", flush=True))}

print("PID", os.getpid(), flush=True)
print("READY", flush=True)
for line in sys.stdin:
    if line.strip() == "end":
        break
    ANSWERS[line.strip()]()
print("OK python_code rounds=1", flush=True)
