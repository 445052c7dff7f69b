# SPDX-License-Identifier: MIT
"""What include/ and memattach-dump(5) say, for programs in Python: no offset, number or name of theirs is written down twice.
The page is compared with the header by check_dump_page."""
import functools
import pathlib
import re
import struct

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = COLUMNS = 16  # of counters


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


@functools.cache
def hook_symbols():
    """The symbols of HOOK_LIST."""
    return re.findall(r'X\(\w+, "(\w+)"', read("include/hooks.h"))


@functools.cache
def dump_states():
    """Name -> number of enum dump_state."""
    return {name: int(value) for name, value in re.findall(r"^\tDUMP_STATE_(\w+) = (\d+),", read("include/dump_format.h"), re.M)}


@functools.cache
def counter_names():
    found = re.search(r"DUMP_COUNTER_LIST\(X\)(.*?)\n\n", read("include/dump_format.h"), re.S)
    return re.findall(r'^\tX\((\w+), "', found.group(1), re.M)


@functools.cache
def header_fields():
    """Name -> offset and type of the fields of struct dump_header."""
    table = re.search(r"^\.B struct dump_header, \d+ bytes[^\n]*\n\.TS\n(.*?)^\.TE", read("man/memattach-dump.5"), re.M | re.S)
    return {name: (int(offset), kind) for offset, kind, name in re.findall(r"^(\d+)\t([^\t]+)\t(\w+)\tT\{$", table.group(1), re.M)}


def header_field(header, name):
    """The number that a field holds in these first bytes of a dump."""
    offset, kind = header_fields()[name]
    return struct.unpack_from({"u32": "<I", "i32": "<i", "u64": "<Q"}[kind], header, offset)[0]


def counters(path):
    """Name -> value of the counters of a dump; of those that the dump has."""
    with open(path, "rb") as file:
        return counters_in(file.read(header_fields()["counters"][0] + 8 * ROWS * COLUMNS))


def counters_in(header):
    """The same of the first bytes of a dump."""
    offset, kind = header_fields()["counters"]
    assert kind == f"u64[{ROWS}][{COLUMNS}]", kind
    words = memoryview(header[offset:offset + 8 * ROWS * COLUMNS]).cast("Q")
    return {name: sum(words[row * COLUMNS + i] for row in range(ROWS)) for i, name in enumerate(counter_names())}
