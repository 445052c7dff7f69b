# SPDX-License-Identifier: MIT
"""Targets that are large in one respect each (bench/scale.c): nothing is lost, nothing stays, figures are right."""
import os
import shutil
import subprocess

from harness import Session, case, check_receipt, log
from large import Large
from procfs import PATIENCE, Skip
from reports import analyze, sum_of
from snapshot import Snapshot, check_same


def whole_session(context, target, *arguments, rate="1", patience=PATIENCE, compare=True):
    """Attached while it works, compared, asked to end; returns the report."""
    before = Snapshot(target.pid) if compare else None
    session = Session(context, target.pid, *arguments, rate=rate)
    target.work(patience)
    check_receipt(session.stop(), target.pid)
    if compare:
        check_same(before, Snapshot(target.pid), busy=True)
    target.finish()
    return analyze(context, session.dump)


def total(report):
    return sum_of(report["stacks"], "allocated_count")


@case()
def many_modules(context):
    """Three hundred libraries, each with GOT entries of its own, all restored; calls through each are seen."""
    folder = context.path("modules")
    subprocess.run(["mkdir", folder], check=True)
    for i in range(300):
        shutil.copy(context.target("scale_module.so"), f"{folder}/m{i}.so")
    target = Large(context, "modules", folder)
    assert target.value("modules") == 300
    report = whole_session(context, target)
    assert target.value("calls") == 300000
    seen = sum_of([s for s in report["stacks"] if any("/m" in (f["module"] or "") for f in s["frames"])], "allocated_count")
    assert seen == 300000, seen


def stops(context, libraries):
    """How often memattach resumes the borrowed thread of such a program to its next system call, in one session."""
    folder, trace = context.unique("libraries", ""), context.unique("ptrace", ".txt")
    os.mkdir(folder)
    for i in range(libraries):
        shutil.copy(context.target("scale_module.so"), f"{folder}/m{i}.so")
    target = Large(context, "modules", folder)
    subprocess.run(["strace", "-f", "-qq", "-e", "trace=ptrace", "-o", trace, context.memattach, "-q", "-p", str(target.pid), "-d", "20ms",
                    "-o", context.unique("stops", ".dump")], timeout=PATIENCE, check=True)
    target.work()
    target.finish()
    with open(trace, encoding="utf-8") as file:
        return sum("PTRACE_SYSCALL" in line for line in file)


@case()
def stops_do_not_grow_with_libraries(context):
    """Each library's page is opened and closed, at attach and at detach, while the thread runs freely (injector/touch/remote/channel.h)."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    few, many = stops(context, 2), stops(context, 60)
    log(f"{few} stops with 2 libraries, {many} with 60")
    assert 0 < few and abs(many - few) <= 8, (few, many)


@case()
def hundred_gigabytes_of_mappings(context):
    """Address space costs nothing: what is not resident is neither read nor touched."""
    target = Large(context, "mappings", 100)
    assert target.value("mapped") == 100
    report = whole_session(context, target, compare=False)
    assert sum_of([s for s in report["stacks"] if any(f["function"] == "frame_5" for f in s["frames"])],
                  "allocated_count") == 1000000, total(report)


@case(label="stress", timeout=900)
def many_stacks(context):
    """A hundred thousand distinct stacks: every call is counted, and each with its own stack."""
    target = Large(context, "stacks", 100000)
    report = whole_session(context, target, patience=300)
    assert total(report) == 100000, (total(report), report["samples"])
    assert report["counters"]["lost_stack_full"] == 0, report["counters"]


@case(label="stress", timeout=900)
def million_live_blocks(context):
    """A million live blocks at rate 1: each recorded, each found again when it is freed."""
    target = Large(context, "live", 1000000)
    report = whole_session(context, target, "--max-size", "4G", patience=300)
    mine = [s for s in report["stacks"] if any(f["function"] == "frame_5" for f in s["frames"])]
    assert sum_of(mine, "allocated_count") == 1000000, report["samples"]
    assert sum_of(mine, "live_count") == 0, report["samples"]


@case(label="stress", timeout=900)
def many_running_threads(context):
    """Two hundred threads that never sleep: attached, every sample kept, each thread shown to be outside at the detach."""
    target = Large(context, "threads", 200)
    report = whole_session(context, target, "--deadline", "10s", rate="64k", patience=300)
    assert report["samples"]["lost"] == 0, report["samples"]
    assert sum_of([s for s in report["stacks"] if any(f["function"] == "frame_5" for f in s["frames"])], "allocated_count") > 0
