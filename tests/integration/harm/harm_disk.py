# SPDX-License-Identifier: MIT
"""The dump on disk: whatever happens to its name, the disk and who writes it, a whole one is left and nobody is held up."""
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import time

from harm_kills import Sufferer
from harness import DEADLINE, Session, Victim, case, check_receipt, end_of, run_memattach, start_memattach
from procfs import PATIENCE, Skip, read_text
from reports import analyze, whole
from snapshot import Snapshot, check_same, remains, settle


def at_work(context):
    return Sufferer(context, Victim(context, "alloc_loop", "calm"))


def disturb(context, what, seconds=2.5):
    """A session at rate 1 beside somebody who does `what` to the dump again and again: nobody dies, and the end is whole."""
    sufferer = at_work(context)
    before = Snapshot(sufferer.pid)
    session = Session(context, sufferer.pid, "--max-size", "64M", rate="1")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        what(session.dump)
        time.sleep(0.02)
    session.sampled(2000)
    sufferer.victim.check_alive()
    assert session.process.poll() is None, session.said()
    check_receipt(session.stop(), sufferer.pid)
    check_same(before, Snapshot(sufferer.pid), busy=True)
    sufferer.finish()
    return session


def truncate(path):
    with contextlib.suppress(FileNotFoundError):
        os.truncate(path, random.choice((0, 1, 4096, 20000)))


@case()
def dump_is_truncated(context):
    """Once both memattach and its target died of SIGBUS."""
    session = disturb(context, truncate)
    assert whole(context, session.dump)["samples"]["taken"] > 1000


@case()
def dump_is_overwritten(context):
    def overwrite(path):
        with contextlib.suppress(FileNotFoundError), open(path, "r+b") as file:
            file.write(os.urandom(65536))
    session = disturb(context, overwrite)
    assert whole(context, session.dump)["samples"]["taken"] > 1000


@case()
def dump_is_deleted(context):
    def delete(path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    session = disturb(context, delete)
    assert whole(context, session.dump)["samples"]["taken"] > 1000


def put_another_file(path):
    with open(path + ".mine", "w", encoding="ascii") as file:
        file.write("mine")
    os.rename(path + ".mine", path)


@case()
def dump_gives_way_to_another_file(context):
    """What somebody puts in its place stays as it is, and the dump gets a name with a number, which is said."""
    done = []

    def replace(path):
        if not done:
            time.sleep(0.2)
            put_another_file(path)
            done.append(path)
    session = disturb(context, replace)
    assert read_text(session.dump) == "mine"
    assert f"the dump is {session.dump}.1" in session.said(), session.said()
    assert whole(context, session.dump + ".1")["samples"]["taken"] > 1000


@case()
def dump_gives_way_to_another_file_at_the_end(context):
    """As before, when only the last copy, after the detach, can find out."""
    sufferer = at_work(context)
    session = Session(context, sufferer.pid, "--max-size", "64M", rate="1")
    session.sampled()
    put_another_file(session.dump)
    check_receipt(session.stop(), sufferer.pid)
    sufferer.finish()
    assert read_text(session.dump) == "mine"
    assert f"the dump is {session.dump}.1" in session.said(), session.said()
    assert whole(context, session.dump + ".1")["samples"]["taken"] > 0


@contextlib.contextmanager
def image(context, kind):
    """An empty file system of some 120 MB, in a file of ours."""
    if os.geteuid() != 0:
        raise Skip("file systems are mounted by root")
    if kind != "tmpfs" and not shutil.which(f"mkfs.{kind}"):
        raise Skip(f"mkfs.{kind} is not installed")
    if kind not in read_text("/proc/filesystems"):
        raise Skip(f"this kernel has no {kind}")
    where, disk = context.unique("mount", ""), context.unique("disk", ".img")
    os.mkdir(where)
    if kind == "tmpfs":
        command = ["mount", "-t", "tmpfs", "-o", "size=40m", "none", where]
    else:
        with open(disk, "wb") as file:
            file.truncate((320 if kind == "xfs" else 120) << 20)
        subprocess.run([f"mkfs.{kind}", "-q", disk], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        command = ["mount", "-o", "loop", disk, where]
    mounted = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if mounted.returncode:
        raise Skip(f"{kind} cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", where], check=False)


def fill(where):
    """To the last block."""
    for size in (1 << 20, 4096, 512):
        with contextlib.suppress(OSError), open(os.path.join(where, f"filler-{size}"), "ab", buffering=0) as file:
            while True:
                file.write(b"x" * size)


def disk_is_full(context, kind):
    sufferer = at_work(context)
    with image(context, kind) as where:
        dump = os.path.join(where, "full.dump")
        elsewhere = context.unique("elsewhere", "")
        os.mkdir(elsewhere)
        roomy = ("env", f"TMPDIR={elsewhere}")
        session = Session(context, sufferer.pid, "--max-size", "64M", rate="1", output=dump, under=roomy)
        time.sleep(1)
        if kind == "xfs":  # its blocks are shared with a copy: writing to them in place would need new ones
            subprocess.run(["cp", "--reflink=auto", dump, dump + ".copy"], check=True)
        fill(where)
        session.lines.wait(rf"full\.dump: .*(No space left|Disk quota).* at the end also in {elsewhere}")
        sufferer.victim.check_alive()
        assert session.process.poll() is None, session.said()
        held = re.search(r"it holds the recording until (\d\d:\d\d:\d\d)", session.said())
        receipt = session.stop()
        check_receipt(receipt, sufferer.pid)
        other = os.path.join(elsewhere, "full.dump")
        assert held and f"all of it is in {other}" in session.said() and f"memanalyze {other}" in session.said(), session.said()
        before, after = whole(context, dump), whole(context, other)
        assert after["target"]["ended"] == "detached" and before["total"]["allocated_count"]["estimate"] < after["total"]["allocated_count"]["estimate"]
        assert sorted(name for name in os.listdir(where) if "part" in name) == []
        # A name on a full disk: refused before anything is touched.
        fill(where)
        result = run_memattach(context, "-p", sufferer.pid, "-d", "50ms", "-o", os.path.join(where, "other.dump"))
        if kind != "xfs" or result.returncode == 1:  # which has some blocks left for what is small
            assert result.returncode == 1 and "No space" in result.stderr and "another folder: -o " in result.stderr, result
            assert not os.path.exists(os.path.join(where, "other.dump"))
        # There is room again.
        session = Session(context, sufferer.pid, rate="4k", output=context.unique("room", ".dump"))
        check_receipt(session.stop(), sufferer.pid)
    sufferer.finish()


for short in ("tmpfs", "ext4", "btrfs", "xfs"):
    def full_disk(context, kind=short):
        """The disk is filled in the middle of a session: target and memattach live, and what is missing is said."""
        disk_is_full(context, kind)
    full_disk.__name__ = f"full_disk_{short}"
    case()(full_disk)


@contextlib.contextmanager
def stalled(where):
    """Who writes to the file system waits, and cannot even be killed."""
    if not shutil.which("fsfreeze"):
        raise Skip("fsfreeze is not installed")
    frozen = subprocess.run(["fsfreeze", "--freeze", where], stderr=subprocess.PIPE, text=True, check=False)
    if frozen.returncode:
        raise Skip(f"the file system cannot be frozen: {frozen.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", where], check=True)


@case()
def detach_during_the_last_copy(context):
    """memattach has detached and writes its last copy to a slow disk: a --detach waits for it, and does not make it give up."""
    sufferer = at_work(context)
    with image(context, "ext4") as where:
        session = Session(context, sufferer.pid, "--max-size", "16M", rate="4k", output=os.path.join(where, "slow.dump"))
        with stalled(where):
            session.process.send_signal(signal.SIGINT)
            session.lines.wait(r"^detached from")
            others = [start_memattach(context, "--detach", "-p", sufferer.pid) for _ in range(2)]
            time.sleep(0.5)
            assert session.process.poll() is None, session.said()
        assert session.process.wait(PATIENCE) == 0, session.said()
        assert [end_of(process)[0] for process in others] == [0, 0]
        assert whole(context, session.dump)["target"]["ended"] == "detached"
    sufferer.finish()


@case()
def disk_that_stalls_holds_up_nobody(context):
    """The target is detached from all the same, and a second Ctrl-C ends memattach, with the copy before."""
    sufferer = at_work(context)
    with image(context, "ext4") as where:
        session = Session(context, sufferer.pid, "--max-size", "16M", rate="4k", output=os.path.join(where, "stalled.dump"))
        with stalled(where):
            time.sleep(2.5)  # a copy has begun, and stands still
            session.process.send_signal(signal.SIGINT)
            session.lines.wait(r"^detached from")
            assert not remains(sufferer.pid)
            time.sleep(2)
            session.process.send_signal(signal.SIGINT)
            assert session.process.wait(PATIENCE) == 3, session.said()
        whole(context, session.dump)
    sufferer.finish()


@case()
def full_disk_and_no_other_folder(context):
    """What came after the last copy that had room is lost then, and that is said: status 3."""
    if context.work.startswith(("/tmp/", "/var/tmp/")):
        raise Skip("the folders that are hidden hold what the case needs")
    victim = Victim(context, "alloc_loop", "calm")
    nowhere = ("env", "-u", "TMPDIR", "unshare", "-m", "sh", "-c",
               'for d in /tmp /var/tmp; do mount -t tmpfs -o ro,size=4k none $d || exit 99; done; exec "$@"', "sh")
    with image(context, "tmpfs") as where:
        dump = os.path.join(where, "full.dump")
        session = Session(context, victim.pid, "--max-size", "64M", rate="1", output=dump, under=nowhere)
        time.sleep(0.5)
        fill(where)
        session.lines.wait(r"full\.dump: .*No space left.* tried again$")
        session.process.send_signal(signal.SIGINT)
        check_receipt(session.end(expected=3), victim.pid)
        assert "what came after is lost" in session.said(), session.said()
        whole(context, dump)
    victim.finish()


@case()
def full_disk_has_room_again(context):
    sufferer = at_work(context)
    with image(context, "tmpfs") as where:
        dump = os.path.join(where, "again.dump")
        session = Session(context, sufferer.pid, "--max-size", "16M", rate="4k", output=dump)
        fill(where)
        session.lines.wait(r"again\.dump: ")
        for name in os.listdir(where):
            if name.startswith("filler"):
                os.unlink(os.path.join(where, name))
        session.lines.wait(r"is complete again")
        check_receipt(session.stop(), sufferer.pid)
        assert whole(context, dump)["target"]["ended"] == "detached"
    sufferer.finish()


@case()
def dump_of_a_killed_memattach_is_whole(context):
    """At any instant there is a whole copy under the name, and nothing beside it; --detach saves the end from the memory."""
    rng = random.Random(5)
    sufferer = at_work(context)
    folder = context.unique("folder", "")
    os.mkdir(folder)
    for i in range(3):
        dump, saved = os.path.join(folder, f"{i}.dump"), os.path.join(folder, f"{i}.saved")
        session = Session(context, sufferer.pid, "--max-size", "64M", rate="1", output=dump)
        time.sleep(2 + rng.uniform(0, 0.3))  # the second copy is written about then
        session.process.kill()
        session.process.wait(PATIENCE)
        wanted = {os.path.basename(dump), *(f"{k}.{kind}" for k in range(i) for kind in ("dump", "saved"))}
        end = time.monotonic() + PATIENCE
        while set(os.listdir(folder)) != wanted:  # a copy that had begun comes to its end
            assert time.monotonic() < end, (os.listdir(folder), wanted)
            time.sleep(0.02)
        taken = whole(context, dump)["samples"]["taken"]
        result = run_memattach(context, "--detach", "-p", sufferer.pid, "-o", saved)
        assert result.returncode == 0 and f"is in {saved}" in result.stderr, result
        report = whole(context, saved)
        assert report["samples"]["taken"] > taken and report["target"]["ended"] == "abandoned", (taken, report["samples"])
        settle(sufferer.state)
    sufferer.finish()


@case()
def recording_waits_for_a_name(context):
    """--detach -o with a name that exists, such as that of the session, does not cost the recording: it stays until another name comes."""
    sufferer = at_work(context)
    session = Session(context, sufferer.pid, "--max-size", "64M", rate="1")
    session.sampled()
    session.process.kill()
    session.process.wait(PATIENCE)
    for name in (session.dump, "/nowhere/a.dump"):
        result = run_memattach(context, "--detach", "-p", sufferer.pid, "-o", name)
        assert result.returncode == 2 and "save it with another -o" in result.stderr, result
    saved = context.path("saved.dump")
    result = run_memattach(context, "--detach", "-p", sufferer.pid, "-o", saved)
    assert result.returncode == 0, result
    assert whole(context, saved)["samples"]["taken"] > 0
    settle(sufferer.state)
    assert not remains(sufferer.pid)
    # A made name in a directory that cannot be written to: the process comes first, and the exit status tells of the loss.
    session = Session(context, sufferer.pid, rate="64k")
    session.process.kill()
    session.process.wait(PATIENCE)
    result = subprocess.run([context.memattach, "--detach", "-p", str(sufferer.pid), "--deadline", DEADLINE], cwd="/proc", stderr=subprocess.PIPE,
                            text=True, timeout=PATIENCE, check=False)
    assert result.returncode == 3 and "could not be saved" in result.stderr, result
    sufferer.finish()


@case()
def target_and_memattach_are_killed(context):
    """What is lost is what came after the last copy."""
    victim = Victim(context, "alloc_loop", "calm")
    session = Session(context, victim.pid, rate="4k")
    end = time.monotonic() + PATIENCE
    while analyze(context, session.dump)["target"]["duration_seconds"] < 1.5 and time.monotonic() < end:
        time.sleep(0.1)
    session.process.kill()
    victim.process.kill()
    session.process.wait(PATIENCE)
    victim.process.wait(PATIENCE)
    time.sleep(0.5)
    report = whole(context, session.dump)
    assert report["samples"]["taken"] > 10 and report["target"]["duration_seconds"] > 1.5, report["target"]
