# SPDX-License-Identifier: MIT
"""What the blocks of a session are and who holds them, at its end: held against what the program says."""
import json
import os
import re
import signal
import time

from harness import PATIENCE, Session, Skip, Victim, case, check_receipt
from procfs import read_text
from reports import analyze, analyze_text

MAPPINGS = 20000  # a look at so many takes long enough to be met
SURE = ("--confidence", "99.99")  # of ten figures one in a thousand sessions misses one


def tell(victim, line):
    victim.send(line)
    victim.wait(r"^DONE$")


def truth_of(victim):
    (line,) = [line for line in victim.lines.seen if line.startswith("TRUTH ")]
    return json.loads(line[len("TRUTH "):])


def live_by(context, dump, by):
    return {group[by]: group for group in analyze(context, dump, "--by", by, *SURE)["groups"]}


def check_inside(groups, truth):
    for name, wanted in truth.items():
        low, high = groups[name]["live_bytes"]["low"], groups[name]["live_bytes"]["high"]
        assert low <= wanted <= high, (name, wanted, groups[name])


@case()
def types_and_holders_of_live_blocks(context):
    """Five types and six holders, by samples: the bytes of each are in their intervals, and where all is recorded they are exact."""
    for rate in ("1", "8k"):
        victim = Victim(context, "live_types")
        session = Session(context, victim.pid, "--holders", "--rate", rate, "--max-overhead", "0")
        tell(victim, "go")
        truth = truth_of(victim)
        check_receipt(session.stop(), victim.pid)
        types, holders = live_by(context, session.dump, "type"), live_by(context, session.dump, "holder")
        assert {types[name]["source"] for name in ("text", "zeros")} == {"content"} and types["shop::Order"]["source"] == "vtable", types
        (keeper,) = [name for name in holders if name.startswith("shop::Depot (from stack")]
        held = {"shop::orders (live_types)": truth["type"]["shop::Order"] + 160000, keeper: truth["type"]["shop::Parcel"] + 64000,
                "shop::texts (live_types)": truth["type"]["text"] + 40000, "shop::blanks (live_types)": truth["type"]["zeros"] + 24000,
                "shop::Stage (from stack of the first thread)": truth["type"]["shop::Stage"]}
        for groups, wanted in (types, truth["type"]), (holders, held):
            for name, count in wanted.items() if rate == "1" else ():  # all but the first of the list are held by another of it
                assert abs(groups[name]["live_bytes"]["estimate"] - count) <= 512, (name, count, groups[name])
            if rate != "1":
                check_inside(groups, wanted)
        assert sum(group["share"] for group in holders.values()) > 0.999 and set(types) <= {*truth["type"], "pointers", "shop::Depot", "not named"}, types
        victim.finish_by_stdin()


@case()
def holders_are_not_looked_for_unasked(context):
    """Types are always there; of holders it is said how to get them, and of other allocators why they are not known."""
    victim = Victim(context, "live_types")
    session = Session(context, victim.pid, "--rate", "8k")
    tell(victim, "go")
    check_receipt(session.stop(), victim.pid)
    text = analyze_text(context, session.dump, "--by", "holder")
    assert "Nobody has looked for who holds them: memattach --holders does at the end of a session." in text, text
    assert "shop::Order (C++)" in analyze_text(context, session.dump, "--by", "type")
    assert not analyze(context, session.dump, "--by", "holder")["all_looked_at"]
    victim.finish_by_stdin()


PYTHON = """
import json, os, sys
class Wide:
    __slots__ = tuple(f"s{i}" for i in range(100))
class Narrow:
    __slots__ = ("a", "b", "c", "d")
print("PID", os.getpid())
GC = 16
print("TRUTH", json.dumps({"Wide": 3000 * (Wide.__basicsize__ + GC), "Narrow": 40000 * (Narrow.__basicsize__ + GC),
                           "str": 2000 * sys.getsizeof("x" * 2000)}))
print("READY", flush=True)
sys.stdin.readline()
kept = [Wide() for _ in range(3000)], [Narrow() for _ in range(40000)], ["x" * 1999 + chr(97 + i % 20) for i in range(2000)]
print("DONE", flush=True)
sys.stdin.read()
"""


@case()
def types_of_live_python_objects(context):
    """Classes of CPython, in malloc and in its pools of small objects."""
    victim = Victim(context, [context.program("python3"), "-c", PYTHON])
    session = Session(context, victim.pid, "--python-allocators", "on", "--rate", "8k", "--max-overhead", "0", "--holders")
    tell(victim, "go")
    check_receipt(session.stop(), victim.pid)
    types = live_by(context, session.dump, "type")
    pools = "single objects of Python" not in analyze_text(context, session.dump)  # else a note says why they are not recorded
    check_inside(types, {name: wanted for name, wanted in truth_of(victim).items() if name != "Narrow" or pools})
    assert types["Wide"]["source"] == "python", types
    holders = live_by(context, session.dump, "holder")
    if pools:  # whose blocks are none of malloc's
        assert holders["not looked at"]["live_bytes"]["low"] <= truth_of(victim)["Narrow"] <= holders["not looked at"]["live_bytes"]["high"] + (1 << 20), holders
    assert [name for name in holders if name.startswith("Python list")], holders
    victim.process.stdin.close()
    assert victim.process.wait(PATIENCE) == 0


def asks_for_pages(child):
    try:
        return any(os.readlink(f"/proc/{child}/fd/{fd}").endswith("/pagemap") for fd in os.listdir(f"/proc/{child}/fd"))
    except OSError:
        return False


def follower(memattach):
    """The child of memattach that comes after the one that asks for the pages of the target, and looks for holders, stopped; None: it is gone."""
    first = None
    while memattach.poll() is None:
        for child in read_text(f"/proc/{memattach.pid}/task/{memattach.pid}/children", "").split():
            if first and child != first:
                os.kill(int(child), signal.SIGSTOP)
                return int(child)
            if asks_for_pages(child):
                first = child
    return None


@case()
def holders_keep_nobody_waiting(context):
    """Who looks for holders stands still: another Ctrl-C gives it up, types and all else are in the dump; the victim goes on."""
    victim = Victim(context, "memory_kinds")
    tell(victim, f"mappings {MAPPINGS}")
    for _ in range(8):
        session = Session(context, victim.pid, "--holders", "--rate", "8k")
        victim.lines.seen.clear()
        tell(victim, "live 10")
        os.kill(session.process.pid, signal.SIGINT)
        looker = follower(session.process)
        while looker and "State:\tZ" not in read_text(f"/proc/{looker}/status", "State:\tZ"):
            os.kill(session.process.pid, signal.SIGINT)
            time.sleep(0.5)
        check_receipt(session.end(), victim.pid)
        report = analyze(context, session.dump, "--by", "holder")
        if looker and report["why"] == "interrupted":
            assert re.search(r"Who holds them is not known: interrupted", analyze_text(context, session.dump, "--by", "holder"))
            victim.finish_by_stdin()
            return
    raise Skip("no look for holders was met")
