# SPDX-License-Identifier: MIT
"""Somebody else acts at the same time: another memattach, the owner of the dump, a full disk, a child of the target, a stranger with the lock."""
import contextlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import harm
from harm import run_memattach
from harm_kills import Sufferer, sufferer_of
from harness import PATIENCE, Failure, Session, Skip, Snapshot, Victim, analyze, case, check_receipt, check_same, describe, log, read_text

PAIRS = 8  # of each victim; with --kills N: N

SAID_BUSY = "profiled already by memattach, PID"


# Several memattach at once

def start_memattach(context, *arguments):
    return context.start([context.memattach, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def end_of(process):
    try:
        said = process.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        raise Failure(f"memattach {process.args[1:]} does not end") from None
    return process.returncode, said


def at_once(context, sufferer, count, rng, kill):
    """Sessions of equal length that begin within 20 ms: one is there at a time, the others are refused or come after it."""
    started = []
    for _ in range(count):
        started.append(start_memattach(context, "-p", sufferer.pid, "-d", "150ms", "-o", context.unique("once", ".dump"), "--deadline", "20s"))
        time.sleep(rng.uniform(0, 0.02))
    if kill:
        time.sleep(rng.uniform(0, 0.2))
        rng.choice(started).kill()
    ends = [end_of(process) for process in started]
    for code, said in ends:
        refused = code == 1 and SAID_BUSY in said
        if not (code == 0 or refused or (kill and code == -signal.SIGKILL)):
            raise Failure(f"{count} at once ended with {code}: {said}; target: {describe(sufferer.pid)}")
    if not kill and all(code for code, _ in ends):
        raise Failure(f"each of {count} was refused: {ends}")
    if kill:
        result = run_memattach(context, "--detach", "-q", "-p", sufferer.pid, "--deadline", "20s")
        if result.returncode != 0:
            raise Failure(f"--detach after a kill ended with {result.returncode}: {result.stderr}")
    sufferer.victim.check_alive()
    harm.settle(sufferer.state)
    if harm.remains(sufferer.pid):
        raise Failure(f"left in {sufferer.pid}: {harm.remains(sufferer.pid)}")
    return [code for code, _ in ends]


# A python3 that builds lists and dictionaries in two threads, and knows what comes out.
PYTHON = """
import os, signal, sys, threading
done = threading.Event()
signal.signal(signal.SIGUSR1, lambda *a: done.set())
rounds = [0, 0]
def work(which):
    while not done.is_set():
        names = {str(n): [n] * (n % 50) for n in range(1000)}
        if sum(map(len, names.values())) != 24500 or len(names) != 1000:
            print('WRONG sum', flush=True)
        rounds[which] += 1
print('PID', os.getpid(), flush=True)
print('READY', flush=True)
thread = threading.Thread(target=work, args=(1,))
thread.start()
work(0)
thread.join()
print(f'OK python rounds={sum(rounds)}', flush=True)
"""


def python_sufferer(context):
    return Sufferer(context, Victim(context, [context.program("python3"), "-S", "-c", PYTHON]))


def several(context, key, count, kill=False):
    rng = random.Random(f"{key} {count} {kill}")
    sufferer = python_sufferer(context) if key == "python3" else sufferer_of(context, key)
    codes = []
    for _ in range(max(PAIRS, harm.KILLS) if harm.KILLS != 40 else PAIRS):
        codes += at_once(context, sufferer, count, rng, kill)
    sufferer.finish()
    log(f"{key}: {count} at once, ended with 0: {codes.count(0)}, refused: {codes.count(1)}, killed: {codes.count(-9)}")


for short in ("storm", "redis", "python3"):
    def two_at_once(context, key=short):
        """Two sessions that begin and end in the same moment: once a target died of it in 7 of 20 pairs."""
        several(context, key, 2)
    two_at_once.__name__ = f"two_at_once_{short}"
    case(timeout=3600)(two_at_once)


@case(timeout=3600)
def three_at_once(context):
    several(context, "storm", 3)


@case(timeout=3600)
def three_at_once_and_one_is_killed(context):
    several(context, "storm", 3, kill=True)


@case()
def two_detaches_at_once(context):
    """Both are told to finish what a dead memattach left, and both find it finished."""
    sufferer = sufferer_of(context, "storm")
    for _ in range(6):
        session = Session(context, sufferer.pid, rate="64k")
        session.process.kill()
        session.process.wait(PATIENCE)
        ends = [end_of(process) for process in [start_memattach(context, "--detach", "-p", sufferer.pid, "--deadline", "20s") for _ in range(2)]]
        assert [code for code, _ in ends] == [0, 0], ends
        harm.settle(sufferer.state)
        assert not harm.remains(sufferer.pid), harm.remains(sufferer.pid)
    sufferer.finish()


@case()
def second_one_is_refused_by_the_first(context):
    """While a session lasts, also another user and another mount namespace meet its lock."""
    victim = Victim(context, "alloc_loop")
    session = Session(context, victim.pid)
    prefixes = [[]]
    if os.geteuid() == 0 and shutil.which("unshare"):
        prefixes.append(["unshare", "--mount", "--mount-proc"])
    for prefix in prefixes:
        dump = context.unique("second", ".dump")
        result = subprocess.run([*prefix, context.memattach, "-p", str(victim.pid), "-o", dump], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
        assert result.returncode == 1 and f"{SAID_BUSY} {session.process.pid};" in result.stderr, (prefix, result)
        assert f"memattach --detach -p {victim.pid}" in result.stderr and not os.path.exists(dump), result
    check_receipt(session.stop(), victim.pid)
    victim.finish()


def stranger_with_the_lock(context, how):
    """Anybody may lock a pidfd. That keeps memattach away and names the stranger; --detach sends it nothing."""
    victim = Victim(context, "alloc_loop")
    program = f"import fcntl, os, time; f = os.pidfd_open({victim.pid}); fcntl.flock(f, fcntl.{how}); print('LOCKED', flush=True); time.sleep(600)"
    stranger = context.start([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert stranger.stdout.readline().strip() == "LOCKED"
    if not re.search(rf"FLOCK +ADVISORY +(WRITE|READ *) {stranger.pid} ", read_text("/proc/locks")):
        raise Skip("/proc/locks does not show the lock")
    dump = context.path("no.dump")
    result = run_memattach(context, "-p", victim.pid, "-o", dump)
    if result.returncode == 0:
        raise Skip("before Linux 6.9 pidfds of a process have no inode of their own: the lock is on /proc/PID/stat")
    assert result.returncode == 1 and f"PID {stranger.pid} holds the lock" in result.stderr and not os.path.exists(dump), result
    result = run_memattach(context, "--detach", "-p", victim.pid)
    assert result.returncode == 1 and f"PID {stranger.pid}" in result.stderr, result
    assert stranger.poll() is None, "the stranger was ended"
    stranger.kill()
    stranger.wait(PATIENCE)
    harm.cycle(context, victim.pid)
    victim.finish()


@case()
def stranger_with_the_lock_gets_no_signal(context):
    stranger_with_the_lock(context, "LOCK_EX")


@case()
def stranger_who_shares_the_lock_gets_no_signal(context):
    stranger_with_the_lock(context, "LOCK_SH")


@case()
def payload_that_names_a_stranger(context):
    """A target that loads the payload itself and says that another process is its memattach: that is sent no signal. (Its lie may end the target.)"""
    payload = os.path.join(context.targets, "..", "..", "payload", "memattach-payload.so")
    stranger = context.start(["sleep", "600"])
    victim = harm.harm_victim(context, "fakeload", os.path.realpath(payload), str(stranger.pid))
    result = run_memattach(context, "--detach", "-p", victim.pid, "--deadline", "20s")
    assert result.returncode in (0, 1, 2), result
    assert stranger.poll() is None, "the stranger was ended"


def careless_parent(signals_ignored=(), signals_blocked=(), closed=(), descriptors=None):
    """What a parent leaves to the memattach that it starts."""
    def before_exec():
        for number in signals_ignored:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, signals_blocked)
        if descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        for number in closed:
            os.close(number)
    return before_exec


@case()
def parent_is_careless(context):
    """Ignored and blocked signals, closed descriptors, few descriptors: a session is as any other, and its dump holds no messages."""
    victim = Victim(context, "alloc_loop")
    for left in ({"signals_ignored": [signal.SIGCHLD]}, {"signals_blocked": range(1, signal.NSIG)}, {"closed": [0]}, {"closed": [2]},
                 {"closed": [0, 1, 2]}, {"descriptors": 12}):
        dump = context.unique("careless", ".dump")
        process = subprocess.Popen([context.memattach, "-p", str(victim.pid), "-d", "300ms", "-v", "-o", dump, "--deadline", "20s"],
                                   preexec_fn=careless_parent(**left))
        assert process.wait(PATIENCE) == 0, left
        assert whole(context, dump)["target"]["ended"] == "detached", left
    victim.finish()


# The dump on disk

def whole(context, dump):
    report = analyze(context, dump)
    assert report["complete"] and not report["damaged"], report
    return report


def disturb(context, what, seconds=2.5):
    """A session at rate 1 beside somebody who does `what` to the dump again and again: nobody dies, and the end is whole."""
    sufferer = sufferer_of(context, "storm")
    before = Snapshot(sufferer.pid)
    session = Session(context, sufferer.pid, "--max-size", "64M", rate="1")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        what(session.dump)
        time.sleep(0.02)
    sufferer.victim.check_alive()
    assert session.process.poll() is None, session.said()
    check_receipt(session.stop(), sufferer.pid)
    check_same(before, Snapshot(sufferer.pid), busy=True)
    sufferer.finish()
    return session


def truncate(path):
    with contextlib.suppress(FileNotFoundError):
        os.truncate(path, random.choice((0, 1, 4096, 20000)))


@case()
def dump_is_truncated(context):
    """Once both memattach and its target died of SIGBUS."""
    session = disturb(context, truncate)
    assert whole(context, session.dump)["samples"]["taken"] > 1000


@case()
def dump_is_overwritten(context):
    def overwrite(path):
        with contextlib.suppress(FileNotFoundError), open(path, "r+b") as file:
            file.write(os.urandom(65536))
    session = disturb(context, overwrite)
    assert whole(context, session.dump)["samples"]["taken"] > 1000


@case()
def dump_is_deleted(context):
    def delete(path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    session = disturb(context, delete)
    assert whole(context, session.dump)["samples"]["taken"] > 1000


def put_another_file(path):
    with open(path + ".mine", "w", encoding="ascii") as file:
        file.write("mine")
    os.rename(path + ".mine", path)


@case()
def dump_gives_way_to_another_file(context):
    """What somebody puts in its place stays as it is, and the dump gets a name with a number, which is said."""
    done = []

    def replace(path):
        if not done:
            time.sleep(0.2)
            put_another_file(path)
            done.append(path)
    session = disturb(context, replace)
    assert read_text(session.dump) == "mine"
    assert f"the dump is {session.dump}.1" in session.said(), session.said()
    assert whole(context, session.dump + ".1")["samples"]["taken"] > 1000


@case()
def dump_gives_way_to_another_file_at_the_end(context):
    """As before, when only the last copy, after the detach, can find out."""
    sufferer = sufferer_of(context, "storm")
    session = Session(context, sufferer.pid, "--max-size", "64M", rate="1")
    put_another_file(session.dump)
    check_receipt(session.stop(), sufferer.pid)
    sufferer.finish()
    assert read_text(session.dump) == "mine"
    assert f"the dump is {session.dump}.1" in session.said(), session.said()
    assert whole(context, session.dump + ".1")["samples"]["taken"] > 0


@contextlib.contextmanager
def image(context, kind):
    """An empty file system of some 120 MB, in a file of ours."""
    if os.geteuid() != 0:
        raise Skip("file systems are mounted by root")
    if kind != "tmpfs" and not shutil.which(f"mkfs.{kind}"):
        raise Skip(f"mkfs.{kind} is not installed")
    if kind not in read_text("/proc/filesystems"):
        raise Skip(f"this kernel has no {kind}")
    where, disk = context.unique("mount", ""), context.unique("disk", ".img")
    os.mkdir(where)
    if kind == "tmpfs":
        command = ["mount", "-t", "tmpfs", "-o", "size=40m", "none", where]
    else:
        with open(disk, "wb") as file:
            file.truncate((320 if kind == "xfs" else 120) << 20)
        subprocess.run([f"mkfs.{kind}", "-q", disk], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        command = ["mount", "-o", "loop", disk, where]
    mounted = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if mounted.returncode:
        raise Skip(f"{kind} cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", where], check=False)


def fill(where):
    """To the last block."""
    for size in (1 << 20, 4096, 512):
        with contextlib.suppress(OSError), open(os.path.join(where, f"filler-{size}"), "ab", buffering=0) as file:
            while True:
                file.write(b"x" * size)


def disk_is_full(context, kind):
    sufferer = sufferer_of(context, "storm")
    with image(context, kind) as where:
        dump = os.path.join(where, "full.dump")
        session = Session(context, sufferer.pid, "--max-size", "64M", rate="1", output=dump)
        time.sleep(1)
        if kind == "xfs":  # its blocks are shared with a copy: writing to them in place would need new ones
            subprocess.run(["cp", "--reflink=auto", dump, dump + ".copy"], check=True)
        fill(where)
        session.lines.wait(r"full\.dump: .*(No space left|Disk quota)")
        sufferer.victim.check_alive()
        assert session.process.poll() is None, session.said()
        held = re.search(r"it holds the recording until (\d\d:\d\d:\d\d)", session.said())
        session.process.send_signal(signal.SIGINT)
        code, _ = session.process.wait(PATIENCE), session.lines.thread.join(PATIENCE)
        assert code == 3 and held and "what came after is lost" in session.said(), (code, session.said())
        whole(context, dump)
        assert sorted(name for name in os.listdir(where) if "part" in name) == []
        # A name on a full disk: refused before anything is touched.
        fill(where)
        result = run_memattach(context, "-p", sufferer.pid, "-d", "50ms", "-o", os.path.join(where, "other.dump"), "--deadline", "20s")
        if kind != "xfs" or result.returncode == 1:  # which has some blocks left for what is small
            assert result.returncode == 1 and "No space" in result.stderr and not os.path.exists(os.path.join(where, "other.dump")), result
        # There is room again.
        session = Session(context, sufferer.pid, rate="4k", output=context.unique("room", ".dump"))
        check_receipt(session.stop(), sufferer.pid)
    sufferer.finish()


for short in ("tmpfs", "ext4", "btrfs", "xfs"):
    def full_disk(context, kind=short):
        """The disk is filled in the middle of a session: target and memattach live, and what is missing is said."""
        disk_is_full(context, kind)
    full_disk.__name__ = f"full_disk_{short}"
    case()(full_disk)


@contextlib.contextmanager
def stalled(where):
    """Who writes to the file system waits, and cannot even be killed."""
    if not shutil.which("fsfreeze"):
        raise Skip("fsfreeze is not installed")
    frozen = subprocess.run(["fsfreeze", "--freeze", where], stderr=subprocess.PIPE, text=True, check=False)
    if frozen.returncode:
        raise Skip(f"the file system cannot be frozen: {frozen.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", where], check=True)


@case()
def detach_during_the_last_copy(context):
    """memattach has detached and writes its last copy to a slow disk: a --detach waits for it, and does not make it give up."""
    sufferer = sufferer_of(context, "storm")
    with image(context, "ext4") as where:
        session = Session(context, sufferer.pid, "--max-size", "16M", rate="4k", output=os.path.join(where, "slow.dump"))
        with stalled(where):
            session.process.send_signal(signal.SIGINT)
            session.lines.wait(r"^detached from")
            others = [start_memattach(context, "--detach", "-p", sufferer.pid) for _ in range(2)]
            time.sleep(0.5)
            assert session.process.poll() is None, session.said()
        assert session.process.wait(PATIENCE) == 0, session.said()
        assert [end_of(process)[0] for process in others] == [0, 0]
        assert whole(context, session.dump)["target"]["ended"] == "detached"
    sufferer.finish()


@case()
def disk_that_stalls_holds_up_nobody(context):
    """The target is detached from all the same, and a second Ctrl-C ends memattach, with the copy before."""
    sufferer = sufferer_of(context, "storm")
    with image(context, "ext4") as where:
        session = Session(context, sufferer.pid, "--max-size", "16M", rate="4k", output=os.path.join(where, "stalled.dump"))
        with stalled(where):
            time.sleep(2.5)  # a copy has begun, and stands still
            session.process.send_signal(signal.SIGINT)
            session.lines.wait(r"^detached from")
            assert not harm.remains(sufferer.pid)
            time.sleep(2)
            session.process.send_signal(signal.SIGINT)
            assert session.process.wait(PATIENCE) == 3, session.said()
        whole(context, session.dump)
    sufferer.finish()


@case()
def full_disk_has_room_again(context):
    sufferer = sufferer_of(context, "storm")
    with image(context, "tmpfs") as where:
        dump = os.path.join(where, "again.dump")
        session = Session(context, sufferer.pid, "--max-size", "16M", rate="4k", output=dump)
        fill(where)
        session.lines.wait(r"again\.dump: ")
        for name in os.listdir(where):
            if name.startswith("filler"):
                os.unlink(os.path.join(where, name))
        session.lines.wait(r"is complete again")
        check_receipt(session.stop(), sufferer.pid)
        assert whole(context, dump)["target"]["ended"] == "detached"
    sufferer.finish()


@case()
def dump_of_a_killed_memattach_is_whole(context):
    """At any instant there is a whole copy under the name, and nothing beside it; --detach saves the end from the memory."""
    rng = random.Random(5)
    sufferer = sufferer_of(context, "storm")
    folder = context.unique("folder", "")
    os.mkdir(folder)
    for i in range(5):
        dump, saved = os.path.join(folder, f"{i}.dump"), os.path.join(folder, f"{i}.saved")
        session = Session(context, sufferer.pid, "--max-size", "64M", rate="1", output=dump)
        time.sleep(2 + rng.uniform(0, 0.3))  # the second copy is written about then
        session.process.kill()
        session.process.wait(PATIENCE)
        time.sleep(0.5)  # a copy that had begun comes to its end
        assert sorted(os.listdir(folder)) == sorted(os.path.basename(name) for name in [dump, *[f"{k}.{end}" for k in range(i)
                                                                                                   for end in ("dump", "saved")]])
        taken = whole(context, dump)["samples"]["taken"]
        result = run_memattach(context, "--detach", "-p", sufferer.pid, "-o", saved, "--deadline", "20s")
        assert result.returncode == 0 and f"is in {saved}" in result.stderr, result
        report = whole(context, saved)
        assert report["samples"]["taken"] > taken and report["target"]["ended"] == "abandoned", (taken, report["samples"])
        harm.settle(sufferer.state)
    sufferer.finish()


@case()
def recording_waits_for_a_name(context):
    """--detach -o with a name that exists, such as that of the session, does not cost the recording: it stays until another name comes."""
    sufferer = sufferer_of(context, "storm")
    session = Session(context, sufferer.pid, "--max-size", "64M", rate="1")
    session.process.kill()
    session.process.wait(PATIENCE)
    for name in (session.dump, "/nowhere/a.dump"):
        result = run_memattach(context, "--detach", "-p", sufferer.pid, "-o", name, "--deadline", "20s")
        assert result.returncode == 2 and "save it with another -o" in result.stderr, result
    saved = context.path("saved.dump")
    result = run_memattach(context, "--detach", "-p", sufferer.pid, "-o", saved, "--deadline", "20s")
    assert result.returncode == 0, result
    assert whole(context, saved)["samples"]["taken"] > 0
    harm.settle(sufferer.state)
    assert not harm.remains(sufferer.pid)
    # A made name in a directory that cannot be written to: the process comes first, and the exit status tells of the loss.
    session = Session(context, sufferer.pid, rate="64k")
    session.process.kill()
    session.process.wait(PATIENCE)
    result = subprocess.run([context.memattach, "--detach", "-p", str(sufferer.pid), "--deadline", "20s"], cwd="/proc", stderr=subprocess.PIPE,
                            text=True, timeout=PATIENCE, check=False)
    assert result.returncode == 3 and "could not be saved" in result.stderr, result
    sufferer.finish()


@case()
def target_and_memattach_are_killed(context):
    """What is lost is what came after the last copy."""
    victim = Victim(context, "alloc_loop")
    session = Session(context, victim.pid, rate="4k")
    end = time.monotonic() + PATIENCE
    while analyze(context, session.dump)["target"]["duration_seconds"] < 1.5 and time.monotonic() < end:
        time.sleep(0.1)
    session.process.kill()
    victim.process.kill()
    session.process.wait(PATIENCE)
    victim.process.wait(PATIENCE)
    time.sleep(0.5)
    report = whole(context, session.dump)
    assert report["samples"]["taken"] > 10 and report["target"]["duration_seconds"] > 1.5, report["target"]


# What the target writes into the dump

def forged(context, what, seconds):
    """memattach goes on, ends when it is told to, and its file is a dump; what is in that is the target's own affair."""
    victim = harm.harm_victim(context, "evil", what, str(random.getrandbits(32)))
    end = time.monotonic() + seconds
    sessions = 0
    while time.monotonic() < end:
        session = Session(context, victim.pid, "--max-size", "16M", rate=random.choice(("1", "4k", "512k")))
        time.sleep(min(1, seconds / 2))
        assert session.process.poll() is None, session.said()
        session.process.send_signal(signal.SIGINT)
        try:
            code = session.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"memattach does not end: {session.said()}; {describe(session.process.pid)}") from None
        session.lines.thread.join(PATIENCE)
        assert code in (0, 2) and "AddressSanitizer" not in session.said() and "runtime error" not in session.said(), (code, session.said())
        assert os.path.getsize(session.dump) <= 16 << 20, "the dump is larger than --max-size"
        read = subprocess.run([context.memanalyze, "--json", session.dump], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
        assert read.returncode in (0, 1), read
        sessions += 1
    log(f"evil {what}: {sessions} sessions")
    os.kill(victim.pid, signal.SIGKILL)  # that it went on, right or wrong, is not asked of it


for short in ("count", "offset", "loop", "arenas", "counters"):
    def forged_dump(context, what=short):
        """A target that forges what memattach might believe."""
        forged(context, what, 1)
    forged_dump.__name__ = f"forged_{short}"
    case(sanitized=True)(forged_dump)


@case(sanitized=True)
def dump_is_scribbled_over(context):
    """Over every word, again and again."""
    forged(context, "scribble", 4)


@case(label="stress", timeout=3600)
def dump_is_scribbled_over_for_long(context):
    forged(context, "scribble", 600)


# Memory that is limited

@case()
def dump_is_wanted_too_large(context):
    """More than a reference can reach is refused before the target is touched, not by the payload."""
    victim = Victim(context, "alloc_loop")
    for size, expected in (("63G", 0), ("64G", 64)):
        result = run_memattach(context, "-p", victim.pid, "-d", "50ms", "--max-size", size, "-o", context.unique("large", ".dump"), "--deadline", "20s")
        assert result.returncode == expected, result
    victim.finish()


@case()
def memory_of_the_dump_is_not_the_targets(context):
    """A target in a memory cgroup, recorded exactly: its pages stay its own, the dump's are memattach's."""
    base, limit, shared = "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "total_shmem "
    if not os.path.exists(os.path.join(base, limit)):
        base, limit, shared = "/sys/fs/cgroup", "memory.max", "shmem "
    group = os.path.join(base, f"memattach-test-{os.getpid()}")
    try:
        os.mkdir(group)
        harm_write(os.path.join(group, limit), str(96 << 20))
    except OSError as error:
        with contextlib.suppress(OSError):
            os.rmdir(group)
        raise Skip(f"no memory cgroup can be made: {error}") from None
    try:
        victim = Victim(context, "alloc_loop")
        harm_write(os.path.join(group, "cgroup.procs"), str(victim.pid))
        session = Session(context, victim.pid, rate="1")
        time.sleep(2)
        found = re.search(rf"^{shared}(\d+)$", read_text(os.path.join(group, "memory.stat")), re.M)
        if not found:
            raise Skip("memory.stat does not tell shared memory")
        mapped = int(re.search(r"^RssShmem:\s*(\d+)", read_text(f"/proc/{victim.pid}/status"), re.M)[1]) << 10
        assert mapped > 1 << 20, mapped
        assert int(found[1]) < 256 << 10, f"{found[1]} bytes of shared memory count as the target's, which has {mapped} mapped"
        check_receipt(session.stop(), victim.pid)
        victim.finish()
    finally:
        for _ in range(50):
            with contextlib.suppress(OSError):
                os.rmdir(group)
                break
            time.sleep(0.1)


def harm_write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


# Children of the target

FORKING = """
import ctypes, os, signal, sys
def work():
    keep = [b'x' * n for n in range(100, 5000, 7)]
    return sum(map(len, keep))
signal.signal(signal.SIGUSR1, lambda *a: sys.exit(0))
print('PID', os.getpid(), flush=True)
print('READY', flush=True)
for line in sys.stdin:
    if line.strip() == 'fork':
        child = os.fork()
        if child == 0:
            os.dup2(os.open('/dev/null', os.O_RDONLY), 0)
            ctypes.CDLL(None).prctl(1, 9)
            while True:
                work()
        print('CHILD', child, flush=True)
    work()
print('OK 0', flush=True)
"""


def fork_of(context, victim):
    victim.send("fork")
    return int(victim.wait(r"^CHILD \d+$").split()[1])


@case()
def child_of_a_profiled_target(context):
    """Inherited, inert hooks are no session: the child can be attached to at once, and --detach leaves the parent's session alone."""
    victim = Victim(context, [context.program("python3"), "-S", "-c", FORKING], environment={"PYTHONMALLOC": "malloc"})
    session = Session(context, victim.pid, rate="4k")
    for how in ("attach", "detach"):
        child = fork_of(context, victim)
        assert harm.remains(child), "the child inherited nothing"
        if how == "attach":
            dump = context.unique("child", ".dump")
            result = run_memattach(context, "-p", child, "-r", "4k", "-d", "1s", "-o", dump, "--deadline", "20s")
            assert result.returncode == 0 and "inherited" in result.stderr, result
            assert analyze(context, dump)["samples"]["taken"] > 0
        else:
            result = run_memattach(context, "--detach", "-p", child, "--deadline", "20s")
            assert result.returncode == 0, result
        assert not harm.remains(child), harm.remains(child)
        assert not [name for name in os.listdir(context.work) if f".{child}." in name], "the parent's recording was saved as the child's"
        assert session.process.poll() is None, session.said()
        os.kill(child, signal.SIGKILL)
    before = analyze(context, session.dump)["samples"]["taken"]
    victim.send("work")
    time.sleep(0.2)
    check_receipt(session.stop(), victim.pid)
    report = analyze(context, session.dump)
    assert report["target"]["ended"] == "detached" and report["samples"]["taken"] > before, report["target"]
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0
