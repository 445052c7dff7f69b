# SPDX-License-Identifier: MIT
"""Targets whose files are in another root: a container made of namespaces of its own and pivot_root."""
import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import DEADLINE, Lines, Session, Victim, case, check_receipt
from procfs import Failure, PATIENCE, Skip, read_text
from reports import analyze, analyze_text
from snapshot import Snapshot, check_same

# In the namespaces: ROOT becomes /, with a /proc of its own; then the program takes the place of this one.
ENTER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result:
        raise OSError(ctypes.get_errno(), "container")
root = sys.argv[1].encode()
check(libc.mount(root, root, None, 4096 | 16384, None))
os.chdir(root)
check(libc.mount(b"proc", b"proc", b"proc", 0, None))
check(libc.syscall(155, b".", b"."))
check(libc.umount2(b".", 2))
os.chdir("/")
if int(sys.argv[2]):
    os.setgroups([])
    os.setresgid(*[int(sys.argv[2])] * 3)
    os.setresuid(*[int(sys.argv[2])] * 3)
os.execv(sys.argv[3], sys.argv[3:])
"""


def files_of(program):
    """A program and what it is linked to."""
    listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(", listed)


class Container(Victim):
    """A victim in a root and namespaces of its own, at a path that the host does not have."""

    def __init__(self, context, name, *arguments, user=0):
        if os.geteuid() != 0 or not shutil.which("unshare"):
            raise Skip("a container needs root, and unshare")
        self.root = context.unique("root", "")
        for folder in ("proc", "tmp", "only-inside"):
            os.makedirs(os.path.join(self.root, folder))
        os.chmod(os.path.join(self.root, "tmp"), 0o1777)
        shutil.copy(context.target(name), os.path.join(self.root, "only-inside"))
        for path in files_of(context.target(name)):
            os.makedirs(self.root + os.path.dirname(path), exist_ok=True)
            shutil.copy(path, self.root + path)
        self.program = f"/only-inside/{name}"
        assert not os.path.exists(self.program)
        self.name = name
        self.process = context.start(["unshare", "--mount", "--pid", "--fork", "--kill-child", sys.executable, "-c", ENTER,
                                      self.root, str(user), self.program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True)
        self.lines = Lines(self.process.stdout)
        if re.search(r"PID|Error", self.lines.wait(r"^PID \d+$|Error")).group() == "Error":
            raise Skip(f"no container: {self.lines.seen[-1]}")
        self.lines.wait(r"^READY$")
        self.pid = int(read_text(f"/proc/{self.process.pid}/task/{self.process.pid}/children").split()[0])

    def vanish(self):
        """The process ends, and its files with it."""
        self.process.kill()
        self.process.wait(PATIENCE)
        end = time.monotonic() + PATIENCE
        while os.path.exists(f"/proc/{self.pid}"):
            if time.monotonic() > end:
                raise Failure(f"{self.pid} does not end")
            time.sleep(0.01)
        shutil.rmtree(self.root)


def own_functions(report, victim):
    """Of the frames in the victim's own program."""
    frames = [frame for stack in report["stacks"] for frame in stack["frames"] if frame["module"] == victim.program]
    assert frames, report["stacks"][:3]
    return {frame["function"] for frame in frames}


def record(context, victim, *arguments):
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid, *arguments)
    session.sampled(100)
    check_receipt(session.stop(), victim.pid)
    check_same(before, Snapshot(victim.pid), busy=True)
    return session


@case()
def container_files_while_it_lives(context):
    """Without names in the dump, those of a container's program are found below the root of its process by itself, below
    -D /proc/PID/root, and not any more when it is gone."""
    victim = Container(context, "alloc_loop", "calm")
    session = record(context, victim, "--no-symbols")
    assert "loop" in own_functions(analyze(context, session.dump), victim)
    assert "loop" in own_functions(analyze(context, session.dump, "-D", victim.root), victim)
    other = context.path("elsewhere.dump")
    with open(session.dump, "rb") as dump, open(other, "wb") as changed:
        content = bytearray(dump.read())
        content[64] ^= 1  # target_start_ticks: another process has that number now
        changed.write(content)
    assert own_functions(analyze(context, other), victim) == {None}
    assert "loop" in own_functions(analyze(context, other, "-D", f"/proc/{victim.pid}/root"), victim)
    victim.vanish()
    assert own_functions(analyze(context, session.dump), victim) == {None}


@case(sanitized=True)
def container_is_gone_names_stay(context):
    """A dump has the names of its frames: where the container, its files and its process are gone the report is the same as
    beside them, and asks for no file."""
    victim = Container(context, "alloc_loop", "calm")
    session = record(context, victim)
    assert "without the names" not in session.said(), session.said()
    first = analyze(context, session.dump)
    assert "loop" in own_functions(first, victim)
    files = {frame["file"] for stack in first["stacks"] for frame in stack["frames"] if frame["module"] == victim.program}
    assert any(name and name.endswith("alloc_loop.c") for name in files), files
    victim.vanish()
    assert analyze(context, session.dump) == first
    assert "loop" in analyze_text(context, session.dump)
    assert own_functions(analyze(context, session.dump, "--no-symbols"), victim) == {None}
    if shutil.which("strace"):
        trace = context.path("trace")
        subprocess.run(["strace", "-f", "-o", trace, "-e", "trace=open,openat,clone,fork,clone3", context.memanalyze, session.dump],
                       stdout=subprocess.DEVNULL, check=True, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
        assert victim.program not in read_text(trace) and "clone" not in read_text(trace), read_text(trace)


def all_forms(context, dump):
    """Each form of one report, by its name; the profile first, which asks most of the program's file."""
    folder = context.unique("forms", "")
    os.mkdir(folder)
    names = ["r.pb.gz", "r.folded", "r.speedscope.json", "dhat.out.r", "r.json", "r.txt"]
    subprocess.run([context.memanalyze, *(f"--output={folder}/{name}" for name in names), dump], check=True, timeout=PATIENCE)
    forms = {}
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            forms[name] = file.read()
    forms["r.pb.gz"] = gzip.decompress(forms["r.pb.gz"])
    return forms


@case()
def container_is_gone_each_form_is_whole(context):
    """Every form of a report has the names and sources without the program's file; only the profile's mapping of it, which
    its segments say, is then as wide as the module was. That the profile asks for them changes nothing that is said."""
    victim = Container(context, "alloc_loop", "calm")
    session = record(context, victim, "--rate", "4k", "--max-overhead", "0")  # of 0.3 MiB that are live, samples for certain
    text = analyze_text(context, session.dump, "--focus=loop", "--by=line")
    first = all_forms(context, session.dump)
    victim.vanish()
    then = all_forms(context, session.dump)
    profile, less = first.pop("r.pb.gz"), then.pop("r.pb.gz")
    assert then == first, [name for name in first if first[name] != then[name]]
    for name, form in {**then, "r.pb.gz": less}.items():
        assert b"loop" in form, name
        assert name == "r.folded" or b"alloc_loop.c" in form, name
    assert abs(len(profile) - len(less)) < 16 and os.fsencode(victim.program) in less, (len(profile), len(less))
    assert analyze_text(context, session.dump, "--focus=loop", "--by=line") == text and "alloc_loop.c:" in text, text
    assert analyze(context, session.dump, "--focus=loop")["stacks"], "the filter knows names that only the dump has"


@case()
def container_ends_and_its_files_before_it(context):
    """The files of a container are removed, then its process is killed: what was held open in time names its frames."""
    victim = Container(context, "alloc_loop", "calm")
    session = Session(context, victim.pid)
    session.sampled(100)
    shutil.rmtree(os.path.join(victim.root, "only-inside"))
    os.kill(victim.pid, signal.SIGKILL)
    session.end()
    # How it ended is known if memattach sees it before its parent does.
    assert re.search("ended (by signal 9|during)", session.said()) and "without the names" not in session.said(), session.said()
    report = analyze(context, session.dump)
    assert report["target"]["ended"] in ("killed", "exited") and "loop" in own_functions(report, victim), report["target"]


# What a container of Docker or Podman has by itself.
CONTAINER_CAPABILITIES = "chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw sys_chroot mknod audit_write setfcap"


def beside(victim, capabilities):
    """A command runs in the PID namespace of a container, with a mount namespace, a /proc and capabilities of its own: as with
    docker run --pid=container:, or in an ephemeral container."""
    for program in ("nsenter", "setpriv"):
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")
    bounds = ",".join(["-all", *("+" + name for name in capabilities.split())])
    return ["nsenter", f"--target={victim.pid}", "--pid", "unshare", "--mount", "--mount-proc", "--fork",
            "setpriv", f"--bounding-set={bounds}", "--inh-caps=-all"]


def record_beside(context, victim, capabilities, output):
    before = Snapshot(victim.pid)
    result = subprocess.run([*beside(victim, capabilities), context.memattach, "-p", "1", "-r", "64k", "-d", "700ms", "--deadline", DEADLINE, "-o", output],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.check_alive()
    return result


@case()
def container_from_a_container_beside_it(context):
    """As docs/containers.md has it: from a container that shares the PID namespace and has CAP_SYS_PTRACE in addition. -o is a
    directory. The process has another user, and the number 1 there."""
    victim = Container(context, "alloc_loop", "calm", user=65534)
    folder = context.unique("dumps", "")
    os.mkdir(folder)
    result = record_beside(context, victim, CONTAINER_CAPABILITIES + " sys_ptrace", folder)
    assert result.returncode == 0 and "without the names" not in result.stderr, result
    name, = os.listdir(folder)
    assert re.fullmatch(r"memattach\.alloc_loop\.1\.\d{8}-\d{6}\.dump", name), name
    victim.vanish()
    report = analyze(context, os.path.join(folder, name))
    assert report["target"]["pid"] == 1 and "loop" in own_functions(report, victim), report["target"]


@case()
def container_with_cap_sys_ptrace_alone(context):
    """CAP_SYS_PTRACE is enough to attach to a process of the same user, and detach; names are then left to memanalyze, which is
    said. Without it, and for a process of another user: refused, with the capability that is missing."""
    victim = Container(context, "alloc_loop", "calm", user=65534)
    result = record_beside(context, victim, "sys_ptrace", context.path("none.dump"))
    assert result.returncode == 1 and "(65534)" in result.stderr and "CAP_DAC_OVERRIDE" in result.stderr, result
    victim = Container(context, "alloc_loop", "calm")
    result = record_beside(context, victim, "", context.path("none.dump"))
    assert result.returncode == 1 and "CAP_SYS_PTRACE" in result.stderr, result
    assert not os.path.exists(context.path("none.dump"))
    dump = context.path("alone.dump")
    result = record_beside(context, victim, "sys_ptrace", dump)
    assert result.returncode == 0 and "the dump is without the names of functions" in result.stderr, result
    there = subprocess.run([*beside(victim, CONTAINER_CAPABILITIES + " sys_ptrace"), context.memanalyze, "--json", dump],
                           stdout=subprocess.PIPE, text=True, timeout=PATIENCE, check=True)
    assert '"loop"' in there.stdout, "the files of the process were not found from there"
    victim.vanish()
    assert own_functions(analyze(context, dump), victim) == {None}
