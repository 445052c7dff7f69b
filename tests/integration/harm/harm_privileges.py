# SPDX-License-Identifier: MIT
"""What memattach may still do while a session lasts, and that this is enough for its end."""
import os
import re

from harness import Session, Victim, case, check_receipt
from procfs import Skip, read_text
from snapshot import Snapshot, check_same

NOBODY = 65534
DAC_OVERRIDE, KILL, SETGID, SETUID, SYS_PTRACE, SYS_ADMIN, SYS_NICE, CHECKPOINT_RESTORE = 1, 5, 6, 7, 19, 21, 23, 40


def capabilities_of(pid, kind):
    return int(re.search(rf"^{kind}:\s*(\w+)$", read_text(f"/proc/{pid}/status"), re.M).group(1), 16)


def as_nobody(context):
    return Victim(context, ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", context.target("alloc_loop"), "calm"])


@case()
def capabilities_are_given_up(context):
    """A session of root with a process of another user keeps eight capabilities at most, and ends well with them."""
    if os.geteuid() != 0:
        raise Skip("only root has capabilities to give up")
    victim = as_nobody(context)
    before = Snapshot(victim.pid)
    session = Session(context, victim.pid)
    kept = sum(1 << number for number in (DAC_OVERRIDE, KILL, SETGID, SETUID, SYS_PTRACE, SYS_ADMIN, SYS_NICE, CHECKPOINT_RESTORE))
    for kind in ("CapPrm", "CapEff"):
        assert not capabilities_of(session.process.pid, kind) & ~kept, hex(capabilities_of(session.process.pid, kind))
    assert "NoNewPrivs:\t1" in read_text(f"/proc/{session.process.pid}/status")
    check_receipt(session.stop(), victim.pid)
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.finish()


@case()
def cache_is_not_shared_with_other_users(context):
    """What was compiled for a process of another user, who may have written it, is not kept; what root's own process needs is not taken from it."""
    if os.geteuid() != 0:
        raise Skip("only root profiles the processes of others")
    folder = os.path.join(os.environ["XDG_CACHE_HOME"], "memattach")

    def kept():
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    for victim, keeps in ((as_nobody(context), False), (Victim(context, "alloc_loop", "calm"), True), (as_nobody(context), False)):
        before, used = kept(), {name: os.stat(os.path.join(folder, name)).st_mtime_ns for name in kept()}
        check_receipt(Session(context, victim.pid).stop(), victim.pid)
        assert (kept() != before) == keeps, (keeps, before, kept())
        for name, time in used.items():
            assert os.stat(os.path.join(folder, name)).st_mtime_ns == time, f"{name} was used"
        victim.finish()


@case()
def capabilities_stay_where_they_are_the_right_to_trace(context):
    """Without CAP_SYS_PTRACE memattach may trace a process because it has all that process's capabilities: it keeps them, and ends well."""
    if os.geteuid() != 0:
        raise Skip("only root can drop one capability and keep others")
    without = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    victim = Victim(context, [*without, context.target("alloc_loop"), "calm"])
    before = Snapshot(victim.pid)
    real, context.memattach = context.memattach, context.path("memattach")
    with open(context.memattach, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\nexec {' '.join(without)} '{real}' \"$@\"\n")
    os.chmod(context.memattach, 0o755)
    session = Session(context, victim.pid)
    assert capabilities_of(session.process.pid, "CapPrm") == capabilities_of(victim.pid, "CapPrm") != 0
    check_receipt(session.stop(), victim.pid)
    context.memattach = real
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.finish()
