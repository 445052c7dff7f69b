# SPDX-License-Identifier: MIT
"""Dumps that no memattach writes, byte by byte as include/dump_format.h has them: they ask a reader for more than they hold."""
import struct

HEADER_BYTES = 16384
PAGE = 4096
LIVE, STACK_INDEX, STACKS, HISTORY, MODULES, THREADS, NOTES, RATES, SYMBOLS = range(1, 10)
SECOND = 10**9
REALTIME = 1_700_000_000 * SECOND
RATE = 65536
NO_STRING = 0xffffffff
MODULE_START = 0x10000000
FIRST_STACK = (HEADER_BYTES + 64) // 16  # reference of the first record where the stacks are the first region


def up(n, align):
    return -(-n // align) * align


def arena(records):
    body = b"".join(records)
    return struct.pack("<Q56x", len(body)) + body


def note(text):
    size = up(8 + len(text) + 1, 16)
    return struct.pack("<II", size, 5) + text.ljust(size - 8, b"\0")


def module(number, path, build_id=b"", start=MODULE_START):
    size = up(96 + len(path) + 1, 16)
    return struct.pack("<IIQQQQQIIII32s", size, number, start, start + (1 << 30), start, 1, 0, 1, 1, 0, len(build_id), build_id) \
        + path.ljust(size - 96, b"\0")


def stack(frames, python=()):
    return struct.pack("<QIIQQddddQ", 1, len(frames), len(python) << 16, 1, 100, 10.0, 1000.0, 1.0, 1000.0, 0) \
        + b"".join(struct.pack("<Q", frame) for frame in (*frames, *python))


def code_units(count):
    """At each of them a code object begins, with the longest name and file, and a table of lines of 60 KB (co_lnotab)."""
    size = 1 << 16 | 0x0101  # the size of the data, and format and widths, which are at the same place 32 bytes later
    name, file = 960, 4000
    return struct.pack("<QII", size - name - file | name << 32 | file << 48, size, 16) * count


def python_frame(reference, offset):
    return reference << 32 | 1 << 31 | (offset + 2)


def frame(number, address):
    return number << 48 | address


def live(records, entries=None):
    """records: (stamp, stack reference)"""
    entries = entries or max(8, 1 << (len(records) - 1).bit_length())
    at = up(entries, 64)
    table = bytearray(at + 48 * entries)
    for i, (stamp, reference) in enumerate(records):
        struct.pack_into("<QQQQIIIHH", table, at + 48 * i, 0x1000 + 16 * i, 100, 120, stamp, reference, RATE, 1, 0, 0)
    return bytes(table), entries


def thinning(stamp):
    return struct.pack("<IIQQQIIQ", 48, 3, stamp, RATE, RATE, 0, 0, 4096)


def header(regions, state=2, start=(SECOND, SECOND), latest=(31 * SECOND, 11 * SECOND), lease=1, lease_stamp=0, clock=REALTIME, pid=1,
           command=b"x", program=b"/x", cgroup=b"", image=b"", private=(0, 0)):
    b = bytearray(HEADER_BYTES)
    struct.pack_into("<8sIIQIi", b, 0, b"MEMATTCH", 5, HEADER_BYTES, 0, state, 0)
    struct.pack_into("<QQQii", b, 32, 1 << 30, RATE, RATE, pid, 1)
    struct.pack_into("<64s256s64s", b, 80, command, program, b"h")
    struct.pack_into("<QQQ", b, 464, *start, clock)
    struct.pack_into("<QQQ", b, 488, *latest, clock + 10 * SECOND)
    struct.pack_into("<IIQQ", b, 512, 2, len(regions), lease_stamp, lease)
    struct.pack_into("<QQ", b, 552, *private)
    struct.pack_into("<QQ", b, 768, 1000, 0)
    struct.pack_into("<512s256s", b, 15616, cgroup, image)
    for i, (kind, offset, size, entries) in enumerate(regions):
        struct.pack_into("<IIQQQ", b, 2816 + 32 * i, kind, 0, offset, size, entries)
    return bytes(b)


def write(path, parts, **fields):
    """parts: (kind, bytes, entries), one region after the other"""
    regions, at = [], HEADER_BYTES
    for kind, data, entries in parts:
        regions.append((kind, at, up(len(data), PAGE), entries))
        at += up(len(data), PAGE)
    with open(path, "wb") as f:
        f.write(header(regions, **fields))
        for _, data, _ in parts:
            f.write(data.ljust(up(len(data), PAGE), b"\0"))
    return path


def write_hole(path, kind, size, entries):
    """One region that is a hole of so many bytes."""
    with open(path, "wb") as f:
        f.write(header([(kind, HEADER_BYTES, size, entries)]))
        f.truncate(HEADER_BYTES + size)
    return path


def write_frames(path, modules, offsets, **fields):
    """One live sample whose stack has each of the offsets in each of the modules: (path, build-id)."""
    records = [module(i + 1, name, build_id, MODULE_START) for i, (name, build_id) in enumerate(modules)]
    frames = [frame(i + 1, MODULE_START + offset) for i in range(len(modules)) for offset in offsets]
    stacks = [stack(frames[i:i + 128]) for i in range(0, len(frames), 128)]
    references, at = [], FIRST_STACK
    for s in stacks:
        references.append(at)
        at += len(s) // 16 + (len(s) % 16 > 0)
    table, entries = live([(2 * SECOND, reference) for reference in references])
    return write(path, [(STACKS, arena([s.ljust(up(len(s), 16), b"\0") for s in stacks]), 0), (LIVE, table, entries),
                        (MODULES, arena(records), 0)], **fields)


def write_many(path, count, **fields):
    """So many stacks of six functions each, of a hundred at each depth, with one live sample each."""
    records, references, at = [], [], FIRST_STACK
    for i in range(count):
        numbers = [i % 100, i * 7 % 100, i // 100 % 100, i * 13 % 100, i // 1000 % 100, i % 10]
        record = stack([frame(1 + depth % 3, MODULE_START + 0x1000 * depth + 16 * number) for depth, number in enumerate(numbers)])
        records.append(record.ljust(up(len(record), 16), b"\0"))
        references.append(at)
        at += len(records[-1]) // 16
    table, entries = live([(2 * SECOND, reference) for reference in references])
    modules = [module(i + 1, b"/lib%d.so" % i, b"") for i in range(3)]
    return write(path, [(STACKS, arena(records), 0), (LIVE, table, entries), (MODULES, arena(modules), 0)], **fields)


def write_deep(path, depth):
    """One live sample of so many functions of one file, 128 places that have inlined ones; the dump has their names."""
    frames = [frame(1, MODULE_START + 16 * (i + 1)) for i in range(128)]
    counts = [depth * (i + 1) // 128 - depth * i // 128 for i in range(128)]
    names = b"".join(b"f%d\0" % i for i in range(depth)) + b"/source/deep.c\0"
    at = [0, *(i + 1 for i, byte in enumerate(names) if not byte)]
    places = b"".join(struct.pack("<QIHH", place, sum(counts[:i]), counts[i], 0) for i, place in enumerate(frames))
    modules = struct.pack("<IIHH", 1, NO_STRING, 1, 0)
    locations = b"".join(struct.pack("<IIi", at[i], at[depth], 0) for i in range(depth))
    body = places + modules + locations + names
    symbols = struct.pack("<QIIIIII", 32 + len(body), 0, len(frames), 1, depth, len(names), 0) + body
    table, entries = live([(2 * SECOND, FIRST_STACK)])
    return write(path, [(STACKS, arena([stack(frames)]), 0), (LIVE, table, entries), (MODULES, arena([module(1, b"/deep")]), 0), (SYMBOLS, symbols, 0)])
