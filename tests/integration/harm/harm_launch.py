# SPDX-License-Identifier: MIT
"""memattach -- COMMAND: the program is profiled from its main on, and is what it would be without us."""
import contextlib
import os
import platform
import pty
import random
import re
import shutil
import signal
import subprocess
import time

from harness import Lines, case, run_memattach
from procfs import Failure, PATIENCE, Skip, read_text
from reports import analyze, analyze_text, stacks_with, sum_of

POLL = {"x86_64": 7, "aarch64": 73}[platform.machine()]  # of the C library's poll()

NOBODY = 65534
FAILED, NOT_EXECUTED, NOT_FOUND = 125, 126, 127
SHAPES = ("short_life", "short_life_nopie", "short_life_static", "short_life_static_pie", "short_life_musl", "short_life_musl_static",
          "short_life_musl_static_pie")


def launch(context, *command, options=(), **more):
    return run_memattach(context, *options, "--", *command, **more)


def live_of_main(context, dump):
    """Live blocks that main has allocated, and whether the constructor of the program was seen."""
    report = analyze(context, dump)
    assert report["complete"], report["target"]
    return sum_of(stacks_with(report, "main"), "live_count"), bool(stacks_with(report, "begin"))


@case()
def launched_from_its_main_on(context):
    """1000 blocks, 400 freed: 600 live, of whatever kind the program is; the constructors of one with a loader are seen, too."""
    for shape in SHAPES:
        if not os.path.exists(os.path.join(context.targets, shape)):
            continue
        dump = context.unique(shape, ".dump")
        result = launch(context, context.target(shape), options=("-r", "1", "-o", dump))
        assert result.returncode == 7 and "attached to" in result.stderr, result
        blocks, constructor = live_of_main(context, dump)
        assert blocks == 600 and constructor == (shape in ("short_life", "short_life_nopie", "short_life_musl")), (shape, blocks, constructor)


@case()
def launched_ends_as_it_ends(context):
    """Exit status, death by signal, a parent that ends before its child, execve; what cannot be started is told as by the shell; -o may be a
    directory."""
    program = context.target("short_life")
    script = context.path("script")
    with open(script, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\n{program} now && exit 9\n")
    os.chmod(script, 0o755)
    for command, expected in (((program, "kill"), -signal.SIGUSR2), ((program, "now"), 0), ((program, "fork"), 5), ((program, "exec"), 0),
                              ((script,), 9), (("/dev/null",), NOT_EXECUTED), (("no such program",), NOT_FOUND),
                              ((context.path("none/at-all"),), NOT_FOUND)):
        result = launch(context, *command)
        assert result.returncode == expected, (command, expected, result)
        assert ("attached to" in result.stderr) == (expected < NOT_EXECUTED), result
        assert ("cannot execute" in result.stderr) == (expected >= NOT_EXECUTED), result
    becomes = launch(context, "env", "sleep", "2.5")
    assert becomes.returncode == 0 and "(env) called execve: its heap is gone" in becomes.stderr and "with --children another one" in becomes.stderr, becomes
    folder = context.path("folder")
    os.mkdir(folder)
    assert launch(context, program, options=("-o", folder)).returncode == 7
    assert len(os.listdir(folder)) == 1, os.listdir(folder)
    taken = context.path("taken.dump")
    with open(taken, "w", encoding="ascii"):
        pass
    for options, reason in ((("-o", taken), "exists"), (("--report", "x.what"), "does not tell the format")):
        refused = launch(context, program, options=options)
        assert refused.returncode == FAILED and reason in refused.stderr, refused


@case()
def launched_runs_without_us_if_need_be(context):
    """What cannot be attached to is started all the same, and that is said."""
    program = context.target("short_life")
    result = launch(context, program, options=("-o", context.path("nowhere/x.dump")))
    assert result.returncode == 7 and "runs without being profiled" in result.stderr, result
    if os.geteuid() == 0:
        gains = context.path("gains")
        shutil.copy(program, gains)
        os.chmod(context.work, 0o755)
        os.chmod(gains, 0o4755)
        result = launch(context, gains, "state", preexec_fn=lambda: os.setresuid(NOBODY, NOBODY, NOBODY))
        if "rights 1" not in subprocess.run([gains, "state"], preexec_fn=lambda: os.setresuid(NOBODY, NOBODY, NOBODY), stdout=subprocess.PIPE,
                                            text=True, check=True).stdout:
            raise Skip("this file system does not heed set-user-ID")
        assert result.returncode == 0 and "rights 1" in result.stdout, result
        assert re.search("(was not|without being) profiled", result.stderr), result


@case()
def launched_inherits_what_it_would(context):
    """Signal actions and mask, limits, descriptors, also closed ones, an alarm, the number that systemd's sockets are for; the padding and
    the auxiliary vector are as they were."""
    program = context.target("short_life")
    for before in ("export LISTEN_PID=$$; ", "trap '' INT HUP PIPE CHLD; ulimit -n 77; exec 0<&- 7</dev/null; ", "ulimit -S -n 99; exec 2>&-; "):
        said = [subprocess.run(["/bin/sh", "-c", f"{before} exec {command} {program} state"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True, timeout=PATIENCE, cwd=context.work, check=True,
                               preexec_fn=lambda: signal.setitimer(signal.ITIMER_REAL, 3600)).stdout
                for command in ("", f"{context.memattach} -q --")]
        assert said[0] == said[1] and "entry kept" in said[0] and "alarm 1" in said[0], (before, said)
        assert ("sockets 1" in said[0]) == ("LISTEN_PID" in before), (before, said)


def lines_of_terminal(descriptor):
    """Until nobody has the other end open, which is an error of its own."""
    with os.fdopen(descriptor, encoding="ascii", errors="replace") as file:
        try:
            yield from file
        except OSError:
            return


def end_of_leader(leader):
    """Of a session: how it has ended."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        pid, status = os.waitpid(leader, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(leader, signal.SIGKILL)
    raise Failure("memattach does not end")


class OnTerminal:
    """A launch that leads a session on a terminal of its own."""

    def __init__(self, context):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(context.work)
            os.execv(context.memattach, [context.memattach, "-q", "--", context.target("short_life"), "wait"])
        self.lines = Lines(lines_of_terminal(os.dup(self.master)))

    def end(self):
        return end_of_leader(self.pid)


@case()
def launched_gets_each_signal_once(context):
    """Ctrl-C from the terminal, and signals that somebody sends to memattach."""
    there = OnTerminal(context)
    there.lines.wait("READY")
    os.write(there.master, b"\x03")
    there.lines.wait(rf"SIGNAL {int(signal.SIGINT)}")
    for number in (signal.SIGUSR1, signal.SIGINT, signal.SIGUSR1):
        os.kill(there.pid, number)
        there.lines.wait(rf"SIGNAL {int(number)}")
    os.kill(there.pid, signal.SIGTERM)
    assert there.end() == 3
    assert len([line for line in there.lines.seen if "SIGNAL" in line]) == 4, there.lines.seen


@case()
def launched_hears_of_the_end_of_its_terminal(context):
    """Where memattach leads the session, as in a window that is closed, the kernel tells only memattach."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(context.work)
        os.execv(context.memattach, [context.memattach, "-q", "--", context.target("short_life"), "wait"])
    text = b""
    while b"READY" not in text:
        text += os.read(master, 4096)
    os.close(master)
    assert end_of_leader(pid) == -signal.SIGHUP


@case()
def launched_gets_signals_from_outside_its_namespace(context):
    """Who is in no PID namespace of memattach's has no number there, as one who stops a container from the host."""
    command = ["unshare", "--pid", "--fork", "--mount-proc", "/bin/sh", "-c",
               f"{context.memattach} -q -- {context.target('short_life')} wait; echo ENDED $?"]
    process = context.start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
    lines = Lines(process.stdout)
    try:
        lines.wait("READY")
    except Failure:
        raise Skip(f"no PID namespace can be made: {lines.seen}") from None
    children = process.pid
    for _ in range(2):  # the shell, memattach
        children = int(read_text(f"/proc/{children}/task/{children}/children").split()[0])
    os.kill(children, signal.SIGUSR1)
    lines.wait(rf"SIGNAL {int(signal.SIGUSR1)}")
    os.kill(children, signal.SIGTERM)
    lines.wait("ENDED 3")


def send(group, *arguments):
    """By a process in this group, which is no parent of anything there."""
    def join():
        os.setpgid(0, group)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    subprocess.run(["kill", *map(str, arguments)], preexec_fn=join, check=True)


def wait_until_all_is_heard(pid):
    """Until no signal is pending, and it waits in poll(2): what it heard it has dealt with."""
    end = time.monotonic() + PATIENCE
    while not re.search(r"(?m)^ShdPnd:\s*0+$", read_text(f"/proc/{pid}/status")) or not read_text(f"/proc/{pid}/syscall").startswith(f"{POLL} "):
        if time.monotonic() > end:
            raise Failure("memattach does not hear the signal")
        time.sleep(0.001)


@case()
def launched_gets_signals_from_its_group(context):
    """A signal for memattach alone is passed on, whoever sends it; one for the group has reached the program already."""
    process = context.start([context.memattach, "-q", "--", context.target("short_life"), "wait"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.setpgid(0, 0))
    lines = Lines(process.stdout)
    lines.wait("READY")
    group = process.pid
    for send_one in (lambda: send(group, "-USR1", process.pid), lambda: send(group, "-USR1", "--", -group), lambda: os.killpg(group, signal.SIGUSR1),
                     lambda: send(group, "-USR1", process.pid), lambda: os.kill(process.pid, signal.SIGUSR1)):
        send_one()
        lines.wait(rf"SIGNAL {int(signal.SIGUSR1)}")
        wait_until_all_is_heard(process.pid)
    # Several at one moment: memattach hears of them together.
    os.kill(process.pid, signal.SIGSTOP)
    for number in (signal.SIGUSR1, signal.SIGINT):
        os.killpg(group, number)
        lines.wait(rf"SIGNAL {int(number)}")
    os.kill(process.pid, signal.SIGCONT)
    wait_until_all_is_heard(process.pid)
    send(group, "-INT", process.pid)
    lines.wait(rf"SIGNAL {int(signal.SIGINT)}")
    send(group, "-TERM", process.pid)
    assert process.wait(PATIENCE) == 3
    assert len([line for line in lines.seen if "SIGNAL" in line]) == 8, lines.seen


def program_of(memattach):
    for child in read_text(f"/proc/{memattach}/task/{memattach}/children").split():
        if read_text(f"/proc/{child}/comm").strip() == "short_life":
            return int(child)
    raise Failure("there is no program")


@case()
def launched_stops_as_a_job(context):
    """A shell with job control sees the job stop when the program does, by Ctrl-Z or by itself, and continues it; SIGSTOP and SIGCONT from
    elsewhere are between the sender and the program."""
    bash = shutil.which("bash")
    if not bash:
        raise Skip("bash is not installed")
    script = (f"{context.memattach} -q -- {context.target('short_life')} wait; echo STOPPED $?; fg; echo AGAIN $?; fg; echo ENDED $?")
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(context.work)
        os.execv(bash, [bash, "--norc", "-m", "-c", script])
    lines = Lines(lines_of_terminal(os.dup(master)))
    lines.wait("READY")
    memattach = int(read_text(f"/proc/{pid}/task/{pid}/children").split()[0])
    program = program_of(memattach)
    os.kill(program, signal.SIGSTOP)
    os.kill(memattach, signal.SIGUSR1)
    os.kill(program, signal.SIGCONT)
    lines.wait(rf"SIGNAL {int(signal.SIGUSR1)}")
    os.write(master, b"\x1a")
    lines.wait(f"STOPPED {128 + signal.SIGTSTP}")
    os.kill(memattach, signal.SIGUSR1)  # waits for both to be continued
    lines.wait(rf"SIGNAL {int(signal.SIGUSR1)}")
    os.kill(program, signal.SIGTSTP)
    lines.wait(f"AGAIN {128 + signal.SIGTSTP}")
    os.kill(memattach, signal.SIGTERM)
    lines.wait("ENDED 3")
    os.close(master)
    os.waitpid(pid, 0)


def session_of(parent):
    """The child of memattach that attaches."""
    for child in read_text(f"/proc/{parent}/task/{parent}/children", "").split():
        if read_text(f"/proc/{child}/comm", "").strip() == "memattach":
            return int(child)
    return None


def without_own(said):
    """What a program prints of its state, but for what differs from one start to the next."""
    return re.sub("(?m)^(entry|fd).*\n", "", said)


def state_alone(context):
    return without_own(subprocess.run([context.target("short_life"), "state"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                                      check=True).stdout)


@case()
def launched_outlives_us_at_each_step(context):
    """memattach is killed at each call by which it looks at the program, writes to it, or lets it go on: from execve to the release."""
    strace = shutil.which("strace")
    if not strace:
        raise Skip("strace is not installed")
    alone = state_alone(context)
    for shape in (name for name in ("short_life", "short_life_static", "short_life_static_pie", "short_life_musl_static_pie")
                  if os.path.exists(os.path.join(context.targets, name))):
        for call in ("ptrace", "pwrite64"):
            for count in range(1, 40):
                process = context.start([strace, "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={count}",
                                         context.memattach, "-q", "--no-symbols", "--", context.target(shape), "state"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                said = process.communicate(timeout=PATIENCE)[0]
                # Before it is told to execute the command it does not; afterwards it runs to its end.
                assert without_own(said) == alone or (not said and (call, count) == ("ptrace", 1)), (shape, call, count, said)
                if process.returncode == 0:
                    assert count > 3, (shape, call, count)
                    break
            else:
                raise Failure(f"{shape}: memattach makes more calls of {call} than are looked at")


@case()
def launched_hears_of_the_end_of_its_session(context):
    """The session alone is killed: that is said, with what to do; the program goes on, is finished by --detach, and memattach ends as it does."""
    process = context.start([context.memattach, "-o", context.path("x.dump"), "--", context.target("short_life"), "wait"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = Lines(process.stderr)
    said.wait("attached to")
    lines = Lines(process.stdout)
    lines.wait("READY")
    os.kill(session_of(process.pid), signal.SIGKILL)
    said.wait(f"the session was ended by signal {int(signal.SIGKILL)}")
    said.wait(f"memattach --detach -p {program_of(process.pid)}")
    result = run_memattach(context, "--detach", "-p", program_of(process.pid))
    assert result.returncode == 0 and "is in" in result.stderr, result
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(PATIENCE) == 3
    assert analyze_text(context, context.path("x.dump")), "the first copy is whole"


@case()
def launched_outlives_us(context):
    """memattach, or the session alone, is killed at random moments of the launch: the program was not started yet, or it runs to its
    end as it is; without a session memattach still ends as it does."""
    shapes, seed = [context.target(name) for name in ("short_life", "short_life_static", "short_life_static_pie")], random.randrange(1 << 30)
    moments = random.Random(seed)
    alone = state_alone(context)
    started = 0
    for count in range(context.kills):
        shape = shapes[count // 3 % len(shapes)]
        process = context.start([context.memattach, "-q", "--no-symbols", "--", shape, "state"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)
        time.sleep(moments.uniform(0, 0.12))
        session = session_of(process.pid) if count % 3 == 2 else None
        with contextlib.suppress(ProcessLookupError):
            os.kill(session or process.pid, signal.SIGKILL)
        try:
            said = process.communicate(timeout=PATIENCE)[0]  # all that were started have ended then
        except subprocess.TimeoutExpired:
            raise Failure(f"the program, or the session, does not end (kill {count}, seed {seed})") from None
        assert without_own(said) in ("", alone), (count, seed, said)
        assert not session or process.wait(PATIENCE) == 0, (count, seed, process.returncode)
        started += said != ""
    assert started, "no program was started"
