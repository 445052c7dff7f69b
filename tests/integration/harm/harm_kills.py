# SPDX-License-Identifier: MIT
"""memattach dies at any instant: SIGKILL at each of its system calls, and at random microseconds; attach and detach both.

After each kill: the victim is alive, was not stopped, its masks, dispositions and descriptors are as before, and
`memattach --detach` leaves nothing behind. Now and then, and at the end: everything of the snapshot, a whole session, right answers.
"""
import collections
import contextlib
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import threading
import time

from cases_java import BusyJava
from cases_python import PROGRAM, pythons
from harness import DEADLINE, KILLS, Session, Victim, case, cycle, log, rootless, run_memattach
from procfs import Failure, PATIENCE, Skip, describe
from snapshot import Snapshot, State, check_same, code_apart, remains, settle
from harm_nginx import NginxUnderLoad
from harm_postgres import PostgresUnderLoad
from harm_redis import RedisUnderLoad

POINTS = 20  # system calls at which one of the short cases kills, beside KILLS random moments
EVERY = 25  # kills between two full comparisons
SESSION = ("-q", "-d", "5ms", "--deadline", DEADLINE)
BRK = {"x86_64": 12, "aarch64": 214}[platform.machine()]
ACTING = ("ptrace", "pwrite64")  # by which memattach changes a target; most of the others only look


class Sufferer:
    """A victim with its state before, and what is to be said at the end."""

    def __init__(self, context, victim, busy=True, compare=True, interrupted=False):
        self.context, self.busy, self.compare, self.interrupted = context, busy, compare, interrupted
        self.victim = victim
        self.pid = self.victim.pid
        cycle(context, self.pid)  # what the first dlopen of a process changes by itself
        self.before = Snapshot(self.pid)
        self.apart = code_apart(self.pid)
        self.state = State(self.pid, looks=20)
        self.cycles, self.kills, self.ended, self.codes_seen = 0, 0, 0, collections.Counter()
        self.named = set()  # addresses of inert trampolines of which memattach has said that they had to stay

    def cycle(self, *arguments, duration="5ms"):
        """A whole session, and what can be seen of it afterwards."""
        self.cycles += 1
        try:
            cycle(self.context, self.pid, *arguments, duration=duration)
            self.victim_lives()
            self.check_what_remains()
            if self.cycles % EVERY == 0:
                self.whole_check()
        except Failure as failure:
            raise Failure(f"cycle {self.cycles}: {failure}; {describe(self.pid)}") from None

    def check_what_remains(self):
        """Nothing but what memattach has named."""
        left = [line for line in remains(self.pid) if int(line.split("-")[0], 16) not in self.named]
        if left:
            raise Failure(f"still mapped: {left}")
        if code_apart(self.pid) - self.apart:
            raise Failure(f"still apart: {code_apart(self.pid) - self.apart}")
        settle(self.state)

    def note_named(self, killed, result):
        """
        Trampolines may stay where something of the session cannot be taken back: memattach ends with 2 then, or dies before it can, and a
        --detach names them. That is rare.
        """
        named = {int(at, 16) for at in re.findall(r"inert trampolines (?:of an earlier session .*)?at 0x([0-9a-f]+)", result.stderr)}
        if 2 in (killed, result.returncode) or killed == -signal.SIGKILL:
            self.named |= named
        if len(self.named) > 1 + self.kills // 20:
            raise Failure(f"trampolines stay too often: {len(self.named)} in {self.kills} kills")

    def take_out(self):
        """By --detach, which gives up, and says so, where a thread gets no processor for seconds: then once more."""
        for _ in range(3):
            result = run_memattach(self.context, "--detach", "-p", self.pid, "--deadline", DEADLINE)
            if "did not stop in time: it is ready to run" not in result.stderr:
                break
        return result

    def after_kill(self, status, where):
        self.kills += 1
        self.ended += status != -signal.SIGKILL
        try:
            self.victim_lives()
            result = self.take_out()
            self.codes_seen[result.returncode] += 1
            if result.returncode not in (0, 2) or (result.returncode == 2) != ("what had to stay:" in result.stderr):
                raise Failure(f"--detach ended with {result.returncode}: {result.stderr}")
            self.note_named(status, result)
            self.victim_lives()
            self.check_what_remains()
            if self.kills % EVERY == 0:
                self.whole_check()
        except Failure as failure:
            raise Failure(f"kill {self.kills}, {where}: {failure}; {describe(self.pid)}") from None

    def victim_lives(self):
        if self.victim.process.poll() is not None:
            raise Failure(f"the victim ended with {self.victim.process.returncode}: {self.victim.lines.seen[-5:]}")
        wrong = self.wrong()
        if wrong:
            raise Failure(f"the victim says {wrong[:5]}")

    def wrong(self):
        """Complaints of the victim; the EINTR that a kill within microseconds of the stop cannot avoid is counted, not judged."""
        said = [line for line in self.victim.lines.seen if line.startswith("WRONG")]
        return [line for line in said if not (self.interrupted and "Interrupted system call" in line)]

    def whole_check(self):
        if self.compare:
            after = Snapshot(self.pid)
            after.maps.leave_out(self.named)
            check_same(self.before, after, self.busy)
        cycle(self.context, self.pid)

    def finish(self):
        self.victim_lives()
        self.whole_check()
        if self.interruptions():
            # The victim counts them as errors: ended without its report.
            log(f"{self.interruptions()} EINTR in {self.kills} kills")
            return
        if self.busy:
            self.victim.rounds_go_on()
        self.victim.finish()

    def interruptions(self):
        return sum("Interrupted system call" in line for line in self.victim.lines.seen)

    def report(self, what):
        log(f"{self.victim.name}: {self.kills} kills {what}, {self.ended} of them after the end, 0 harmed; "
            f"--detach ended {dict(self.codes_seen)}")


def tidy(context):
    for name in os.listdir(context.work):
        if name.endswith(".dump") or name.endswith(".json"):
            os.unlink(context.path(name))


def attach_command(context, pid):
    return [context.memattach, "-p", str(pid), *SESSION, *context.options, "-o", context.unique("killed", ".dump")]


def detach_command(context, pid):
    return [context.memattach, "--detach", "-q", "-p", str(pid), "--deadline", DEADLINE]


def leave_session(context, pid, *arguments):
    """A session whose memattach was killed."""
    session = Session(context, pid, *arguments)
    session.process.kill()
    session.process.wait(PATIENCE)


def random_kills(context, sufferer, kills, detach_share=4, end=None):
    """Kills at times drawn evenly over the length of a run, until the time end; every fourth hits a --detach."""
    generator = random.Random(os.getpid())
    lengths = {}
    for i in range(kills):
        if end and time.monotonic() > end:
            break
        detaching = i % detach_share == detach_share - 1
        if detaching:
            leave_session(context, sufferer.pid)
        command = (detach_command if detaching else attach_command)(context, sufferer.pid)
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=context.work)
        context.processes.append(process)
        if detaching not in lengths:
            said = process.communicate(timeout=PATIENCE)[1]
            if process.returncode not in (0, 2):
                raise Failure(f"memattach ended with {process.returncode}, undisturbed: {said}")
            lengths[detaching] = time.monotonic() - start
        else:
            delay = generator.random() * lengths[detaching] * 1.1
            time.sleep(delay)
            process.kill()
            process.communicate(timeout=PATIENCE)
        context.processes.remove(process)
        sufferer.after_kill(process.returncode, f"{'detach' if detaching else 'attach'} at random")
        if process.returncode == 0:
            lengths[detaching] = 0.9 * lengths[detaching] + 0.1 * (time.monotonic() - start) * 0.5
            lengths[detaching] = max(lengths[detaching], 0.02)
        tidy(context)


def count_calls(context, command, names=()):
    """(name, number) -> how often memattach makes that system call, from one run under strace; of these names, or of all."""
    trace = context.unique("trace", ".txt")
    only = ["--seccomp-bpf", "-e", "trace=" + ",".join(names)] if names else []  # all others are as fast as ever
    # Before the victim, where that is allowed: under strace memattach is so slow that it may come to no end beside one that takes all processors.
    result = subprocess.run(["nice", "-n", "-10", "strace", "-f", "-qq", "-n", "-e", "raw=all", *only, "-o", trace, *command],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False, cwd=context.work)
    with open(trace, encoding="utf-8", errors="replace") as file:
        calls = re.findall(r"^\d+ +\[ *(\d+)\] +(\w+)\(", file.read(), re.M)
    os.unlink(trace)
    if result.returncode not in (0, 2) or not calls:
        raise Failure(f"memattach under strace ended with {result.returncode}: {result.stderr[-500:]}")
    return collections.Counter((name, int(number)) for number, name in calls)


def kill_points(calls, limit):
    """(call, its how manieth): all, or limit of them spread evenly; the first and last of each call are always there."""
    points = [(call, n) for call, count in sorted(calls.items()) for n in range(1, count + 1)]
    if not limit or len(points) <= limit:
        return points
    edges = [(call, n) for call, count in sorted(calls.items()) for n in sorted({1, count})]
    step = max(1, len(points) // max(1, limit - len(edges)))
    shift = random.Random(os.getpid()).randrange(step)
    return sorted(set(edges[:limit]) | set(points[shift::step]))


def sampled_points(calls, every):
    """Each acting call, the first and the last of every other, and of these each every-th."""
    shift = random.Random(os.getpid()).randrange(every)
    return [(call, n) for call, count in sorted(calls.items()) for n in range(1, count + 1)
            if call[0] in ACTING or n in (1, count) or n % every == shift]


def calls_of(context, sufferer, detaching):
    """How often each system call is made by an attach with its detach, or by a --detach."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    if detaching:
        leave_session(context, sufferer.pid)
    try:
        return count_calls(context, (detach_command if detaching else attach_command)(context, sufferer.pid))
    finally:
        # So slow as it is under strace, it may not have come to its end beside a victim that takes all processors.
        run_memattach(context, "--detach", "-p", sufferer.pid, "--deadline", DEADLINE)


def kill_at(context, detaching, pid, number, count):
    """Kills memattach at a system call; returns how it ended."""
    command = (detach_command if detaching else attach_command)(context, pid)
    killer = context.tool("kill_at")
    process = subprocess.Popen([killer, str(number), str(count), *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               cwd=context.work)
    context.processes.append(process)
    process.wait(PATIENCE)
    context.processes.remove(process)
    return process.returncode


def kill_at_call(context, sufferer, detaching, call, count):
    name, number = call
    if detaching:
        leave_session(context, sufferer.pid)
    code = kill_at(context, detaching, sufferer.pid, number, count)
    sufferer.after_kill(code, f"{'detach' if detaching else 'attach'} at {name} {count}")
    tidy(context)


def check_kills(missed, kills):
    """Now and then a run makes a few calls less than the one that was counted."""
    if missed > max(10, kills // 2):
        raise Failure(f"{missed} of {kills} kills came too late: they do not work")


def system_call_kills(context, sufferer, limit, detaching):
    points = kill_points(calls_of(context, sufferer, detaching), limit)
    missed = sufferer.ended
    for call, count in points:
        kill_at_call(context, sufferer, detaching, call, count)
    check_kills(sufferer.ended - missed, len(points))


def python(context, *kinds):
    """python_busy.py, under one of the interpreters that cases_python.py knows."""
    command = [random.choice(pythons(context)), str(PROGRAM.with_name("python_busy.py")), *kinds]
    return Victim(context, command, environment={"PYTHONWARNINGS": "ignore"})


VICTIMS = {
    "python": dict(make=python),
    "python-forks": dict(make=lambda context: python(context, "forks", "generators", "made_code")),
    "java": dict(make=BusyJava, busy=False, compare=False),
    "storm": dict(name="alloc_loop"),
    "redis": dict(make=RedisUnderLoad),
    "postgres": dict(make=PostgresUnderLoad),
    "nginx": dict(make=NginxUnderLoad),
    "signals": dict(name="signals"),
    "churn": dict(name="thread_churn"),
    "forks": dict(name="fork_storm"),
    "dlopen": dict(name="dlopen_storm", plugin=True, compare=False),
    "exceptions": dict(name="cxx_exceptions"),
    "vectors": dict(name="vectors"),
    "tight": dict(name="tight_padding"),
    "musl": dict(name="alloc_loop_musl"),
    "musl-forks": dict(name="fork_storm_musl"),
    "musl-churn": dict(name="thread_churn_musl"),
    "rootless": dict(make=lambda context: Victim(context, rootless(context, "alloc_loop"))),
    "nanosleep": dict(name="sleeper", mode="nanosleep", busy=False),
    "poll": dict(name="sleeper", mode="poll", busy=False),
    "futex": dict(name="sleeper", mode="futex_timed", busy=False),
    "read": dict(name="sleeper", mode="read", busy=False),
    "pause": dict(name="sleeper", mode="pause", busy=False),
    "epoll": dict(name="sleeper", mode="epoll_wait_forever", busy=False, interrupted=True),
    "semop": dict(name="sleeper", mode="semop", busy=False, interrupted=True),
}


class Signals(threading.Thread):
    """Sends signals that must interrupt nothing, all the time."""

    def __init__(self, pid, numbers):
        super().__init__(daemon=True)
        self.pid, self.numbers, self.stop = pid, numbers, threading.Event()

    def run(self):
        while not self.stop.is_set():
            for number in self.numbers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, number)
            time.sleep(0.0002)


def sufferer_of(context, key):
    options = dict(VICTIMS[key])
    make, name, mode = options.pop("make", None), options.pop("name", None), options.pop("mode", None)
    arguments = [mode] if mode else []
    if options.pop("plugin", False):
        arguments = [context.target("plugin.so")]
    return Sufferer(context, make(context) if make else Victim(context, name, *arguments), **options)


def share(context, key, points, kills):
    """A little of everything, for the label integration."""
    sufferer = sufferer_of(context, key)
    system_call_kills(context, sufferer, points, False)
    system_call_kills(context, sufferer, points // 2, True)
    random_kills(context, sufferer, kills)
    sufferer.finish()
    sufferer.report("spread over its system calls and at random")


# Each way to load and to hook: a program of several threads has its payload mapped by memattach, one of a thread loads it; by themselves
# both have entry hooks.
GOT = ("--hooks", "got")
for short, ways in (("storm", ()), ("signals", GOT), ("poll", ()), ("epoll", GOT), ("tight", ()), ("vectors", ())):
    def killed(context, key=short, options=ways):
        """memattach is killed at some of its system calls and at random; the victim goes on as if nothing were."""
        context.options = options
        share(context, key, max(4, POINTS * context.kills // KILLS), context.kills)
    killed.__name__ = f"killed_{short}"
    case()(killed)

@case()
def killed_while_code_is_joined(context):
    """Between the last jump that is taken back and the end of a session: the C library's code is one mapping again after --detach."""
    context.options = ("--hooks", "entry")
    sufferer = sufferer_of(context, "pause")
    for call, count in calls_of(context, sufferer, False).items():
        if call[0] == "ptrace":
            for nth in range(max(1, count - 80), count, 6):
                kill_at_call(context, sufferer, False, call, nth)
    assert sufferer.kills >= 10, sufferer.kills
    sufferer.finish()
    sufferer.report("at the end of a session")


for short in VICTIMS:
    def every_call(context, key=short):
        sufferer = sufferer_of(context, key)
        system_call_kills(context, sufferer, 0, False)
        system_call_kills(context, sufferer, 0, True)
        sufferer.finish()
        sufferer.report("at each of its system calls")
    every_call.__name__ = f"killed_at_every_call_{short.replace('-', '_')}"
    case(label="stress", timeout=7200)(every_call)

    def at_random(context, key=short):
        sufferer = sufferer_of(context, key)
        random_kills(context, sufferer, context.kills)
        sufferer.finish()
        sufferer.report("at random")
    at_random.__name__ = f"killed_at_random_{short.replace('-', '_')}"
    case(label="stress", timeout=36000)(at_random)


@case()
def kill_at_leaves_children_their_calls(context):
    """What counts memattach's calls changes none of its children: they compile unwind tables, and all of them."""
    victim = Victim(context, "alloc_loop")
    counted = [context.tool("kill_at"), str(BRK), "1000000", *attach_command(context, victim.pid)]
    result = subprocess.run([word for word in counted if word != "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=PATIENCE,
                            check=False, cwd=context.work, env={**os.environ, "XDG_CACHE_HOME": context.path("no-cache-yet")})
    assert result.returncode == 0 and "unwind table" not in result.stderr, result
    victim.finish()


@case()
def killed_while_signals_wait(context):
    """Signals that the program ignores, or handles with SA_RESTART, wait while memattach is killed: they interrupt no call."""
    for mode, numbers in (("wait4", (signal.SIGCHLD, signal.SIGWINCH)), ("read_restarting", (signal.SIGUSR2,))):
        sufferer = Sufferer(context, Victim(context, "sleeper", mode), busy=False, compare=False)
        calls = calls_of(context, sufferer, False)
        call = next(call for call in calls if call[0] == "ptrace")
        signals = Signals(sufferer.pid, numbers)
        signals.start()
        # What memattach does under signals takes more calls than without: those beyond are visited at random.
        for count in range(random.randrange(1, 8), calls[call], 8):
            kill_at_call(context, sufferer, False, call, count)
        signals.stop.set()
        signals.join()
        sufferer.finish()
        sufferer.report("while signals wait")


@case()
def second_session_takes_over(context):
    """A session whose memattach died is taken over by the next `memattach -p`, recording and all."""
    sufferer = sufferer_of(context, "storm")
    for _ in range(5):
        leave_session(context, sufferer.pid)
        result = run_memattach(context, "-p", sufferer.pid, "-d", "100ms", "-o", context.unique("second", ".dump"))
        said = re.search(r": (\d+) functions of .*?(\d+) of (\d+) functions", result.stderr, re.S)
        assert result.returncode == 0 and said and said[1] == said[2] == said[3], result
        settle(sufferer.state)
        assert not remains(sufferer.pid), remains(sufferer.pid)
    sufferer.finish()
