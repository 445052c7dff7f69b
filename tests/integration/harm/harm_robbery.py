# SPDX-License-Identifier: MIT
"""Root profiles the process of a user who is after what only root may read. He gets nothing, and nobody else does."""
import os
import re
import shutil
import stat
import subprocess

from harm_names import functions
from harm_privileges import NOBODY
from harness import Session, Victim, case, check_receipt
from procfs import PATIENCE, Skip, read_text
from reports import whole

USER = 4711


def only_root():
    if os.geteuid() != 0:
        raise Skip("only root can be robbed")


def as_user(uid, *command):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *command]


def program_to_execute_only(context):
    """A program that all may execute, and only root may read."""
    path = context.unique("closed", "")
    shutil.copy(context.target("alloc_loop"), path)
    os.chmod(path, 0o711)
    os.chmod(context.work, 0o711)
    return path


class Thief:
    """Tries to take over the children of a session from now on."""

    def __init__(self, context, uid, pid):
        self.process = context.start([context.tool("thief"), str(uid), str(pid)], stdout=subprocess.PIPE, text=True)

    def took(self):
        said = self.process.communicate(timeout=PATIENCE)[0]
        taken = re.findall("TAKEN.*", said)
        assert taken or int(re.search(r"(\d+) tries", said).group(1)) > 0, said
        return taken


@case()
def children_cannot_be_taken_over(context):
    """Whoever has the user of the target, or nobody, tries it at each moment with the processes that memattach makes; names and reports are
    there, of a program also that only root may read, and the report belongs to nobody else."""
    only_root()
    program = program_to_execute_only(context)
    for user in (USER, 0):
        victim = Victim(context, as_user(user, program))
        for thief in (user or NOBODY, NOBODY):
            report = context.unique("report", ".html")
            session = Session(context, victim.pid, "--report", report)
            watch = Thief(context, thief, session.process.pid)
            session.sampled(20)
            check_receipt(session.stop(), victim.pid)
            assert watch.took() == []
            assert "loop" in functions(whole(context, session.dump), os.path.basename(program))
            assert stat.S_IMODE(os.stat(report).st_mode) == 0o600
            assert read_text(report).startswith("<!doctype html>")
        victim.finish()


MOUNTED = "touch /tmp/perf-$$.map && mount --bind {} /tmp/perf-$$.map && exec {}"


@case()
def perf_map_is_a_file_of_root(context):
    """In a mount namespace of his own the user mounts a file that only root may read, or the memory of one of root's processes, where the
    map is: neither is opened, which is said."""
    only_root()
    secret = context.path("secret")
    with open(secret, "w", encoding="ascii") as file:
        file.write("10 10 the_secret_of_root\n")
    os.chmod(secret, 0o600)
    os.chmod(context.work, 0o711)
    for file in (secret, "/proc/1/mem"):
        command = as_user(USER, "unshare", "-Urm", "--propagation", "private", "sh", "-c",
                          MOUNTED.format(file, context.target("alloc_loop")))
        if subprocess.run([*command[:-1], MOUNTED.format(file, "true")], check=False, stderr=subprocess.DEVNULL).returncode:
            raise Skip("users have no namespaces of their own here")
        victim = Victim(context, command)
        session = Session(context, victim.pid)
        watch = Thief(context, USER, session.process.pid)
        check_receipt(session.stop(), victim.pid)
        assert watch.took() == []
        assert re.search(r"perf-\d+\.map names no code .*: something is mounted there", session.said()), session.said()
        victim.finish()


@case()
def groups_of_root_are_not_lent(context):
    """Without CAP_SETGID, or CAP_SETUID, nobody reads what the target has written with the groups of root: there are no names, which is
    said, and the dump is whole."""
    only_root()
    victim = Victim(context, as_user(USER, context.target("alloc_loop")), "calm")
    real = context.memattach
    for capability in ("setgid", "setuid"):
        context.memattach = context.unique("memattach", "")
        with open(context.memattach, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\nexec setpriv --bounding-set=-{capability} '{real}' \"$@\"\n")
        os.chmod(context.memattach, 0o755)
        session = Session(context, victim.pid)
        check_receipt(session.stop(), victim.pid)
        context.memattach = real
        assert "without the names of functions: root could not give up its user and groups" in session.said(), session.said()
        assert whole(context, session.dump)["target"]["ended"] == "detached"
    victim.finish()
