#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks of the tree and of what was built: check.py --source DIR --build DIR [--cc CC] [--program NAME=PATH]... CHECK

Each check prints what is wrong, one line for each finding, and ends with 1; 77 means that it was skipped, with the reason.
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from installed import check_debian, check_install, check_units  # noqa: E402, F401 pylint: disable=unused-import,wrong-import-position
from machine import check_hook_instructions, check_machine  # noqa: E402, F401 pylint: disable=unused-import,wrong-import-position
from names import check_names  # noqa: E402, F401 pylint: disable=unused-import,wrong-import-position
from ordering import check_ordering  # noqa: E402, F401 pylint: disable=unused-import,wrong-import-position
from pages import check_pages  # noqa: E402, F401 pylint: disable=unused-import,wrong-import-position
from shape import check_errors, check_parameters  # noqa: E402, F401 pylint: disable=unused-import,wrong-import-position
from touch import check_once, check_sandbox, check_touch, plants  # noqa: E402, F401 pylint: disable=unused-import,wrong-import-position

PARTS = ("payload", "injector", "analyzer", "common", "include")
# What a file of a part may include with quotes, beside its own part.
MAY_INCLUDE = {
    "include": {"include"},
    "common": {"common", "include", "generated"},
    "payload": {"payload", "include"},
    "injector": {"injector", "common", "include", "generated"},
    "analyzer": {"analyzer", "common", "include", "generated"},
}
# The folders of a part, in an order in which each includes only itself and those before it; last the part's own files. The path of a file of injector/
# says whether it can touch the target: what is not below touch/ changes nothing there.
FOLDERS = {
    "injector": ("host", "catalogue", "maps", "process", "process/clones", "search", "choose", "census/pages", "census/allocators", "census/heap", "census/reach", "elf", "census/blocks", "census", "python", "java", "got", "unwind", "allocators", "entry", "recording", "recording/live", "children",
                 "touch", "touch/threads", "prove", "touch/remote", "session", "touch/patches", "touch/python", "touch/start", "run/reports", "run/steps", "run", "launch", "system", "cli"),
    "analyzer": ("census", "stats", "dumps", "input/memory", "input/parts", "input", "debug_info", "symbols", "filter", "python", "java", "report", "output", "text", "json", "html", "exchange", "forms", "live", "."),
    "common": ("base", "files", "sandbox", "live", "stats", "dump"),
}
FILES = 30  # of a folder: more are several rooms
ANYWHERE = {"arch"}  # beside the code that it serves
# Headers that only define constants and types: no function of theirs can be called by mistake.
CONSTANTS = re.compile(r"^(errno\.h|elf\.h|linux/.*|asm/.*)$")
# C11 4p6, and what gcc and clang bring along for freestanding programs.
FREESTANDING = {"float.h", "iso646.h", "limits.h", "stdalign.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h",
                "stdnoreturn.h", "stdatomic.h", "cpuid.h", "immintrin.h", "x86intrin.h"}
SOURCES = {".c", ".h", ".cc", ".cpp", ".S", ".py", ".sh"}


class Skip(Exception):
    pass


class Tree:
    def __init__(self, options):
        self.source = pathlib.Path(options.source).resolve()
        self.build = pathlib.Path(options.build).resolve()
        self.cc = options.cc
        self.programs = dict(item.split("=", 1) for item in options.program)

    def files(self):
        """Every file that belongs to the project."""
        listed = subprocess.run(["git", "-c", f"safe.directory={self.source}", "-C", self.source, "ls-files", "-co",
                                 "--exclude-standard"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                check=False) if shutil.which("git") else None
        if listed and listed.returncode == 0:
            names = [self.source / name for name in listed.stdout.splitlines()]
        else:
            names = [path for path in self.source.rglob("*")
                     if not any(part.startswith("build") or part == ".git"
                                for part in path.relative_to(self.source).parts)]
        return sorted(path for path in names if path.is_file() and not path.is_symlink())

    def is_source(self, path):
        if path.suffix in SOURCES:
            return True
        with open(path, "rb") as file:
            return file.read(2) == b"#!"

    def name(self, path):
        return str(path.relative_to(self.source))

    def part_files(self, part, suffixes=(".c", ".h", ".S")):
        return sorted(path for path in (self.source / part).rglob("*") if path.suffix in suffixes)

    def run(self, *command, **options):
        return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False, **options)

    def need(self, program):
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")


FIRST_INCLUDE = re.compile(r'^#\s*(?:include +(?:<|"([^"]*)")|define|if|undef)', re.MULTILINE)


def is_of(path, machine):
    """Whether this compiler's machine has the file; those of others are in arch/OTHER/."""
    return path.parent.parent.name != "arch" or path.parent.name == machine


def compiled_alone(tree, part, directories, machine):
    """The headers that a C file of the part includes before all else: that they compile alone is seen when it is built."""
    for path in tree.part_files(part, (".c",)):
        first = FIRST_INCLUDE.search(path.read_text(encoding="utf-8"))
        if first and first[1] and is_of(path, machine):
            yield next((folder / first[1] for folder in [path.parent, *directories] if (folder / first[1]).exists()), path)


def check_headers(tree):
    """Each header compiles alone, warnings are errors; those of other machines are not of this compiler's."""
    machine = tree.run(tree.cc, "-dumpmachine").stdout.split("-")[0]
    for part in PARTS:
        directories = [tree.source / p for p in sorted(MAY_INCLUDE[part] - {"generated"})]
        seen = {path.resolve() for path in compiled_alone(tree, part, [tree.source / part, *directories], machine)}
        includes = [f"-I{directory}" for directory in [*directories, tree.build / "generated"]] + ["-isystem", "/usr/include/libiberty"]
        payload = ["-DMEMATTACH_PAYLOAD", "-ffreestanding"] if part == "payload" else []
        for path in tree.part_files(part, (".h",)):
            if path in seen or not is_of(path, machine):
                continue
            result = tree.run(tree.cc, "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                              "-Wno-unused-function", *payload, *includes, "-x", "c", "-", input=f'#include "{path}"\n')
            if result.returncode:
                yield f"{tree.name(path)} does not compile alone: {result.stderr.strip().splitlines()[0]}"


COLUMNS = 120
PAGE_COLUMNS = 140  # of documents, tables aside
CLANG_FORMAT = "14"  # others lay out the same text in other ways


def columns_of(line):
    """As an editor shows it, with tabs of 8."""
    return len(line.expandtabs(8))


def check_columns(tree):
    """No line of C or assembler, comments included, is longer than 120 columns; none of a document longer than 140, tables aside."""
    for path in tree.files():
        page = path.suffix == ".md" or path.name == "NEWS"
        if page or path.suffix in (".c", ".h", ".cc", ".cpp", ".S"):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if columns_of(line) > (PAGE_COLUMNS if page else COLUMNS) and not (page and line.startswith("|")):
                    yield f"{tree.name(path)}:{number}: {columns_of(line)} columns"


def check_format(tree):
    """clang-format finds nothing to change; in include/ tables are aligned by hand."""
    tree.need("clang-format")
    version = re.search(r"version (\d+)\.", tree.run("clang-format", "--version").stdout)
    if not version or version[1] != CLANG_FORMAT:
        raise Skip(f"clang-format {CLANG_FORMAT} decides, this is {version and version[1]}")
    files = [path for path in tree.files()
             if path.suffix in (".c", ".h", ".cc", ".cpp") and tree.source / "include" not in path.parents]
    result = tree.run("clang-format", "--dry-run", "-Werror", *files, cwd=tree.source)
    for line in result.stderr.splitlines():
        if "error:" in line:
            yield line


def folder_of(tree, part, path):
    """Place of the file's folder in the order of its part; None: it has none there."""
    order, folder = FOLDERS.get(part), path.relative_to(tree.source / part).parts
    if not order or folder[0] in ANYWHERE:
        return None
    name = "/".join(folder[:-1]) or "."
    return order.index(name) if name in order else -1


def check_folders(tree):
    """An include carries its folder; each folder of a part includes only those before it in FOLDERS; no two headers of a part have one name;
    no folder has more than 30 files, tests included."""
    for folder, count in sorted(collections.Counter(path.parent for path in tree.files()).items()):
        if count > FILES:
            yield f"{tree.name(folder)} has {count} files, more than {FILES}"
    for part in FOLDERS:
        headers = {}
        for path in tree.part_files(part, (".h",)):
            if path.name in headers and folder_of(tree, part, path) is not None:
                yield f"{tree.name(path)} has the name of {tree.name(headers[path.name])}"
            headers.setdefault(path.name, path)
        for path in tree.part_files(part):
            place = folder_of(tree, part, path)
            if place is None:
                continue
            if place < 0:
                yield f"{tree.name(path)} is in a folder that FOLDERS does not name"
            for target in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(encoding="utf-8"), re.M):
                header = tree.source / part / target
                if not header.exists():
                    if "/" not in target and target in headers:
                        yield f"{tree.name(path)} includes {target} without its folder"
                    continue
                other = folder_of(tree, part, header)
                if other is not None and other > place:
                    yield f"{tree.name(path)} includes {tree.name(header)}, which comes after it in the order of the folders"


def check_plants(tree):
    """Checks of the tree find what is planted into a tree that has nothing else wrong."""
    return plants(tree, CHECKS)


def check_includes(tree):
    """The parts include each other only as agreed; the payload includes nothing of a C library."""
    owners = {}
    for part in PARTS:
        for path in tree.part_files(part, (".h",)):
            owners.setdefault(path.name, set()).add(part)
    for path in (tree.build / "generated").glob("*.h"):
        owners.setdefault(path.name, set()).add("generated")
    for part in PARTS:
        for path in tree.part_files(part):
            text = path.read_text(encoding="utf-8")
            for number, line in enumerate(text.splitlines(), 1):
                include = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
                if not include:
                    continue
                quote, target = include.groups()
                where = f"{tree.name(path)}:{number}"
                if quote == '"':
                    name = pathlib.PurePath(target).name
                    if ".." in target and tree.source / part not in (path.parent / target).resolve().parents:
                        yield f"{where}: {target} is outside its part"
                    elif name not in owners:
                        yield f"{where}: includes {target}, which is no header of the project"
                    elif not owners[name] & MAY_INCLUDE[part]:
                        yield f"{where}: {part} includes {target} of {'/'.join(sorted(owners[name]))}"
                elif part == "payload" and target not in FREESTANDING and not CONSTANTS.match(target) \
                        and not hosted_only(text, line):
                    yield f"{where}: the payload includes <{target}>"
                elif part == "include" and target not in FREESTANDING:
                    yield f"{where}: a contract includes <{target}>"


def hosted_only(text, line):
    """Whether line stands between #ifdef MEMATTACH_HOSTED and its end."""
    before = text[:text.index(line)]
    return before.count("#ifdef MEMATTACH_HOSTED") > len(re.findall(r"#(?:endif|else) /\* MEMATTACH_HOSTED", before))


MAY_IMPORT = set()


def check_payload(tree):
    """The built payload needs no library, has no TLS, no text relocation, no executable stack, imports only what it may, and uses
    no vector registers but those that its hooks can keep (struct hook_kept)."""
    tree.need("readelf")
    payload = tree.programs["payload"]
    tree.need("objdump")
    code = tree.run("objdump", "-d", "--no-show-raw-insn", payload).stdout
    for register in sorted(set(re.findall(r"%(?:[yz]mm\d+|xmm(?:1[6-9]|[23]\d)|k[0-7]|mm\d|st)\b|\tvzero\w+", code))):
        yield f"the payload uses {register.strip()}"
    if "%xmm" not in code:
        yield "the payload's code was not disassembled"
    dynamic = tree.run("readelf", "-dW", payload).stdout
    for tag in ("NEEDED", "TEXTREL", "INIT", "FINI", "INIT_ARRAY", "FINI_ARRAY", "RUNPATH", "RPATH"):
        if re.search(rf"\({tag}\)", dynamic):
            yield f"the payload has DT_{tag}"
    if "TEXTREL" in dynamic:
        yield "the payload has text relocations"
    segments = tree.run("readelf", "-lW", payload).stdout
    if re.search(r"^\s*TLS\s", segments, re.M):
        yield "the payload has a TLS segment"
    stack = re.search(r"^\s*GNU_STACK\s.*?\s(R\S*)\s+0x", segments, re.M)
    if not stack:
        yield "the payload has no PT_GNU_STACK: glibc would make the main stack executable"
    elif "E" in stack.group(1):
        yield f"the payload asks for an executable stack ({stack.group(1)})"
    if re.search(r"^\s*LOAD\s.*\sRWE\s", segments, re.M):
        yield "the payload has a segment that is writable and executable"
    symbols = tree.run("readelf", "--dyn-syms", "-W", payload).stdout
    exported = set()
    for line in symbols.splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].rstrip(":").isdigit():
            continue
        name = fields[7].split("@")[0]
        if fields[6] == "UND":
            if name not in MAY_IMPORT and fields[3] != "NOTYPE":
                yield f"the payload imports {name}"
        else:
            exported.add(name)
    expected = {"memattach_session", "memattach_control"}
    for name in sorted(expected - exported):
        yield f"the payload does not export {name}"
    for name in sorted(exported - expected):
        yield f"the payload exports {name}"
    relocations = tree.run("readelf", "-rW", payload).stdout
    for kind in sorted(set(re.findall(r"R_X86_64_(?:DTP\w+|TP\w+|TLS\w+|COPY|IRELATIV\w*)", relocations))):
        yield f"the payload has a relocation {kind}"


def check_hardened(tree):
    """memattach and memanalyze are built as distributions do, or sessions of the suite would not meet what the package meets."""
    if re.search(r"^MEMATTACH_(SANITIZE:STRING=.+|COVERAGE:BOOL=ON)$", (tree.build / "CMakeCache.txt").read_text(), re.MULTILINE):
        raise Skip("the build is for sanitizers or coverage")
    tree.need("readelf")
    wanted = {"position-independent": r"^  Type: +DYN ", "immediate binding": r"\(FLAGS_1\) .* NOW", "RELRO": r"^  GNU_RELRO ",
              "stack protector": r" UND __stack_chk_fail", "_FORTIFY_SOURCE": r" UND __\w+_chk@"}
    for name in ("memattach", "memanalyze"):
        told = tree.run("readelf", "-W", "--file-header", "--program-headers", "--dynamic", "--dyn-syms", tree.programs[name]).stdout
        for what, pattern in wanted.items():
            if not re.search(pattern, told, re.MULTILINE):
                yield f"{name} has no {what}"


def man_pages(tree):
    return sorted((tree.source / "man").glob("*.[1-9]"))


def check_man(tree):
    """groff and mandoc read the pages without a warning."""
    tree.need("groff")
    for page in man_pages(tree):
        result = tree.run("groff", "-man", "-t", "-ww", "-Tutf8", "-z", page)
        if result.returncode or result.stderr:
            yield f"{page.name}: groff: {result.stderr.strip()}"
        if shutil.which("mandoc"):
            result = tree.run("mandoc", "-T", "lint", "-W", "warning", page)
            if result.stdout or result.stderr:
                yield f"{page.name}: {(result.stdout + result.stderr).strip()}"
        version = re.search(r"^project\(memattach VERSION (\S+)", (tree.source / "CMakeLists.txt").read_text(), re.M).group(1)
        if f'"memattach {version}"' not in page.read_text(encoding="utf-8"):
            yield f"{page.name}: its head does not say memattach {version}"


def plain_page(page):
    """The text of a page without its markup."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"\\f[BIRP]", "", text).replace("\\-", "-").replace("\\&", "").replace("\\ ", " ")
    return text


def page_options(page):
    """From OPTIONS: ("group", heading), and options with their arguments as (short or "", long, argument, [argument] or "")."""
    section = re.search(r"^\.SH OPTIONS\n(.*?)^\.SH ", plain_page(page), re.M | re.S).group(1)
    found = []
    for group, head in re.findall(r"^\.SS (.*)$|^\.TP\n(.*)$", section, re.M):
        if group:
            found.append(("group", group))
            continue
        words = re.sub(r'^\.\w+ ', "", head).replace('" "', " ").replace('", "', ", ").replace('"', "")
        option = re.match(r"(?:(-\w) ?, +)?(--[\w-]+)( *=? *[A-Z]+| *\[=? *[A-Z]+\])?\s*$", words)
        assert option, head
        found.append((option.group(1) or "", option.group(2), re.sub("[ =]", "", option.group(3) or "")))
    return found


def help_options(tree, program):
    text = tree.run(tree.programs[program], "--help").stdout
    found = []
    for line in text.partition("\nExamples:\n")[0].splitlines():
        if re.fullmatch(r"\S.*:", line):
            found.append(("group", line[:-1]))
        option = re.match(r"\s+(?:(-\w), +)?(--[\w-]+)([ =][A-Z]+|\[=[A-Z]+\])?(?:  |$)", line)
        if option:
            found.append((option.group(1) or "", option.group(2), re.sub("[ =]", "", option.group(3) or "")))
    return found


def check_options(tree):
    """The pages and --help list the same options in the same groups and the same order."""
    for program in ("memattach", "memanalyze"):
        page, told = page_options(tree.source / "man" / f"{program}.1"), help_options(tree, program)
        if len(told) < 20:
            yield f"{program} --help was not understood"
        for option in page:
            if option not in told:
                yield f"{program}: {' '.join(option).strip()} is on the page, not in --help"
        for option in told:
            if option not in page:
                yield f"{program}: {' '.join(option).strip()} is in --help, not on the page"
        if sorted(page) == sorted(told) and page != told:
            yield f"{program}: the page and --help list the options in different orders"


def check_hooks(tree):
    """memattach(1) names every function of HOOK_LIST; C++ operators are named as such."""
    listed = re.findall(r'X\(\w+, "(\w+)"', (tree.source / "include" / "hooks.h").read_text(encoding="utf-8"))
    page = plain_page(tree.source / "man" / "memattach.1")
    if len(listed) < 20:
        yield "HOOK_LIST was not understood"
    for symbol in listed:
        name = symbol
        if symbol.startswith("_Zn"):
            name = "operator new"
        elif symbol.startswith("_Zd"):
            name = "operator delete"
        if not re.search(rf"\b{name}\b", page):
            yield f"memattach(1) does not name {name}"


def check_harm(tree):
    """Each line of docs/harm.md's table of what can go wrong names tests, and these exist."""
    listed = tree.run(sys.executable, str(tree.source / "tests" / "integration" / "run.py"), "--list").stdout
    cases = {line.split()[0] for line in listed.splitlines()}
    units = {path.stem for path in (tree.source / "tests" / "unit").rglob("test_*")}
    page = (tree.source / "docs" / "harm.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in page.partition("|---|---|---|")[2].partition("\n\n")[0].strip().splitlines()]
    if len(rows) < 40 or not cases or not units:
        yield "the table or the lists of tests were not understood"
    for row in rows:
        named = re.findall(r"`([\w*]+)`", row[2])
        for name in named:
            if not any(re.fullmatch(name.replace("*", r"\w+"), case) for case in cases):
                yield f"{row[0].strip()}: there is no case {name}"
        for name in re.findall(r"unit (test_\w+)", row[2]):
            named.append(name)
            if name not in units:
                yield f"{row[0].strip()}: there is no {name}"
        if not named and row[2].strip() != "none" and "check of" not in row[2]:
            yield f"{row[0].strip()}: no test is named"


def check_dump_page(tree):
    """memattach-dump(5) gives every field of the formats of files its right offset and every structure its size."""
    header = "".join((tree.source / "include" / name).read_text(encoding="utf-8") for name in ("dump_format.h", "dump_memory.h", "dump_blocks.h", "census_format.h"))
    page = (tree.source / "man" / "memattach-dump.5").read_text(encoding="utf-8")
    claims = {}
    for name, size, rows in re.findall(r"^\.B struct (\w+), (\d+) bytes[^\n]*\n\.TS\n(.*?)^\.TE", page, re.M | re.S):
        claims[name, None] = int(size)
        for offset, field in re.findall(r"^(\d+)\t[^\t]+\t(\w+)\tT\{$", rows, re.M):
            claims[name, field] = int(offset)
    wanted = []
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", header, re.M | re.S):
        wanted.append((name, None))
        body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        for field in re.findall(r"(\w+)(?:\[\w*\])*;", body):
            if "reserved" not in field and field != "padding_":
                wanted.append((name, field))
    for name, field in claims:
        if (name, field) not in wanted:
            yield f"memattach-dump(5): {name}.{field} does not exist"
    lines = ['#include <stdio.h>', '#include "dump_format.h"', '#include "census_format.h"', "int main(void) {"]
    for name, field in wanted:
        value = f"offsetof(struct {name}, {field})" if field else f"sizeof(struct {name})"
        lines.append(f'printf("%zu\\n", {value});')
    lines.append("}")
    with tempfile.TemporaryDirectory() as directory:
        program = pathlib.Path(directory) / "offsets"
        result = tree.run(tree.cc, "-std=gnu11", f"-I{tree.source / 'include'}", "-o", program, "-x", "c", "-",
                          input="\n".join(lines) + "\n")
        if result.returncode:
            yield f"the offsets cannot be compiled: {result.stderr.splitlines()[0]}"
            return
        values = [int(line) for line in tree.run(program).stdout.split()]
    for (name, field), value in zip(wanted, values):
        what = f"{name}.{field}" if field else f"the size of {name}"
        if (name, field) not in claims:
            yield f"memattach-dump(5): {what} is missing"
        elif claims[name, field] != value:
            yield f"memattach-dump(5): {what} is {claims[name, field]} there, {value} in the header"
    numbered = re.findall(r"^\.IP (\d+)\. 5\n\.I (\w+)$", page, re.M)
    counters = re.findall(r'^\tX\((\w+), "', re.search(r"DUMP_COUNTER_LIST\(X\)(.*?)\n\n", header, re.S).group(1), re.M)
    if [name for _, name in numbered] != counters or [int(n) for n, _ in numbered] != list(range(1, len(counters) + 1)):
        yield "memattach-dump(5): the counters are not those of DUMP_COUNTER_LIST, in its order"


def check_tree(tree):
    """An SPDX line in each source, no trailing white space, a final newline, no left-over marks."""
    marks = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
    for path in tree.files():
        content = path.read_bytes()
        if b"\0" in content[:1024] or "corpus" in path.parts:
            continue
        name = tree.name(path)
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            yield f"{name}: not UTF-8"
            continue
        if content and not content.endswith(b"\n"):
            yield f"{name}: no newline at its end"
        if tree.is_source(path) and "SPDX-License-Identifier: MIT" not in "\n".join(text.splitlines()[:3]):
            yield f"{name}: no SPDX line at its top"
        for number, line in enumerate(text.split("\n"), 1):
            if line.rstrip(" \t\r") != line and path.suffix != ".md":
                yield f"{name}:{number}: trailing white space"
            if tree.is_source(path) and marks.search(line):
                yield f"{name}:{number}: a left-over mark"


# A parameter of text or bytes that the function writes; what comes after it has to be its size.
WRITTEN = re.compile(r"^(?:unsigned )?(?:char|uint8_t) \*(\w+)$")
SIZE = re.compile(r"^(?:size_t|uint32_t) \w+$")
PROTOTYPE = re.compile(r"^[a-z_][\w ]*[ *](\w+)\(([^;{}]*)\)[^;{}]*;", re.MULTILINE)


def check_buffers(tree):
    """No function of a header writes to a buffer whose size only its caller knows: a parameter is text[SIZE], which the
    compiler compares with what it is given, or its size comes next."""
    for part in PARTS:
        for path in tree.part_files(part, (".h",)):
            for name, parameters in PROTOTYPE.findall(path.read_text(encoding="utf-8")):
                words = [" ".join(word.split()) for word in parameters.split(",")]
                for word, after in zip(words, [*words[1:], ""]):
                    if WRITTEN.match(word) and not SIZE.match(after):
                        yield f"{tree.name(path)}: {name}() is not told the size of {WRITTEN.match(word)[1]}"


LINES = 600


def check_lengths(tree):
    """No source has more than 600 lines: a file that long holds two things."""
    for path in tree.files():
        if tree.is_source(path):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > LINES:
                yield f"{tree.name(path)} has {lines} lines"


def check_scripts(tree):
    """Shell scripts parse, are executable, and shellcheck finds nothing where it is installed; Python compiles."""
    for path in tree.files():
        if not tree.is_source(path):
            continue
        first = path.read_text(encoding="utf-8", errors="replace").split("\n", 1)[0]
        if first.startswith("#!"):
            if not os.access(path, os.X_OK):
                yield f"{tree.name(path)}: starts with #! but is not executable"
        if "bash" in first or first.startswith("#!/bin/sh") or path.suffix == ".sh":
            result = tree.run("bash", "-n", path)
            if result.returncode:
                yield f"{tree.name(path)}: {result.stderr.strip()}"
            if shutil.which("shellcheck"):
                result = tree.run("shellcheck", "-x", "-S", "warning", "-P", path.parent, path, cwd=tree.source)
                if result.returncode:
                    yield f"{tree.name(path)}: {result.stdout.strip()}"
        elif path.suffix == ".py":
            try:
                compile(path.read_text(encoding="utf-8"), str(path), "exec")
            except SyntaxError as error:
                yield f"{tree.name(path)}: {error}"


def check_plots(tree):
    """The pictures of docs/statistics.md are those of its tables, and it shows each of them."""
    result = tree.run(sys.executable, tree.source / "bench" / "plots", "--check")
    if result.returncode:
        yield (result.stdout + result.stderr).strip()
    page = (tree.source / "docs" / "statistics.md").read_text(encoding="utf-8")
    for path in sorted((tree.source / "docs" / "plots").glob("*.svg")):
        if f"](plots/{path.name})" not in page:
            yield f"docs/statistics.md does not show {path.name}"


def check_page_names(tree):
    """No text of the page of the HTML report has a word that its maker takes for a name and makes short (embed.cmake)."""
    page = tree.source / "analyzer" / "html" / "page"
    names = set(re.search(r"set\(NAMES\n(.*?)\)", (page / "embed.cmake").read_text(encoding="utf-8"), re.S)[1].split())
    for path in sorted(page.glob("*.js")):
        text = re.sub(r"(^|[\t;,] *)//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.M)
        for string in re.findall(r"'[^'\n]*'|`[^`]*`", text):
            words = re.findall(r"(?<![\w$'])\w+(?![\w'])", re.sub(r"\$\{[^}]*\}", "", string))
            for name in sorted(names.intersection(words)):
                yield f"{tree.name(path)}: {name} in {string}"


CHECKS = {name[len("check_"):]: function for name, function in list(globals().items()) if name.startswith("check_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--source")
    parser.add_argument("--build")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--program", action="append", default=[])
    parser.add_argument("check", nargs="?")
    options = parser.parse_args()
    if options.list:
        print("\n".join(CHECKS))
        return 0
    if options.check not in CHECKS:
        parser.error(f"no check {options.check}")
    try:
        findings = list(CHECKS[options.check](Tree(options)))
    except Skip as reason:
        print(f"{options.check}: skipped: {reason}")
        return 77
    for finding in findings:
        print(finding)
    print(f"{options.check}: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
