# SPDX-License-Identifier: MIT
"""Makes small objects of known sizes on known lines, and shows the words of the interpreter's table of allocators.

    PID n
    READY
then answers lines on stdin:

    table   TABLE [[context, malloc, calloc, realloc, free], …]   of the domains raw, mem, object
    make    MADE [[function, line, size, blocks], …]              blocks of that size that each line holds
    drop    DROPPED [[function, line, size, blocks], …]           the same when it has freed some of them
    many    MANY [[file, line, size, blocks, left], …]            lines of 32 MiB each, and how many blocks they have when half were freed
    trace   TRACED           starts tracemalloc
    untrace UNTRACED         and ends it
    reset   RESET            sets the rows mem and object to what they were at the start, as Py_Initialize does that comes again
    forge   FORGED           has calloc for objects and buffers lead nowhere; the next line must be "mend"
    mend    MENDED           and back
    end     OK or WRONG

Only what has no list of free objects is counted: what has one may take a block that was freed before.
"""
import ctypes
import gc
import json
import os
import sys
import tracemalloc

N = 400
MANY = 32 << 20
kept = [[None] * N for _ in range(40)]
raw = ctypes.pythonapi
for name in ("PyMem_Malloc", "PyMem_Calloc", "PyMem_Realloc", "PyObject_Malloc", "PyObject_Calloc", "PyObject_Realloc"):
    getattr(raw, name).restype = ctypes.c_void_p
OBJECT_COLUMNS = (12, 13, 14, 16, 17, 18)
ADDRESS, SIZE = ctypes.c_void_p, ctypes.c_size_t


class Row(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


class Slots:
    __slots__ = ("a", "b", "c")


def rows_now():
    rows = [Row(), Row(), Row()]
    for domain, row in enumerate(rows):
        raw.PyMem_GetAllocator(domain, ctypes.byref(row))
    return rows


def table():
    rows = rows_now()
    words = [[getattr(row, name) for name, _ in Row._fields_] for row in rows]
    for row in rows:  # a copy of a trampoline's address in freed memory would have it stay
        ctypes.memset(ctypes.byref(row), 0, ctypes.sizeof(row))
    return words


def text_of(number):
    """A generator's own objects: its line, below the one that asks."""
    return next("x" * 259 + text for text in "y" if number >= 0)


def set_calloc(function):
    """Of the domains mem and object, which are CPython's own; the function that was there."""
    for domain in (1, 2):
        row = Row()
        raw.PyMem_GetAllocator(domain, ctypes.byref(row))
        was, row.calloc = row.calloc, function
        raw.PyMem_SetAllocator(domain, ctypes.byref(row))
    return was


def numbers(count):
    """(where, size, blocks), each line of it with objects of a size that no other has."""
    made = []

    def said(size, blocks=count):
        """Of the line above."""
        made.append(["numbers", sys._getframe(1).f_lineno - 1, size, blocks])

    for i in range(count):
        kept[0][i] = bytes(100)
    said(sys.getsizeof(bytes(100)))
    for i in range(count):
        kept[1][i] = "%0150d" % i
    said(sys.getsizeof("0" * 150))
    for i in range(count):
        kept[2][i] = (i,) * 30
    said(sys.getsizeof((0,) * 30))
    for i in range(count):
        kept[3][i] = Slots()
    said(sys.getsizeof(kept[3][0]))
    for i in range(count):
        kept[4][i] = set()
    said(sys.getsizeof(set()))
    for i in range(count):
        kept[5][i] = {"key": bytes(170), "other": 3.5}
    said(sys.getsizeof(bytes(170)))
    for i in range(count):
        kept[6][i] = text_of(i)
    name = "text_of" if hasattr(text_of.__code__, "co_qualname") else "<genexpr>"
    made.append([name, text_of.__code__.co_firstlineno + 2, sys.getsizeof("x" * 260), count])
    return made


def blocks(count):
    """The functions of the interface for C, by their names."""
    made = []

    def said(size, blocks=count):
        """Of the line above."""
        made.append(["blocks", sys._getframe(1).f_lineno - 1, size, blocks])

    for i in range(count):
        kept[10][i] = raw.PyMem_Malloc(SIZE(431))
    said(431)
    for i in range(count):
        kept[11][i] = raw.PyMem_Calloc(SIZE(19), SIZE(23))
    said(19 * 23)
    for i in range(count):
        kept[12][i] = raw.PyObject_Malloc(SIZE(512))
    said(512)
    for i in range(count):
        kept[13][i] = raw.PyObject_Malloc(SIZE(513))
    said(513)
    for i in range(count):
        kept[14][i] = raw.PyObject_Calloc(SIZE(3), SIZE(1009))
    said(3 * 1009)
    for i in range(count):
        kept[15][i] = raw.PyMem_Realloc(None, SIZE(203))
    said(203)
    for i in range(count):
        kept[19][i] = raw.PyMem_Realloc(ADDRESS(raw.PyMem_Malloc(SIZE(205))), SIZE(3001))
    said(3001)
    for i in range(count):
        kept[16][i] = raw.PyObject_Realloc(ADDRESS(raw.PyObject_Malloc(SIZE(2003))), SIZE(211))
    said(211)
    for i in range(count):
        kept[17][i] = raw.PyObject_Realloc(ADDRESS(raw.PyObject_Malloc(SIZE(307))), SIZE(306))
    said(306)
    for i in range(count):
        raw.PyMem_Free(ADDRESS(raw.PyMem_Malloc(SIZE(499))))
    said(499, 0)
    for i in range(count):
        kept[18][i] = raw.PyObject_Malloc(SIZE(0))
    said(1)  # what malloc is asked for
    return made


def drop(made):
    for i in range(0, N, 2):
        for column in range(10):
            kept[column][i] = None
        for column in range(10, 20):
            (raw.PyObject_Free if column in OBJECT_COLUMNS else raw.PyMem_Free)(ADDRESS(kept[column][i]))
            kept[column][i] = None
    return [[*row[:3], row[3] // 2] for row in made]


def many():
    """A line for each kind; the second half of its blocks stays."""
    made, mark, file = [], "x", sys._getframe().f_code.co_filename

    def said(size, blocks):
        """Of the line above."""
        made.append([file, sys._getframe(1).f_lineno - 1, size, len(blocks), len(blocks) - len(blocks) // 2])
        blocks[:len(blocks) // 2] = [None] * (len(blocks) // 2)
        kept.append(blocks)

    def room(size):
        return [None] * (MANY // size)

    for i in range(len(blocks := room(size := sys.getsizeof(bytes(67))))):
        blocks[i] = bytes(67)
    said(size, blocks)
    for i in range(len(blocks := room(size := sys.getsizeof((0,) * 30)))):
        blocks[i] = (i,) * 30
    said(size, blocks)
    for i in range(len(blocks := room(size := sys.getsizeof(set())))):
        blocks[i] = set()
    said(size, blocks)
    for i in range(len(blocks := room(size := sys.getsizeof("0" * 400)))):
        blocks[i] = mark * 400
    said(size, blocks)
    return made


def check():
    for i in range(1, N, 2):
        if kept[0][i] != bytes(100) or int(kept[1][i]) != i or kept[2][i] != (i,) * 30 or kept[5][i]["key"] != bytes(170):
            return False
        if ctypes.string_at(kept[11][i], 19 * 23) != bytes(19 * 23):
            return False
    return True


def main():
    made, calloc = [], 0
    early = [bytes(90 + i % 300) for i in range(5000)]
    first = rows_now()
    table()
    print("PID", os.getpid(), flush=True)
    print("READY", flush=True)
    for command in map(str.strip, sys.stdin):
        if command == "table":
            print("TABLE", json.dumps(table()), flush=True)
        elif command == "make":
            made = numbers(N) + blocks(N)
            print("MADE", json.dumps(made), flush=True)
        elif command == "drop":
            made, early = drop(made), None
            gc.collect()
            print("DROPPED", json.dumps(made), flush=True)
        elif command == "many":
            print("MANY", json.dumps(many()), flush=True)
        elif command == "trace":
            tracemalloc.start(3)
            early = [bytes(90 + i % 300) for i in range(500)]
            print("TRACED", flush=True)
        elif command == "untrace":
            early = None
            tracemalloc.stop()
            print("UNTRACED", flush=True)
        elif command == "reset":
            for domain in (1, 2):
                raw.PyMem_SetAllocator(domain, ctypes.byref(first[domain]))
            print("RESET", flush=True)
        elif command == "forge":
            calloc = set_calloc(0x7ffffffff000)
            os.write(1, b"FORGED\n")  # print() has a list of two texts, which comes from calloc
        elif command == "mend":
            set_calloc(calloc)
            print("MENDED", flush=True)
        elif command == "end":
            break
    print("OK python_objects rounds=1" if check() else "WRONG objects", flush=True)


main()
