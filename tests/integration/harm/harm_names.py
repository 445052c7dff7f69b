# SPDX-License-Identifier: MIT
"""The names of functions in a dump: who looks for them has no rights, and whatever happens to him leaves a whole dump."""
import contextlib
import fcntl
import http.server
import json
import os
import random
import re
import select
import shutil
import signal
import stat
import subprocess
import termios
import threading
import time

from harm_privileges import NOBODY, as_nobody
from harness import DEADLINE, Session, Victim, case, check_receipt
from procfs import Failure, PATIENCE, Skip, read_text
from reports import analyze, analyze_text, until, whole
from snapshot import Snapshot, check_same


def functions(report, module="alloc_loop"):
    return {frame["function"] for stack in report["stacks"] for frame in stack["frames"]
            if frame["module"] and frame["module"].endswith("/" + module)}


def beside(context, **programs):
    """A memattach of its own, with these programs beside it."""
    folder = context.unique("bin", "")
    os.mkdir(folder)
    for path in (context.work, folder):
        os.chmod(path, 0o755)
    shutil.copy(context.memattach, os.path.join(folder, "memattach"))
    for name, path in programs.items():
        shutil.copy(path, os.path.join(folder, name.replace("_", "-")))
    return os.path.join(folder, "memattach")


def beside_stopped(context):
    """With a memanalyze that stops when it has given up its rights, before it reads anything."""
    memattach = beside(context, memanalyze=context.tool("stopped_memanalyze"), real_memanalyze=context.memanalyze)
    shutil.copy(context.tool("stop_at_filter.so"), os.path.join(os.path.dirname(memattach), "stop-at-filter.so"))
    return memattach


def stopped_child(memattach):
    """Its number and status; None, "" if there is none."""
    children = " ".join(read_text(f"/proc/{memattach}/task/{tid}/children", "") for tid in os.listdir(f"/proc/{memattach}/task"))
    for pid in children.split():
        status = read_text(f"/proc/{pid}/status", "")
        if re.search(r"^State:\tT", status, re.M):
            return int(pid), status
    return None, ""


class Looker:
    """A session of which the process that looks for names has stopped before it began."""

    def __init__(self, context, victim, *arguments, output=None):
        real, context.memattach = context.memattach, beside_stopped(context)
        self.before = Snapshot(victim.pid)
        self.victim = victim
        self.session = Session(context, victim.pid, *arguments, output=output)
        context.memattach = real
        self.session.sampled(20)
        os.kill(self.session.process.pid, signal.SIGINT)
        end = time.monotonic() + PATIENCE
        while not self.find():
            if time.monotonic() > end:
                raise Failure(f"nobody looks for names: {self.session.said()}")
            time.sleep(0.01)

    def find(self):
        self.pid, self.status = stopped_child(self.session.process.pid)
        return self.pid

    def go_on(self):
        os.kill(self.pid, signal.SIGCONT)

    def end(self):
        check_receipt(self.session.end(), self.victim.pid)
        check_same(self.before, Snapshot(self.victim.pid), busy=True)
        self.victim.finish()
        return self.session.said()


@case()
def names_are_looked_for_without_rights(context):
    """The process that reads DWARF is a user of its own, who opens files as the target's; it has no capability, no descriptor but the dump
    and the target's files, an empty environment and a network of its own; the target has its receipt by then."""
    if os.geteuid() != 0:
        raise Skip("only root has rights to give up")
    looker = Looker(context, as_nobody(context))
    assert os.path.exists(looker.session.receipt_path), "the receipt comes first"
    assert whole(context, looker.session.dump)["target"]["ended"] == "detached"
    *own, files = (int(number) for number in re.search(r"^Uid:(.*)$", looker.status, re.M).group(1).split())
    assert files == NOBODY and len(set(own)) == 1 and own[0] not in (0, NOBODY), looker.status
    assert set(re.search(r"^Gid:(.*)$", looker.status, re.M).group(1).split()) == {str(own[0])}, looker.status
    assert re.search(r"^Groups:\s*$", looker.status, re.M), looker.status
    for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
        assert int(re.search(rf"^{name}:\s*(\w+)$", looker.status, re.M).group(1), 16) == 0, looker.status
    assert re.search(r"^NoNewPrivs:\s*1$", looker.status, re.M) and re.search(r"^Seccomp:\s*2$", looker.status, re.M)
    assert set(re.findall(r"^\w+", read_text(f"/proc/{looker.pid}/environ").replace("\0", "\n"), re.M)) <= {"ASAN_OPTIONS", "LD_PRELOAD"}
    assert os.readlink(f"/proc/{looker.pid}/ns/net") != os.readlink("/proc/self/ns/net")
    for fd in os.listdir(f"/proc/{looker.pid}/fd"):
        path = os.readlink(f"/proc/{looker.pid}/fd/{fd}")
        assert path in ("/", "/dev/null", looker.session.dump) or "memattach-symbols" in path or \
            os.path.realpath(path) in {os.path.realpath(p) for p in
                                       re.findall(r"(/\S+)$", read_text(f"/proc/{looker.victim.pid}/maps"), re.M)}, (fd, path)
        assert "flags:\t0100000" in read_text(f"/proc/{looker.pid}/fdinfo/{fd}") or path != looker.session.dump, "not for reading alone"
    looker.go_on()
    assert "without the names" not in looker.end(), looker.session.said()
    assert "loop" in functions(whole(context, looker.session.dump))


def writable_files(pid):
    """Regular files of a disk that a process has open for writing."""
    found = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = os.readlink(f"/proc/{pid}/fd/{fd}")
        writes = int(re.search(r"flags:\t(\d+)", read_text(f"/proc/{pid}/fdinfo/{fd}")).group(1), 8) & os.O_ACCMODE != os.O_RDONLY
        if writes and stat.S_ISREG(os.stat(f"/proc/{pid}/fd/{fd}").st_mode) and not path.startswith("/memfd:"):
            found.add(path)
    return found


@case()
def stopped_reader_is_not_waited_for(context):
    """The user of a child that reads for him stops it for good. Before the attach, where one is asked for the form of a report, a signal ends
    memattach all the same, and without one it gives up; after the session it goes on without names and report, and the dump is whole."""
    victim = Victim(context, "alloc_loop", "calm")
    before = Snapshot(victim.pid)
    program = beside_stopped(context)
    for stopped_for_good in ("until a signal", "before the attach", "after the session"):
        dump = context.unique("stopped", ".dump")
        process = context.start([program, "-p", str(victim.pid), "-d", "100ms", "-o", dump, "--report", context.path("r.txt")],
                                stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + PATIENCE
        while process.poll() is None:
            assert time.monotonic() < end, f"it waits for a child that is stopped {stopped_for_good}"
            reader = stopped_child(process.pid)[0]
            if reader and stopped_for_good == "until a signal":
                process.send_signal(signal.SIGINT)
            elif reader and stopped_for_good == "after the session" and not os.path.exists(dump):
                os.kill(reader, signal.SIGCONT)
            time.sleep(0.01)
        said = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode == 3 if stopped_for_good == "after the session" else not os.path.exists(dump), (process.returncode, said)
        assert stopped_for_good == "until a signal" or "was stopped by somebody" in said, said
    assert whole(context, dump)["target"]["ended"] == "detached", said
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.finish()


@case()
def readers_have_no_terminal(context):
    """Who names frames and writes a report is the target's user: no such process has the terminal of who started memattach, where it could
    type (TIOCSTI), or a descriptor of it, nor a file that it could change later; the reports are there all the same."""
    victim = Victim(context, "alloc_loop", "calm")
    master, slave = os.openpty()
    terminal, readers, text = os.ttyname(slave), set(), b""

    def own():
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    program = beside_stopped(context)
    process = context.start([program, str(victim.pid), "-d", "100ms", "-r", "16k", "--deadline", DEADLINE, "--report", "-",
                             "--report", context.path("r.json")], stdin=slave, stdout=slave, stderr=slave, preexec_fn=own)
    os.close(slave)
    end = time.monotonic() + PATIENCE
    while process.poll() is None:
        if time.monotonic() > end:
            raise Failure(f"no report is shown: {text}")
        reader = stopped_child(process.pid)[0]
        if reader:
            readers.add(reader)
            assert read_text(f"/proc/{reader}/stat").rsplit(")", 1)[1].split()[4] == "0", "it has a controlling terminal"
            assert terminal not in {os.readlink(f"/proc/{reader}/fd/{fd}") for fd in os.listdir(f"/proc/{reader}/fd")}
            assert not writable_files(reader), (reader, writable_files(reader))
            os.kill(reader, signal.SIGCONT)
        if select.select([master], [], [], 0.02)[0]:
            with contextlib.suppress(OSError):  # nobody has the other end
                text += os.read(master, 65536)
    while select.select([master], [], [], 0)[0]:
        try:
            text += os.read(master, 65536)
        except OSError:
            break
    os.close(master)
    assert process.returncode == 0 and len(readers) == 5, (process.returncode, readers, text)
    assert b"still live" in text and b"loop" in text, text
    with open(context.path("r.json"), encoding="utf-8") as file:
        assert json.load(file)["complete"]
    victim.finish()


@case()
def names_are_given_up_by_a_signal(context):
    """Ctrl-C while names are looked for: the status of the detach, a whole dump, and memanalyze finds the names by itself."""
    looker = Looker(context, Victim(context, "alloc_loop", "calm"))
    bare = os.path.getsize(looker.session.dump)
    while looker.session.process.poll() is None:  # signals that come within a moment are one
        os.kill(looker.session.process.pid, signal.SIGINT)
        time.sleep(0.5)
    assert "without the names of functions, as you asked for" in looker.end(), looker.session.said()
    assert os.path.getsize(looker.session.dump) == bare
    assert "loop" in functions(whole(context, looker.session.dump))


@case()
def names_meet_a_full_disk(context):
    """There is no room for the names: the dump is as it was before them, byte for byte."""
    folder = context.path("small")
    os.mkdir(folder)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", folder], check=False).returncode:
        raise Skip("only root can mount a small file system")
    try:
        looker = Looker(context, Victim(context, "alloc_loop", "calm"), output=os.path.join(folder, "dump"))
        with open(os.path.join(folder, "filler"), "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)):
                    pass
            except OSError:
                pass
        with open(looker.session.dump, "rb") as dump:
            before = dump.read()
        looker.go_on()
        said = looker.end()
        assert "without the names of functions: cannot write them: No space left" in said, said
        with open(looker.session.dump, "rb") as dump:
            assert dump.read() == before
        assert "loop" in functions(whole(context, looker.session.dump))
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@case()
def names_are_looked_for_by_nobody(context):
    """No memanalyze beside memattach, one that cannot be executed, or one that ends badly: it is said, and nothing else is lost."""
    with open(context.path("text"), "w", encoding="ascii") as file:
        file.write("no program")
    os.chmod(context.path("text"), 0o755)
    victim = Victim(context, "alloc_loop", "calm")
    for programs, reason in (({}, "there is no memanalyze beside memattach"),
                             ({"memanalyze": context.path("text")}, "cannot be executed"),
                             ({"memanalyze": shutil.which("false")}, "ended with status 1"),
                             ({"memanalyze": shutil.which("true")}, "makes no sense")):
        real, context.memattach = context.memattach, beside(context, **programs)
        session = Session(context, victim.pid)
        session.sampled(20)
        check_receipt(session.stop(), victim.pid)
        context.memattach = real
        assert "without the names of functions: " in session.said() and reason in session.said(), session.said()
        assert "loop" in functions(whole(context, session.dump))
    victim.finish()


@case()
def names_after_memattach_is_killed(context):
    """A dump of a memattach that was killed has no names: memanalyze finds them in the files."""
    victim = Victim(context, "alloc_loop", "calm")
    session = Session(context, victim.pid)
    until(context, session, "a sample in the dump", lambda report: "loop" in functions(report))
    session.process.kill()
    session.process.wait(PATIENCE)
    assert "loop" in functions(analyze(context, session.dump))
    subprocess.run([context.memattach, "--detach", "-p", str(victim.pid), "-o", context.path("rest.dump")], check=True,
                   stderr=subprocess.DEVNULL, timeout=PATIENCE)
    assert "loop" in functions(whole(context, context.path("rest.dump")))
    victim.finish()


@case()
def names_come_from_no_network(context):
    """Whatever the environment says of servers: neither memattach nor memanalyze makes a connection."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    os.environ["DEBUGINFOD_URLS"] = "http://127.0.0.1:9/"
    try:
        victim = Victim(context, "alloc_loop", "calm")
        trace, dumps = context.path("trace"), [context.path("with.dump"), context.path("without.dump")]
        for dump, options in zip(dumps, ([], ["--no-symbols"])):
            subprocess.run(["strace", "-f", "-o", trace, "-e", "trace=socket,connect,sendto,execveat", context.memattach, "-p",
                            str(victim.pid), "-d", "300ms", "-r", "16k", "-o", dump, *options], check=True, timeout=PATIENCE,
                           stderr=subprocess.DEVNULL)
            text = read_text(trace)
            assert ("execveat" in text) == (not options), text
            assert not re.search(r"AF_INET|connect\(|socket\(", text), text
        for dump in dumps:
            subprocess.run(["strace", "-f", "-o", trace, "-e", "trace=%network", context.memanalyze, dump], check=True,
                           timeout=PATIENCE, stdout=subprocess.DEVNULL)
            assert not re.search(r"AF_INET|connect\(|socket\(", read_text(trace)), read_text(trace)
        victim.finish()
    finally:
        del os.environ["DEBUGINFOD_URLS"]


@case()
def names_of_code_that_the_target_made(context):
    """perf-PID.map names it, if it is the target's own and not older; what it holds cannot reach a terminal. Without one it is [jit],
    and the report says what would help."""
    victim, said, messages = Victim(context, "own_code"), [], []
    path = next(line for line in victim.lines.seen if line.startswith("PERF ")).split(" ", 1)[1]
    try:
        def names(change):
            change()
            session = Session(context, victim.pid)
            session.sampled(20)
            check_receipt(session.stop(), victim.pid)
            text = analyze_text(context, session.dump)
            assert "\033" not in text
            said.append(text)
            messages.append(session.said())
            return [frame["function"] for stack in whole(context, session.dump)["stacks"] for frame in stack["frames"]
                    if frame["function"] and "made_here" in frame["function"]]
        assert "made_here \033[31mby the victim" in names(lambda: os.chmod(path, 0o600))
        assert "[jit]" not in said[-1], said[-1]
        assert not names(lambda: os.utime(path, (0, 0)))
        assert "names no code that the process has made: it is older" in messages[-1], messages[-1]
        assert re.search(r"code without a name in their stack, \[jit\]: a map for perf names it", said[-1]), said[-1]
        os.utime(path)
        if os.geteuid() == 0:
            assert not names(lambda: os.chown(path, NOBODY, NOBODY))
            assert "it belongs neither to" in messages[-1], messages[-1]
            os.chown(path, 0, 0)
        os.rename(path, path + ".real")
        assert not names(lambda: os.symlink(path + ".real", path))
        assert "it is no regular file" in messages[-1], messages[-1]
        os.unlink(path)
        assert not names(lambda: None)
        assert "names no code" not in messages[-1], messages[-1]
        victim.finish()
    finally:
        for name in (path, path + ".real"):
            if os.path.lexists(name):
                os.unlink(name)


@case()
def names_of_damaged_debug_information(context):
    """DWARF in which nothing is as it should be costs names at most: the session ends well, and the report is whole."""
    for tool in ("objcopy", "readelf"):
        context.program(tool)
    sections = subprocess.run(["readelf", "-SW", context.target("alloc_loop")], stdout=subprocess.PIPE, text=True, check=True).stdout
    damaged = []
    for name in (".debug_info", ".debug_abbrev", ".debug_line", ".debug_str"):
        place = re.search(rf" {re.escape(name)} +PROGBITS +\S+ (\w+) (\w+)", sections)
        if place:
            damaged.append((int(place.group(1), 16), int(place.group(2), 16)))
    if not damaged:
        raise Skip("the victim has no debug information")
    chance = random.Random(7)
    with open(context.target("alloc_loop"), "rb") as file:
        sound = file.read()
    for share in (0.01, 0.3, 1):
        content = bytearray(sound)
        for offset, size in damaged:
            for i in range(offset, offset + size):
                if chance.random() < share:
                    content[i] = chance.randrange(256)
        program = context.unique("alloc_loop", "")
        with open(program, "wb") as file:
            file.write(content)
        os.chmod(program, 0o755)
        victim = Victim(context, [program])
        session = Session(context, victim.pid)
        session.sampled(20)
        check_receipt(session.stop(), victim.pid)
        victim.finish()
        os.unlink(program)
        frames = [frame for stack in whole(context, session.dump)["stacks"] for frame in stack["frames"]]
        assert any(frame["function"] for frame in frames if frame["module"].endswith(".so.6")), "other files have their names"


class DebugFiles(http.server.BaseHTTPRequestHandler):
    """A server of debug files, by build-id."""
    files, asked = {}, []

    def do_GET(self):
        self.asked.append(self.path)
        path = self.files.get(self.path)
        self.send_response(200 if path else 404)
        content = b""
        if path:
            with open(path, "rb") as file:
                content = file.read()
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@case()
def names_from_a_server(context):
    """--debuginfod, and nothing else, asks the servers of DEBUGINFOD_URLS: for programs that have no debug information here."""
    for tool in ("objcopy", "strip", "readelf"):
        context.program(tool)
    program, debug, work = context.path("alloc_loop"), context.path("debug"), context.path("cache")
    subprocess.run(["objcopy", "--only-keep-debug", context.target("alloc_loop"), debug], check=True)
    subprocess.run(["strip", "-o", program, context.target("alloc_loop")], check=True)
    notes = subprocess.run(["readelf", "-n", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    DebugFiles.files["/buildid/" + re.search(r"Build ID: (\w+)", notes).group(1) + "/debuginfo"] = debug
    server = http.server.HTTPServer(("127.0.0.1", 0), DebugFiles)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    victim = Victim(context, [program])
    dumps = []
    for options in ([], ["--no-symbols"]):
        session = Session(context, victim.pid, *options)
        session.sampled(20)
        check_receipt(session.stop(), victim.pid)
        dumps.append(session.dump)
    victim.finish()
    kept = {name: os.environ.get(name) for name in ("DEBUGINFOD_URLS", "DEBUGINFOD_CACHE_PATH")}
    try:
        refused = subprocess.run([context.memanalyze, "--debuginfod", dumps[0]], stderr=subprocess.PIPE, text=True, check=False,
                                 env={name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"})
        assert refused.returncode == 64 and re.search("names no server|not installed", refused.stderr), refused
        os.environ.update(DEBUGINFOD_URLS=f"http://127.0.0.1:{server.server_port}", DEBUGINFOD_CACHE_PATH=work)
        for dump in dumps:
            assert functions(analyze(context, dump)) == {None}
        assert not DebugFiles.asked, DebugFiles.asked
        answer = subprocess.run([context.memanalyze, "--debuginfod", dumps[0]], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, check=False)
        if "not installed" in answer.stderr:
            raise Skip("libdebuginfod is not installed")
        for dump in dumps:
            assert "loop" in functions(analyze(context, dump, "--debuginfod")), DebugFiles.asked
        assert set(DebugFiles.files) & set(DebugFiles.asked), DebugFiles.asked
    finally:
        for name, value in kept.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        server.shutdown()
