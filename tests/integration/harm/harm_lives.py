# SPDX-License-Identifier: MIT
"""The life of the process goes on: threads, forks, exec, exit, libraries and other tools at any moment of a session."""
import os
import re
import shutil
import signal
import subprocess
import time

from harness import Session, UNCHANGED, Victim, case, check_receipt, cycle, run_memattach, slow_allocator
from procfs import Failure, PATIENCE, Skip, describe, read_text
from snapshot import Snapshot, check_same, remains
from harm_disturbance import many
from harm_kills import count_calls, kill_at, leave_session

PTRACE = 101  # of system calls


@case()
def thread_churn_many_times(context):
    many(context, "thread_churn")


@case()
def thread_churn_main_has_exited(context):
    many(context, "thread_churn", "main-exits", compare=False)


@case()
def every_thread_lives_for_a_millisecond(context):
    """Whichever thread's files memattach reads, it ends meanwhile; and whenever it looks, there are threads that it has not seen."""
    victim = Victim(context, "lives", "relay")
    for _ in range(5):
        cycle(context, victim.pid)
        victim.check_alive()
    victim.rounds_go_on()
    victim.finish()


@case()
def fork_storm_many_times(context):
    many(context, "fork_storm")


@case()
def dlopen_storm_many_times(context):
    many(context, "dlopen_storm", context.target("plugin.so"), compare=False)


@case()
def cxx_exceptions_many_times(context):
    many(context, "cxx_exceptions")


@case()
def mappings_change(context):
    """A program that splits and merges mappings while its list of mappings is read."""
    many(context, "lives", "mappings")


def at_moments(context, mode, check):
    """A session with a victim that does something after so many milliseconds; memattach must end by itself and tell it."""
    for moment in range(0, 120, 5):
        victim = Victim(context, "lives", mode, str(moment))
        dump = context.unique("moment", ".dump")
        result = run_memattach(context, "-p", victim.pid, "-d", "50ms", "-o", dump)
        try:
            check(victim, result)
        except (AssertionError, Failure) as failure:
            raise Failure(f"{mode} after {moment} ms: {failure}; {result.stderr}; {describe(victim.pid)}") from None
        if os.path.exists(dump):
            os.unlink(dump)


@case(sanitized=True)
def exit_at_any_moment(context):
    def check(victim, result):
        assert result.returncode in (0, 1), f"memattach ended with {result.returncode}"
        assert result.returncode == 0 or re.search(r"^memattach: PID \d+: (lives|the process) (has ended|is a zombie|is about to end)",
                                                   result.stderr), "it does not tell why"
        assert victim.process.wait(PATIENCE) == 7, f"the victim ended with {victim.process.returncode}"
    at_moments(context, "exit", check)


def wait_for_new_program(victim):
    end = time.monotonic() + PATIENCE
    while sum(line == "READY" for line in victim.lines.seen) < 2:
        assert victim.process.poll() is None, f"the victim ended with {victim.process.returncode}"
        assert time.monotonic() < end, "the new program does not start"
        time.sleep(0.01)


@case(sanitized=True)
def exec_at_any_moment(context):
    def check(victim, result):
        assert result.returncode == 0, f"memattach ended with {result.returncode}"  # it attaches to the new program
        wait_for_new_program(victim)
        assert not remains(victim.pid), remains(victim.pid)
        cycle(context, victim.pid)
        victim.finish()
    at_moments(context, "exec", check)


@case()
def exec_without_end(context):
    """A process that executes one program after the other, faster than an attach: memattach gives up, and tells why."""
    script = context.unique("again", ".sh")
    with open(script, "w", encoding="utf-8") as file:
        file.write('exec sh "$0"\n')
    with subprocess.Popen(["sh", script]) as process:
        try:
            result = run_memattach(context, "-p", process.pid, "-d", "50ms", "-o", context.unique("again", ".dump"))
            assert result.returncode == 1 and "one program after the other" in result.stderr, result.stderr
            assert process.poll() is None, f"it ended with {process.returncode}"
        finally:
            process.kill()


@case()
def program_file_is_replaced_during_session(context):
    """An upgrade gives the running program's file another name, or none: that is no execve, and the detach is as always."""
    program = context.unique("lives", "")
    shutil.copy(context.target("lives"), program)
    victim = Victim(context, [program, "calm"])
    session = Session(context, victim.pid)
    os.rename(program, program + ".old")
    time.sleep(1.2)  # it looks once a second
    os.unlink(program + ".old")
    time.sleep(1.2)
    check_receipt(session.stop(), victim.pid)
    assert "execve" not in session.said(), session.said()
    victim.rounds_go_on()
    victim.finish()


def told_of_exec(context, victim, session):
    """The session ends without restoring anything, and says why and nothing else."""
    session.lines.wait("execve")
    assert session.process.wait(PATIENCE) == 0, session.said()
    assert "memattach:" not in session.said() and "detached" not in session.said(), session.said()
    victim.rounds_go_on()
    cycle(context, victim.pid)
    victim.finish()


@case()
def pending_dlerror_is_kept(context):
    """The message that dlerror() would still give to the borrowed thread, over attach and detach."""
    if not hasattr(os, "confstr") or tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split("."))) < (2, 34):
        raise Skip("before glibc 2.34 it is in another place")
    victim = Victim(context, "lives", "dlerror")
    for _ in range(2):
        cycle(context, victim.pid)
        victim.send("tell")
        victim.wait("^TOLD")
    session = Session(context, victim.pid)
    victim.send("tell")
    victim.wait("^TOLD")
    session.stop()
    victim.send("tell")
    victim.wait("^TOLD")
    victim.finish_by_stdin()


@case()
def exec_during_session(context):
    """The session notices that the program was replaced."""
    for pause in (0, 0, 0, 1.2):
        victim = Victim(context, "lives", "exec", "-1")
        session = Session(context, victim.pid)
        time.sleep(pause)
        victim.send("now")
        told_of_exec(context, victim, session)


@case()
def exec_before_detach(context):
    """Told to detach, memattach notices first that the program was replaced: here it could not have noticed earlier."""
    victim = Victim(context, "lives", "exec", "-1")
    session = Session(context, victim.pid)
    session.process.send_signal(signal.SIGSTOP)
    victim.send("now")
    wait_for_new_program(victim)
    session.process.send_signal(signal.SIGINT)
    session.process.send_signal(signal.SIGCONT)
    told_of_exec(context, victim, session)


@case()
def exit_during_session(context):
    victim = Victim(context, "lives", "exit", "-1")
    session = Session(context, victim.pid)
    victim.send("now")
    session.lines.wait("status 7|ended")
    assert session.process.wait(PATIENCE) == 0, session.said()
    assert victim.process.wait(PATIENCE) == 7


def ended_before_the_receipt(context):
    """False: memattach looked less often than the time before, and had compared already."""
    victim = Victim(context, "sleeper", "pause")
    dump = context.unique("late", ".dump")
    command = [context.memattach, "-p", str(victim.pid), "-d", "10ms", "-o", dump]
    looks = sum(count for (name, _), count in count_calls(context, command).items() if name == "getdents64")
    os.unlink(dump)
    # The last looks at directories are those for the receipt.
    session = subprocess.Popen(["strace", "-f", "-qq", "-o", context.path("trace.txt"), "-e", "trace=getdents64", "-e",
                                f"inject=getdents64:delay_enter=150000:when={looks - 10}+", *command],
                               stderr=subprocess.PIPE, text=True)
    context.processes.append(session)
    while session.poll() is None and not remains(victim.pid):
        time.sleep(0.001)
    while session.poll() is None and remains(victim.pid):
        time.sleep(0.001)
    victim.process.kill()
    victim.process.wait(PATIENCE)
    said = session.communicate(timeout=PATIENCE)[1]
    assert session.returncode == 0 and ("ended during the session" in said or "the process is as before" in said), (session.returncode, said)
    return "ended during the session" in said


@case()
def exit_before_the_receipt(context):
    """The process ends when the payload is out and before memattach has compared: nothing can have stayed in it."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    for _ in range(5):
        if ended_before_the_receipt(context):
            return
    raise Failure("the receipt was always made before the process ended")


@case()
def child_that_shares_the_memory(context):
    """A CLONE_VM child runs on the thread pointer of a thread: no call is made on such a thread, the process is refused, the child named."""
    victim = Victim(context, "lives", "clone_vm")
    end = time.monotonic() + PATIENCE
    while not read_text(f"/proc/{victim.pid}/task/{victim.pid}/children"):
        assert time.monotonic() < end, "the child that shares the memory is not made"
        time.sleep(0.005)
    before = Snapshot(victim.pid)
    result = run_memattach(context, "-p", victim.pid, "-o", context.path("c.dump"), "--deadline", "300ms")
    assert result.returncode == 1 and "runs in its memory" in result.stderr and UNCHANGED in result.stderr, result
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.finish()


@case()
def vfork_child_at_detach(context):
    """A child of vfork that is in the payload is no thread of the process: nothing is unmapped under it."""
    victim = Victim(context, "lives", "vfork_busy")
    for _ in range(10):
        # Code would be changed only in a moment without such a child, for which a session waits no longer than its deadline.
        cycle(context, victim.pid, "-r", "1k", "--hooks", "got")
        victim.check_alive()
    victim.rounds_go_on()
    victim.finish()


@case()
def sharing_child_below_the_payload_at_detach(context):
    """A CLONE_VM child of no vfork is in the allocator, called by the payload, and its parent can be stopped: nothing is unmapped under it."""
    victim = Victim(context, "lives", "clone_vm_held", environment=slow_allocator(context, "slow"))
    for _ in range(10):
        session = Session(context, victim.pid, rate="1")
        victim.send("child")
        victim.wait("^HELD")
        time.sleep(0.05)
        check_receipt(session.stop(), victim.pid)
        if "restored" in victim.wait("^BACK"):
            break  # else no thread could be borrowed before it was back, and nothing was tried
    else:
        raise Failure("the tables were never restored while the child was held")
    victim.finish_by_stdin()


@case()
def thread_below_the_payload_at_detach(context):
    """A thread is in the allocator, called by the payload: it is seen there with unwind information and without."""
    for name in ("slow", "blind"):
        victim = Victim(context, "lives", "held_beside", environment=slow_allocator(context, name))
        for _ in range(3):
            session = Session(context, victim.pid, rate="1")
            victim.wait("^HELD")
            victim.wait("^HELD")  # now it is in malloc for a second
            time.sleep(0.1)
            check_receipt(session.stop(), victim.pid)
            victim.rounds_go_on()
            victim.check_alive()
        victim.finish()


@case()
def vfork_during_session(context):
    """A vfork child comes and goes during the session, attach and detach while there is none."""
    victim = Victim(context, "lives", "vfork")
    session = Session(context, victim.pid)
    victim.send("go\nback")
    victim.wait("^BACK")
    check_receipt(session.stop(), victim.pid)
    victim.send("go\nback")
    victim.wait("^BACK")
    victim.finish_by_stdin()


@case(sanitized=True)
def hook_of_another_tool_over_ours(context):
    """Another tool takes a GOT entry during the session and calls on to the trampoline: left alone, named, and callable for ever."""
    victim = Victim(context, "lives", "overhook")
    session = Session(context, victim.pid, "--hooks", "got")
    victim.send("hook")
    assert int(victim.wait("^DONE hook").split()[2]) > 0
    session.process.send_signal(signal.SIGINT)
    receipt = session.end(expected=2)
    check_receipt(receipt, victim.pid, clean=False) if receipt["slots"]["foreign"] == 0 else None
    assert receipt["slots"]["foreign"] == 1, receipt
    assert any("another tool" in text for text in receipt["residue"]), receipt
    victim.send("more")
    assert int(victim.wait("^DONE more").split()[2]) > 0
    # Attach and detach again below the tool's hook; then the tool goes.
    cycle(context, victim.pid, expected=(0, 2))
    victim.send("unhook")
    assert victim.wait("^DONE unhook").split()[2] == "0"
    cycle(context, victim.pid, expected=(0, 2))
    victim.send("end")
    assert victim.process.wait(PATIENCE) == 0, victim.lines.seen


@case()
def hooks_of_the_program_over_all_of_ours(context):
    """The program takes all its GOT entries itself, and a library is loaded: still hooks that lead to trampolines; put back, they are ours again."""
    for put in (True, False):
        victim = Victim(context, "lives", "hook_all", context.target("plugin.so"))
        session = Session(context, victim.pid, "-v", "--hooks", "got")
        victim.send("take")
        victim.wait("^DONE take")
        session.lines.wait("GOT entries more in modules loaded since")  # those of the program were looked at, too
        if put:
            victim.send("put")
            victim.wait("^DONE put")
        session.process.send_signal(signal.SIGINT)
        receipt = session.end(expected=0 if put else 2)
        if put:
            check_receipt(receipt, victim.pid)
            assert receipt["slots"]["gone"] == 0, receipt
        else:
            assert receipt["slots"]["foreign"] == 3, receipt
            assert any("another tool" in text for text in receipt["residue"]), receipt
        victim.send("call")
        victim.wait("^DONE call")
        cycle(context, victim.pid, expected=(0,) if put else (0, 2))
        victim.send("call")
        victim.wait("^DONE call")
        victim.finish_by_stdin()


@case()
def trampoline_that_is_put_back(context):
    """A GOT entry that held its old value when a detach looked, and was given up, holds the trampoline again at the next detach: it is ours."""
    victim = Victim(context, "lives", "hook_all", context.target("plugin.so"))
    leave_session(context, victim.pid, "--hooks", "got")
    victim.send("old")
    victim.wait("^DONE old")
    assert kill_at(context, True, victim.pid, PTRACE, 1) == -signal.SIGKILL  # it looks at the GOT entries before it asks a thread to stop
    victim.send("put")
    victim.wait("^DONE put")
    result = run_memattach(context, "--detach", "-p", victim.pid)
    said = re.search(r"(\d+) of (\d+) GOT entries restored", result.stderr)
    assert result.returncode == 0 and said and said[1] == said[2], result
    victim.send("call")
    victim.wait("^DONE call")
    cycle(context, victim.pid)
    victim.finish_by_stdin()


def need_pid_choice():
    try:
        with open("/proc/sys/kernel/ns_last_pid", "r+", encoding="ascii") as file:
            file.write(file.read())
    except OSError as error:
        raise Skip(f"process numbers cannot be chosen: {error.strerror}") from None


def with_newcomer(context, name, *arguments, wait, under=()):
    """A session whose process ends while memattach is stopped, and gives its number to another: (session, newcomer)."""
    need_pid_choice()
    for _ in range(20):
        victim = Victim(context, name)
        session = Session(context, victim.pid, *arguments, wait=False, under=under)
        session.lines.wait(wait)
        session.process.send_signal(signal.SIGSTOP)
        victim.process.kill()
        victim.process.wait(PATIENCE)
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
            file.write(str(victim.pid - 1))
        newcomer = Victim(context, name)
        if newcomer.pid == victim.pid:
            return session, newcomer
        session.process.send_signal(signal.SIGCONT)
        session.process.wait(PATIENCE)
        newcomer.finish()
    raise Skip("the number was not given again in 20 tries")


@case(alone=True)
def pid_is_used_again(context):
    """The process ends during the session and another gets its number: the newcomer is not touched. Also before memattach has looked at what it
    has patched, for which strace makes it wait."""
    strace = shutil.which("strace")
    early = (strace, "-qq", "-o", context.path("calls"), "-e", "trace=signalfd4", "-e", "inject=signalfd4:delay_enter=500000")
    for under in ((), early) if strace else ((),):
        session, newcomer = with_newcomer(context, "alloc_loop", wait="attached to", under=under)
        before = Snapshot(newcomer.pid)
        session.process.send_signal(signal.SIGCONT)
        assert session.process.wait(PATIENCE) == 0, session.said()
        check_same(before, Snapshot(newcomer.pid), busy=True)
        newcomer.rounds_go_on()
        newcomer.finish()


@case(alone=True)
def pid_is_used_again_while_waited(context):
    """The same while memattach waits for a condition, which the newcomer meets."""
    session, newcomer = with_newcomer(context, "known_heap", "--when", "private>20M", wait="waiting for")
    newcomer.send("go")
    newcomer.truth()
    before = Snapshot(newcomer.pid)
    session.process.send_signal(signal.SIGCONT)
    session.end(expected=1)
    assert "has ended" in session.said() and "attached to" not in session.said(), session.said()
    check_same(before, Snapshot(newcomer.pid))
    newcomer.finish_by_stdin()
