# SPDX-License-Identifier: MIT
"""Where the target cannot load the payload by a name: no /proc, no executable memory files, a C library that never unloads."""
import os
import random
import shutil
import subprocess
import time

from cases_figures import check_exact, known_session
from harness import Session, Victim, case, check_receipt, cycle, rootless, run_memattach
from harm_kills import calls_of, kill_at_call, leave_session, random_kills, Sufferer, system_call_kills
from procfs import Maps, PATIENCE, Skip
from reports import analyze, stacks_with
from snapshot import Snapshot, check_same, remains

PAYLOAD = "/memfd:memattach-payload"


def whole_session(context, victim, busy=True, mapped=False):
    """One attach and detach; afterwards nothing is left. mapped: the loader of the program does not know the payload."""
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid)
    if busy:
        session.sampled(20)
    assert any(PAYLOAD in line for line in Maps(victim.pid).text()), "the payload has no mapping of its name"
    check_receipt(session.stop(), victim.pid)
    assert not remains(victim.pid), remains(victim.pid)
    check_same(before, Snapshot(victim.pid), busy)
    return session


@case()
def chroot_without_proc(context):
    """glibc, but /proc/thread-self/fd/N leads nowhere: its loader is handed the descriptor."""
    victim = Victim(context, rootless(context, "alloc_loop"))
    for _ in range(3):
        session = whole_session(context, victim)
        victim.rounds_go_on()
    assert stacks_with(analyze(context, session.dump), "loop"), "no stack names loop"
    victim.finish()


@case()
def chroot_without_proc_sleeps_on(context):
    """The same for a program that waits in a system call; errno and the rest of its thread are as before, byte for byte."""
    victim = Victim(context, rootless(context, "sleeper"), "pause")
    whole_session(context, victim, busy=False)
    victim.finish()


@case()
def chroot_without_proc_keeps_dlerror(context):
    """The first dlopen of the payload fails there: its message is not what the program's dlerror() tells."""
    victim = Victim(context, rootless(context, "lives"), "dlerror")
    for _ in range(2):
        cycle(context, victim.pid)
        victim.send("tell")
        victim.wait("^TOLD")
    victim.finish_by_stdin()


@case()
def chroot_without_proc_while_libraries_come_and_go(context):
    """GOT entries are patched and restored there too."""
    victim = Victim(context, rootless(context, "dlopen_storm", "plugin.so"), "/plugin.so")
    for _ in range(max(5, context.cycles // 4)):
        cycle(context, victim.pid)
        victim.check_alive()
        assert not remains(victim.pid), remains(victim.pid)
    victim.rounds_go_on()
    victim.finish()


@case()
def chroot_without_proc_exact(context):
    victim = Victim(context, rootless(context, "known_heap"))
    session = Session(context, victim.pid, rate="1")
    victim.send("go")
    truth = victim.truth()
    check_receipt(session.stop(), victim.pid)
    check_exact(analyze(context, session.dump), truth)
    victim.finish_by_stdin()


@case()
def chroot_without_proc_musl(context):
    victim = Victim(context, rootless(context, "alloc_loop_musl"))
    whole_session(context, victim)
    victim.finish()


@case()
def killed_without_proc(context):
    """memattach is killed while the loader is handed the descriptor, and at other moments."""
    sufferer = Sufferer(context, Victim(context, rootless(context, "alloc_loop")))
    # At requests to the thread, every sixth of them: also between those that change its call of openat(). All calls: killed_at_every_call_rootless.
    tracing = ("ptrace", 101)
    for count in range(random.randrange(1, 7), calls_of(context, sufferer, False)[tracing] + 1, 6):
        kill_at_call(context, sufferer, False, tracing, count)
    random_kills(context, sufferer, context.kills // 2)
    sufferer.finish()
    sufferer.report("in a root directory without /proc")


@case()
def killed_mapped(context):
    """memattach is killed at any moment of a session whose payload it has mapped by itself: --detach leaves nothing."""
    sufferer = Sufferer(context, Victim(context, "alloc_loop_musl"))
    # Between its writes to the target, every sixth of them: also between the steps in which the payload is mapped. All of them:
    # killed_at_every_call_musl.
    writing = ("pwrite64", 18)
    for count in range(random.randrange(1, 7), calls_of(context, sufferer, False)[writing] + 1, 6):
        kill_at_call(context, sufferer, False, writing, count)
    system_call_kills(context, sufferer, 10, True)
    random_kills(context, sufferer, context.kills)
    sufferer.finish()
    sufferer.report("with a mapped payload")


@case()
def mapped_payload_of_a_dead_memattach(context):
    """It is on no list of a loader: the next memattach finds it by its name, to detach or to begin its own session."""
    victim = Victim(context, "alloc_loop_musl")
    before = Snapshot(victim.pid)
    leave_session(context, victim.pid)
    assert remains(victim.pid)
    result = run_memattach(context, "--detach", "-p", victim.pid)
    assert result.returncode == 0 and not remains(victim.pid), (result.stderr, remains(victim.pid))
    check_same(before, Snapshot(victim.pid), busy=True)
    leave_session(context, victim.pid)
    session = Session(context, victim.pid)
    check_receipt(session.stop(), victim.pid)
    assert "taking out what a memattach that died left" in session.said(), session.said()
    assert not remains(victim.pid), remains(victim.pid)
    victim.rounds_go_on()
    victim.finish()


@case()
def mapped_payload_and_forks(context):
    """Children of fork and vfork while the payload is mapped, with threads that allocate."""
    for name in ("fork_storm_musl", "thread_churn_musl"):
        victim = Victim(context, name)
        for _ in range(5):
            session = Session(context, victim.pid, rate="1")
            time.sleep(0.2)
            check_receipt(session.stop(), victim.pid)
            assert not remains(victim.pid), remains(victim.pid)
        victim.rounds_go_on()
        victim.finish()


NOEXEC = """echo 2 > /proc/sys/vm/memfd_noexec
{victim} > {output} &
while ! grep -q READY {output}; do sleep 0.05; done
{memattach} -p $! -r 64k -d 1s --deadline 60s -o {dump}
echo ended with $?
grep -c memattach- /proc/$!/maps
kill -USR1 $!
wait $!
echo the victim ended with $?"""


OWN = ("--loader", "own")


@case()
def own_loader_exact(context):
    """A glibc program whose loader is not asked: all calls are seen, and nothing is left."""
    for program, arguments in (("known_heap", ()), ("known_heap_jemalloc", ()), ("known_heap_nopie", ("--hooks", "entry"))):
        report, truth, session = known_session(context, program, "1", *OWN, *arguments)
        check_exact(report, truth)
        receipt = session.receipt
        assert receipt["payload"] == "mapped" and receipt["slots"]["patched"] + receipt["functions"]["hooked"] > 0, receipt


@case(sanitized=True)
def own_loader_where_no_thread_is_safe(context):
    """The only thread is in the loader nearly always: no dlopen is possible, and the payload is mapped after a while."""
    victim = Victim(context, "loader_guests", "iterates")
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid, deadline="100ms", rate="1")
    session.sampled()
    receipt = session.stop()
    check_receipt(receipt, victim.pid)
    assert receipt["payload"] == "mapped", receipt
    assert not remains(victim.pid), remains(victim.pid)
    check_same(before, Snapshot(victim.pid), busy=True)
    assert analyze(context, session.dump)["samples"]["taken"] > 0
    victim.rounds_go_on()
    victim.finish()


@case()
def own_loader_where_blocks_have_kinds(context):
    """libtcmalloc_debug ends a program whose operator delete gets a block of malloc: its operator new is called, or nothing."""
    library = "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal_debug.so.4"
    if not os.path.exists(library):
        raise Skip("no libtcmalloc_minimal_debug is installed")
    victim = Victim(context, "cxx_exceptions", environment={"LD_PRELOAD": library})
    command = [context.memattach, "-p", str(victim.pid), *OWN, "-r", "1", "-d", "500ms", "-o", context.path("kinds.dump")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode in (0, 1) and ("not seen: " in done.stderr or "nothing was changed" in done.stderr), done
    victim.rounds_go_on()
    assert not remains(victim.pid), remains(victim.pid)
    victim.finish()


@case()
def own_loader_cycles(context):
    """A program of one thread, libraries that come and go: the program's loader knows of nothing. Others of several threads, into which
    memattach maps its payload by itself: entry_cycles_*."""
    for name in ("vectors", "dlopen_storm"):
        victim = Victim(context, name, *([context.target("plugin.so")] if name == "dlopen_storm" else []))
        for _ in range(3):
            cycle(context, victim.pid, *OWN, "-r", "4k")
            victim.check_alive()
        victim.rounds_go_on()
        assert not remains(victim.pid), remains(victim.pid)
        victim.finish()


@case()
def without_executable_memory_files(context):
    """vm.memfd_noexec=2, a setting of each pid namespace: a file that can never be executed may be mapped so."""
    inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]
    setting = "echo 2 > /proc/sys/vm/memfd_noexec"
    if not shutil.which("unshare") or subprocess.run([*inside, setting], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip("no pid namespace with vm.memfd_noexec=2 can be made here")
    for name in ("alloc_loop", "alloc_loop_musl"):
        dump = context.unique("noexec", ".dump")
        script = NOEXEC.format(victim=context.target(name), output=context.unique("victim", ".txt"),
                               memattach=context.memattach, dump=dump)
        result = subprocess.run([*inside, script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False)
        assert "ended with 0\n0\nthe victim ended with 0" in result.stdout, result.stdout
        assert stacks_with(analyze(context, dump), "loop"), "no stack names loop"


def guest_sessions(context, victim, count, *arguments, environment=None, program="loader_guests"):
    """Sessions with a program for which dlopen is dangerous: it goes on, and is as before."""
    victim = Victim(context, program, *victim, environment=environment)
    for _ in range(count):
        cycle(context, victim.pid, *arguments)
        victim.rounds_go_on()
        assert not remains(victim.pid), remains(victim.pid)
    victim.finish()


@case()
def loader_lock_is_held_by_a_constructor(context):
    """Who holds the loader's lock waits for the thread that would be borrowed."""
    guest_sessions(context, ["constructor", context.target("waiting_plugin.so")], 8)


@case()
def loader_lock_is_held_while_the_world_is_stopped(context):
    guest_sessions(context, ["world"], 8)


@case()
def loader_lock_is_not_copied_by_forks(context):
    """Children of fork need the loader's lock, which nobody in them would ever free."""
    guest_sessions(context, ["forks"], 8)


@case()
def loader_lock_was_copied_by_a_fork(context):
    """One thread, in a child of fork, where the parent's other thread was in the loader: dlopen would wait for ever."""
    victim = Victim(context, "loader_guests", "copied")
    child = int(next(line for line in victim.lines.seen if line.startswith("CHILD")).split()[1])
    refused = run_memattach(context, "-p", child, "--loader", "target", "-d", "20ms", "--deadline", "300ms",
                            "-o", context.unique("no", ".dump"))
    assert refused.returncode == 1 and "lock of the loader" in refused.stderr, refused
    victim.rounds_go_on()
    for _ in range(3):
        cycle(context, child)
        victim.rounds_go_on()
        assert not remains(child), remains(child)
    victim.finish()


@case()
def loader_of_the_target_beside_threads(context):
    """--loader target: the others stand still while dlopen and dlclose are called, and none is in the loader then."""
    for mode in (["constructor", context.target("waiting_plugin.so")], ["world"], ["forks"]):
        guest_sessions(context, mode, 4, "--loader", "target")


@case()
def loader_of_the_target_is_refused(context):
    """--loader target, where it would be called for a collector, an auditor, or beside an allocator with a lock: refused, with the reason."""
    for reason, victim in (("collects garbage", Victim(context, "loader_roots", "roots")),
                           ("audits the loader", Victim(context, "alloc_loop", environment={"LD_AUDIT": context.target("audit.so")})),
                           ("brings malloc", Victim(context, "locked_malloc"))):
        result = run_memattach(context, "-p", victim.pid, "--loader", "target", "-d", "20ms", "-o", context.unique("no", ".dump"))
        assert result.returncode == 1 and reason in result.stderr and "nothing was changed" in result.stderr, result
        doctor = run_memattach(context, "--doctor", "-p", victim.pid)
        assert "mapped by memattach" in doctor.stdout and reason in doctor.stdout, doctor
        victim.rounds_go_on()
        victim.finish()


@case()
def threads_come_after_dlopen(context):
    """One thread when dlopen loads the payload, several when dlclose unloads it."""
    victim = Victim(context, "loader_guests", "later", context.target("waiting_plugin.so"))
    session = Session(context, victim.pid)
    victim.send("go")
    victim.wait("^READY$")
    victim.rounds_go_on()
    receipt = session.stop()
    check_receipt(receipt, victim.pid)
    assert receipt["payload"] == "loaded" and not remains(victim.pid), receipt
    victim.rounds_go_on()
    victim.finish()


@case()
def allocator_lock_is_held_by_the_program(context):
    """The only thread holds a lock of the malloc that the program brings, and sleeps elsewhere: dlopen would wait for itself."""
    guest_sessions(context, [], 3, program="locked_malloc")


@case()
def collector_reads_what_the_loader_knows(context):
    """The payload's data is not among the roots that a collector reads when it is gone: whether it is known as one or not."""
    for program in ("loader_roots", "loader_guests"):
        guest_sessions(context, ["roots"], 6, program=program)


@case()
def failed_attach_leaves_no_mappings(context):
    """No room for all mappings of the payload (vm.max_map_count): what was made of it goes, also what a refused dlopen has left."""
    for left in (2, 5):
        victim = Victim(context, "loader_guests", "crowded", str(left))
        before = len(Maps(victim.pid).text())
        for loader in ("auto", "own"):
            result = run_memattach(context, "-p", victim.pid, "-d", "20ms", "-o", context.unique("no", ".dump"), "--loader", loader)
            assert result.returncode == 1, result
            assert not remains(victim.pid) and len(Maps(victim.pid).text()) == before, (result, remains(victim.pid))
        victim.rounds_go_on()
        victim.finish()


@case()
def auditor_of_the_loader(context):
    """LD_AUDIT: it would be called on the stub's stack, and needs more than that has."""
    guest_sessions(context, [], 2, program="alloc_loop", environment={"LD_AUDIT": context.target("audit.so")})


@case()
def names_of_the_loader_are_those_of_libraries(context):
    """Who opens what the loader calls its modules (libbacktrace, debuggers) finds no name of the payload among them."""
    guest_sessions(context, ["names"], 5)


def debugger(context, pid, *commands):
    """gdb for a moment; what it printed."""
    arguments = [argument for command in commands for argument in ("-ex", command)]
    done = subprocess.run([context.program("gdb"), "-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", str(pid), *arguments],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=PATIENCE, check=False)
    return done.stdout


@case()
def debugger_looks_at_a_session(context):
    """gdb attaches before, during and after a session, and saves a core meanwhile: it ends, and so does the session."""
    for loader, name, *arguments in (("loaded", "loader_guests", "names"), ("mapped", "loader_roots", "roots")):
        victim = Victim(context, name, *arguments)
        core = context.unique("core", "")
        debugger(context, victim.pid, "bt 3", "detach")
        session = Session(context, victim.pid)
        said = debugger(context, victim.pid, "bt 3", f"generate-core-file {core}", "detach")
        assert "Inferior 1" in said and os.path.getsize(core) > 0, said
        assert "/proc/" not in said.replace(f"/proc/{victim.pid}/", ""), said
        os.unlink(core)
        victim.rounds_go_on()
        receipt = session.stop()
        check_receipt(receipt, victim.pid)
        assert receipt["payload"] == loader and not remains(victim.pid), receipt
        debugger(context, victim.pid, "bt 3", "detach")
        victim.rounds_go_on()
        victim.finish()
