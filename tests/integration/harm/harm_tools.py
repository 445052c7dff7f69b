# SPDX-License-Identifier: MIT
"""Debuggers and tracers beside memattach: before, during and after a session both work, and the program goes on."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from harness import Session, Victim, case, check_receipt
from procfs import Failure, PATIENCE, Skip, read_text
from reports import analyze, stacks_with, sum_of


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")


def tool(*command, says=None, input_text=None):
    """Runs it to its end; says: what its output must have."""
    result = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, errors="replace", timeout=PATIENCE, check=False)
    if says and says not in result.stdout:
        raise Failure(f"{command[0]} did not say {says!r}: {result.stdout[-600:]}")
    return result


def before_during_and_after(context, victim, use):
    """use() attaches the tool and lets it go."""
    use()
    victim.rounds_go_on()
    for options in ((), ("--hooks", "entry")):
        session = Session(context, victim.pid, *options)
        use()
        victim.rounds_go_on()
        check_receipt(session.stop(), victim.pid)
        victim.rounds_go_on()
    use()
    victim.finish()


@case()
def gdb_beside_us(context):
    """It looks at all threads' stacks, stops in an allocation function by a breakpoint, and goes."""
    need("gdb")
    victim = Victim(context, "alloc_loop", "2")
    before_during_and_after(context, victim, lambda: tool(
        "gdb", "-nx", "-batch", "-p", victim.pid, "-ex", "thread apply all bt 8", "-ex", "break posix_memalign", "-ex", "continue",
        "-ex", "bt 3", "-ex", "delete", "-ex", "detach", says="detached]"))


@case()
def gcore_beside_us(context):
    """Cores of the process, with the payload in it, are written, and are hardly larger: what memattach records is not in them, nor touched."""
    need("gcore")
    victim = Victim(context, "alloc_loop", "2")
    sizes = []

    def write_core():
        name = context.unique("core", "")
        tool("gcore", "-o", name, victim.pid, says="Saved corefile")
        sizes.append(os.path.getsize(f"{name}.{victim.pid}"))
        os.unlink(f"{name}.{victim.pid}")
        touched = re.findall(r"memfd:memattach-(\w+)[^\n]*\n(?:[^\n]*\n)*?Rss:\s*(\d+) kB", read_text(f"/proc/{victim.pid}/smaps"))
        assert all(int(size) < 64 << 10 for _, size in touched), touched

    before_during_and_after(context, victim, write_core)
    assert max(sizes) < min(sizes) + (64 << 20), sizes


@case()
def strace_beside_us(context):
    """It is the tracer while a session lasts; our detach waits for its end."""
    need("strace")
    victim = Victim(context, "alloc_loop", "2")
    before_during_and_after(context, victim, lambda: tool("timeout", "-s", "INT", "1", "strace", "-f", "-c", "-p", victim.pid, says="attached"))


@case()
def strace_as_a_library_is_loaded(context):
    """The library's GOT entries cannot be patched while another tracer has the thread: that is said, and they are once it has gone."""
    need("strace")
    victim = Victim(context, "late_module", context.target("plugin.so"))
    session = Session(context, victim.pid, "--hooks", "got", rate="1", deadline="2s")
    tracer = context.start(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=none", "-p", str(victim.pid)])
    end = time.monotonic() + PATIENCE
    while "TracerPid:\t0" in read_text(f"/proc/{victim.pid}/status"):
        assert time.monotonic() < end and tracer.poll() is None, "strace does not trace"
        time.sleep(0.01)
    victim.send("load")
    victim.wait("^LOADED$")
    session.lines.wait(rf"^not seen: \d+ GOT entries in modules loaded since: .* is traced by PID {tracer.pid} \(strace\)")
    tracer.terminate()
    tracer.wait(PATIENCE)
    session.lines.wait("GOT entries more in modules loaded since")
    victim.send("go")
    truth = victim.truth()["plugin_keep"]
    check_receipt(session.stop(), victim.pid)
    said = session.said()
    assert said.count("modules loaded since:") == 1 and re.search(r"(\d+) of \1 GOT entries restored", said), said
    report = analyze(context, session.dump)
    assert sum_of(stacks_with(report, "plugin_keep"), "live_bytes") == truth["live_bytes"], report
    assert any("modules loaded since" in note["text"] for note in report["notes"] if note["kind"] == "not_patched"), report["notes"]
    lines = [line for line in said.splitlines() if line.startswith("not seen: ")]
    assert len(lines) == len(set(lines)), lines  # also what was said before
    victim.finish_by_stdin()


@contextlib.contextmanager
def heaptrack(context, pid):
    """It calls dlopen by gdb, changes GOT entries, and stays in the process."""
    output = Path(context.unique("heaptrack", ".log"))
    with open(output, "wb") as log:
        process = context.start(["heaptrack", "-p", str(pid), "-o", context.unique("heaptrack", "")], stdin=subprocess.DEVNULL, stdout=log,
                                stderr=subprocess.STDOUT, start_new_session=True)
    try:
        end = time.monotonic() + PATIENCE
        while "injection finished" not in output.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() > end:
                raise Failure(f"heaptrack did not begin: {output.read_text(errors='replace')[-600:]}")
            time.sleep(0.1)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@case()
def heaptrack_beside_us(context):
    """It comes during a session, and is there before the next one begins."""
    need("heaptrack", "gdb")
    victim = Victim(context, "alloc_loop", "1", "any-errno")  # heaptrack's hooks leave EAGAIN in it now and then, also alone
    session = Session(context, victim.pid)
    with heaptrack(context, victim.pid):
        victim.rounds_go_on()
        assert session.stop()["clean"]  # hooks of entries that heaptrack has changed since are gone
        victim.rounds_go_on()
        session = Session(context, victim.pid)
        victim.rounds_go_on()
        assert session.stop()["clean"]
        victim.rounds_go_on()
        victim.finish()


@case(alone=True)  # the kernel may put its probes into processes of other cases
def bpftrace_beside_us(context):
    """Its uprobes and uretprobes count calls of malloc and free."""
    need("bpftrace")
    victim = Victim(context, "alloc_loop", "2")
    library = next(line.split()[-1] for line in read_text(f"/proc/{victim.pid}/maps").splitlines() if "/libc.so" in line)
    program = (f"uprobe:{library}:malloc {{ @m = count(); }} uretprobe:{library}:malloc {{ @r = count(); }} "
               f"uprobe:{library}:free {{ @f = count(); }} interval:ms:200 {{ exit(); }}")
    first = tool("bpftrace", "-p", victim.pid, "-e", program)
    if "@m:" not in first.stdout:
        raise Skip(f"bpftrace cannot work here: {first.stdout.strip()[-200:]}")
    before_during_and_after(context, victim, lambda: tool("bpftrace", "-p", victim.pid, "-e", program, says="@m:"))


@case(alone=True)  # the kernel may put its probes into processes of other cases
def perf_beside_us(context):
    """perf probe makes a uprobe on malloc, and perf stat counts it."""
    need("perf")
    victim = Victim(context, "alloc_loop", "2")
    library = next(line.split()[-1] for line in read_text(f"/proc/{victim.pid}/maps").splitlines() if "/libc.so" in line)
    made = tool("perf", "probe", "-x", library, "memattach_test=malloc")
    if made.returncode != 0:
        raise Skip(f"perf cannot make a probe here: {made.stdout.strip()[-200:]}")
    try:
        before_during_and_after(context, victim, lambda: tool(
            "perf", "stat", "-e", "probe_libc:memattach_test", "-p", victim.pid, "sleep", "0.5", says="memattach_test"))
    finally:
        tool("perf", "probe", "-d", "probe_libc:memattach_test")
