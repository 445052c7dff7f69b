# SPDX-License-Identifier: MIT
"""Processes chosen by name, cgroup or unit; several at once, and the children of a process."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess

from cgroups import cgroup, put_into
from harness import DEADLINE, Lines, Victim, case, run_memattach
from procfs import PATIENCE, Skip, read_text
from reports import stacks_with, sum_of, with_frames

USAGE, CHILDREN, BLOCKS = 64, 10, 100


class Several:
    """A memattach that runs several sessions in a directory of its own."""

    def __init__(self, context, *arguments):
        self.context, self.folder = context, context.unique("several", "")
        os.mkdir(self.folder)
        self.process = context.start([context.memattach, *map(str, arguments)], cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
        self.lines, self.output = Lines(self.process.stderr), Lines(self.process.stdout)
        self.attached = 0

    def await_sessions(self, count):
        while self.attached < count:
            self.lines.wait("attached to")
            self.attached += 1

    def end(self, expected=0):
        assert self.process.wait(PATIENCE) == expected, (self.process.returncode, self.lines.seen)
        self.lines.thread.join(PATIENCE)
        return "\n".join(self.lines.seen)

    def dumps(self):
        return sorted(glob.glob(os.path.join(self.folder, "*.dump")))

    def merged(self):
        result = subprocess.run([self.context.memanalyze, "--json", *self.dumps()], stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
        return with_frames(json.loads(result.stdout))


def done_by_children(victim_lines, count):
    for _ in range(count):
        victim_lines.wait(r"^DONE \d+$")


@case()
def children_of_a_process(context):
    """20 children, half of them made during the session: a dump each, and together exactly what they have allocated; one that
    executes another program goes on in a session of its own."""
    victim = Victim(context, "family", str(CHILDREN))

    def more():
        victim.send("more")
        for _ in range(CHILDREN):
            victim.wait(r"^CHILD \d+$")
    more()
    several = Several(context, "--children", "-r", "1", "--no-symbols", "--deadline", DEADLINE, victim.pid)
    several.await_sessions(1 + CHILDREN)
    more()
    several.await_sessions(1 + 2 * CHILDREN)
    victim.send("go")
    done_by_children(victim.lines, 2 * CHILDREN)
    victim.send("exec")
    several.await_sessions(2 + 2 * CHILDREN)
    several.process.send_signal(signal.SIGINT)
    said = several.end()
    count = 2 + 2 * CHILDREN
    assert f"{count} sessions: {count} done" in said and len(several.dumps()) == count, said
    report = several.merged()
    assert sum_of(stacks_with(report, "child_work"), "live_count") == 2 * CHILDREN * BLOCKS, report["total"]
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


@case()
def children_of_a_command(context):
    """memattach --children -- COMMAND: the program from its main on, and its children; the exit status is that of the program."""
    several = Several(context, "--children", "-r", "1", "--deadline", DEADLINE, "--", context.target("family"), "2")
    several.output.wait("^READY$")
    several.process.stdin.write("more\n")
    several.process.stdin.flush()
    several.await_sessions(3)
    several.process.stdin.write("go\n")
    several.process.stdin.flush()
    done_by_children(several.output, 2)
    several.process.stdin.close()
    assert "3 sessions: 3 done" in several.end()
    assert sum_of(stacks_with(several.merged(), "child_work"), "live_count") == 2 * BLOCKS
    unwritable = run_memattach(context, "--children", "--", context.target("short_life"), preexec_fn=lambda: os.chdir("/proc"))
    assert unwritable.returncode == 7 and "without being profiled" in unwritable.stderr, unwritable


@case()
def chosen_by_command_line(context):
    """Whom no name fits is found by the command line, who has started memattach is not; several are listed with theirs."""
    word = f"shop{os.getpid()}"
    os.mkdir(context.path(word))
    program = os.path.join(context.path(word), "family")
    shutil.copy(context.target("family"), program)
    by_shell = ["sh", "-c", '"$@"; exit $?', "sh", context.memattach, "--name", word, "-d", "100ms", "--deadline", DEADLINE]

    def run():
        return subprocess.run(by_shell, cwd=context.path(word), capture_output=True, text=True, check=False, timeout=PATIENCE)
    nobody = run()
    assert nobody.returncode == 1 and "in its command line" in nobody.stderr, nobody
    victims = [Victim(context, [program])]
    one = run()
    assert one.returncode == 0 and f"attached to {victims[0].pid}" in one.stderr, one
    victims.append(Victim(context, [program]))
    listed = run()
    assert listed.returncode == 1 and "2 processes fit" in listed.stderr, listed
    assert all(re.search(rf"^ *{victim.pid} .* {re.escape(program)}$", listed.stderr, re.M) for victim in victims), listed


@case()
def chosen_by_name_and_cgroup(context):
    """One that is called so is attached to; several are listed, or all of them profiled; wrong usage."""
    name = f"fam{os.getpid()}"
    program = context.path(name)
    shutil.copy(context.target("family"), program)
    victims = [Victim(context, [program]) for _ in range(2)]
    nobody = run_memattach(context, "--name", name + "x", "-d", "100ms")
    assert nobody.returncode == 1 and "no process is called" in nobody.stderr, nobody
    listed = run_memattach(context, "--name", name, "-d", "100ms")
    assert listed.returncode == 1 and "--all" in listed.stderr and all(str(victim.pid) in listed.stderr for victim in victims), listed
    several = Several(context, "--name", name, "--all", "-d", "300ms", "--deadline", DEADLINE)
    assert "2 sessions: 2 done" in several.end() and len(several.dumps()) == 2
    folder = context.unique("dumps", "")
    os.mkdir(folder)
    several = Several(context, "--name", name, "--all", "-d", "300ms", "--deadline", DEADLINE, "-o", folder)
    assert "2 sessions: 2 done" in several.end() and not several.dumps()
    assert {re.fullmatch(r"memattach\..*\.(\d+)\.[-\d]+\.dump", file)[1] for file in os.listdir(folder)} == {str(victim.pid) for victim in victims}
    reported = run_memattach(context, "--name", name, "--all", "-d", "300ms", "-o", folder, "--report", context.path("all.v1.html"),
                             "--report", context.path("dhat.out.all"))
    assert reported.returncode == 0, reported
    for victim in victims:
        with open(context.path(f"all.{victim.pid}.v1.html"), encoding="utf-8") as page:
            assert f"(PID {victim.pid} on " in page.read()
        assert read_text(context.path(f"dhat.out.all.{victim.pid}")).startswith('{\n  "dhatFile')
    assert run_memattach(context, "--name", name, "--all", "--report", "-").returncode == USAGE
    for arguments in (("--all", victims[0].pid), ("--name", name, victims[0].pid), ("--name", name, "--all", "-o", "x.dump"), ("--name", ""),
                      ("--name", name, "--unit", name), ("--doctor", "--name", name, "--all"), ("--children", "--detach", victims[0].pid),
                      ("--name", name, "--", program)):
        assert run_memattach(context, *arguments).returncode == USAGE, arguments
    victims[1].process.stdin.close()
    victims[1].process.wait(PATIENCE)
    one = run_memattach(context, "--name", name, "-d", "100ms", "-o", context.path("one.dump"))
    assert one.returncode == 0 and f"attached to {victims[0].pid}" in one.stderr, one
    if os.geteuid() == 0:
        with cgroup(f"{name}.service") as path:
            put_into(path, victims[0].pid)
            for arguments in (("--cgroup", path), ("--unit", name)):
                result = run_memattach(context, *arguments, "-d", "100ms")
                assert result.returncode == 0 and f"attached to {victims[0].pid}" in result.stderr, (arguments, result)
            below = os.path.join(path, f"{name}x.service")  # as a user makes it below what is his
            os.mkdir(below)
            put_into(below, victims[0].pid)
            result = run_memattach(context, "--unit", f"{name}x", "-d", "100ms")
            assert result.returncode == 1 and "is in the unit" in result.stderr, result
            victims[0].process.stdin.close()
            victims[0].process.wait(PATIENCE)
            os.rmdir(below)


@case()
def one_of_several_is_refused(context):
    """The others are profiled all the same, and the exit status tells; a session that is killed is told of, too."""
    name = f"two{os.getpid()}"
    program = context.path(name)
    shutil.copy(context.target("family"), program)
    victims = [Victim(context, [program]) for _ in range(2)]
    strace = shutil.which("strace")
    if not strace:
        raise Skip("strace is not installed")
    tracer = context.start([strace, "-o", "/dev/null", "-p", str(victims[0].pid)], stderr=subprocess.PIPE, text=True)
    Lines(tracer.stderr).wait("attached")
    several = Several(context, "--name", name, "--all", "--deadline", DEADLINE)
    several.await_sessions(1)
    several.process.send_signal(signal.SIGTERM)
    assert "2 sessions: 1 done, 1 not attached" in several.end(1)
    tracer.send_signal(signal.SIGINT)
    tracer.wait(PATIENCE)
    several = Several(context, "--name", name, "--all", "--deadline", DEADLINE)
    several.await_sessions(2)
    sessions = [int(pid) for pid in read_text(f"/proc/{several.process.pid}/task/{several.process.pid}/children").split()]
    os.kill(sessions[0], signal.SIGKILL)
    several.process.send_signal(signal.SIGTERM)
    said = several.end(2)
    assert "2 sessions: 1 done, 1 killed" in said and f"finish with memattach --detach -p {min(v.pid for v in victims)}" in said, said
    for victim in victims:
        victim.process.stdin.close()
        assert victim.process.wait(PATIENCE) == 0
