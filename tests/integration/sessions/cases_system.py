# SPDX-License-Identifier: MIT
"""A whole machine: memattach --system in a PID namespace of its own, which is the machine of these cases."""
import atexit
import contextlib
import glob
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

from harness import DEADLINE, Lines, Session, Victim, case, log
from pid_machine import Machine
from procfs import PATIENCE, Skip, read_text
from reports import analyze

NETLINK_CONNECTOR = 11

GROWING = """
import time
kept = []
def plant():
    kept.append(bytes(200000))
while True:
    plant()
    time.sleep(0.02)
"""


def start_servers(context, machine):
    """Servers that are installed; which are not is said."""
    pids = []
    sockets = tempfile.mkdtemp()  # the name of a socket has at most 107 bytes
    atexit.register(shutil.rmtree, sockets, True)
    with contextlib.suppress(Skip):
        redis = context.program("redis-server")
        pids.append(machine.start(f"{redis} --port 0 --save '' --unixsocket {sockets}/redis.sock", "redis"))
    if not pids:
        log("redis-server is not installed: left out")
    if shutil.which("nginx"):
        with open(os.path.join(machine.folder, "nginx.conf"), "w", encoding="utf-8") as conf:
            conf.write(f"daemon off; worker_processes 4; pid {machine.folder}/nginx.pid; error_log stderr;\nevents {{}}\n"
                       f"http {{ access_log off; server {{ listen unix:{sockets}/nginx.sock; }} }}\n")
        pids.append(machine.start(f"nginx -c {machine.folder}/nginx.conf", "nginx"))
    else:
        log("nginx is not installed: left out")
    return pids


def start_leak(context, machine):
    """A process that leaks in plant(): so much in each round, however long that takes."""
    script = os.path.join(machine.folder, "growing.py")
    if not os.path.exists(script):
        with open(script, "w", encoding="utf-8") as file:
            file.write(GROWING)
    return machine.start(f"{context.program('/usr/bin/python3')} {script}", "growing")


def start_machine(context, machine):
    """Some thirty processes of seven programs, among them shells that start others all the time; and two that leak."""
    leaks = [start_leak(context, machine) for _ in range(2)]
    machine.victim("alloc_loop", "calm")
    for _ in range(5):
        machine.victim("sleeper", "nanosleep")
    others = start_servers(context, machine)
    others += [machine.start("sleep 1000000", "sleep") for _ in range(8)]
    others += [machine.start("sh -c 'while :; do sleep 1; ls >/dev/null; done'", "shell") for _ in range(6)]
    return leaks, others + leaks + [pid for pid, _ in machine.victims]


def check_alive(machine, pids):
    ended = machine.ask(f"for p in {' '.join(map(str, pids))}; do kill -0 $p || echo $p; done")[0]
    assert not ended, ended


@case()
def system_of_many_programs(context):
    """Every process is profiled, also one that begins later; planted leaks are found in each; who was not profiled is named, and all go on."""
    machine = Machine(context)
    leaks, pids = start_machine(context, machine)
    held = machine.victim("sleeper", "poll")
    holder = machine.start(f"{context.memattach} -p {held} -o {machine.folder}/held.dump --deadline {DEADLINE}", "holder")
    machine.await_text("holder", "^attached to")
    supervisor = machine.system("-r", "16k")
    machine.await_text("system", r"^\d+ processes are profiled, \d+ are not$")
    late = start_leak(context, machine)
    machine.await_text("system", rf"^attached to {late} \(python3.*\)$")
    for pid in [*leaks, late]:
        machine.await_leak(pid, "plant")
    check_alive(machine, pids + [late])
    machine.ask(f"kill -INT {supervisor}")
    assert machine.end_of(supervisor) == 0, machine.text("system")
    machine.ask(f"kill -INT {holder}")
    assert machine.end_of(holder) == 0, machine.text("holder")
    machine.check_clean()
    check_alive(machine, pids + [late, held])
    for pid in pids + [1]:
        machine.dump_of(pid)
    assert not glob.glob(os.path.join(machine.dumps, "memattach.memattach.*")), "memattach has profiled itself"
    sessions, done = re.search(r"^(\d+) sessions: (\d+) done$", machine.text("system"), re.M).groups()
    assert sessions == done and int(sessions) == len(glob.glob(os.path.join(machine.dumps, "*.dump"))), machine.text("system")[-2000:]
    assert [row for row in machine.unseen() if row[1] == "sleeper" and "it is being profiled already" in row[2]], machine.unseen()
    check_sums(context, machine, [*leaks, late])
    machine.finish_victims()


def check_sums(context, machine, leaking):
    """memanalyze of the directory: processes by growth, and who was not profiled; the sums by program are those of the processes."""
    report = analyze(context, machine.dumps, "--top", "0")
    assert report["by"] == "process" and len(report["dumps"]) == len(glob.glob(os.path.join(machine.dumps, "*.dump"))), report["dumps"]
    live = {group["process"]: group["live_bytes"]["estimate"] for group in report["groups"]}
    for pid in leaking:
        assert [name for name in list(live)[:10] if name.startswith(f"python3 (PID {pid} on ")], (pid, live)
    assert [row for row in report["not_profiled"] if "it is being profiled already" in row["why"]], report["not_profiled"]
    programs = analyze(context, machine.dumps, "--top", "0", "--by", "program")["groups"]
    python, = [group for group in programs if group["program"] == os.path.realpath("/usr/bin/python3")]
    assert python["sessions"] == len(leaking), python
    pythons = [value for name, value in live.items() if name.startswith("python3 ")]
    assert abs(python["live_bytes"]["estimate"] - sum(pythons)) <= 1 + len(pythons), (python, pythons)  # each is rounded
    text = subprocess.run([context.memanalyze, machine.dumps], stdout=subprocess.PIPE, text=True, timeout=PATIENCE, check=True).stdout
    assert "Processes by live bytes" in text and "Not profiled:" in text, text


@case()
def system_of_those_that_fit(context):
    """--system --name: no other process is touched, and one that begins later is."""
    machine = Machine(context)
    first, other = machine.victim("sleeper", "nanosleep"), machine.victim("alloc_loop", "calm")
    supervisor = machine.system("--name", "sleeper")
    machine.await_text("system", rf"^attached to {first} \(sleeper\)$")
    late = machine.victim("sleeper", "poll")
    machine.await_text("system", rf"^attached to {late} \(sleeper\)$")
    assert not machine.ask(f"grep memattach /proc/{other}/maps")[0]
    machine.ask(f"kill -TERM {supervisor}")
    assert machine.end_of(supervisor) == 0
    assert "2 sessions: 2 done" in machine.text("system") and not machine.unseen(), machine.text("system")
    machine.finish_victims()


@case()
def system_of_what_does_not_fit_any_more(context):
    """--system --name: one that executes another program, which was not meant, is let alone from then on."""
    machine = Machine(context)
    go = os.path.join(machine.folder, "go")
    pid = machine.start(f"sh -c 'until [ -e {go} ]; do sleep 0.1; done; exec {context.target('alloc_loop')} 1'", "execed")
    supervisor = machine.system("--name", "sh")
    machine.await_text("system", rf"^attached to {pid} \(")
    machine.ask(f"touch {go}")
    machine.await_text("execed", "^READY$")
    machine.await_text("system", rf"^{pid} \(sh\) called execve")
    other = machine.start("sh -c 'sleep 100000; :'", "other")
    machine.await_text("system", rf"^attached to {other} \(")  # all were looked at since then
    assert not machine.ask(f"grep memattach /proc/{pid}/maps")[0]
    assert not re.search(rf"attached to {pid} \(alloc_loop", machine.text("system")), machine.text("system")
    machine.ask(f"kill -INT {supervisor}")
    assert machine.end_of(supervisor) == 0, machine.text("system")
    machine.check_clean()


@case()
def system_session_killed(context):
    """A session that is killed is cleaned up by the supervisor; the others go on. --detach --all ends the supervisor, too."""
    machine = Machine(context)
    victims = [machine.victim("sleeper", "nanosleep") for _ in range(3)]
    supervisor = machine.system("--name", "sleeper")
    machine.await_text("system", r"^attached to \d+ \(sleeper\)$", count=3)
    sessions, _ = machine.ask(f"pgrep -P {supervisor}")
    machine.ask(f"kill -KILL {sessions[0]}")
    machine.await_text("system", "its session was ended by signal 9; what it left is taken out")
    machine.ask(f"while [ $(grep -l memattach-payload {' '.join(f'/proc/{pid}/maps' for pid in victims)} | wc -l) != 2 ]; do sleep 0.05; done")
    machine.detach_all()
    assert machine.end_of(supervisor) == 2, machine.text("system")  # a session was killed
    assert "3 sessions: 2 done, 1 killed" in machine.text("system"), machine.text("system")
    machine.finish_victims()


@case()
def session_gives_back_memory(context):
    """What memattach needs to attach, and not afterwards, is the machine's again: a hundred sessions are a hundred times that."""
    victim = Victim(context, "alloc_loop", "calm")
    session = Session(context, victim.pid)
    census = subprocess.run([context.memattach, "--census", "--json", str(session.process.pid)], stdout=subprocess.PIPE, check=True, timeout=PATIENCE).stdout
    held = json.loads(census)["malloc"]
    assert held["trim_returns"] < 512 << 10, held["trim_returns"]
    session.stop()
    victim.finish()


def memory_of_dumps(context, folder):
    """What memattach holds for the dumps in this folder, from outside: each memory once."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if "memfd:memattach-dump" not in os.readlink(path):
                continue
            process = path.rsplit("/", 2)[0]
            if folder in read_text(f"{process}/cmdline", "") and os.path.samefile(f"{process}/exe", context.memattach):
                found[os.stat(path).st_ino] = os.stat(path).st_blocks * 512
    return sum(found.values())


@case()
def system_keeps_to_its_size(context):
    """All dumps together stay below --max-size, in memory and on the disk; who found no room is named."""
    machine = Machine(context)
    leaks = [start_leak(context, machine) for _ in range(12)]
    limit, largest = 48 << 20, 0
    supervisor = machine.system("-r", "1", "--max-size", "48M", "--max-overhead", "1")
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and largest < limit / 2:
        largest = max(largest, memory_of_dumps(context, machine.dumps))
        time.sleep(0.1)
    for _ in range(30):
        largest = max(largest, memory_of_dumps(context, machine.dumps))
        on_disk = sum(os.stat(path).st_blocks * 512 for path in glob.glob(os.path.join(machine.dumps, "*.dump")))
        assert largest <= limit and on_disk <= limit, (largest, on_disk)
        time.sleep(0.1)
    machine.ask(f"kill -INT {supervisor}")
    assert machine.end_of(supervisor) == 0, machine.text("system")
    assert largest >= limit / 2, largest
    assert [row for row in machine.unseen() if "no room is left" in row[2] and row[1].startswith("python3")], machine.unseen()
    machine.check_clean()
    check_alive(machine, leaks)


@case()
def system_of_a_full_disk(context):
    """A disk that is full is said once, not by each session; where the dumps are in the end is said, and in the list of the machine, too."""
    machine = Machine(context)
    other = os.path.join(machine.folder, "other")
    machine.ask(f"mkdir {other} && export TMPDIR={other} && mount -t tmpfs -o size=160k none {machine.dumps}")
    victims = [machine.victim("alloc_loop", "calm") for _ in range(3)]
    supervisor = machine.system("-r", "4k", "--name", "alloc_loop")
    machine.await_text("system", r"^attached to \d+ \(alloc_loop\)$", count=3)
    machine.await_text("system", r"\d+ dumps? cannot be written, as")
    machine.ask(f"kill -INT {supervisor}")
    assert machine.end_of(supervisor) == 0, machine.text("system")
    said = machine.text("system")
    # A copy may find the room that another one leaves for a moment.
    assert len(re.findall("dumps? cannot be written, as", said)) <= 1 + said.count("all dumps are complete again"), said
    assert len(re.findall(f"there was no room for its dump; all of it is in {other}", said.replace("\n  ", " "))) >= 1, said
    rows = [line.split("\t") for line in machine.ask(f"cat {machine.dumps}/memattach.system.*")[0]]
    moved = sum(int(row[1]) for row in rows if row[0] == "unseen" and "all of it is in" in row[4])
    assert 1 <= moved == len(os.listdir(other)), (rows, os.listdir(other))
    for name in os.listdir(other):
        assert analyze(context, os.path.join(other, name))["total"]["allocated_bytes"]["estimate"] > 0, name
    check_alive(machine, victims)
    machine.finish_victims()


@case()
def system_of_a_full_disk_and_an_end(context):
    """Whose dump cannot be written, and who executes another program then, is named as it was; that dump is not said to be complete again."""
    machine = Machine(context)
    other = os.path.join(machine.folder, "other")
    machine.ask(f"mkdir {other} && export TMPDIR={other} && mount -t tmpfs -o size=160k none {machine.dumps}")
    go = os.path.join(machine.folder, "go")
    machine.ask(f"cp /bin/sh {machine.folder}/before")
    pid = machine.start(f"{machine.folder}/before -c 'until [ -e {go} ]; do x=a$x; [ ${{#x}} -lt 2000 ] || x=; done; exec sleep 100000'", "execed")
    supervisor = machine.system("-r", "4k", "--name", "before")
    machine.await_text("system", "1 dump cannot be written, as")
    machine.ask(f"touch {go}")
    machine.await_text("system", f"^memattach: PID {pid}: there was no room for its dump")
    machine.ask("sleep 5")  # disks are thought of each 2 s
    machine.ask(f"kill -INT {supervisor}")
    assert machine.end_of(supervisor) == 0, machine.text("system")
    assert "complete again" not in machine.text("system"), machine.text("system")
    rows = [line.split("\t") for line in machine.ask(f"cat {machine.dumps}/memattach.system.*")[0]]
    assert [row[3] for row in rows if row[0] == "unseen" and "all of it is in" in row[4]] == ["before"], rows
    check_alive(machine, [pid])


def reads_of(machine, supervisor, seconds):
    """How many read calls the one session of this memattach makes in so many seconds."""
    session = machine.ask(f"pgrep -P {supervisor}")[0][0]
    counts = machine.ask(f"grep syscr /proc/{session}/io; sleep {seconds}; grep syscr /proc/{session}/io")[0]
    return int(counts[1].split()[1]) - int(counts[0].split()[1])


@case()
def system_lets_sleep(context):
    """A process that does not run is not looked at again and again: its session renews its lease, no more. It is profiled all the same when it wakes up."""
    machine = Machine(context)
    sleeping = machine.start("sh -c 'sleep 100000; :'", "sleeping")
    supervisor = machine.system("--name", "sh")
    machine.await_text("system", rf"^attached to {sleeping} ")
    # A tick each 3 s: one read each, and a whole look each 10 s. With a whole look each time it was 44, always. What a session does at its
    # beginning is done after a few seconds, and later on a busy machine.
    machine.ask("sleep 13")
    counted = [reads_of(machine, supervisor, 18)]
    while counted[-1] > 35 and len(counted) < 5:
        counted.append(reads_of(machine, supervisor, 18))
    assert counted[-1] <= 35, counted
    machine.ask(f"kill -INT {supervisor}")
    assert machine.end_of(supervisor) == 0, machine.text("system")
    machine.check_clean()


def hears_of_processes():
    """Does the kernel tell its process events here?"""
    with contextlib.suppress(OSError), socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_CONNECTOR) as events:
        events.bind((0, 1))
        events.settimeout(1)
        # Headers of netlink and of the connector, and what it is asked: PROC_CN_MCAST_LISTEN, then PROC_CN_MCAST_IGNORE.
        ask = struct.pack("=IHHII IIIIHH I", 40, 3, 0, 0, os.getpid(), 1, 1, 0, 0, 4, 0, 1)
        events.send(ask)
        answer = events.recv(1000)
        events.send(ask[:36] + struct.pack("=I", 2))
        return len(answer) > 36
    return False


@case()
def system_leaves_who_forks(context):
    """A process whose forks would cost more than its part loses its session and gets none again while it goes on; one that forks now and then keeps its own."""
    if os.geteuid() != 0 or not hears_of_processes():
        raise Skip("the kernel tells no process events here")
    name = f"fork{os.getpid() % 1000000}sh"
    shell, folder = context.path(name), context.unique("forks", "")
    shutil.copy("/bin/sh", shell)
    os.mkdir(folder)
    often, seldom = (context.start([shell, "-c", f"trap 'exit 7' TERM; while :; do {what}; done"])
                     for what in ("y=$(echo x)", "y=$(echo x); sleep 0.3"))
    system = context.start([context.memattach, "--system", "-v", "--name", name, "-o", folder, "--deadline", DEADLINE], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    lines = Lines(system.stdout)
    lines.wait(rf"^memattach: PID {often.pid} \({name}\) is not profiled: it forks so often")
    assert any(line.startswith(f"attached to {seldom.pid} ") for line in lines.seen), lines.seen
    system.send_signal(signal.SIGINT)
    assert system.wait(PATIENCE) == 0, lines.seen
    lines.wait(r"^memanalyze ")
    assert not any(f"PID {seldom.pid} " in line for line in lines.seen), lines.seen
    assert any(line.startswith(f"  not profiled: 1 {name}: it forks so often") for line in lines.seen), lines.seen
    for process in (often, seldom):
        assert not re.search("memfd:memattach", read_text(f"/proc/{process.pid}/maps"))
        process.terminate()
        assert process.wait(PATIENCE) == 7, process.returncode


def kill_again_and_again(context, kills):
    """Each time memattach --system is killed at a random moment, alone or with all of its sessions; one command cleans up."""
    machine = Machine(context)
    _, pids = start_machine(context, machine)
    chance = random.Random(33)
    for i in range(kills):
        supervisor = machine.system(output=f"system{i}")
        time.sleep(chance.uniform(0, 6))
        machine.ask(f"kill -KILL {supervisor}" if chance.random() < 0.5 else "kill -KILL $(pidof memattach)")
        machine.end_of(supervisor)
        check_alive(machine, pids)
        machine.detach_all()
        check_alive(machine, pids)
        for path in glob.glob(os.path.join(machine.dumps, "*")):
            os.unlink(path)
    machine.finish_victims()


@case()
def system_killed(context):
    """memattach --system is killed at random: all processes go on, and memattach --detach --all leaves nothing."""
    kill_again_and_again(context, context.cycles)


@case(label="stress", timeout=7200)
def system_killed_often(context):
    """The same many times."""
    kill_again_and_again(context, context.kills)
