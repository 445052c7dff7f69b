# SPDX-License-Identifier: MIT
"""Walks of JavaWalks in a session at rate 1, each compared, frame by frame, with what the JVM said of its stack at that moment."""
import collections
import pathlib
import re
import struct
import subprocess
import time

from contracts import counters, header_field
from harness import PATIENCE, Session, Victim, check_receipt, recording
from procfs import Skip
from python_dump import PythonDump, STACK, STACK_BYTES

TARGETS = pathlib.Path(__file__).resolve().parents[1] / "targets" / "languages"
SOURCES = ("JavaWalks.java", "JavaLines.java", "Walk0000.java")
JAVA, METHOD, CALLS, STUB = 11, 1, 2, 1  # region; kinds of records; flag of a method
MARKS = ((1 << 1, 1 << 47), (1 << 3, 1 << 63))  # bits of header.features, and of frames of Java code then
CUT = 1 | 2
DEOPTIMISED_EACH_MS = 15
MADE_UP = re.compile(r"\.\d+(?=\.[^.]*$)")  # before JDK 15 JVMTI adds a hash to the name of an anonymous class, which is in no Symbol
WHITE_BOX = ("-XX:+UnlockDiagnosticVMOptions", "-XX:+WhiteBoxAPI")


class JavaDump(PythonDump):
    """The Java frames of a dump by memattach-dump(5) alone: a second reader beside memanalyze."""

    def __init__(self, path):
        super().__init__(path)
        features, = struct.unpack_from("<Q", self.data, 16)
        self.mark = next((mark for feature, mark in MARKS if features & feature), 0)
        self.methods, self.calls = {}, {}
        for offset, size, _ in self.regions(JAVA):
            self.read_java(offset, size)

    def stack_at(self, at):
        """Whole or not, and the words of its frames."""
        _, count, flags, _, _ = struct.unpack_from(STACK, self.data, at)
        return not flags & CUT, struct.unpack_from(f"<{count}Q", self.data, at + STACK_BYTES)

    def read_java(self, offset, size):
        at, end = offset + 64, offset + min(64 + struct.unpack_from("<Q", self.data, offset)[0], size)
        while at + 16 <= end:
            length, kind, count = struct.unpack_from("<IHH", self.data, at)
            if length == 0:
                break
            if kind == METHOD:
                number, flags = struct.unpack_from("<II", self.data, at + 8)
                self.methods[number] = (self.data[at + 16:at + 15 + count].decode(), flags)
            elif kind == CALLS:
                frame, gone = struct.unpack_from("<QI", self.data, at + 8)
                self.calls.setdefault(frame, None if gone else struct.unpack_from(f"<{2 * count}i", self.data, at + 24))
            at += (length + 15) & ~15

    def frames(self, words):
        """(name, line) of each Java frame, None for one without a name. HotSpot's own code is none."""
        for word in words:
            if not word & self.mark:
                continue
            calls = self.calls.get(word)
            if calls is None:
                yield None
                continue
            for number, line in zip(calls[::2], calls[1::2]):
                name, flags = self.methods[number]
                if not flags & STUB:
                    yield name, max(0, line)


Walk = collections.namedtuple("Walk", "said found whole")  # frames; found: None without a sample


class Tally(collections.Counter):
    """walks, recorded, whole, gone (with a frame without a name), frames, names, lines (that are equal), wrong (walks with a wrong frame)."""

    def __init__(self):
        super().__init__()
        self.examples = []

    def add(self, walk):
        self["walks"] += 1
        if walk.found is None:
            return
        self["recorded"] += 1
        self["whole"] += walk.whole
        self["gone"] += None in walk.found
        pairs = list(aligned(walk.said, walk.found, walk.whole))
        self["frames"] += len(pairs)
        names, lines = sum(a[0] == b[0] for a, b in pairs), sum(a == b for a, b in pairs)
        self["names"] += names
        self["lines"] += lines
        if names < len(pairs):
            self["wrong"] += 1
        if lines < len(pairs) and len(self.examples) < 5:
            self.examples.append([pair for pair in pairs if pair[0] != pair[1]][:3] + [walk])


NOTHING = ("", 0)


def aligned(said, found, whole):
    """Pairs of frames of both. A frame without a name may stand for several, as what is inlined has none either: what lies between two of these
    is compared with as much as there is."""
    first = found.index(None) if None in found else len(found)
    size = max(len(said), len(found)) if whole and None not in found else first
    for i in range(size):
        yield said[i] if i < len(said) else NOTHING, found[i] if i < len(found) else NOTHING
    if first < len(found) and whole:
        outer = found[::-1].index(None)
        for i in range(1, outer + 1):
            yield said[-i] if i <= len(said) else NOTHING, found[-i]


def said_walks(path):
    """Address, size, frames."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            block, *frames = line.rstrip("\n").split("\t")
            address, size = block.split()
            parts = (frame.rpartition(":") for frame in frames)
            yield int(address, 16), int(size), [(MADE_UP.sub("", name), int(number)) for name, _, number in parts]


def compare(dump_path, said_path):
    dump = JavaDump(dump_path)
    blocks = {(address, size): stack for address, size, stack in dump.blocks()}
    named = {}
    tally = Tally()
    for address, size, said in said_walks(said_path):
        stack = blocks.get((address, size))
        if stack is not None and stack not in named:
            whole, words = dump.stacks[stack]
            named[stack] = whole, list(dump.frames(words))
        whole, found = named.get(stack, (False, None))
        tally.add(Walk(said, found, whole))
    tally["stacks"] = len(named)
    tally["no_room"] = counters(dump_path)["lost_stack_full"]
    return tally


def include_of(javac):
    """Where the JDK has jni.h; a javac of another root has none here, and any one is alike."""
    for home in (pathlib.Path(javac).resolve().parents[1], pathlib.Path("/usr/lib/jvm/default-java")):
        if (home / "include" / "jvmti.h").exists():
            return home / "include"
    raise Skip("there is no jvmti.h")


def build(context):
    """The folder with the agent and the classes."""
    folder, javac = pathlib.Path(context.path("walks")), context.program("javac")
    if folder.exists():
        return folder
    include = include_of(javac)
    (folder / "box").mkdir(parents=True)
    for command in ([context.program("gcc"), "-O2", "-g", "-shared", "-fPIC", f"-I{include}", f"-I{include}/linux", "-o", folder / "agent.so", TARGETS / "java_walks.c"],
                    [javac, "-g", "-d", folder / "classes", *(TARGETS / name for name in SOURCES)],
                    [javac, "-d", folder / "box", "--patch-module", f"java.base={TARGETS}", TARGETS / "WhiteBox.java"]):
        subprocess.run(command, check=True, timeout=PATIENCE)
    return folder


def walks(context, count, *options, unloads=False, deoptimised=False):
    """A JVM, the first java in PATH, walks so often in a session; what is right of it."""
    folder, said = build(context), context.unique("said", ".txt")
    box = (*WHITE_BOX, f"-Xbootclasspath/a:{folder}/box") if deoptimised else ()
    arguments = [f"{folder}/agent.so", str(count), f"{folder}/classes/Walk0000.class" if unloads else "-", str(DEOPTIMISED_EACH_MS * deoptimised)]
    victim = Victim(context, [context.program("java"), "-Xmx400m", *options, *box, f"-agentpath:{folder}/agent.so={said}", "-cp", f"{folder}/classes", "JavaWalks",
                              *arguments])
    session = Session(context, victim.pid, "--max-overhead", "0", rate="1")
    while not header_field(recording(victim.pid), "java_version"):  # a JVM that is as busy may be proved a moment later
        session.lines.thread.join(0.1)
        assert session.process.poll() is None, session.said()
    victim.send("go")
    victim.wait("^DONE$")
    time.sleep(1)  # names are looked for each fifth of a second
    check_receipt(session.stop(), victim.pid)
    victim.check_alive()
    victim.send("end")
    assert victim.process.wait(PATIENCE) == 0, victim.lines.seen[-5:]
    victim.lines.thread.join(PATIENCE)
    assert victim.lines.seen[-1].startswith("OK "), victim.lines.seen[-5:]
    return compare(session.dump, said)
