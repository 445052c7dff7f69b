# SPDX-License-Identifier: MIT
"""The memory of the recording: a target that writes into it, limits, and children that inherit it."""
import contextlib
import os
import random
import re
import signal
import subprocess
import time

from harness import Session, Victim, case, check_receipt, log, run_memattach
from procfs import Failure, PATIENCE, Skip, describe, read_text
from reports import analyze
from snapshot import remains


# What the target writes

def forged(context, what, seconds):
    """memattach goes on, ends when it is told to, and its file is a dump; what is in that is the target's own affair."""
    victim = Victim(context, "evil", what, str(random.getrandbits(32)))
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
    victim = Victim(context, "alloc_loop", "calm")
    for size, expected in (("63G", 0), ("64G", 64)):
        result = run_memattach(context, "-p", victim.pid, "-d", "50ms", "--max-size", size, "-o", context.unique("large", ".dump"))
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
        victim = Victim(context, "alloc_loop", "calm")
        harm_write(os.path.join(group, "cgroup.procs"), str(victim.pid))
        session = Session(context, victim.pid, rate="1")
        end = time.monotonic() + PATIENCE
        while shared_bytes(victim.pid) <= 1 << 20:
            assert time.monotonic() < end, f"no recording in the memory of the process: {shared_bytes(victim.pid)} bytes"
            time.sleep(0.02)
        found = re.search(rf"^{shared}(\d+)$", read_text(os.path.join(group, "memory.stat")), re.M)
        if not found:
            raise Skip("memory.stat does not tell shared memory")
        assert int(found[1]) < 256 << 10, f"{found[1]} bytes of shared memory count as the target's, which has {shared_bytes(victim.pid)} mapped"
        check_receipt(session.stop(), victim.pid)
        victim.finish()
    finally:
        for _ in range(50):
            with contextlib.suppress(OSError):
                os.rmdir(group)
                break
            time.sleep(0.1)


def shared_bytes(pid):
    return int(re.search(r"^RssShmem:\s*(\d+)", read_text(f"/proc/{pid}/status"), re.M)[1]) << 10


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
        assert remains(child), "the child inherited nothing"
        if how == "attach":
            dump = context.unique("child", ".dump")
            result = run_memattach(context, "-p", child, "-r", "4k", "-d", "1s", "-o", dump)
            assert result.returncode == 0 and "inherited" in result.stderr, result
            assert analyze(context, dump)["samples"]["taken"] > 0
        else:
            result = run_memattach(context, "--detach", "-p", child)
            assert result.returncode == 0, result
        assert not remains(child), remains(child)
        assert not [name for name in os.listdir(context.work) if f".{child}." in name], "the parent's recording was saved as the child's"
        assert session.process.poll() is None, session.said()
        os.kill(child, signal.SIGKILL)
    before = analyze(context, session.dump)["samples"]["taken"]
    victim.send("work")
    session.sampled(before + 1)
    check_receipt(session.stop(), victim.pid)
    report = analyze(context, session.dump)
    assert report["target"]["ended"] == "detached" and report["samples"]["taken"] > before, report["target"]
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0
