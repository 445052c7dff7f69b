#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_symbol_cache.py MEMANALYZE LARGE_DUMP CC: reports are the same with the cache of symbols and without, whatever happens meanwhile.

Libraries are compiled with their debug information in all the places where it may be, dumps are made in their text.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = """
#include <stdlib.h>
static inline __attribute__((always_inline)) int inlined_@(int n) { return n * 3 + rand(); }
__attribute__((noinline)) int outer_@(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += inlined_@(sum);
	return sum;
}
void *malloc(size_t n) { return calloc(n, outer_@((int)n)); }
int last_@(int n) { return outer_@(n) + inlined_@(n); }
"""
VIEWS = ([], ["--json"], ["--by=function"], ["--by=module"], ["--leaks", "--json"], ["--since=1ms", "--top=3", "--depth=2"],
         ["--top=0", "--full-names"])


class Bench:
    def __init__(self, memanalyze, large_dump, cc, work):
        self.memanalyze, self.large_dump, self.cc, self.work = memanalyze, large_dump, cc, work
        self.debug = work / "debug"
        self.cache = work / "cache"
        self.debug.mkdir()
        self.cache.mkdir(0o700)
        os.environ["XDG_CACHE_HOME"] = str(self.cache)

    def do(self, *command):
        subprocess.run([str(word) for word in command], check=True, cwd=self.work)

    def library(self, name, *options):
        """A library with debug information in it."""
        (self.work / f"{name}.c").write_text(SOURCE.replace("@", name), encoding="utf-8")
        file = self.work / f"{name}.so"
        self.do(self.cc, "-shared", "-fPIC", "-O2", "-g", "-fno-builtin", "-Wl,--build-id", *options, "-o", file, f"{name}.c")
        return file

    def build_id(self, file):
        self.do("objcopy", "--dump-section", f".note.gnu.build-id={self.work}/note", file, "/dev/null")
        return (self.work / "note").read_bytes()[16:].hex()

    def separate(self, file):
        """Takes symbols and debug information out of the library; returns the debug file."""
        debug = file.with_suffix(".debug")
        self.do("objcopy", "--only-keep-debug", file, debug)
        self.do("objcopy", "--strip-all", file)
        return debug

    def install(self, file, debug):
        name = self.build_id(file)
        place = self.debug / ".build-id" / name[:2] / f"{name[2:]}.debug"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(debug, place)
        return place

    def dump(self, *files):
        path = self.work / "x.dump"
        path.unlink(missing_ok=True)
        self.do(self.large_dump, path, 300, 900, 60, *files)
        return path

    def report(self, *arguments):
        result = subprocess.run([self.memanalyze, f"--debug-path={self.debug}", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                check=False)
        assert result.returncode == 0 and not result.stderr, (arguments, result)
        return result.stdout

    def kept(self):
        return {p.name: p.stat() for p in self.cache.glob("memattach/*")}

    def forget(self):
        shutil.rmtree(self.cache / "memattach", ignore_errors=True)

    def same(self, *arguments, keeps=None):
        """The report without and with the cache, twice; keeps: how many files there are then. Returns the report."""
        want = self.report("--no-cache", *arguments)
        assert self.report(*arguments) == want, arguments
        first = self.kept()
        assert self.report(*arguments) == want, arguments
        again = {name: s.st_ino for name, s in self.kept().items()}
        assert again == {name: s.st_ino for name, s in first.items()}, (arguments, "written again")
        assert keeps is None or len(first) == keeps, (arguments, first)
        return want


def check_views(b, dump, keeps):
    """Each view with an empty cache, and all of them one after the other: those without lines before and after those with lines."""
    want = {}
    for view in VIEWS:
        b.forget()
        want[tuple(view)] = b.same(*view, dump)
    b.forget()
    for view in (["--by=function"], *VIEWS):
        assert b.report(*view, dump) == want[tuple(view)], view
    assert len(b.kept()) == keeps, b.kept()


def check_debug_files_that_come_and_go(b):
    file = b.library("gone")
    debug = b.separate(file)
    dump = b.dump(file)
    nameless = b.same(dump, keeps=1)
    assert b"inlined_gone" not in nameless and b"gone.c" not in nameless, nameless
    place = b.install(file, debug)
    named = b.same(dump, keeps=1)
    assert b"inlined_gone" in named and b"gone.c:" in named, named
    b.do("objcopy", "--strip-debug", place)
    assert b"gone.c:" not in b.same(dump, keeps=1)
    place.unlink()
    assert b.same(dump, keeps=1) == nameless
    # By the name that the program has for it.
    b.do("objcopy", f"--add-gnu-debuglink={debug}", file)
    debug.rename(b.work / "elsewhere")
    assert b.same(dump) == nameless
    (b.work / ".debug").mkdir()
    shutil.copy(b.work / "elsewhere", b.work / ".debug" / debug.name)
    assert b.same(dump, keeps=1) == named
    shutil.rmtree(b.work / ".debug")
    assert b.same(dump) == nameless


def check_compressed_debug_file(b):
    """libdw inflates it, and the reports are those of the plain file."""
    file = b.library("packed")
    debug = b.separate(file)
    dump = b.dump(file)
    place = b.install(file, debug)
    named = [b.report("--no-cache", *view, dump) for view in VIEWS]
    assert b"inlined_packed" in named[0] and b"packed.c:" in named[0], named[0]
    b.do("objcopy", "--compress-debug-sections=zlib", place)
    check_views(b, dump, 1)
    for view, want in zip(VIEWS, named):
        assert b.report("--no-cache", *view, dump) == want, view


def check_shared_debug_file(b):
    if not shutil.which("dwz"):
        print("dwz is not here: no debug files that share one")
        return
    files = [b.library(name) for name in ("one", "two")]
    debug = [b.separate(file) for file in files]
    b.do("dwz", "-m", b.work / "shared", "-M", b.work / "shared", *debug)
    dump = b.dump(*files)
    places = [b.install(file, d) for file, d in zip(files, debug)]
    named = b.same("--top=0", dump, keeps=2)
    assert b"inlined_one" in named and b"inlined_two" in named, named
    (b.work / "shared").rename(b.work / "moved")
    b.same("--top=0", dump)
    (b.work / "moved").rename(b.work / "shared")
    assert b.same("--top=0", dump, keeps=2) == named
    for place in places:
        b.do("objcopy", "--compress-debug-sections=zlib", place)
    assert b.same("--top=0", dump, keeps=2) == named
    # Found by a path that is relative to the debug files.
    b.forget()
    files = [b.library(name) for name in ("three", "four")]
    places = [b.install(file, b.separate(file)) for file in files]
    b.do("dwz", "-m", b.debug / "beside", "-r", *places)
    dump = b.dump(*files)
    named = b.same("--top=0", dump, keeps=2)
    assert b"inlined_three" in named and b"inlined_four" in named, named
    for place in places:
        b.do("objcopy", "--compress-debug-sections=zlib", place)
    assert b.same("--top=0", dump, keeps=2) == named


def check_what_is_not_kept(b):
    for name, options, strip in (("nameless", ["-Wl,--build-id=none"], None), ("split", ["-gsplit-dwarf"], None),
                                 ("symbols", [], "--strip-debug")):
        b.forget()
        file = b.library(name, *options)
        if strip:
            b.do("objcopy", strip, file)
        assert f"outer_{name}".encode() in b.same(b.dump(file), keeps=0)


def check_damage(b, dump):
    want = b.same("--json", dump)
    whole = {name: s.st_size for name, s in b.kept().items()}
    assert whole
    for name, size in whole.items():
        path = b.cache / "memattach" / name
        for change in (lambda f: f.truncate(size // 2), lambda f: f.truncate(0), lambda f: (f.seek(size // 2), f.write(b"\xff" * 8)),
                       lambda f: (f.seek(size), f.write(b"x"))):
            with open(path, "r+b") as f:
                change(f)
            assert b.report("--json", dump) == want
            assert path.stat().st_size == size, "not written anew"


def check_many_at_once(b, dump):
    want = b.report("--no-cache", "--json", dump)
    for _ in range(2):
        b.forget()
        runs = [subprocess.Popen([b.memanalyze, f"--debug-path={b.debug}", "--json", dump], stdout=subprocess.PIPE) for _ in range(4)]
        for run in runs:
            assert run.communicate()[0] == want
            assert run.returncode == 0
    assert b.same("--json", dump) == want
    assert all(".symbols" in name and not name.rpartition(".symbols")[2] for name in b.kept()), b.kept()


def check_no_cache(b, dump):
    """The option leaves no trace, and a directory that is not ours alone is not used; nobody hears of it."""
    b.forget()
    b.report("--no-cache", dump)
    assert not (b.cache / "memattach").exists()
    b.cache.chmod(0o777)
    b.same(dump, keeps=0)
    b.cache.chmod(0o700)
    os.environ["XDG_CACHE_HOME"] = "/nonexistent"
    b.same(dump, keeps=0)
    os.environ["XDG_CACHE_HOME"] = str(b.cache)


def main():
    with tempfile.TemporaryDirectory(prefix="memattach-symbols.") as work:
        b = Bench(*sys.argv[1:], pathlib.Path(work))
        files = [b.library("plain"), b.library("apart")]
        b.install(files[1], b.separate(files[1]))
        dump = b.dump(*files)
        check_views(b, dump, 2)
        check_damage(b, dump)
        check_many_at_once(b, dump)
        check_no_cache(b, dump)
        b.forget()
        check_debug_files_that_come_and_go(b)
        b.forget()
        check_compressed_debug_file(b)
        b.forget()
        check_shared_debug_file(b)
        check_what_is_not_kept(b)


main()
