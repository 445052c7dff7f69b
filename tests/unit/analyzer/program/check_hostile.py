#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_hostile.py MEMANALYZE CC [--sanitized]: dumps that ask for more than they hold, and name files that do.

Each is read within time and memory that go with its size. The limits are wide: what they are to find takes a hundred times as long, or all the
memory of the machine. Under a sanitizer, which has memory of its own, only the time is looked at.
"""
import json
import lzma
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import zlib

import hostile_dump as dump

SANITIZER = re.compile("Sanitizer|runtime error")  # the process that reads symbols may say so, and memanalyze goes on without names
CPU_SECONDS = 60
HANG_SECONDS = 240
MEMORY_BYTES = 256 << 20
MEMORY_FACTOR = 4
FILE_FACTOR = 32  # of the files that a dump names


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    signal.alarm(HANG_SECONDS)


class Run:
    def __init__(self, program, arguments, memory, files):
        """Limits for the whole of it, and what it had at most. The last of the arguments is a dump,
        which names files of so many bytes."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=limit)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            for stream in (out, err):
                stream.seek(0)
            self.status, self.out, self.err = process.returncode, out.read().decode("utf-8"), err.read().decode("utf-8")
        allowed = MEMORY_BYTES + MEMORY_FACTOR * os.stat(arguments[-1]).st_blocks * 512 + FILE_FACTOR * files
        assert self.status in (0, 1) and not SANITIZER.search(self.err), (arguments, self.status, self.err)
        assert not memory or usage.ru_maxrss * 1024 <= allowed, (arguments, usage.ru_maxrss)


# Subprograms that share one list of ranges: MANY times MANY of them in a file of some 100 KB.
RANGES = """.text
.globl f
.type f,@function
f: ret
.fill 65536,1,0x90
.size f, . - f
.section .debug_abbrev,"",@progbits
.uleb128 1, 0x11
.byte 1
.uleb128 0x11, 0x1, 0x12, 0x7, 0, 0
.uleb128 2, 0x2e
.byte 0
.uleb128 0x55, 0x17, 0, 0
.byte 0
.section .debug_info,"",@progbits
.long 2f-1f
1: .value 4
.long .debug_abbrev
.byte 8
.uleb128 1
.quad f
.quad 65537
.rept 20000
.uleb128 2
.long .debug_ranges
.endr
.byte 0
2:
.section .debug_ranges,"",@progbits
.set i,0
.rept 20000
.quad 1+i
.quad 2+i
.set i,(i+2)&0x7fff
.endr
.quad 0,0
"""
PLAIN = "int __attribute__((noinline)) plain_function(int x) { return x * 3; }\n"


# Sections that libdw inflates as soon as it is asked for anything of a file.
INFLATED = ("abbrev", "addr", "aranges", "info", "line", "line_str", "loclists", "ranges", "rnglists", "str", "str_offsets", "types")
INFLATED_BYTES = 48 << 20
SHF_COMPRESSED = 0x800
ELFCOMPRESS_ZLIB = 1


def mark_compressed(path, names):
    """Sets the flag of these sections in the table of a 64-bit ELF file."""
    file = bytearray(path.read_bytes())
    table, = struct.unpack_from("<Q", file, 40)
    size, count, names_at = struct.unpack_from("<HHH", file, 58)
    strings, = struct.unpack_from("<Q", file, table + size * names_at + 24)
    marked = 0
    for header in range(table, table + size * count, size):
        name, _, flags = struct.unpack_from("<IIQ", file, header)
        name = bytes(file[strings + name:file.index(b"\0", strings + name)]).decode()
        if name in names:
            struct.pack_into("<Q", file, header + 8, flags | SHF_COMPRESSED)
            marked += 1
    assert marked == len(names), (path, marked)
    path.write_bytes(file)


def doubling_name(levels):
    """f(A, B<A, A>, B<B<A, A>, B<A, A> >, ...)"""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return "_Z1f1A1BIS_S_E" + "".join(f"S0_IS{digits[i]}_S{digits[i]}_E" for i in range(1, levels))


class Checks:
    """A sanitized program has no limits that could be kept: it gets a tenth of what is there for them, and all the damaged files."""
    def __init__(self, program, compiler, directory, sanitized):
        self.program, self.compiler, self.directory, self.memory = program, compiler, pathlib.Path(directory), not sanitized
        self.many, self.damage_step = (10, 101) if sanitized else (1, 1009)

    def run(self, path, *arguments):
        files = sum(file.stat().st_size for file in self.directory.glob("*.so") if file.is_file())
        return Run(self.program, [*arguments, path], self.memory, files)

    def path(self, name):
        return self.directory / (name + ".dump")

    def check_notes(self):
        """As many different notes as there is room for: some are shown, the others counted."""
        count = 500_000 // self.many
        path = dump.write(self.path("notes"), [(dump.NOTES, dump.arena([dump.note(b"%d" % i) for i in range(count)]), 0)])
        text = self.run(path).out
        assert text.count("\n") < 200, text[:1000]
        assert f"... and {count - 64:,} more notes" in text, text[-1000:]
        report = json.loads(self.run(path, "--json").out)
        assert len(report["notes"]) == 1000 and report["notes_left_out"] == count - 1000

    def check_modules(self):
        """All the numbers that modules can have, in ten dumps whose modules are others."""
        paths = [self.path(f"modules-{k}") for k in range(10)]
        for k, path in enumerate(paths):
            records = [dump.module(i + 1, b"/a/%d" % i, struct.pack("<24xII", k, i)) for i in range(65535)]
            dump.write(path, [(dump.MODULES, dump.arena(records), 0)])
        self.run(paths[-1], *paths[:-1])

    def check_thinnings(self):
        """Every sample is older than every thinning."""
        count = samples = 300_000 // self.many
        table, entries = dump.live([(2 * dump.SECOND + i, dump.FIRST_STACK) for i in range(samples)])
        stacks = dump.arena([dump.stack([dump.frame(1, 0x500000)])])
        thinnings = dump.arena([dump.thinning((1 << 62) + i) for i in range(count)])
        self.run(dump.write(self.path("thinnings"), [(dump.STACKS, stacks, 0), (dump.LIVE, table, entries), (dump.RATES, thinnings, 0)]),
                 "--no-symbols")

    def check_stacks_that_overlap(self):
        """A stack of 128 frames begins at each 16 bytes: those that there is no room for side by side are left out."""
        count = 400_000 // self.many
        body = b"".join(struct.pack("<QII", 1 << 48 | (0x500000 + 16 * i), 128, 0) for i in range(count))
        entries = 1 << count.bit_length()
        index = b"".join(struct.pack("<Q", 1 << 32 | (dump.FIRST_STACK + i)) for i in range(count - 80)).ljust(8 * entries, b"\0")
        path = dump.write(self.path("overlap"), [(dump.STACKS, dump.arena([body]), 0), (dump.STACK_INDEX, index, entries)])
        for view in ([], ["--leaks"], ["--since=1s"], ["--focus=a.*b", "--by=size"], ["--ignore=x", "--hide=y", "--timeline"]):
            assert self.run(path, "--no-symbols", *view).status == 1, "what was left out is damage"

    def check_stacks_of_one_frame(self):
        """As many stacks as a file of 35 MB can hold that has a live sample of each: what is kept of a stack is larger than its record."""
        count = 250_000 // self.many
        frames = [dump.frame(1, 0x500000 + 16 * i) for i in range(count)]
        record = len(dump.stack(frames[:1])) // 16
        references = range(dump.FIRST_STACK, dump.FIRST_STACK + count * record, record)
        stacks = dump.arena([dump.stack([frame]) for frame in frames])
        table, entries = dump.live([(2 * dump.SECOND + i, reference) for i, reference in enumerate(references)])
        path = dump.write(self.path("one-frame"), [(dump.STACKS, stacks, 0), (dump.LIVE, table, entries)])
        for view in ([], ["--leaks"]):
            assert self.run(path, "--no-symbols", *view).status == 0

    def check_code_that_overlaps(self):
        """Code objects that begin at each 16 bytes, and a Python frame for each: reading and decoding them has a limit."""
        count = 20_000
        body = dump.code_units(count)
        stacks = [dump.stack([], [dump.python_frame(dump.FIRST_STACK + i + k, 2 * k) for k in range(128)]) for i in range(0, count, 128)]
        at, references = dump.FIRST_STACK + len(body) // 16, []
        for i, stack in enumerate(stacks):
            references.append(at)
            stacks[i] = stack.ljust(dump.up(len(stack), 16), b"\0")
            at += len(stacks[i]) // 16
        table, entries = dump.live([(2 * dump.SECOND, reference) for reference in references])
        path = dump.write(self.path("code"), [(dump.STACKS, dump.arena([body, *stacks]), 0), (dump.LIVE, table, entries)])
        run = self.run(path, "--no-symbols", "--verbose", "--top=0")
        assert run.status == 0, "it all holds together"
        assert "(unknown Python function)" in run.out, "there was no end of work"

    def check_holes(self):
        """A terabyte that takes no room on the disk."""
        size = 1 << 40
        self.run(dump.write_hole(self.path("hole-live"), dump.LIVE, size, 1 << 34))
        self.run(dump.write_hole(self.path("hole-index"), dump.STACK_INDEX, size, 1 << 37))
        self.run(dump.write_hole(self.path("hole-history"), dump.HISTORY, size, size // dump.PAGE))

    def do(self, *command):
        subprocess.run([str(word) for word in command], check=True, cwd=self.directory)

    def library(self, name, text, language="c", options=("-g0",)):
        """A shared object with one function at its beginning, its build-id, and where the function is."""
        path = self.directory / f"{name}.so"
        source = self.directory / f"{name}.{language}"
        source.write_text(text)
        self.do(self.compiler, "-shared", "-fPIC", "-O2", "-nostdlib", "-Wl,--build-id", *options, "-o", path, source)
        notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
        build_id = bytes.fromhex(next(line.split()[-1] for line in notes.splitlines() if "Build ID" in line))
        symbols = subprocess.run(["readelf", "-sW", path], check=True, capture_output=True, text=True).stdout
        offset = next(int(line.split()[1], 16) for line in symbols.splitlines() if " FUNC " in line)
        return path, build_id, offset

    def dump_of(self, *libraries):
        """A stack through the first instructions of each library's function."""
        offset = libraries[0][2]
        assert all(library[2] == offset for library in libraries)
        return dump.write_frames(self.path("names"), [(os.fsencode(path), build_id) for path, build_id, _ in libraries], [offset + 2])

    def check_ranges(self):
        """Debug information that unfolds in memory: no names from it, but the report, and those of other files."""
        bomb, plain = self.library("ranges", RANGES, "s"), self.library("plain", PLAIN, options=["-g"])
        file = self.directory / "ranges.json"
        text = self.run(self.dump_of(bomb, plain), "-o", "-", "-o", file).out
        assert "plain_function" in text and "plain.c:1" in text, text
        assert "Symbols of " in text and "names may be missing" in text, text
        report = json.loads(file.read_text(encoding="utf-8"))
        reasons = {pathlib.Path(m["path"]).name: m["reason"] for m in report["modules"]}
        assert reasons["plain.so"] is None and "names may be missing" in reasons["ranges.so"], reasons

    def check_sections_that_inflate(self):
        """Debug information, and symbols in .gnu_debugdata, of a few hundred KB that would inflate to 576 MB each: the limit of memory ends it,
        and other files have their names."""
        packed, plain = self.library("packed", PLAIN, options=["-g0"]), self.library("plain", PLAIN, options=["-g"])
        small = self.library("small", PLAIN, options=["-s"])
        content = self.directory / "content"
        content.write_bytes(struct.pack("<IIQQ", ELFCOMPRESS_ZLIB, 0, INFLATED_BYTES, 1) + zlib.compress(bytes(INFLATED_BYTES)))
        names = [".debug_" + name for name in INFLATED]
        self.do("objcopy", *[f"--add-section={name}={content}" for name in names], packed[0])
        mark_compressed(packed[0], names)
        sections = subprocess.run(["readelf", "-SW", packed[0]], check=True, capture_output=True, text=True).stdout
        assert sections.count(" C  0 ") == len(names), sections
        content.write_bytes(lzma.compress(bytes(len(names) * INFLATED_BYTES), preset=0))
        self.do("objcopy", f"--add-section=.gnu_debugdata={content}", small[0])
        text = self.run(self.dump_of(packed, small, plain)).out
        assert "plain_function" in text and "plain.c:1" in text, text

    def check_names_that_double(self):
        name = doubling_name(30)
        library = self.library("name", PLAIN.replace("plain_function", name))
        text = self.run(self.dump_of(library), "--full-names").out
        assert name in text, text

    def check_names_without_end(self):
        """A name of 50 KB at each byte of a function: as many as there is room for."""
        name = doubling_name(12)
        library = self.library("long", f".text\n.globl {name}\n.type {name},@function\n{name}:\n.fill 8192,1,0x90\n.size {name}, . - {name}\n", "s")
        path = dump.write_frames(self.path("long"), [(os.fsencode(library[0]), library[1])], range(library[2] + 1, library[2] + 6001))
        text = self.run(path, "--top=0", "--verbose").out
        assert 1000 < text.count("long.so+0x") < 5500, text[-2000:]
        assert "there is no room for more of them" in text, text[-2000:]

    def check_fifos(self):
        """Nobody writes into a FIFO: who opens one waits for ever. It stands where the debug file is looked for, and at the paths of modules."""
        library = self.library("linked", PLAIN, options=["-s"])
        offset = self.library("plain", PLAIN)[2]
        debug = self.directory / "linked.debug"
        debug.write_text("")
        self.do("objcopy", "--add-gnu-debuglink=linked.debug", library[0])
        debug.unlink()
        os.mkfifo(debug)
        (self.directory / ".debug").mkdir()
        os.mkfifo(self.directory / ".debug" / "linked.debug")
        os.mkfifo(self.directory / "fifo.so")
        path = dump.write_frames(self.path("fifos"), [(os.fsencode(library[0]), library[1]), (os.fsencode(self.directory / "fifo.so"), b""),
                                                      (b"/dev/null", b""), (os.fsencode(self.directory), b"")], [offset])
        text = self.run(path).out
        assert f"linked.so+0x{offset:x}" in text and "No symbols for " in text, text
        os.mkfifo(self.directory / "fifo.dump")
        for special in (self.directory / "fifo.dump", "/dev/null"):
            result = subprocess.run([self.program, special], capture_output=True, text=True, check=False, timeout=120)
            assert result.returncode == 2 and "not a regular file" in result.stderr, result

    def check_files_that_are_damaged(self):
        """Bytes of a library are others: names, other names, or none."""
        library = self.library("plain", PLAIN, options=["-g"])
        whole = library[0].read_bytes()
        path = self.dump_of(library)
        for at in range(0, len(whole), self.damage_step):
            library[0].write_bytes(whole[:at] + bytes([whole[at] ^ 0xff]) + whole[at + 1:])
            self.run(path)

    def check_all(self):
        for name in sorted(name for name in dir(self) if name.startswith("check_") and name != "check_all"):
            getattr(self, name)()
            print(name)


def main():
    program, compiler = os.path.abspath(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as directory:
        os.environ["XDG_CACHE_HOME"] = directory
        Checks(program, compiler, directory, "--sanitized" in sys.argv[3:]).check_all()


if __name__ == "__main__":
    main()
