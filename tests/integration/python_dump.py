# SPDX-License-Identifier: MIT
"""Reads the Python stacks of a dump by memattach-dump(5) alone: a second reader beside memanalyze."""
import collections
import struct

from contracts import header_field, header_fields

STACK, CODE = "<QIIQQ", "<QIIQIiIHHBBB"
STACK_BYTES = 72
TRUNCATED, DEEP, IS_CODE, CUT = 4, 8, 16, 32 | 64 | 128
LIVE, STACKS = 1, 3
ENCODINGS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}

Code = collections.namedtuple("Code", "address function file first_line lines table flags")
Frame = collections.namedtuple("Frame", "function file line entry")
Stack = collections.namedtuple("Stack", "native python flags taken")


def signed_byte(byte):
    return byte - 256 if byte > 127 else byte


def number(table, at):
    """Six bits a byte, the lowest first; bit 6: more follow."""
    value = shift = 0
    while True:
        byte = table[at]
        at += 1
        value |= (byte & 63) << shift
        shift += 6
        if not byte & 64:
            return (-(value >> 1) if value & 1 else value >> 1), at


def ranges(code):
    """(start, end, line) of a table, in bytes of code."""
    at, address, line, table = 0, 0, code.first_line, code.table
    if code.lines == 1:
        for i in range(0, len(table), 2):
            yield address, address + table[i], line
            address += table[i]
            line += signed_byte(table[i + 1])
        yield address, 1 << 40, line
    elif code.lines == 2:
        for i in range(0, len(table), 2):
            delta = signed_byte(table[i + 1])
            line += 0 if delta == -128 else delta
            yield address, address + table[i], None if delta == -128 else line
            address += table[i]
    while code.lines == 3 and at < len(table):
        kind, units, delta = table[at] >> 3 & 15, (table[at] & 7) + 1, 0
        at += 1
        if kind in (13, 14):
            delta, at = number(table, at)
        elif kind in (10, 11, 12):
            delta = kind - 10
        while at < len(table) and not table[at] & 128:
            at += 1
        line += delta
        yield address, address + 2 * units, None if kind == 15 else line
        address += 2 * units


def line_of(code, offset):
    if offset < 0:
        return code.first_line
    found = [line for start, end, line in ranges(code) if start <= offset < end]
    return found[-1] if found else None


class PythonDump:
    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.data = file.read()
        self.version = header_field(self.data, "python_version")
        self.evaluators = list(struct.iter_unpack("<QQ", self.data[header_fields()["evaluators"][0]:][:64]))
        self.records, self.codes, self.stacks = {}, {}, {}
        for offset, size, _ in self.regions(STACKS):
            self.read_arena(offset, size)
        for reference, (offset, flags) in self.records.items():
            if flags & IS_CODE:
                self.codes[reference] = self.code_at(offset)
        for reference, (offset, flags) in self.records.items():
            if not flags & IS_CODE:
                self.stacks[reference] = self.stack_at(offset)

    def regions(self, wanted):
        at = header_fields()["regions"][0]
        for i in range(header_field(self.data, "region_count")):
            kind, _, offset, size, entries = struct.unpack_from("<IIQQQ", self.data, at + 32 * i)
            if kind == wanted:
                yield offset, size, entries

    def read_arena(self, offset, size):
        end = offset + min(64 + struct.unpack_from("<Q", self.data, offset)[0], size)
        at = offset + 64
        while at + STACK_BYTES <= end:
            found_hash, count, flags = struct.unpack_from("<QII", self.data, at)
            if found_hash == 0:
                break
            self.records[at // 16] = (at, flags)
            more = count if flags & IS_CODE else 8 * (count + (flags >> 16))
            at += (STACK_BYTES + more + 63) & ~63

    def code_at(self, at):
        _, size, flags, address, _, first, table, name, file, name_width, file_width, lines = struct.unpack_from(CODE, self.data, at)
        data = self.data[at + STACK_BYTES:at + STACK_BYTES + size]
        assert len(data) == name + file + table, (len(data), name, file, table)
        return Code(address, data[:name].decode(ENCODINGS[name_width], "surrogatepass"),
                    data[name:name + file].decode(ENCODINGS[file_width], "surrogatepass"), first, lines, data[name + file:], flags & CUT)

    def stack_at(self, at):
        _, count, flags, taken, _ = struct.unpack_from(STACK, self.data, at)
        words = struct.unpack_from(f"<{count + (flags >> 16)}Q", self.data, at + STACK_BYTES)
        python = []
        for word in words[count:]:
            code = self.codes[word >> 32]
            python.append(Frame(code.function, code.file, line_of(code, (word & 0x7fffffff) - 2), word >> 31 & 1))
        return Stack([word & 0xffffffffffff for word in words[:count]], python, flags & 0xffff, taken)

    def live(self):
        """(size, reference of the stack) of each live block."""
        return ((size, stack) for _, size, stack in self.blocks())

    def blocks(self):
        """The same, with its address before."""
        for offset, _, entries in self.regions(LIVE):
            at = offset + ((entries + 63) & ~63)
            for record in range(at, at + 48 * entries, 48):
                address, size, _, _, stack = struct.unpack_from("<QQQQI", self.data, record)
                if address > 1 and not address >> 63:
                    yield address, size, stack

    def in_evaluator(self, address):
        return any(start <= address - 1 < start + size for start, size in self.evaluators if size)
