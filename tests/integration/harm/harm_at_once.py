# SPDX-License-Identifier: MIT
"""Several memattach at once, and parents of memattach that are careless."""
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

from harm_kills import Sufferer, sufferer_of
from harness import DEADLINE, KILLS, Session, Victim, case, check_receipt, cycle, end_of, log, run_memattach, start_memattach
from procfs import Failure, PATIENCE, Skip, describe, read_text
from reports import whole
from snapshot import remains, settle

PAIRS = 4  # of each victim; with --kills N: N

SAID_BUSY = "profiled already by memattach, PID"


# Several memattach at once

def at_once(context, sufferer, count, rng, kill):
    """Sessions of equal length that begin within 20 ms: one is there at a time, the others are refused or come after it."""
    started = []
    for _ in range(count):
        started.append(start_memattach(context, "-p", sufferer.pid, "-d", "150ms", "-o", context.unique("once", ".dump"), "--deadline", DEADLINE))
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
        result = run_memattach(context, "--detach", "-q", "-p", sufferer.pid)
        if result.returncode != 0:
            raise Failure(f"--detach after a kill ended with {result.returncode}: {result.stderr}")
    sufferer.victim.check_alive()
    settle(sufferer.state)
    if remains(sufferer.pid):
        raise Failure(f"left in {sufferer.pid}: {remains(sufferer.pid)}")
    return [code for code, _ in ends]


# A python3 that builds lists and dictionaries in two threads, and knows what comes out.
PYTHON = """
import os, signal, sys, threading
done = []
signal.signal(signal.SIGUSR1, lambda *a: done.append(1))
rounds = [0, 0]
def work(which):
    while not done:
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
signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # finalizing would make it deadly, and it is sent again
print(f'OK python rounds={sum(rounds)}', flush=True)
"""


def python_sufferer(context):
    return Sufferer(context, Victim(context, [context.program("python3"), "-S", "-c", PYTHON]))


def several(context, key, count, kill=False):
    rng = random.Random(f"{key} {count} {kill}")
    sufferer = python_sufferer(context) if key == "python3" else sufferer_of(context, key)
    codes = []
    for _ in range(max(PAIRS, context.kills) if context.kills != KILLS else PAIRS):
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
        ends = [end_of(process) for process in [start_memattach(context, "--detach", "-p", sufferer.pid, "--deadline", DEADLINE) for _ in range(2)]]
        assert [code for code, _ in ends] == [0, 0], ends
        settle(sufferer.state)
        assert not remains(sufferer.pid), remains(sufferer.pid)
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
        assert result.returncode == 1 and f"{SAID_BUSY} {session.process.pid} (" in result.stderr, (prefix, result)
        assert f"memattach --detach -p {victim.pid}" in result.stderr and not os.path.exists(dump), result
    check_receipt(session.stop(), victim.pid)
    victim.finish()


def stranger_with_the_lock(context, how):
    """A program of root that is no memattach has the lock. That keeps memattach away and is named; --detach sends it nothing."""
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
    assert result.returncode == 1 and re.search(rf"PID {stranger.pid} \(\S+, user \d+\) holds the lock", result.stderr), result
    assert not os.path.exists(dump)
    result = run_memattach(context, "--detach", "-p", victim.pid)
    assert result.returncode == 1 and f"PID {stranger.pid}" in result.stderr, result
    assert stranger.poll() is None, "the stranger was ended"
    stranger.kill()
    stranger.wait(PATIENCE)
    cycle(context, victim.pid)
    victim.finish()


@case()
def stranger_with_the_lock_gets_no_signal(context):
    stranger_with_the_lock(context, "LOCK_EX")


@case()
def stranger_who_shares_the_lock_gets_no_signal(context):
    stranger_with_the_lock(context, "LOCK_SH")


@case()
def lock_of_another_user_keeps_nobody_away(context):
    """Anybody may lock a pidfd, and hand the lock on: a user who has nothing to do with the process prevents no session, no --when, no --detach."""
    if os.geteuid() != 0:
        raise Skip("there is no other user to be")
    victim = Victim(context, "alloc_loop")
    program = (f"import fcntl, os, time; f = os.pidfd_open({victim.pid}); fcntl.flock(f, fcntl.LOCK_EX); os.fork() and os._exit(0)\n"
               "try: fcntl.lockf(f, fcntl.LOCK_EX)\nexcept OSError: pass\nprint('LOCKED', flush=True)\n"
               f"while os.path.exists('/proc/{victim.pid}'): time.sleep(0.1)")
    stranger = context.start(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c", program],
                             stdout=subprocess.PIPE, text=True)
    assert stranger.stdout.readline().strip() == "LOCKED"
    for arguments in ([], ["--when", "rss>1k"]):
        dump = context.unique("strangers", ".dump")
        result = run_memattach(context, "-p", victim.pid, "-d", "100ms", "-o", dump, *arguments)
        assert result.returncode == 0 and whole(context, dump)["target"]["ended"] == "detached", result
    result = run_memattach(context, "--detach", "-p", victim.pid)
    assert result.returncode == 0, result
    victim.finish()


@case()
def payload_that_names_a_stranger(context):
    """A target that loads the payload itself and says that another process is its memattach: that is sent no signal. (Its lie may end the target.)"""
    payload = os.path.join(context.targets, "..", "..", "payload", "memattach-payload.so")
    stranger = context.start(["sleep", "600"])
    victim = Victim(context, "fakeload", os.path.realpath(payload), str(stranger.pid))
    result = run_memattach(context, "--detach", "-p", victim.pid)
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
        process = subprocess.Popen([context.memattach, "-p", str(victim.pid), "-d", "300ms", "-v", "-o", dump, "--deadline", DEADLINE],
                                   preexec_fn=careless_parent(**left))
        assert process.wait(PATIENCE) == 0, left
        assert whole(context, dump)["target"]["ended"] == "detached", left
    victim.finish()
