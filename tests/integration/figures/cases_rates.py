# SPDX-License-Identifier: MIT
"""The rate changes in mid-session, for the cost or for room: the limits hold, and the figures stay right."""
import os
import time

from harness import Session, Victim, case, check_receipt, log
from procfs import Failure, PATIENCE
from reports import analyze, analyze_text, stacks_with, until

LIMIT = 0.01
# The sessions depend on the time, so no seed fixes their result. A case asks for six intervals: together they miss the truth with 6e-7 at most. Samples
# that are counted with a rate twice too large or too small are seen from 100 live ones on; the cases have 146 to 26,000.
SURE = ("--confidence", "99.99999")


def changes(report, reason):
    return [change for change in report["target"]["rate_changes"] if change["reason"] == reason]


def check_truth(report, truth, figures):
    for name, true in truth.items():
        stacks = stacks_with(report, name)
        assert len(stacks) == 1, (name, len(stacks))
        for figure in figures:
            interval = stacks[0][figure]
            if not interval["low"] <= true[figure] <= interval["high"]:
                raise Failure(f"{name} {figure}: {true[figure]} is not in {interval}; {report['target']['rate_changes']}")


def check_chain(report):
    """The changes lead from the first rate to the last one, and their times rise."""
    target, rate, seconds = report["target"], report["target"]["first_rate_bytes"], 0
    for change in target["rate_changes"]:
        assert change["old_bytes"] == rate and change["seconds"] >= seconds, target
        assert change["new_bytes"] >= target["first_rate_bytes"], target
        rate, seconds = change["new_bytes"], change["seconds"]
    assert rate == report["rate_bytes"], target


@case()
def governor_holds_the_limit(context):
    """Allocation grows a hundredfold: the rate follows up and down, each change is reported, estimates stay right."""
    victim = Victim(context, "jump")
    session = Session(context, victim.pid, "--max-overhead", "1", rate="2k")
    victim.send("slow")
    time.sleep(2)
    victim.send("fast")
    report = until(context, session, "the rate is raised", lambda report: changes(report, "costly"))
    assert report["target"]["max_overhead"] == LIMIT, report["target"]
    for change in changes(report, "costly"):
        assert change["overhead"] > LIMIT and change["new_bytes"] >= 2 * change["old_bytes"], change
    held(context, session)
    victim.send("slow")
    report = until(context, session, "the rate is lowered", lambda report: changes(report, "cheap"))
    for change in changes(report, "cheap"):
        assert change["overhead"] < LIMIT / 2 and change["new_bytes"] < change["old_bytes"], change
    victim.send("sum")
    truth = victim.truth()
    check_receipt(session.stop(), victim.pid)
    report = analyze(context, session.dump, *SURE)
    check_chain(report)
    assert report["complete"] is True and report["exact"] is False, report["samples"]
    check_truth(report, truth, ("live_bytes", "live_count", "allocated_bytes", "allocated_count"))
    text = analyze_text(context, session.dump, "--verbose")
    for change in report["target"]["rate_changes"][:16]:
        assert f"{change['seconds']:.1f} s: from " in text, (change, text[:3000])
    victim.finish_by_stdin()


def held(context, session):
    """In some stretch of three seconds sampling takes no more than the limit; of more, where the victim gets no processor. Without a change
    of the rate there is none."""
    end = time.monotonic() + PATIENCE
    before = analyze(context, session.dump)["target"]
    while time.monotonic() < end:
        time.sleep(3)
        after = analyze(context, session.dump)["target"]
        cpu = after["cpu_seconds"] - before["cpu_seconds"]
        cost = after["overhead"] * after["cpu_seconds"] - before["overhead"] * before["cpu_seconds"]
        if cpu <= 0.1:
            continue
        if cost / cpu <= LIMIT:
            return
        before = after
    raise Failure(f"the limit is not held: {before} {after}")


@case()
def governor_off(context):
    """--max-overhead 0 leaves the rate as it is, and so does --rate 1 alone, which says so."""
    victim = Victim(context, "jump")
    for options, rate in ((("--max-overhead", "off"), "1k"), ((), "1")):
        session = Session(context, victim.pid, *options, rate=rate)
        if not options:
            assert "recording every allocation, whatever that costs" in session.attached, session.attached
        victim.send("fast")
        until(context, session, "sampling costs more than 1 %", lambda report: (report["target"]["overhead"] or 0) > LIMIT)
        time.sleep(3)
        victim.send("idle")
        check_receipt(session.stop(), victim.pid)
        report = analyze(context, session.dump)
        assert report["target"]["rate_changes"] == [] and report["target"]["max_overhead"] is None, report["target"]
        assert report["rate_bytes"] == report["target"]["first_rate_bytes"], report["target"]
    victim.finish_by_stdin()


@case()
def governor_of_every_allocation(context):
    """--rate 1 with a limit begins exactly and ends as estimates with intervals."""
    victim = Victim(context, "jump")
    session = Session(context, victim.pid, "--max-overhead", "1", rate="1")
    assert "recording every allocation while that takes at most 1 %" in session.attached, session.attached
    victim.send("fast")
    until(context, session, "the rate is raised", lambda report: changes(report, "costly"))
    held(context, session)
    victim.send("sum")
    truth = victim.truth()
    check_receipt(session.stop(), victim.pid)
    report = analyze(context, session.dump, *SURE)
    check_chain(report)
    assert report["exact"] is False and report["target"]["first_rate_bytes"] == 1, report["target"]
    check_truth(report, truth, ("live_bytes", "live_count", "allocated_bytes", "allocated_count"))
    victim.finish_by_stdin()


def crowded(context, rate, seconds=0):
    """A heap with more samples than the dump has room for, and a history that goes round its ring; returns the report."""
    victim = Victim(context, "jump")
    session = Session(context, victim.pid, "--max-size", "16M", "--max-overhead", "off", rate=rate)
    victim.send("fast" if seconds else "brisk")
    resident = []
    for _ in range(seconds):
        time.sleep(1)
        resident.append(resident_kilobytes(session.process.pid))
        assert os.stat(session.dump).st_size <= 16 << 20, os.stat(session.dump).st_size
    if max(resident[len(resident) // 4:], default=0) > max(resident[:len(resident) // 4], default=0) + 1024:
        raise Failure(f"memattach grows: {resident}")
    until(context, session, "samples are thinned", lambda report: len(changes(report, "full")) >= 2)
    victim.send("sum")
    truth = victim.truth()
    check_receipt(session.stop(), victim.pid)
    assert os.stat(session.dump).st_size <= 16 << 20, os.stat(session.dump).st_size
    report = analyze(context, session.dump, *SURE)
    check_chain(report)
    for change in changes(report, "full"):
        assert change["thinned_bytes"] > report["target"]["first_rate_bytes"], change
    assert report["counters"]["samples_thinned"] > 0 and report["exact"] is False, report["counters"]
    assert report["counters"]["lost_history"] > 0, report["counters"]
    check_truth(report, truth, ("live_bytes", "live_count", "allocated_bytes", "allocated_count"))
    assert "the table of live samples was crowded: thinned to one per" in analyze_text(context, session.dump, "--verbose")
    victim.finish_by_stdin()
    return report


def resident_kilobytes(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS:")).split()[1]) - shared_kilobytes(pid)


def shared_kilobytes(pid):
    """The dump is mapped: its pages are no memory of memattach's own."""
    with open(f"/proc/{pid}/status") as status:
        return sum(int(line.split()[1]) for line in status if line.startswith(("RssFile:", "RssShmem:")))


@case(label="stress", timeout=7200)
def day_of_a_busy_server(context):
    """As many samples as a day of a busy server brings, in minutes: 16 MB hold them, live heap and totals are right, memattach does not grow."""
    seconds = int(os.environ.get("MEMATTACH_DAY_SECONDS", "60"))
    report = crowded(context, "512", seconds)
    counters = report["counters"]
    log(f"{counters['samples_taken']} samples in {seconds} s, {counters['lost_history']} dropped from the history, "
        f"{counters['samples_thinned']} thinned, {counters['lost_live_full']} lost, one per {report['rate_bytes']} bytes at the end")
    assert counters["samples_taken"] > 20 * (counters["samples_freed"] - counters["lost_history"]), counters


@case()
def crowded_table_is_thinned(context):
    """Where --max-size leaves no room, live samples are thinned and estimates stay right. What is lost before memattach comes to it is said."""
    report = crowded(context, "256")
    assert report["complete"] is (report["counters"]["lost_live_full"] == 0), report["counters"]


@case()
def crowded_table_of_every_allocation(context):
    """The same from --rate 1: exact figures become estimates with intervals, not lower limits."""
    crowded(context, "1")
