# SPDX-License-Identifier: MIT
"""What the program does to the memory that GOT entries and their addresses are in: it tears at its libraries, and leaves addresses of hooks in
places where nobody will look for them, or where somebody will.
"""
import concurrent.futures
import os
import shutil
import signal

from harness import Session, UNCHANGED, Victim, case, check_receipt, cycle, run_memattach
from procfs import Failure, Skip, describe
from snapshot import remains
from harm_kills import kill_at, leave_session


@case()
def address_in_a_signal_frame(context):
    """What a program reads from a GOT entry is no address of ours: it may keep it in a handler's frame, an ended one's, and beside them."""
    for mode in ("dead", "left", "plain"):
        victim = Victim(context, "frames", mode)
        session = Session(context, victim.pid)
        victim.send("put")
        victim.wait("^PUT")
        session.process.send_signal(signal.SIGINT)
        check_receipt(session.end(expected=0), victim.pid)
        assert not remains(victim.pid), remains(victim.pid)
        victim.send("back")
        victim.wait("^BACK")
        victim.finish_by_stdin()


# What the program does during the session; how memattach must end; words of the receipt; what the program does then. All with the library
# whose table shares its read-only pages with the dynamic section, but for those with LAZY, whose table has pages of its own.
LAZY = "lazy"
TEARS = [
    # The page is there, as itself or as a copy: restored, with the protection that it has now.
    ("copy slots", 0, "", ("use",)),
    ("copy slots", 0, "", ("use",), LAZY),
    ("shut slots", 0, "", ("open", "use")),
    ("shut slots", 0, "", ("open", "use"), LAZY),
    ("unmap head", 0, "", ("use",)),
    # It is not there: nothing is written, and what may come back leads to trampolines that stay.
    ("unmap slots", 2, "unmapped their page", ()),
    ("unmap whole", 0, "", (), LAZY),  # the next library may come into the hole
    ("truncate", 2, "unmapped their page", ()),
    ("zero slots", 2, "put other memory", (), LAZY),
    ("file slots", 2, "put other memory", ()),
    ("away slots", 2, "unmapped their page", ("home", "use")),
    ("away slots", 2, "unmapped their page", ("home", "use"), LAZY),
]


def plugin(context, kind):
    """A copy of the library, which may be cut."""
    source = context.target("plugin.so") if kind == LAZY else context.target("plugin_now.so")
    return shutil.copy(source, context.unique("plugin", ".so"))


def tear(victim, *actions):
    for action in actions:
        victim.send(f"{action} -")
        victim.wait("^DONE")


def torn(context, action, expected, words, afterwards, kind="now"):
    other = plugin(context, kind)
    victim = Victim(context, "torn", plugin(context, kind), other)
    try:
        session = Session(context, victim.pid, "-v", "--hooks", "got")
        tear(victim, action, "more")
        session.lines.wait("GOT entries more in modules loaded since")
        session.process.send_signal(signal.SIGINT)
        receipt = session.end(expected=expected)
        check_receipt(receipt, victim.pid, clean=expected == 0)
        assert words in " ".join(receipt["residue"] + receipt["notes"]), receipt
        tear(victim, *afterwards)
        # The loader would read the library's names: where it can, another session works, where it cannot, that is refused.
        again = run_memattach(context, "-p", victim.pid, "-d", "20ms", "-o", context.unique("again", ".dump"))
        assert again.returncode in (0, 2) or ("torn apart" in again.stderr and UNCHANGED in again.stderr), again
        doctor = run_memattach(context, "--doctor", "-p", victim.pid)
        assert ("torn apart" in doctor.stdout) == (again.returncode == 1), (doctor, again)
        victim.finish_by_stdin()
    except (AssertionError, Failure) as failure:
        raise Failure(f"{action} ({kind}): {failure}; {describe(victim.pid)}") from None


@case()
def torn_library(context):
    """The program unmaps, moves, replaces, protects or cuts a part of a patched library during the session."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for result in [pool.submit(torn, context, *entry) for entry in TEARS]:
            result.result()


SCHED_SETSCHEDULER = 144  # of system calls; memattach goes first while it holds threads: the first hold, in which GOT entries are restored, begins and ends


@case()
def restored_entry_goes(context):
    """memattach dies behind the restoring, and something else takes the place of a restored GOT entry: the next detach asks nothing of it."""
    victim = Victim(context, "torn", plugin(context, "now"), plugin(context, LAZY))
    leave_session(context, victim.pid, "--hooks", "got")
    assert kill_at(context, True, victim.pid, SCHED_SETSCHEDULER, 2) == -signal.SIGKILL
    tear(victim, "shared slots", "more")
    result = run_memattach(context, "--detach", "-p", victim.pid)
    assert result.returncode == 0, result
    victim.finish_by_stdin()


@case()
def replaced_library(context):
    """A library is closed and opened again in the same place: itself, and another file of the same name."""
    for kind in ("now", LAZY):
        path, other = plugin(context, kind), plugin(context, LAZY if kind == "now" else "now")
        for opened in (path, other):
            victim = Victim(context, "torn", path, path)
            session = Session(context, victim.pid, "-v", "--hooks", "got")
            os.rename(shutil.copy(opened, context.unique("new", ".so")), path)
            tear(victim, "close")
            session.lines.wait("GOT entries more in modules loaded since")
            receipt = session.stop()
            check_receipt(receipt, victim.pid)
            tear(victim, "use")
            cycle(context, victim.pid)
            victim.finish_by_stdin()


@case()
def library_is_replaced_behind_the_attach(context):
    """It is closed and opened again in the same place before memattach watches the words that it has patched."""
    strace = shutil.which("strace")
    if not strace:
        raise Skip("strace is not installed")
    path = plugin(context, "now")
    victim = Victim(context, "torn", path, path)
    slow = (strace, "-qq", "-o", context.path("calls"), "-e", "trace=signalfd4", "-e", "inject=signalfd4:delay_enter=1500000")
    session = Session(context, victim.pid, "-v", "--hooks", "got", "-d", "4s", under=slow)
    tear(victim, "close")
    session.lines.wait("GOT entries more in modules loaded since")
    check_receipt(session.end(), victim.pid)
    tear(victim, "use")
    victim.finish_by_stdin()
