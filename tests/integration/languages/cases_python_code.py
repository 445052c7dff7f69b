# SPDX-License-Identifier: MIT
"""Code objects of Python that are not read again while none was freed (payload/python/known_code.h): tests/targets/python_code.py."""
import collections
import re
import struct

from cases_python import running
from cases_python_frames import TARGETS
from cases_python_objects import Objects
from harness import PATIENCE, Session, Snapshot, case, check_receipt, check_same, log, run_memattach
from python_dump import PythonDump

PROGRAM = TARGETS / "python_code.py"
BEFORE, BEHIND = {"before": 50}, {"behind": 50}  # blocks of the function whose name is changed in place


class Code(Objects):
    """A victim that answers."""

    def word(self):
        return self.ask("word", "WORD")

    def entry(self):
        """The first bytes of the function that ends code objects."""
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(self.word())
            return memory.read(24)


def innermost(dump, size):
    """(function, file) -> live blocks of that size."""
    found = collections.Counter()
    for block, reference in dump.live():
        if block == size and dump.stacks[reference].python:
            found[dump.stacks[reference].python[0][:2]] += 1
    return found


def functions(dump, size):
    found = collections.Counter()
    for (function, _), blocks in innermost(dump, size).items():
        found[function] += blocks
    return found


@case(sanitized=True)
def python_code_is_read_again_once_some_was_freed(context):
    """A name that is changed in place tells what is read. No function gets the name of another one that was at its address."""
    for python in running(context, PROGRAM):
        victim = Code(context, python)
        first, code = victim.word(), victim.entry()
        victim.ask("drop", "DROPPED")
        before = Snapshot(victim.pid)
        session = Session(context, victim.pid, "--python-allocators", "off", rate="1")
        assert victim.word() == first and victim.entry() != code
        victim.ask("names", "NAMES")
        cells = victim.ask("cells", "CELLS")
        victim.ask("drop", "DROPPED")
        check_receipt(session.stop(), victim.pid)
        assert victim.word() == first and victim.entry() == code
        check_same(before, Snapshot(victim.pid), busy=True)
        dump = PythonDump(session.dump)
        assert functions(dump, 3000) == BEFORE == functions(dump, 4000), (functions(dump, 3000), functions(dump, 4000))
        assert functions(dump, 5000) == BEHIND, functions(dump, 5000)
        found = innermost(dump, 6000)
        assert found == {(function, file): blocks for function, file, blocks in cells}, found
        used_again = collections.Counter(code.address for code in dump.codes.values()).most_common(1)[0][1]
        assert used_again > 1, "no address was used again: this tells nothing"
        log(f"{' '.join(python)[:60]}: {len(cells)} kinds of cells, {used_again} code objects at one address")
        victim.end()


@case()
def python_code_of_somebody_else_is_read_each_time(context):
    """Who has his own function in the word keeps it, from before the session or since; all code is read."""
    for python in running(context, PROGRAM):
        victim = Code(context, python)
        first = victim.word()
        victim.ask("take", "TAKEN")
        theirs = victim.word()
        session = Session(context, victim.pid, "--python-allocators", "off", "-v", rate="1")
        assert victim.word() == theirs and "the end of them is not watched, the program has put another function there" in session.said(), session.said()
        victim.ask("names", "NAMES")
        check_receipt(session.stop(), victim.pid)
        dump = PythonDump(session.dump)
        assert (functions(dump, 3000), functions(dump, 4000)) == (BEFORE, BEHIND), functions(dump, 4000)
        victim.ask("return", "RETURNED")
        session = Session(context, victim.pid, "--python-allocators", "off", rate="1")
        victim.ask("take", "TAKEN")
        victim.ask("names", "NAMES")
        check_receipt(session.stop(), victim.pid)
        dump = PythonDump(session.dump)
        assert (functions(dump, 3000), functions(dump, 4000)) == (BEFORE, BEHIND), functions(dump, 4000)
        assert victim.word() == theirs
        victim.ask("drop", "DROPPED")
        victim.ask("return", "RETURNED")
        assert victim.word() == first
        victim.ask("drop", "DROPPED")
        victim.end()


@case()
def python_code_when_memattach_is_killed(context):
    """The function leads to a trampoline that goes on to it; --detach puts its code back, and a next session knows nothing of the first."""
    for python in running(context, PROGRAM):
        victim = Code(context, python)
        first, code = victim.word(), victim.entry()
        for _ in range(2):
            session = Session(context, victim.pid, "--python-allocators", "on", rate="1")
            assert victim.word() == first and victim.entry() != code
            victim.ask("cells", "CELLS")
            session.process.kill()
            session.process.wait(PATIENCE)
            victim.ask("drop", "DROPPED")
            result = run_memattach(context, "--detach", "-p", victim.pid)
            assert result.returncode == 0 and victim.word() == first and victim.entry() == code, result.stderr
            victim.ask("drop", "DROPPED")
        session = Session(context, victim.pid, "--python-allocators", "on", rate="1")
        cells = victim.ask("cells", "CELLS")
        check_receipt(session.stop(), victim.pid)
        assert victim.word() == first and victim.entry() == code
        assert innermost(PythonDump(session.dump), 6000) == {(function, file): blocks for function, file, blocks in cells}
        victim.end()


def told(context, pid, *arguments):
    """What --doctor would patch: (address -> value) of GOT entries, and (address -> (value, alias)) of words of CPython."""
    result = run_memattach(context, "--doctor", "--verbose", "-p", pid, *arguments)
    assert result.returncode == 0, result
    sections = dict(re.findall(r"^(GOT entries|words of CPython): .*\n((?:  .*\n)*)", result.stdout, re.M))
    got, words = ([line.split() for line in sections.get(title, "").splitlines()] for title in ("GOT entries", "words of CPython"))
    hooks = re.search(r"^hooks +(.*)", result.stdout, re.M)[1]
    assert re.search(rf"\b{len(got)} GOT entries\b" + (rf", and {len(words)} words? of CPython\b" if words else r"(?!.*words? of CPython)"), hooks), (hooks, words)
    return {int(line[0], 16): int(line[3], 16) for line in got}, {int(line[0], 16): (int(line[1], 16), int(line[2], 16)) for line in words}


def values(pid, addresses):
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        return {address: struct.unpack("<Q", memory.seek(address) and memory.read(8))[0] for address in addresses}


@case()
def python_words_are_told(context):
    """--doctor names the words of CPython that an attach patches with the same options, and no other. No message and no figure counts them as GOT entries."""
    for python in running(context, PROGRAM):
        victim = Code(context, python)
        every = told(context, victim.pid, "--rate", "1")[1]
        assert len(every) == 8 and all(0 < value - alias < 10 for value, alias in every.values()), every
        for count, rate, arguments in ((8, "1", ()), (0, "64k", ()), (8, "64k", ("--python-allocators", "on")), (0, "1", ("--python-allocators", "off")),
                                       (0, "1", ("--python-allocators", "off", "--hooks", "entry"))):
            got, words = told(context, victim.pid, "--rate", rate, *arguments)
            assert len(words) == count and not got, (arguments, words, got)
            session = Session(context, victim.pid, *arguments, rate=rate)
            now = values(victim.pid, every)
            assert now == {address: every[address][address in words] for address in every}, (arguments, now, words)
            receipt = session.stop()
            check_receipt(receipt, victim.pid)
            # glibc before 2.34: the dlopen of the payload binds one of libdl.
            refused = re.search(r"not seen: (\d+) GOT entries could not be patched", session.said())
            patched = len(got) - int(refused[1] if refused else 0)
            assert (receipt["slots"]["patched"], receipt["python"]["patched"]) == (patched, count), (receipt, len(got))
            said = [rf"{patched} GOT entries in \d+ modules"] * (patched > 0) + [f"{count} words? of CPython"] * (count > 0)
            assert re.search(", ".join(said) + ", thread stopped", session.said()), session.said()
            said = [f"{patched} of {patched} GOT entries"] * (patched > 0) + [f"{count} of {count} words of CPython"] * (count > 0)
            assert re.search(" and ".join(said) + " restored, thread stopped", session.said()), session.said()
            assert values(victim.pid, every) == {address: value for address, (value, _) in every.items()}
        victim.end()
