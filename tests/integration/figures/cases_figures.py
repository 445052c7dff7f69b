# SPDX-License-Identifier: MIT
"""Known amounts from known functions: what the report says about them."""
import json
import os
import re
import shutil
import time

from harness import Session, Victim, case, check_receipt, run_session
from procfs import Failure, PATIENCE, Skip
from reports import analyze, analyze_text, functions_of, stacks_with, sum_of, truncated_share

SEEDS = (1, 2, 3)


def known_session(context, program, rate, *arguments):
    """One session over a known heap; returns (report, truth, session). Addresses are fixed so that a seed fixes the result."""
    victim = Victim(context, program, fixed_addresses=True)
    session = Session(context, victim.pid, "--max-overhead", "off", *arguments, rate=rate)
    victim.send("go")
    truth = victim.truth()
    receipt = session.stop()
    check_receipt(receipt, victim.pid)
    report = analyze(context, session.dump)
    victim.finish_by_stdin()
    return report, truth, session


def innermost(report, function):
    """Stacks whose allocation is in function itself, inlined helpers aside."""
    return [stack for stack in stacks_with(report, function)]


@case()
def known_heap_64k(context):
    """The true live bytes and counts lie inside the 95 % interval of each function, for fixed seeds."""
    for seed in SEEDS:
        report, truth, _ = known_session(context, "known_heap", "64k", "--seed", str(seed))
        assert report["rate_bytes"] == 65536 and report["complete"] is True, report["rate_bytes"]
        assert report["samples"]["lost"] == 0, report["samples"]
        for name in ("a", "b", "c"):
            stacks = innermost(report, name)
            if len(stacks) != 1:
                raise Failure(f"seed {seed}: {name} has {len(stacks)} stacks, not 1")
            for figure in ("live_bytes", "live_count"):
                interval, true = stacks[0][figure], truth[name][figure]
                if not interval["low"] <= true <= interval["high"]:
                    raise Failure(f"seed {seed}: {name} {figure}: {true} is not in {interval}")
            assert stacks[0]["truncated"] is False, stacks[0]
            assert functions_of(stacks[0])[-1] in ("_start", "main", "__libc_start_main"), functions_of(stacks[0])
        churn = innermost(report, "churn")
        assert churn and sum_of(churn, "live_bytes") == 0, churn
        allocated = churn[0]["allocated_bytes"]
        true = truth["churn"]["allocated_bytes"]
        if len(churn) == 1 and not allocated["low"] <= true <= allocated["high"]:
            raise Failure(f"seed {seed}: churn allocated {true}, not in {allocated}")


def check_exact(report, truth):
    for name, true in truth.items():
        stacks = innermost(report, name)
        for figure in ("live_bytes", "live_count", "allocated_bytes", "allocated_count"):
            for part in ("estimate", "low", "high"):
                if sum_of(stacks, figure, part) != true[figure]:
                    raise Failure(f"{name} {figure} {part}: {sum_of(stacks, figure, part)}, not {true[figure]}")
            if sum_of(stacks, figure, "stderr") != 0:
                raise Failure(f"{name} {figure}: not exact")
    for figure in ("live_bytes", "live_count", "allocated_bytes", "allocated_count"):
        total, true = report["total"][figure], sum(t[figure] for t in truth.values())
        if not total["estimate"] == total["low"] == total["high"] == true:
            raise Failure(f"total {figure}: {total}, not {true}")
    if report["samples"]["lost"]:
        raise Failure(f"lost: {report['samples']}")


def check_exact_dhat(context, dump, truth):
    """Of a session in which all is recorded, DHAT's form has the end, a peak that is no lower, and lifetimes within the session."""
    file = json.loads(analyze_text(context, dump, "--format=dhat"))
    assert file["bklt"] and file["verb"] == "Allocated" and 0 <= file["tg"] <= file["te"], file
    points = file["pps"]
    for field, figure in (("tb", "allocated_bytes"), ("tbk", "allocated_count"), ("eb", "live_bytes"), ("ebk", "live_count")):
        assert sum(point[field] for point in points) == sum(entry[figure] for entry in truth.values()), (field, points, truth)
    assert sum(point["eb"] for point in points) <= sum(point["gb"] for point in points) <= sum(point["tb"] for point in points), points
    assert all(0 < point["tl"] <= point["tbk"] * (file["te"] + 1) for point in points if point["ebk"]), (file["te"], points)


@case()
def known_heap_exact(context):
    """At --rate 1 every figure is exact to the byte and the interval has no width."""
    report, truth, session = known_session(context, "known_heap", "1")
    assert report["rate_bytes"] == 1
    check_exact(report, truth)
    check_exact_dhat(context, session.dump, truth)


@case()
def frees_of_older_blocks(context):
    """What was allocated before the attach and is freed during the session: counted where all is recorded, else said."""
    for rate, counted in (("1", True), ("64k", False)):
        victim = Victim(context, "known_heap")
        victim.send("go")
        truth = victim.truth()
        session = Session(context, victim.pid, rate=rate)
        victim.send("free")
        victim.wait("^FREED$")
        check_receipt(session.stop(), victim.pid)
        report = analyze(context, session.dump)
        assert report["total"]["live_bytes"]["estimate"] == 0, report["total"]
        text = analyze_text(context, session.dump, "--verbose")
        if counted:
            frees = report["target"]["frees_unseen"]
            requested = sum(entry["live_bytes"] for entry in truth.values())
            assert frees["count"] == sum(entry["live_count"] for entry in truth.values()), (frees, truth)
            assert requested <= frees["bytes"] <= requested + 4096 * frees["count"], (frees, requested)
            assert "that were not seen allocated were freed" in text, text[:2000]
        else:
            assert report["target"]["frees_unseen"] is None, report["target"]
            assert "frees of older blocks are not counted" in text, text[:2000]
        victim.finish_by_stdin()


@case()
def known_heap_exact_nopie(context):
    """The same where &malloc is a stub of the program itself."""
    report, truth, _ = known_session(context, "known_heap_nopie", "1")
    check_exact(report, truth)


@case()
def known_heap_exact_jemalloc(context):
    """The same with another allocator in front of the C library's."""
    library = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
    if not os.path.exists(library):
        raise Skip("libjemalloc2 is not installed")
    victim = Victim(context, "known_heap", environment={"LD_PRELOAD": library})
    session = Session(context, victim.pid, rate="1")
    victim.send("go")
    truth = victim.truth()
    check_receipt(session.stop(), victim.pid)
    check_exact(analyze(context, session.dump), truth)
    victim.finish_by_stdin()


@case()
def known_heap_exact_musl(context):
    """The same on musl, where memattach maps the payload by itself."""
    victim = Victim(context, "known_heap_musl")
    session = Session(context, victim.pid, rate="1")
    victim.send("go")
    truth = victim.truth()
    check_receipt(session.stop(), victim.pid)
    check_exact(analyze(context, session.dump), truth)
    again = Session(context, victim.pid, rate="1")
    check_receipt(again.stop(), victim.pid)
    victim.finish_by_stdin()


@case()
def known_heap_text(context):
    """The text report: a verdict and who holds the memory in a few lines; with --verbose all; --top and --sort."""
    _, _, session = known_session(context, "known_heap", "64k", "--seed", "7")
    text = analyze_text(context, session.dump)
    lines = text.splitlines()
    assert len(lines) < 45 and "known_heap (PID " in lines[0] and "still live" in lines[2] and "\nSeen: " in text, text
    assert ". Trust: measured, one sample per 64.0 KiB" in text and "  trust " not in text, text
    holders = [name.split()[0] for line, name in zip(lines, lines[1:]) if re.match(r" [ \d]\d +\S", line) and "known_heap.c:" in name]
    assert holders[:3] == ["c", "b", "a"], text
    text = analyze_text(context, session.dump, "--verbose")
    for word in ("known_heap", "64", "main", "known_heap.c"):
        assert word in text, (word, text[:2000])
    innermost_names = [line.split()[0] for line in text.splitlines() if re.match(r"\s+[abc]\s+\S*known_heap\.c:", line)]
    assert innermost_names[:3] == ["c", "b", "a"], text[:4000]
    by_count = analyze(context, session.dump, "--sort", "live-count")
    assert "b" in functions_of(by_count["stacks"][0]), functions_of(by_count["stacks"][0])
    by_bytes = analyze(context, session.dump, "--sort", "live-bytes")
    assert "c" in functions_of(by_bytes["stacks"][0]), functions_of(by_bytes["stacks"][0])
    assert len(analyze(context, session.dump, "--top", "1")["stacks"]) == 1


@case()
def analysis_of_a_copy(context):
    """The dump is enough: elsewhere, after the process is gone."""
    report, _, session = known_session(context, "known_heap", "1")
    copy = context.path("copied to another place")
    shutil.copy(session.dump, copy)
    os.unlink(session.dump)
    again = analyze(context, copy)
    assert again["stacks"] == report["stacks"] and again["total"] == report["total"]


@case()
def read_while_running(context):
    """memanalyze reads the dump again and again while the session writes it."""
    victim = Victim(context, "alloc_loop", "calm")
    session = Session(context, victim.pid, rate="16k")
    taken = 0
    for _ in range(10):
        report = analyze(context, session.dump)
        assert report["target"]["ended"] == "running", report["target"]
        assert report["samples"]["taken"] >= taken, report["samples"]
        taken = report["samples"]["taken"]
        time.sleep(0.1)
    end = time.monotonic() + PATIENCE
    while analyze(context, session.dump)["samples"]["taken"] == taken:
        assert time.monotonic() < end, f"{taken} samples, and no more for {PATIENCE} s"
    check_receipt(session.stop(), victim.pid)
    report = analyze(context, session.dump)
    assert report["target"]["ended"] == "detached" and report["samples"]["taken"] > taken, report["samples"]
    victim.finish()


@case()
def small_limit(context):
    """--max-size holds, the session goes on to its end, and what had no room is said."""
    limit = 16 << 20
    victim = Victim(context, "known_heap")
    session = Session(context, victim.pid, "--max-size", "16M", rate="1")
    victim.send("go")
    victim.truth()
    check_receipt(session.stop(), victim.pid)
    assert os.stat(session.dump).st_size <= limit, os.stat(session.dump).st_size
    report = analyze(context, session.dump)
    counters = report["counters"]
    dropped = counters["lost_live_full"] + counters["lost_stack_full"] + counters["lost_history"]
    assert dropped > 0 and dropped <= counters["samples_taken"], counters
    victim.finish_by_stdin()


@case()
def late_module(context):
    """A library that is loaded during the session is seen: its function, its module, exact figures."""
    victim = Victim(context, "late_module", context.target("plugin.so"))
    session = Session(context, victim.pid, "-v", "--hooks", "got", rate="1")
    victim.send("load")
    victim.wait("^LOADED$")
    session.lines.wait("GOT entries more in modules loaded since")
    victim.send("go")
    truth = victim.truth()["plugin_keep"]
    check_receipt(session.stop(), victim.pid)
    stacks = stacks_with(analyze(context, session.dump), "plugin_keep")
    assert sum_of(stacks, "live_bytes") == truth["live_bytes"], (sum_of(stacks, "live_bytes"), truth)
    assert sum_of(stacks, "live_count") == truth["live_count"]
    assert all(stack["frames"][0]["module"].endswith("plugin.so") for stack in stacks), stacks[0]["frames"][0]
    assert truncated_share({"stacks": stacks}) == 0
    victim.finish_by_stdin()


@case()
def sampled_alloc_loop(context):
    """Four threads: allocation is estimated, frames reach the start of a thread, no stack is cut short."""
    victim = Victim(context, "alloc_loop", "calm")
    session, _ = run_session(context, victim, seconds=0, samples=2000, rate="64k")
    report = analyze(context, session.dump)
    assert report["samples"]["taken"] > 100, report["samples"]
    assert stacks_with(report, "loop"), "no stack names loop"
    if truncated_share(report) > 0.001:
        raise Failure(f"{truncated_share(report):.2%} of the samples have a stack that is cut short")
    victim.finish()


def check_threads(context, dump, truth, *arguments):
    """What --by thread says of each thread of named_threads; returns the report."""
    report = analyze(context, dump, "--by=thread", *arguments)
    assert report["by"] == "thread" and report["samples"]["lost"] == 0, (report["by"], report["samples"])
    threads = {group["tid"]: group for group in report["groups"]}
    assert len(threads) == report["group_count"] == len(report["groups"]), report["groups"]
    for name, true in truth.items():
        thread = threads[true["tid"]]
        # A thread that has ended when nobody looked has no name; one that was seen at that moment has.
        assert thread["thread"] in ((None, name) if name == "shortlived" else (name,)), (name, thread)
        assert thread["pid"] == report["target"]["pid"] and thread["others"] is False, thread
        for figure in ("live_bytes", "live_count"):
            if not thread[figure]["low"] <= true[figure] <= thread[figure]["high"]:
                raise Failure(f"{name} {figure}: {true[figure]} is not in {thread[figure]}")
        assert not {"allocated_bytes", "allocated_count"} & set(thread), thread
    for figure in ("live_bytes", "live_count"):
        total, parts = report["total"][figure]["estimate"], sum(group[figure]["estimate"] for group in report["groups"])
        assert abs(total - parts) <= 1e-9 * total, (figure, total, parts)
    return report


@case()
def named_threads(context):
    """Threads are shown by name and id, one that was renamed by its last name; each holds what it says, in the interval."""
    for rate, arguments in (("64k", ("--seed", "1")), ("1", ())):
        victim = Victim(context, "named_threads", fixed_addresses=True)
        session = Session(context, victim.pid, "--max-overhead", "off", *arguments, rate=rate)
        victim.send("go")
        truth = victim.truth()
        assert set(truth) == {"steady", "renamed", "newborn", "shortlived"}, truth
        check_receipt(session.stop(), victim.pid)
        report = check_threads(context, session.dump, truth)
        exact = all(group[f]["low"] == group[f]["high"] for group in report["groups"] for f in ("live_bytes", "live_count"))
        assert exact == (rate == "1"), report["groups"]
        text = analyze_text(context, session.dump, "--by=thread")
        for name in ("steady", "renamed", "newborn"):
            assert f"  {name} (tid {truth[name]['tid']})\n" in text, (name, text)
        assert "early (" not in text and "what threads have allocated in all is not kept" in text, text
        victim.finish_by_stdin()
