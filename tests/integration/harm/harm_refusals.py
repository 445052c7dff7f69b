# SPDX-License-Identifier: MIT
"""Refusals: exit 1, one precise reason, and the process as before. --doctor gives the same verdict without touching it."""
import contextlib
import fcntl
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

from harness import DEADLINE, Session, UNCHANGED, Victim, case, check_receipt, cycle, end_of, run_memattach, start_memattach
from procfs import Failure, PATIENCE, Skip, describe, read_text, tasks_of
from snapshot import Snapshot, State, check_same, settle, wait_until_born

NOBODY = 65534


def refused(context, pid, *words, arguments=(), prefix=(), doctor=True, alive=True, busy=False):
    """memattach -p refuses, each of words is in its message; --doctor says so too; nothing changed, nothing was left."""
    before = Snapshot(pid) if alive else None
    dump = context.unique("refused", ".dump")
    for command in (["-p", str(pid), "-o", dump, *arguments],) + ((["--doctor", "-p", str(pid)],) if doctor else ()):
        result = subprocess.run([*prefix, context.memattach, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
        said = result.stderr + result.stdout
        if result.returncode != 1:
            raise Failure(f"{command}: exit {result.returncode}, not 1: {said}")
        for word in words:
            if word not in said:
                raise Failure(f"{command}: {word!r} is not in {said!r}")
    assert not os.path.exists(dump), "a dump was left"
    if alive:
        check_same(before, Snapshot(pid), busy)


@case()
def refuse_another_user(context):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    victim = Victim(context, "sleeper", "pause")
    refused(context, victim.pid, "another user", prefix=["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"])
    victim.finish()


@case()
def refuse_undumpable(context):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    path = context.target("lives")
    victim = Victim(context, [*become, path], "undumpable")
    refused(context, victim.pid, "not dumpable", prefix=become, busy=True)
    victim.finish()


def lowest_free_descriptor(pid):
    taken = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    return next(number for number in range(len(taken) + 1) if number not in taken)


@case()
def no_free_descriptors(context):
    """An attach needs six for a moment, and says so; a detach would like three, and goes without."""
    victim = Victim(context, "sleeper", "pause")
    before = Snapshot(victim.pid)
    usual = resource.prlimit(victim.pid, resource.RLIMIT_NOFILE)
    first = lowest_free_descriptor(victim.pid)
    for limit, words in ((first, "Too many open files"), (first + 3, "too few free descriptors")):
        resource.prlimit(victim.pid, resource.RLIMIT_NOFILE, (limit, usual[1]))
        refused(context, victim.pid, words, doctor=False)
    for limit in (first, first + 2):
        resource.prlimit(victim.pid, resource.RLIMIT_NOFILE, usual)
        session = Session(context, victim.pid)
        resource.prlimit(victim.pid, resource.RLIMIT_NOFILE, (limit, usual[1]))
        check_receipt(session.stop(), victim.pid)
    check_same(before, Snapshot(victim.pid))
    resource.prlimit(victim.pid, resource.RLIMIT_NOFILE, usual)
    victim.finish()


@case()
def refuse_strict_thread(context):
    """In seccomp's strict mode the kernel forbids the cycle counter as well: a hook would kill that thread."""
    victim = Victim(context, "lives", "strict")
    refused(context, victim.pid, "thread", "strict mode", UNCHANGED, busy=True)
    victim.rounds_go_on()
    victim.finish()


@case()
def refuse_from_user_namespace(context):
    """With all capabilities, but in a user namespace that is not that of the target."""
    inside = ["unshare", "--user", "--map-root-user"]
    if not shutil.which("unshare") or subprocess.run([*inside, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip("no user namespace can be made here")
    victim = Victim(context, "sleeper", "pause")
    refused(context, victim.pid, "another user namespace", prefix=inside)
    victim.finish()


@case()
def refuse_without_capability(context):
    """Root without CAP_SYS_PTRACE, as in a container: for its own processes that may do more, and for those of others."""
    if os.geteuid() != 0:
        raise Skip("only root can drop one capability and keep others")
    without = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    victim = Victim(context, "sleeper", "pause")
    refused(context, victim.pid, "capabilities that memattach has not (80000)", "CAP_SYS_PTRACE", prefix=without)
    victim.finish()
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    victim = Victim(context, [*become, context.target("sleeper")], "pause")
    refused(context, victim.pid, f"another user ({NOBODY})", "give memattach CAP_SYS_PTRACE", prefix=without, busy=True)
    victim.finish()


def traced_victim(context):
    """A victim, and the strace that traces it by now."""
    strace = shutil.which("strace")
    if not strace:
        raise Skip("strace is not installed")
    victim = Victim(context, "sleeper", "nanosleep")
    tracer = context.start([strace, "-qq", "-o", "/dev/null", "-p", str(victim.pid)])
    end = time.monotonic() + PATIENCE
    while f"TracerPid:\t{tracer.pid}" not in read_text(f"/proc/{victim.pid}/status"):
        assert time.monotonic() < end, "strace does not attach"
        time.sleep(0.01)
    return victim, tracer


@case()
def refuse_traced_by_strace(context):
    victim, tracer = traced_victim(context)
    refused(context, victim.pid, "already traced", f"PID {tracer.pid} (strace)")
    tracer.send_signal(signal.SIGINT)
    tracer.wait(PATIENCE)
    victim.finish()


@case()
def refuse_thread_id(context):
    victim = Victim(context, "alloc_loop", "calm")
    tid = max(tasks_of(victim.pid))
    refused(context, tid, f"a thread of process {victim.pid}", alive=False)
    victim.finish()


ELF_32 = {"32-bit": (3, "b81d000000cd80ebf7"),          # EM_386: mov $SYS_pause, %eax; int $0x80; jmp back
          "x32": (62, "b8220000400f05ebf7")}            # EM_X86_64: mov $__X32_SYSCALL_BIT + SYS_pause, %eax; syscall; jmp back


def write_elf32(path, machine, code):
    """A static program of 32-bit class that calls pause for ever: no compiler for it is needed."""
    base, code = 0x08048000, bytes.fromhex(code)
    header = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\x01\x01\x01", 2, machine, 1, base + 84, 52, 0, 0, 52, 32, 1, 40, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, 84 + len(code), 84 + len(code), 5, 4096)
    with open(path, "wb") as file:
        file.write(header + segment + code)
    os.chmod(path, 0o755)


def refuse_class_32(context, kind):
    path = context.path(kind)
    write_elf32(path, *ELF_32[kind])
    try:
        process = context.start([path])
    except OSError as error:
        raise Skip(f"this kernel runs no {kind} programs: {error.strerror}") from None
    # It has been started when execve() can no longer fail, which is before its memory is there.
    end = time.monotonic() + PATIENCE
    while path not in read_text(f"/proc/{process.pid}/maps") or "State:\tS" not in read_text(f"/proc/{process.pid}/status"):
        assert time.monotonic() < end and process.poll() is None, describe(process.pid)
        time.sleep(0.01)
    refused(context, process.pid, kind)
    assert process.poll() is None, f"the program ended with {process.returncode}"


@case()
def refuse_32bit(context):
    refuse_class_32(context, "32-bit")


@case()
def refuse_x32(context):
    refuse_class_32(context, "x32")


@case()
def refuse_gone_and_own(context):
    gone = subprocess.Popen(["/bin/true"])
    gone.wait()
    refused(context, gone.pid, "no process", alive=False)
    for option in ("-p", "--doctor"):
        arguments = f"{option} $$" if option == "-p" else f"{option} -p $$"
        result = subprocess.run(["/bin/sh", "-c", f"exec '{context.memattach}' {arguments}"], cwd=context.work,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False)
        assert result.returncode == 1 and "memattach itself" in result.stdout, result


@case()
def refuse_static_and_zombie(context):
    victim = Victim(context, "static_sleeper", "pause")
    refused(context, victim.pid, "static")
    victim.finish()
    zombie = Victim(context, "zombie")
    pid = next(int(line.split()[1]) for line in zombie.lines.seen if line.startswith("ZOMBIE"))
    refused(context, pid, "zombie", alive=False)
    zombie.finish()


@case()
def refuse_without_safe_thread(context):
    """The only thread is in the loader: not within the deadline, named; without dlopen it works."""
    victim = Victim(context, "loader_guests", "iterates")
    refused(context, victim.pid, "no thread came to a safe point", f"thread {victim.pid} is in ", UNCHANGED,
            arguments=["--deadline", "200ms", "--loader", "target"], doctor=False, busy=True)
    cycle(context, victim.pid)
    victim.rounds_go_on()
    victim.finish()


@case()
def refuse_seccomp_without_capability(context):
    """The filter would kill the process at a system call of ours."""
    if os.geteuid() != 0:
        raise Skip("only root can drop one capability and keep CAP_SYS_PTRACE")
    victim = Victim(context, "lives", "seccomp")
    refused(context, victim.pid, "seccomp filter", "CAP_SYS_ADMIN", prefix=["setpriv", "--bounding-set=-sys_admin"],
            busy=True)
    victim.rounds_go_on()
    victim.finish()


# Runs the rest of its arguments under a seccomp filter that allows everything, as in a container: PR_SET_SECCOMP with one
# instruction, BPF_RET of SECCOMP_RET_ALLOW.
UNDER_FILTER = """
import ctypes, os, sys
code = ctypes.create_string_buffer(b"\\x06\\0\\0\\0\\0\\0\\xff\\x7f")
class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_void_p)]
assert ctypes.CDLL(None).prctl(22, 2, ctypes.byref(Program(1, ctypes.addressof(code)))) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


@case()
def refuse_seccomp_under_a_filter(context):
    """With a filter of its own memattach may not suspend another's, whatever its capabilities; it names the right reason."""
    if os.geteuid() != 0:
        raise Skip("only root can have a filter without PR_SET_NO_NEW_PRIVS")
    victim = Victim(context, "lives", "seccomp")
    refused(context, victim.pid, "seccomp filter", "memattach has one itself", prefix=[sys.executable, "-c", UNDER_FILTER],
            busy=True)
    victim.rounds_go_on()
    victim.finish()


@case()
def seccomp_is_suspended(context):
    """With CAP_SYS_ADMIN the filter of one thread is suspended while it is borrowed, and is in force again afterwards."""
    if os.geteuid() != 0:
        raise Skip("needs CAP_SYS_ADMIN")
    victim = Victim(context, "lives", "seccomp")
    for _ in range(5):
        cycle(context, victim.pid)
        victim.rounds_go_on()
    assert "Seccomp:\t2" in read_text(f"/proc/{victim.pid}/status")
    victim.finish()


def wait_for_vfork(victim):
    end = time.monotonic() + PATIENCE
    while "State:\tD" not in read_text(f"/proc/{victim.pid}/status"):
        assert time.monotonic() < end, f"no vfork was called: {describe(victim.pid)}"
        time.sleep(0.005)


@case()
def refuse_uninterruptible(context):
    """A vfork parent is in D state, and its child runs in its memory: given up within the deadline; afterwards it works."""
    victim = Victim(context, "lives", "vfork")
    before = State(victim.pid)
    victim.send("go")
    wait_for_vfork(victim)
    result = run_memattach(context, "-p", victim.pid, "-d", "10ms", "-o", context.path("d.dump"), "--deadline", "300ms")
    assert result.returncode == 1 and "runs in its memory" in result.stderr and UNCHANGED in result.stderr, result
    assert not os.path.exists(context.path("d.dump"))
    victim.send("back")
    victim.wait("^BACK")
    settle(before)
    cycle(context, victim.pid)
    victim.finish()


@case()
def refuse_code_under_a_vfork_child(context):
    """Entries cannot be hooked while a child of vfork runs there: refused before anything is loaded that could not be taken out again."""
    victim = Victim(context, "lives", "vfork_beside")
    before = Snapshot(victim.pid)
    victim.send("go")
    wait_for_vfork(victim)
    result = run_memattach(context, "-p", victim.pid, "-o", context.path("d.dump"), "--hooks", "entry", "--deadline", "300ms")
    assert result.returncode == 1 and "a child of vfork" in result.stderr and UNCHANGED in result.stderr, result
    assert not os.path.exists(context.path("d.dump"))
    victim.send("back")
    victim.wait("^BACK")
    check_same(before, Snapshot(victim.pid), busy=True)
    cycle(context, victim.pid, "--hooks", "entry")
    victim.finish()


def attach_slowly(context, victim, deadline):
    """memattach has seized the victim, and there is time until it asks it to stop."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    memattach = subprocess.Popen(["strace", "-f", "-qq", "-o", context.path("trace.txt"), "-e", "trace=ptrace", "-e",
                                  "inject=ptrace:delay_enter=3000000:when=2", context.memattach, "-p", str(victim.pid), "-o",
                                  context.path("d.dump"), "--deadline", deadline], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    context.processes.append(memattach)
    end = time.monotonic() + PATIENCE
    while all("TracerPid:\t0" in read_text(f"/proc/{victim.pid}/task/{tid}/status") for tid in tasks_of(victim.pid)):
        assert time.monotonic() < end and memattach.poll() is None, "memattach does not seize the victim"
        time.sleep(0.002)
    return memattach


@case()
def refuse_thread_that_does_not_stop(context):
    """Seized, it no longer comes to a stop, here because it has called vfork: given up, let go, nothing changed; afterwards it works."""
    victim = Victim(context, "lives", "vfork")
    before, whole = State(victim.pid), Snapshot(victim.pid)
    memattach = attach_slowly(context, victim, "100ms")
    victim.send("go")
    said = memattach.communicate(timeout=PATIENCE)[1]
    assert memattach.returncode == 1, (memattach.returncode, said)
    # Which of them depends on the step at which it called vfork.
    assert f"thread {victim.pid} did not stop in time" in said or "are in uninterruptible sleep" in said, said
    for words in (UNCHANGED, "--deadline"):
        assert words in said, (words, said)
    assert not os.path.exists(context.path("d.dump")), "a dump was left"
    victim.send("back")
    victim.wait("^BACK")
    settle(before)
    check_same(whole, Snapshot(victim.pid), busy=True)
    cycle(context, victim.pid)
    victim.finish()


def freezers():
    """(version, directory) of the cgroup hierarchies that can freeze."""
    found = []
    for line in read_text("/proc/self/mounts").splitlines():
        _, directory, kind, options = line.split()[:4]
        if kind == "cgroup2":
            found.append((2, directory))
        elif kind == "cgroup" and "freezer" in options.split(","):
            found.append((1, directory))
    return found


def write_word(path, word):
    with open(path, "w", encoding="ascii") as file:
        file.write(word)


def refused_frozen(context, victim, freeze):
    freeze()
    end = time.monotonic() + PATIENCE
    while True:  # each thread freezes when it runs next
        doctor = run_memattach(context, "--doctor", "-p", victim.pid)
        if doctor.returncode or time.monotonic() > end:
            break
    assert doctor.returncode == 1 and "frozen" in doctor.stdout, doctor
    dump = context.unique("frozen", ".dump")
    result = run_memattach(context, "-p", victim.pid, "-o", dump, "--deadline", "300ms")
    assert result.returncode == 1 and "frozen" in result.stderr and UNCHANGED in result.stderr, result
    assert not os.path.exists(dump)


def given_up_frozen(context, victim, freeze):
    memattach = attach_slowly(context, victim, "9s")  # longer than one thread is waited for: another one is tried
    freeze()
    said = memattach.communicate(timeout=PATIENCE)[1]
    assert memattach.returncode == 1 and not os.path.exists(context.path("d.dump")), (memattach.returncode, said)
    left = "last steps of an earlier memattach" in said  # a thread was left in the stub
    assert ("what was begun ends by itself" in said) == left and (UNCHANGED in said) != left, said


def frozen(context, version, directory, look):
    group = os.path.join(directory, f"memattach-test-{os.getpid()}")
    try:
        os.mkdir(group)
    except OSError as error:
        return f"no cgroup of version {version} can be made: {error.strerror}"
    victim = Victim(context, "alloc_loop", "calm")
    switch, on, off = (("freezer.state", "FROZEN", "THAWED"), ("cgroup.freeze", "1", "0"))[version - 1]
    switch = os.path.join(group, switch)
    wait_until_born(victim.pid)
    before = State(victim.pid)
    try:
        write_word(os.path.join(group, "cgroup.procs"), str(victim.pid))
        look(context, victim, lambda: write_word(switch, on))
    except OSError as error:
        return f"the victim cannot be frozen in a cgroup of version {version}: {error.strerror}"
    finally:
        with contextlib.suppress(OSError):  # that cannot freeze
            write_word(switch, off)
    settle(before)
    victim.rounds_go_on()
    assert run_memattach(context, "--detach", "-p", victim.pid).returncode == 0
    cycle(context, victim.pid)
    victim.finish()
    for _ in range(100):
        try:
            os.rmdir(group)
            break
        except OSError:
            time.sleep(0.02)
    return None


def in_each_freezer(context, look):
    reasons = [frozen(context, version, directory, look) for version, directory in freezers()]
    if None not in reasons:
        raise Skip("; ".join(reasons) or "no cgroup hierarchy is mounted")


@case()
def refuse_frozen(context):
    """A frozen cgroup: refused, and nothing is found changed after the thaw."""
    in_each_freezer(context, refused_frozen)


@case(label="stress")
def frozen_after_the_look(context):
    """Frozen when memattach has seized a thread, which then does not stop (version 1) or not go on (version 2): what was begun ends after the thaw."""
    in_each_freezer(context, given_up_frozen)


@case()
def killed_one_ends_late(context):
    """A memattach that was killed, and does not come to its end yet, has the lock: who comes next waits for that."""
    group = next((os.path.join(directory, f"memattach-late-{os.getpid()}") for version, directory in freezers() if version == 1), None)
    try:
        os.mkdir(group or "/proc/none")
    except OSError as error:
        raise Skip(f"no cgroup whose processes stay frozen when they are killed: {error.strerror}") from None
    victim = Victim(context, "alloc_loop", "calm")
    session = Session(context, victim.pid)
    try:
        write_word(os.path.join(group, "cgroup.procs"), str(session.process.pid))
        write_word(os.path.join(group, "freezer.state"), "FROZEN")
        session.process.kill()
        second = start_memattach(context, "-p", victim.pid, "-d", "100ms", "-o", context.path("second.dump"), "--deadline", DEADLINE)
        time.sleep(0.5)
        assert second.poll() is None, second.communicate()
    finally:
        write_word(os.path.join(group, "freezer.state"), "THAWED")
    code, said = end_of(second)
    assert code == 0, said
    victim.finish()
    session.process.wait(PATIENCE)
    os.rmdir(group)


@case()
def process_of_a_dead_one_ends_soon(context):
    """One that writes the dump, say, outlives the memattach that made it, and has its lock: who comes next waits for that, but not for long."""
    victim = Victim(context, "alloc_loop", "calm")
    left = shutil.copy(context.program("sleep"), context.path("memattach-left"))
    for seconds, code in (("1.5", 0), ("60", 1)):
        with open(f"/proc/{victim.pid}/environ", encoding="latin-1") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            process = context.start([left, seconds], pass_fds=(file.fileno(),))
        result = run_memattach(context, "-p", victim.pid, "-d", "100ms", "-o", context.unique("next", ".dump"))
        assert result.returncode == code and code == (f"already by memattach, PID {process.pid}" in result.stderr), result
    process.kill()
    victim.finish()


@case()
def refuse_forbidden_cycle_counter(context):
    """PR_SET_TSC: the hooks read the cycle counter, which would raise SIGSEGV in such a process."""
    victim = Victim(context, "lives", "notsc")
    refused(context, victim.pid, "cycle counter", doctor=False, busy=True)
    victim.rounds_go_on()
    victim.finish()


@case()
def refuse_profiled_process(context):
    """A second memattach names the first and touches nothing."""
    victim = Victim(context, "alloc_loop", "calm")
    session = Session(context, victim.pid)
    result = run_memattach(context, "-p", victim.pid, "-o", context.path("second.dump"))
    assert result.returncode == 1 and f"PID {session.process.pid}" in result.stderr, result
    assert not os.path.exists(context.path("second.dump"))
    doctor = run_memattach(context, "--doctor", "-p", victim.pid)
    assert doctor.returncode == 1 and f"memattach {session.process.pid}" in doctor.stdout, doctor
    session.stop()
    victim.finish()


@case()
def doctor_touches_nothing(context):
    """--doctor: the facts are there, no ptrace request, no write to the target, the process is as before."""
    victim = Victim(context, "alloc_loop", "calm")
    before = Snapshot(victim.pid)
    prefix = []
    trace = context.path("doctor.strace")
    if shutil.which("strace"):
        prefix = ["strace", "-f", "-qq", "-o", trace, "-e", "signal=none", "-e", "trace=ptrace,process_vm_writev,kill,tgkill,pidfd_send_signal"]
    result = subprocess.run([*prefix, context.memattach, "--doctor", "-p", str(victim.pid)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    assert result.returncode == 0 and not result.stderr, result
    for word in ("process", "permission", "tracer", "threads", "seccomp", "C library", "allocator", "modules", "libc.so.6",
                 "not covered", "cost", "remains", "verdict"):
        assert f"\n{word}" in "\n" + result.stdout or f" {word}" in result.stdout, (word, result.stdout)
    assert not prefix or not read_text(trace).strip(), read_text(trace)
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.finish()


@case()
def doctor_tells_all_of_it(context):
    """--doctor --verbose: the words that hold addresses of allocation functions, as they are found from outside, and their originals."""
    victim = Victim(context, "alloc_loop_now")
    before = Snapshot(victim.pid)
    result = run_memattach(context, "--doctor", "--verbose", "--hooks", "got", "-p", victim.pid)
    assert result.returncode == 0 and not result.stderr, result
    parts = dict(part.split("\n", 1) for part in re.split(r"\n\n(?=\w)", result.stdout) if "\n" in part)
    told = {head.split(":")[0]: body.splitlines() for head, body in parts.items()}
    modules = [line.split() for line in told["modules"]]
    for name, start, _ in before.maps.bases():
        assert any(words[2].startswith(f"{start:012x}-") and words[7] == name for words in modules), (name, told["modules"])
    rows = {words[0]: words for words in map(str.split, told["unwind tables"])}
    assert int(rows["libc.so.6"][1]) > 1000 and float(rows["libc.so.6"][4]) > 90, rows
    originals = {words[1]: words[0] for words in map(str.split, told["originals"])}
    entries = {int(words[0], 16): words for words in map(str.split, told["GOT entries"])}
    assert len(entries) == len(told["GOT entries"]) > 0
    for address, words in entries.items():
        value, name, _ = before.words[address]
        assert f"{value:012x}" == words[3] and name == words[2] and words[4] in originals, (words, value, name)
    program = {name for address, (_, name, _) in before.words.items() if address in entries and entries[address][-1] == "alloc_loop_now"}
    assert {"malloc", "free", "realloc", "calloc"} <= program, program
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.finish()
