# SPDX-License-Identifier: MIT
"""Targets that lie (liar.c): what memattach reads before anything is touched is bounded, what it opens is what is mapped, what it prints is printable."""
import ctypes
import json
import os
import resource
import signal
import subprocess
import time

from harness import UNCHANGED, Lines, Victim, case, run_memattach
from procfs import PATIENCE, Skip, describe, read_text
from snapshot import Snapshot, check_same
from harm_refusals import refused

MEMORY_MB = 512 + 32  # what the target decides, and memattach itself
PROCESS_VM_READV = 310


class Used:
    """A memattach that has ended: what it said, and the most memory that it or a child of it had."""

    def __init__(self, context, *arguments, limits=(), environment=None):
        def before_exec():
            for kind, value in limits:
                resource.setrlimit(kind, (value, value))

        process = subprocess.Popen([context.memattach, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, cwd=context.work, preexec_fn=before_exec, env={**os.environ, **(environment or {})})
        context.processes.append(process)
        self.said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = self.code = os.waitstatus_to_exitcode(status)
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.memory_mb = usage.ru_maxrss / 1024


def is_sanitized(context):
    """AddressSanitizer's own memory is no measure."""
    with open(context.memattach, "rb") as file:
        return b"__asan_init" in file.read()


def refused_cheaply(context, *arguments):
    victim = Victim(context, "liar", *map(str, arguments))
    refused(context, victim.pid, "more than", " MB of tables", UNCHANGED, arguments=["--no-cache"])
    if not is_sanitized(context):
        used = Used(context, "--doctor", "-p", victim.pid)
        assert used.memory_mb < MEMORY_MB, used.memory_mb
    victim.finish_by_stdin()


@case()
def lies_about_string_tables(context):
    """Sixteen modules of 512 MB each in one sparse file: refused, with bounded memory."""
    refused_cheaply(context, "tables", 16, 512)


@case()
def lies_about_many_tables(context):
    refused_cheaply(context, "tables", 1500, 1)


@case()
def lies_about_symbols(context):
    refused_cheaply(context, "symbols", 16, 150)


@case()
def lies_about_relocations(context):
    """These are read and thrown away again: what is bounded is how much is read."""
    victim = Victim(context, "liar", "relocations", "40", "60")
    result = run_memattach(context, "-p", victim.pid, "-o", context.path("d.dump"))  # without snapshots: they would read all of it too
    assert result.returncode == 1 and "in a few seconds" in result.stderr and UNCHANGED in result.stderr, result
    assert not os.path.exists(context.path("d.dump")), "a dump was left"
    victim.finish_by_stdin()


@case()
def lies_about_entries(context):
    """A million words that hold malloc: more than a session has GOT entries for, which is found out before they are compared with each other."""
    victim = Victim(context, "liar", "slots", "1000000")
    result = run_memattach(context, "--doctor", "-p", victim.pid)
    assert "it has more than 32768 GOT entries of allocation functions" in result.stdout, result
    victim.finish_by_stdin()


@case()
def lies_about_frames(context):
    """Sixteen times the CIEs may take sixteen times the CPU time, not its square: with a limit of sixty-four times it comes to its end."""
    few, many = 12500, 200000
    victim = Victim(context, "liar", "frames", str(few))
    doctor = ["--doctor", "--no-cache", "-p"]
    cpu_s = Used(context, *doctor, victim.pid).cpu_s
    victim.finish_by_stdin()
    victim = Victim(context, "liar", "frames", str(many))
    used = Used(context, *doctor, victim.pid, limits=[(resource.RLIMIT_CPU, int(64 * cpu_s) + 1)])
    assert used.code == 0 and b"verdict         can be attached to" in used.said, used.said
    assert is_sanitized(context) or used.memory_mb < MEMORY_MB, used.memory_mb
    victim.finish_by_stdin()


@case()
def frames_take_long_to_interpret(context):
    """The only thread sleeps below a function whose call frame information saves two million states: none are made by who stops it."""
    victim = Victim(context, "long_frames")
    before = Snapshot(victim.pid)
    used = Used(context, "-p", victim.pid, "-d", "1ms", "-o", context.path("dump"), "--no-cache", "--no-symbols")
    assert used.code == 0, used.said
    assert is_sanitized(context) or used.memory_mb < 100, used.memory_mb
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.finish()


def waits_in_read(pid):
    try:
        return read_text(f"/proc/{pid}/syscall").startswith((f"{PROCESS_VM_READV} ", "17 "))  # or pread64 of /proc/PID/mem
    except OSError:
        return False


@case()
def interrupted_while_it_prepares(context):
    """Memory of the target that nobody provides (userfaultfd) makes memattach wait: each signal ends it at once, nothing was changed."""
    victim = Victim(context, "liar", "waiting")
    before = Snapshot(victim.pid)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        memattach = context.start([context.memattach, "-p", str(victim.pid), "-o", context.path("d.dump")], stderr=subprocess.PIPE)
        end = time.monotonic() + PATIENCE
        while not waits_in_read(memattach.pid):
            assert time.monotonic() < end and memattach.poll() is None, "memattach does not wait for the memory"
            time.sleep(0.01)
        memattach.send_signal(number)
        assert memattach.wait(PATIENCE) == -number, describe(memattach.pid)
        assert not os.path.exists(context.path("d.dump")), "a dump was left"
    check_same(before, Snapshot(victim.pid))
    victim.finish_by_stdin()


class Opened:
    """Whether a file was opened or read since (inotify)."""

    def __init__(self, path):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0 or self.libc.inotify_add_watch(self.fd, os.fsencode(path), 0x20 | 0x1) < 0:  # IN_OPEN, IN_ACCESS
            raise Skip(f"no inotify: {os.strerror(ctypes.get_errno())}")

    def events(self):
        try:
            return os.read(self.fd, 4096)
        except BlockingIOError:
            return b""
        finally:
            os.close(self.fd)


def run_in(context):
    """Victims make files in their working directory."""
    previous = os.getcwd()
    os.chdir(context.work)
    return previous


@case()
def lies_about_a_file(context):
    """A library's name has the four characters that the kernel writes for a newline; another file has the name with the newline: it is never opened."""
    previous = run_in(context)
    try:
        victim = Victim(context, "liar", "newline", context.target("plugin.so"))
        for kind in ("file", "fifo"):
            decoy, name = context.path("decoy." + kind), context.path("lib\nx.so")
            if kind == "fifo":
                os.unlink(name)
                os.mkfifo(decoy)
            else:
                with open(decoy, "wb") as file, open(context.target("plugin.so"), "rb") as library:
                    file.write(library.read())
            os.symlink(decoy, name)
            opened = Opened(decoy)
            result = run_memattach(context, "--doctor", "-p", victim.pid, "--no-cache")
            assert result.returncode == 0 and "lib\\012x.so" in result.stdout, result
            assert not opened.events(), f"the {kind} was opened"
        victim.finish_by_stdin()
    finally:
        os.chdir(previous)


def check_printable(what, data):
    text = data.decode("utf-8")  # strict
    bad = sorted({hex(ord(c)) for c in text if (ord(c) < 0x20 and c != "\n") or 0x7f <= ord(c) < 0xa0})
    assert not bad, (what, bad, text)
    return text


@case()
def lies_about_names(context):
    """Escape sequences, a newline and no UTF-8 in names of the process, a library and a memory file with our name: nothing of it acts, or is residue."""
    previous = run_in(context)
    try:
        victim = Victim(context, "liar", "names", context.target("plugin.so"))
    finally:
        os.chdir(previous)
    check_printable("doctor", Used(context, "--doctor", "-p", victim.pid).said)
    receipt = context.path("receipt.json")
    session = context.start([context.memattach, "-p", str(victim.pid), "-o", context.path("d.dump"), "-v", "--receipt", receipt],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = b""
    while b"attached to" not in said:
        said += os.read(session.stderr.fileno(), 4096)
    victim.send("map")
    victim.wait("^MAPPED")
    session.send_signal(signal.SIGINT)
    said += session.stderr.read()
    assert session.wait(PATIENCE) == 0, said
    text = check_printable("messages", said)
    assert all(line.startswith(("attached to", "detached from", "memanalyze ", "not seen: ", "stacks: ", "memattach: ")) for line in text.splitlines()), text
    with open(receipt, "rb") as file:
        told = json.loads(check_printable("receipt", file.read()))
    assert told["clean"] is True and told["residue"] == [], told
    assert os.stat(receipt).st_mode & 0o777 == 0o600, oct(os.stat(receipt).st_mode)
    check_printable("detach", Used(context, "--detach", "-p", victim.pid).said)
    victim.finish_by_stdin()


@case()
def receipt_is_a_file_of_its_own(context):
    """A receipt follows no link and waits for no FIFO; a file of before is emptied; what cannot be written is said."""
    victim = Victim(context, "alloc_loop", "calm")
    precious, link, fifo, old = (context.path(name) for name in ("precious", "link", "fifo", "old"))
    for path in (precious, old):
        with open(path, "w", encoding="ascii") as file:
            file.write("x" * 100000)
    os.symlink(precious, link)
    os.mkfifo(fifo)
    for receipt, words in ((link, "symbolic link"), (fifo, "cannot write"), ("/dev/full", "no regular file"), (old, "")):
        result = run_memattach(context, "-p", victim.pid, "-d", "10ms", "-o", context.unique("r", ".dump"), "--receipt", receipt)
        assert result.returncode == 0 and words in result.stderr and ("cannot write the receipt" in result.stderr) == bool(words), result
    with open(precious, encoding="ascii") as file:
        assert file.read() == "x" * 100000, "the file behind the link was written to"
    with open(old, encoding="ascii") as file:
        assert json.load(file)["clean"] is True
    victim.finish()


@case()
def reports_go_where_it_was_said(context):
    """Who may write in the directory of a report leads it nowhere else: not by a link, and not by exchanging the directory meanwhile."""
    victim = Victim(context, "alloc_loop", "calm")
    shared, elsewhere = context.path("shared"), context.path("elsewhere")
    precious = os.path.join(elsewhere, "r.json")
    for directory in (shared, elsewhere):
        os.mkdir(directory)
    with open(precious, "w", encoding="ascii") as file:
        file.write("precious")
    if os.geteuid() == 0:
        link = os.path.join(shared, "link.json")
        os.symlink(precious, link)
        os.lchown(link, 65534, 65534)
        refused = run_memattach(context, "-p", victim.pid, "-d", "10ms", "-o", context.path("x.dump"), "--report", link)
        assert refused.returncode == 1 and "link.json is a symbolic link of another user, which is not followed" in refused.stderr, refused
        os.unlink(link)
    session = context.start([context.memattach, "-p", str(victim.pid), "-o", context.path("r.dump"), "--report", os.path.join(shared, "r.json")],
                            stderr=subprocess.PIPE, text=True)
    Lines(session.stderr).wait("attached to")
    os.rename(shared, shared + ".moved")
    os.symlink(elsewhere, shared)
    session.send_signal(signal.SIGINT)
    assert session.wait(PATIENCE) == 0
    with open(precious, encoding="ascii") as file:
        assert file.read() == "precious", "a file elsewhere was replaced"
    with open(os.path.join(shared + ".moved", "r.json"), encoding="utf-8") as file:
        assert json.load(file)["format"]
    victim.finish()
