# SPDX-License-Identifier: MIT
"""From a command to a report: the process named by its number alone, reports after the session, whose the files are."""
import json
import os
import shutil
import subprocess
import time

from harness import Victim, case, run_memattach
from procfs import PATIENCE, Skip
from reports import stacks_with, with_frames

USAGE = 64


@case()
def reports_after_a_session(context):
    """memattach PID --report FILE: each form by its name, whole or not there; what cannot be written is known before the attach."""
    victim = Victim(context, "alloc_loop", "calm")
    result = run_memattach(context, victim.pid, "-d", "300ms", "-r", "16k", "--report", "r.json", "--report", "r.txt", "--report", "-")
    assert result.returncode == 0, result
    assert "still live" in result.stdout, result.stdout
    with open(context.path("r.json"), encoding="utf-8") as file:
        report = with_frames(json.load(file))
    assert report["complete"] and stacks_with(report, "loop"), report["total"]
    with open(context.path("r.txt"), encoding="utf-8") as file:
        assert "still live" in file.read()
    dumps = [name for name in os.listdir(context.work) if name.endswith(".dump")]
    assert len(dumps) == 1 and report["target"]["pid"] == victim.pid, dumps
    os.mkfifo(context.path("fifo.txt"))
    for name, reason in (("r.what", "does not tell the format"), ("nowhere/r.txt", "No such file"), ("fifo.txt", "nobody reads")):
        refused = run_memattach(context, victim.pid, "-d", "300ms", "--report", name)
        assert refused.returncode == 1 and reason in refused.stderr, refused
    launched = run_memattach(context, "--report", "fifo.txt", "--", "echo", "runs")
    assert launched.stdout == "runs\n" and "nobody reads" in launched.stderr, launched
    os.unlink(context.path("fifo.txt"))
    for arguments in ((victim.pid, victim.pid), ("x",), (), ("--report", "a.txt", "--report", "a.txt", victim.pid),
                      ("--detach", victim.pid, "--report", "a.txt")):
        assert run_memattach(context, *arguments).returncode == USAGE, arguments
    assert sorted(os.listdir(context.work)) == sorted([*dumps, "memattach", "r.json", "r.txt"]), os.listdir(context.work)
    victim.finish()


@case()
def the_newest_dump_is_shown(context):
    """memanalyze without a name: the dump here that was written last, and no other file that is called so."""
    def show():
        return subprocess.run([context.memanalyze, "--json"], cwd=context.path("here"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=PATIENCE, check=False)

    os.mkdir(context.path("here"))
    empty = show()
    assert empty.returncode == USAGE and "which dump?" in empty.stderr, empty
    victim = Victim(context, "alloc_loop", "calm")
    for name in ("b.dump", "a.dump"):
        run_memattach(context, victim.pid, "-d", "100ms", "-o", context.path(f"here/{name}"))
        time.sleep(0.05)
    victim.finish()
    shutil.copy(context.path("here/b.dump"), context.path("here/c.dumped"))
    with open(context.path("here/database.dump"), "w", encoding="ascii") as file:
        file.write("PGDMP")
    os.mkfifo(context.path("here/fifo.dump"))
    latest = show()
    assert latest.returncode == 0 and "a.dump, the newest of 2 here" in latest.stderr, latest
    os.utime(context.path("here/b.dump"), (time.time() + 60, time.time() + 60))
    assert "b.dump, the newest of 2 here" in show().stderr


@case()
def files_of_sudo_belong_to_who_typed_it(context):
    """As root with SUDO_UID: the dump with its copies, the receipt and reports are his, also in a directory like /tmp; what was there
    before keeps its owner."""
    if os.geteuid() != 0:
        raise Skip("only root can give files away")
    user, other = 1000, 1234
    folder = context.path("sticky")
    os.mkdir(folder)
    os.chown(folder, other, other)
    os.chmod(folder, 0o1777)
    for name in ("old.json", "receipt.json"):
        with open(os.path.join(folder, name), "w", encoding="ascii"):
            pass
    os.chown(os.path.join(folder, "receipt.json"), other, other)
    victim = Victim(context, "alloc_loop", "calm")

    def owner(name):
        status = os.stat(os.path.join(folder, name))
        return status.st_uid, status.st_gid

    environment = {**os.environ, "SUDO_UID": str(user), "SUDO_GID": str(user)}
    for number in range(2):  # the second one meets the receipt of the first
        result = run_memattach(context, victim.pid, "-d", "2500ms" if number == 0 else "100ms", "-o", f"{folder}/{number}.dump", "--receipt",
                               f"{folder}/new.json", "--report", f"{folder}/r.txt", env=environment)
        assert result.returncode == 0 and "cannot" not in result.stderr, result
        for name in (f"{number}.dump", "new.json", "r.txt"):
            assert owner(name) == (user, user), (name, owner(name))
    run_memattach(context, victim.pid, "-d", "100ms", "-o", f"{folder}/2.dump", "--receipt", f"{folder}/receipt.json", env=environment)
    assert owner("receipt.json") == (other, other), "a file that was there is not given away"
    for wrong in ("root", "0", "-1"):
        run_memattach(context, victim.pid, "-d", "100ms", "-o", f"{folder}/x{wrong}.dump", env={**environment, "SUDO_UID": wrong})
        assert owner(f"x{wrong}.dump") == (0, 0)
    victim.finish()
