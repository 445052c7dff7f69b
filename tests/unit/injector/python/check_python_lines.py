# SPDX-License-Identifier: MIT
"""Run by an interpreter: gives the tables of lines of its own library, and what it itself reads in them, to a program that
compares. Usage: python3 check_python_lines.py PROGRAM [MODULES]
"""
import dis
import os
import random
import struct
import subprocess
import sys
import types

FORMATS = {9: 1, 10: 2}  # enum dump_lines; 3 from 3.11 on


def lines_of(code):
    """One line for each code unit, -1 none, as the interpreter says."""
    lines = [-1] * (len(code.co_code) // 2)
    if hasattr(code, "co_lines"):
        for start, end, line in code.co_lines():
            for at in range(start // 2, end // 2):
                lines[at] = -1 if line is None else line
        return lines
    starts = list(dis.findlinestarts(code))
    for (start, line), (end, _) in zip(starts, starts[1:] + [(len(code.co_code), 0)]):
        for at in range(start // 2, end // 2):
            lines[at] = line
    return lines


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def record(code):
    minor = sys.version_info.minor
    table = code.co_linetable if minor >= 10 else code.co_lnotab
    lines = lines_of(code)
    return (struct.pack("<IiII", FORMATS.get(minor, 3), code.co_firstlineno, len(code.co_code), len(table)) + table
            + struct.pack(f"<{len(lines)}i", *lines))


def sources(count):
    """Files of the library, always the same."""
    folder, found = os.path.dirname(os.__file__), []
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in ("site-packages", "dist-packages", "__pycache__"))
        found += [os.path.join(path, name) for name in sorted(names) if name.endswith(".py")]
    random.Random(1).shuffle(found)
    return found[:count]


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    data = []
    # Gaps between lines that take more than one byte, and lines that go back.
    texts = ["x = 1\n" + "\n" * 70000 + "y = (\n" + "\n" * 400 + "x)\nfor i in range(3):\n    print(\n    i)\n"]
    for path in sources(count):
        with open(path, "rb") as file:
            texts.append(file.read())
    for text in texts:
        try:
            module = compile(text, "module", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):  # some tests of the compiler are meant to be wrong
            continue
        data += [record(code) for code in codes(module)]
    result = subprocess.run([sys.argv[1]], input=b"".join(data), stdout=subprocess.PIPE, check=False)
    print(sys.version.split()[0], result.stdout.decode().strip())
    sys.exit(result.returncode)


main()
