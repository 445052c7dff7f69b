# SPDX-License-Identifier: MIT
"""--every: sessions again and again, each with a dump of its own, until somebody says otherwise."""
import os
import re
import shutil
import signal
import subprocess

from contracts import header_field
from harness import DEADLINE, Lines, Victim, case, run_memattach
from procfs import Failure, PATIENCE, read_text
from reports import analyze
from snapshot import Snapshot, check_same


class Repeated:
    """A memattach with --every; its dumps go to a directory of their own."""

    def __init__(self, context, victim, *arguments, every="1500ms", duration="300ms"):
        self.folder = context.unique("dumps", "")
        os.mkdir(self.folder)
        self.process = context.start([context.memattach, "-p", str(victim.pid), "-r", "64k", "--deadline", DEADLINE, "-o", self.folder,
                                      "--every", every, "-d", duration, *arguments],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines, self.names = Lines(self.process.stderr), Lines(self.process.stdout)

    def dump(self):
        """The name of the next dump that is finished."""
        try:
            return self.names.wait(r"\.dump$")
        except Failure as failure:
            raise Failure(f"{failure}; {self.lines.seen[-5:]}") from None

    def session(self):
        """The process of the session that runs."""
        found = read_text(f"/proc/{self.process.pid}/task/{self.process.pid}/children").split()
        assert len(found) == 1, found
        return int(found[0])

    def end(self, expected, *signals):
        for number in signals:
            os.kill(self.process.pid, number)
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"memattach does not end: {self.lines.seen[-5:]}") from None
        self.lines.thread.join(PATIENCE)
        assert code == expected, (code, self.lines.seen)
        return "\n".join(self.lines.seen)


def seed_of(dump):
    with open(dump, "rb") as file:
        return header_field(file.read(4096), "seed")


@case()
def every_session_has_a_seed_of_its_own(context):
    """They follow from that of the command: the first has it, the others numbers that are the same each time, one after the other and at once."""
    victim = Victim(context, "alloc_loop", "calm")
    found = []
    for _ in range(2):
        repeated = Repeated(context, victim, "--seed", "7", every="600ms", duration="100ms")
        found.append([seed_of(repeated.dump()) for _ in range(2)])
        repeated.end(0, signal.SIGINT)
    assert found[0] == found[1] and found[0][0] == 7 and found[0][1] not in (0, 7), found
    program = context.path(f"seed{os.getpid()}")
    shutil.copy(context.target("family"), program)
    others = [Victim(context, [program]) for _ in range(2)]
    folder = context.unique("family", "")
    os.mkdir(folder)
    result = subprocess.run([context.memattach, "--name", os.path.basename(program), "--all", "--seed", "7", "-d", "100ms", "--deadline", DEADLINE, "-q"], cwd=folder,
                            stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    assert sorted(seed_of(os.path.join(folder, name)) for name in os.listdir(folder)) == sorted(found[0]), (found, result)
    for other in others:
        other.process.stdin.close()
        other.process.wait(PATIENCE)
    victim.finish()


@case()
def every_time_a_dump(context):
    """Each session has a dump of its own, of which the latest are kept; between them the process is as it was."""
    victim = Victim(context, "alloc_loop", "calm")
    before = Snapshot(victim.pid)
    profile = context.path("latest.pb.gz")
    repeated = Repeated(context, victim, "--keep", "2", "--report", profile)
    first = repeated.dump()
    check_same(before, Snapshot(victim.pid), busy=True)
    inode = os.stat(profile).st_ino
    second = repeated.dump()
    assert os.stat(profile).st_ino != inode, "the report is that of the first session"
    os.rename(second, second + ".mine")
    with open(second, "w", encoding="ascii") as file:
        file.write("not a dump of memattach")
    repeated.dump()
    repeated.dump()
    said, names = repeated.end(0, signal.SIGINT), repeated.names.seen
    assert re.search(rf"^sessions recorded: {len(names)}, failed: [01]$", said, re.M), said
    assert re.fullmatch(rf"{repeated.folder}/memattach\.alloc_loop\.{victim.pid}\.\d{{8}}-\d{{6}}(-\d+)?\.dump", first), first
    there = {os.path.join(repeated.folder, name) for name in os.listdir(repeated.folder)}
    assert there == {second, second + ".mine", *names[-2:]}, there
    assert read_text(second) == "not a dump of memattach"
    for path in (second + ".mine", *names[-2:]):
        target = analyze(context, path)["target"]
        assert target["ended"] == "detached" and target["duration_seconds"] < 1.5, target
    repeated = Repeated(context, victim, every="2m", duration="100ms")
    repeated.dump()
    check_same(before, Snapshot(victim.pid), busy=True)
    assert "sessions recorded: 1, failed: 0" in repeated.end(0, signal.SIGINT)
    victim.finish()


@case(sanitized=True)
def every_time_after_a_failure(context):
    """An attach that fails is said, and tried again at the next time; when the process ends, so does memattach."""
    victim = Victim(context, "sleeper", "nanosleep")
    repeated = Repeated(context, victim, every="3s", duration="100ms")
    repeated.dump()
    os.rename(repeated.folder, repeated.folder + ".away")
    repeated.lines.wait(f"{repeated.folder} is no directory")
    assert not os.path.exists(repeated.folder), "a dump has taken the name of the directory"
    os.rename(repeated.folder + ".away", repeated.folder)
    assert analyze(context, repeated.dump())["target"]["ended"] == "detached"
    victim.finish()
    said = repeated.end(0)
    assert re.search(rf"\b{victim.pid}\b.* ended\b", said) and re.search(r"^sessions recorded: [1-9]\d*, failed: [1-9]\d*$", said, re.M), said


@case()
def every_time_until_the_process_ends(context):
    """The end of the process is said, also where it comes after a session has detached and before memattach has seen that."""
    victim = Victim(context, "sleeper", "nanosleep")
    repeated = Repeated(context, victim, every="2m", duration="1s")
    repeated.lines.wait("attached to")
    os.kill(repeated.process.pid, signal.SIGSTOP)
    repeated.lines.wait("^memanalyze ")
    victim.finish()
    said = repeated.end(0, signal.SIGCONT)
    assert f"{victim.pid} (sleeper) has ended" in said and "sessions recorded: 1, failed: 0" in said, said


@case()
def every_time_until_something_stays(context):
    """What had to stay would add up: no further session, status 2."""
    victim = Victim(context, "lives", "overhook")
    repeated = Repeated(context, victim, "--hooks", "got", every="2s", duration="1s")
    repeated.lines.wait("attached to")
    victim.send("hook")
    victim.wait("^DONE hook")
    said = repeated.end(2)
    assert "no further session" in said and said.count("attached to") == 1, said
    assert len(os.listdir(repeated.folder)) == 1
    victim.process.kill()


@case()
def every_session_ends_when_told(context):
    """--detach ends the session, and means all of them; so does a signal; and the death of the process that waits ends the session."""
    victim = Victim(context, "alloc_loop", "calm")
    before = Snapshot(victim.pid)
    repeated = Repeated(context, victim, every="2m", duration="1m")
    repeated.lines.wait("attached to")
    result = run_memattach(context, "--detach", "-p", victim.pid)
    assert result.returncode == 0 and "has detached" in result.stderr, result
    assert "sessions recorded: 1, failed: 0" in repeated.end(0)
    check_same(before, Snapshot(victim.pid), busy=True)
    repeated = Repeated(context, victim, every="2m", duration="1m")
    repeated.lines.wait("attached to")
    assert "the process is as before" in repeated.end(0, signal.SIGTERM)
    check_same(before, Snapshot(victim.pid), busy=True)
    repeated = Repeated(context, victim, every="2m", duration="1m")
    repeated.lines.wait("attached to")
    repeated.process.kill()
    repeated.lines.wait("the process is as before")
    repeated.lines.wait("^memanalyze ")
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.finish()


@case()
def every_session_is_finished_when_it_was_killed(context):
    """A session that is killed is detached by the process that waits, what it recorded is saved, and there is no other."""
    victim = Victim(context, "alloc_loop", "calm")
    before = Snapshot(victim.pid)
    repeated = Repeated(context, victim, every="2m", duration="1m")
    repeated.lines.wait("attached to")
    os.kill(repeated.session(), signal.SIGKILL)
    said = repeated.end(3)
    assert "ended by signal 9" in said and "what its session recorded until now is in" in said, said
    check_same(before, Snapshot(victim.pid), busy=True)
    saved = re.search(r"until now is in (\S+)", said)[1]
    assert analyze(context, saved)["target"]["ended"] == "abandoned"
    victim.finish()


@case()
def every_ends_by_a_detach_between_two_sessions(context):
    """There is nothing of a session in the process then; who waits for the next one is found all the same, and nobody else is told to end."""
    victim = Victim(context, "alloc_loop", "calm")
    before = Snapshot(victim.pid)
    runs = [Repeated(context, victim, every="2m", duration="100ms")]
    runs[0].dump()
    runs.append(Repeated(context, victim, every="2m", duration="100ms"))
    runs[1].dump()
    result = run_memattach(context, "--detach", "-p", victim.pid)
    assert result.returncode == 0 and "nothing of memattach" not in result.stderr, result
    for repeated in runs:
        assert f"memattach, PID {repeated.process.pid}, which waited to profile" in result.stderr, result
        assert "sessions recorded: 1, failed: 0" in repeated.end(0)
    result = run_memattach(context, "--detach", "-p", victim.pid)
    assert result.returncode == 0 and "nothing of memattach" in result.stderr, result
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.finish()


@case()
def every_wants_a_directory_and_a_duration(context):
    victim = Victim(context, "sleeper", "pause")
    for wrong in (["--every", "1m"], ["--every", "1m", "-d", "1m"], ["--keep", "3"], ["--every", "1m", "-d", "1s", "--keep", "0"],
                  ["--every", "1m", "-d", "1s", "--detach"], ["--every", "soon", "-d", "1s"], ["--every", "1m", "-d", "1s", "--report", "-"]):
        result = run_memattach(context, "-p", victim.pid, *wrong)
        assert result.returncode == 64 and result.stderr.startswith("memattach: "), (wrong, result)
    result = run_memattach(context, "-p", victim.pid, "--every", "1m", "-d", "1s", "-o", context.path("absent.dump"))
    assert result.returncode == 1 and "directory" in result.stderr, result
    assert not os.path.exists(context.path("absent.dump"))
    victim.finish()


@case()
def every_time_under_nohup(context):
    """SIGHUP that was ignored from the start is still: between two sessions, and in one."""
    victim = Victim(context, "alloc_loop", "calm")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        repeated = Repeated(context, victim)
    finally:
        signal.signal(signal.SIGHUP, before)
    repeated.dump()
    os.kill(repeated.process.pid, signal.SIGHUP)
    repeated.lines.wait("attached to")  # the first
    repeated.lines.wait("attached to")
    for pid in (repeated.session(), repeated.process.pid):
        os.kill(pid, signal.SIGHUP)
    repeated.dump()
    repeated.dump()
    repeated.end(0, signal.SIGINT)
    victim.finish()
