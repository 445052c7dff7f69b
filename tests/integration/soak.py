#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The soak test: attach/detach cycles over the victims, kills of memattach at random microseconds and at each of its system calls, and
censuses that clone or stop the victim, of which every second one is killed at a random microsecond.

It is cut into slices of half a minute. Each slice has a victim of its own, ends with that victim's own check of what it computed,
and adds one line to the ledger: so the run can be ended at any time and goes on where it was, and the lines of many runs add up.
The sweep over the system calls counts them once for each victim, keeps the list beside the ledger, and goes through it.
"""
import argparse
import collections
import contextlib
import fcntl
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import folders  # noqa: E402, F401 pylint: disable=unused-import
import harm_kills  # noqa: E402
from harm_kills import (VICTIMS, calls_of, check_kills, kill_at_call, sampled_points, random_kills,  # noqa: E402
                        sufferer_of)
from harness import Context  # noqa: E402
from cases_clone import clear_padding, no_clone  # noqa: E402
from cases_unreachable import check_free  # noqa: E402
from procfs import PATIENCE, Failure, Skip, tasks_of  # noqa: E402

SLICE_SECONDS = 30
SLICE_PATIENCE = 600  # a slice that does not end is a hang
LEAST = 8  # in a slice: its first attach and its first --detach only tell how long they take, and are not killed
CYCLED = ("storm", "redis", "postgres", "nginx", "dlopen", "churn", "forks", "signals", "exceptions", "vectors", "musl", "musl-forks", "musl-churn",
          "rootless", "poll", "futex", "epoll", "python", "python-forks", "java")
SWEPT = ("storm", "poll", "signals", "redis")
RATES = ("1", "4k", "64k", "512k")
harm_kills.EVERY = 100  # the slices are many, and each ends with a full comparison


def parts(cycles, kills, censuses, swept):
    """name -> how many there shall be."""
    wanted = {f"cycles.{v}": -(-cycles // len(CYCLED)) for v in CYCLED if cycles}
    wanted.update({f"kills.{v}": -(-kills // len(VICTIMS)) for v in VICTIMS if kills})
    wanted.update({f"census.{v}": -(-censuses // len(VICTIMS)) for v in VICTIMS if censuses})
    for victim in swept:
        wanted.update({f"calls.{victim}.attach": None, f"calls.{victim}.detach": None})
    return wanted


class Ledger:
    def __init__(self, directory):
        self.directory = directory
        self.path = os.path.join(directory, "ledger.jsonl")
        os.makedirs(directory, exist_ok=True)

    def add(self, entry):
        with open(self.path, "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(json.dumps(entry) + "\n")

    def entries(self):
        try:
            with open(self.path, encoding="utf-8") as file:
                return [json.loads(line) for line in file]
        except FileNotFoundError:
            return []

    def points_path(self, part):
        return os.path.join(self.directory, part + ".points.json")

    def points(self, part):
        try:
            with open(self.points_path(part), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return None

    def done(self):
        sums = collections.Counter()
        for entry in self.entries():
            sums[entry["part"]] += entry["done"]
        return sums


def step_back(pid):
    """In half of the slices a victim that takes all processors leaves them to memattach: another order of events, and more of them."""
    for tid in tasks_of(pid):
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, tid, 10)


def cycles_slice(context, sufferer, end, most):
    generator = random.Random(os.getpid())
    while time.monotonic() < end and sufferer.cycles < most:
        sufferer.cycle("-r", generator.choice(RATES), duration=f"{generator.randrange(1, 30)}ms")
    return lambda: sufferer.cycles


def kills_slice(context, sufferer, end, most):
    random_kills(context, sufferer, most, end=end)


def census_slice(context, sufferer, end, most):
    """Whole ones and killed ones in turns, by clone in most slices: nothing is held, no clone is left, nothing has changed."""
    generator, lasts = random.Random(os.getpid()), 0.0
    frozen = generator.randrange(4) == 0
    line = [context.memattach, "--census", "--unreachable", *["--freeze"] * frozen, "-p", str(sufferer.pid)]
    while time.monotonic() < end and sufferer.cycles + sufferer.kills < most:
        began = time.monotonic()
        process = context.start(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if sufferer.cycles > sufferer.kills:
            time.sleep(generator.random() * lasts)
            process.kill()
            sufferer.ended += process.wait(PATIENCE) == 0
            sufferer.kills += 1
        else:
            said = process.communicate(timeout=PATIENCE)[1]
            if process.returncode:
                raise Failure(f"the census ended with {process.returncode}: {said[-300:]}")
            lasts = time.monotonic() - began
            sufferer.cycles += 1
        context.processes.remove(process)
        check_free(sufferer.pid)
        no_clone(sufferer.pid)
        sufferer.victim_lives()
        sufferer.check_what_remains()
    clear_padding(context, sufferer.pid)


def calls_slice(context, sufferer, end, points, detaching):
    for call, count in points:
        if time.monotonic() > end:
            break
        kill_at_call(context, sufferer, detaching, call, count)
    check_kills(sufferer.ended, sufferer.kills)


def slice_of(options, ledger, part, first):
    """Runs one slice; returns what is to be noted. The count says what was really done, also when it ends by a failure."""
    kind, victim, *rest = part.split(".")
    detaching = rest == ["detach"]
    if options.work:
        os.makedirs(options.work, exist_ok=True)
    work = tempfile.mkdtemp(prefix=f"memattach-{part}-", dir=options.work)
    context = Context(options.memattach, None, options.targets, work, 0)
    context.options = shlex.split(options.options)
    entry = {"part": part, "done": 0, "harmed": 0, "interrupted": 0, "program": options.label,
             "date": time.strftime("%Y-%m-%d", time.gmtime())}
    start, sufferer = time.monotonic(), None
    end = start + options.slice
    try:
        sufferer = sufferer_of(context, victim)
        if os.getpid() % 2:
            step_back(sufferer.pid)
        if kind == "calls":
            points = ledger.points(part)
            if points is None:
                points = sampled_points(calls_of(context, sufferer, detaching), options.every)
                random.Random(part).shuffle(points)  # a part of it is a sample of everything
                with open(ledger.points_path(part), "w", encoding="utf-8") as file:
                    json.dump(points, file)
            calls_slice(context, sufferer, end, points[first:], detaching)
        elif kind == "census":
            census_slice(context, sufferer, end, options.most)
        elif kind == "kills":
            kills_slice(context, sufferer, end, options.most)
        else:
            cycles_slice(context, sufferer, end, options.most)
        sufferer.finish()
    except Skip as reason:
        entry["skipped"] = str(reason)
    except Exception as error:  # whatever it is, the victim or the run is not as it must be
        if is_refused_by_name(sufferer, str(error)):
            entry["skipped"] = str(error).splitlines()[0]
        else:
            entry.update(harmed=1, failure=f"{type(error).__name__}: {error}", files=work)
    finally:
        context.close()
    if sufferer:
        # A kill that came after the end of memattach was none; a point of the sweep has been visited all the same.
        entry["done"] = {"cycles": sufferer.cycles, "kills": sufferer.kills - sufferer.ended, "calls": sufferer.kills,
                         "census": sufferer.cycles + sufferer.kills}[kind]
        entry["missed"] = sufferer.ended if kind == "calls" else 0
        entry["interrupted"] = sufferer.interruptions()
    entry["seconds"] = round(time.monotonic() - start, 1)
    if not entry["harmed"]:
        shutil.rmtree(work, ignore_errors=True)
    return entry


def is_refused_by_name(sufferer, said):
    """Its first attach was: with these options nothing can be done to this victim."""
    first = not sufferer or sufferer.cycles <= 1 and not sufferer.kills
    return first and "cannot be hooked at its entries" in said and "nothing was changed" in said


def remaining(wanted, ledger, part, done):
    if wanted is None:
        points = ledger.points(part)
        wanted = len(points) if points is not None else 1
    return max(0, wanted - done), wanted


def choose(wanted, ledger, running):
    """The part that is furthest behind, of those that nobody works on."""
    done = ledger.done()
    best, least = None, 1.0
    for part, count in wanted.items():
        left, total = remaining(count, ledger, part, done[part])
        if left and part not in running and (total - left) / total < least:
            best, least = part, (total - left) / total
    return best, done[best]


def drive(options, ledger):
    """Slices until everything is done or the time is over; returns how many harmed."""
    wanted = parts(options.cycles, options.kills, options.censuses, options.sweep)
    if options.parts:
        wanted = {part: count for part, count in wanted.items() if any(part.startswith(p) for p in options.parts)}
    end = time.monotonic() + options.seconds if options.seconds else float("inf")
    running, harmed, skipped = {}, 0, set()
    while True:
        for part, (process, since) in list(running.items()):
            if process.poll() is None and time.monotonic() - since < SLICE_PATIENCE:
                continue
            if process.poll() is None:
                process.kill()
            lines = process.communicate()[0].splitlines()
            try:
                entry = json.loads(lines[-1])
            except (IndexError, ValueError):
                entry = {"part": part, "done": 0, "harmed": 1, "failure": f"the slice ended with {process.returncode}: {lines[-3:]}"}
            del running[part]
            if "skipped" in entry:
                print(f"{part}: skipped: {entry['skipped']}", flush=True)
                skipped.add(part)
                continue
            ledger.add(entry)
            harmed += entry["harmed"]
            print(f"{part}: {entry['done']} in {entry.get('seconds', 0)} s" +
                  (f", HARMED: {entry['failure']}; files: {entry.get('files')}" if entry["harmed"] else ""), flush=True)
        open_parts = {part: count for part, count in wanted.items() if part not in skipped}
        if len(running) < options.workers and time.monotonic() + options.slice / 2 < end:
            part, first = choose(open_parts, ledger, running)
            if part:
                command = [sys.executable, __file__, *options.again, "--run-slice", part, "--first", str(first), "--most",
                           str(max(LEAST, remaining(wanted[part], ledger, part, first)[0]))]
                running[part] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True), time.monotonic()
                continue
        if not running:
            return harmed
        time.sleep(0.1)


WHAT = {"cycles": "attach and detach", "kills": "kill at a random microsecond", "calls": "kill at each system call of",
        "census": "census, or kill in one"}


def summary(ledger, per_victim):
    """A Markdown table of everything in the ledger."""
    rows = collections.OrderedDict()
    for entry in ledger.entries():
        kind, victim, *rest = entry["part"].split(".")
        what = WHAT[kind] + ("" if not rest else " " + rest[0])
        key = (what, victim) if per_victim else (what, "")
        row = rows.setdefault(key, collections.Counter())
        row["done"] += entry["done"] - entry.get("missed", 0)
        row["harmed"] += entry["harmed"]
        row["interrupted"] += entry.get("interrupted", 0)
    print("| what | victim | count | harmed | EINTR |\n|---|---|---:|---:|---:|")
    order = list(WHAT.values())
    for (what, victim), row in sorted(rows.items(), key=lambda item: (order.index(next(w for w in order if item[0][0].startswith(w))),
                                                                        item[0])):
        print(f"| {what} | {victim or 'all'} | {row['done']} | {row['harmed']} | {row['interrupted']} |")
    for entry in ledger.entries():
        if entry["harmed"]:
            print(f"{entry['part']}: {entry['failure']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--memattach", help="the program")
    parser.add_argument("--targets", help="directory of the built victims")
    parser.add_argument("--ledger", default="build/stress", help="directory of the ledger (default %(default)s)")
    parser.add_argument("--work", help="where the slices may write")
    parser.add_argument("--label", default="", help="noted in each line: which program this is")
    parser.add_argument("--cycles", type=int, default=10000, help="in all (default %(default)s)")
    parser.add_argument("--kills", type=int, default=10000, help="at random, in all (default %(default)s)")
    parser.add_argument("--censuses", type=int, default=10000, help="in all (default %(default)s)")
    parser.add_argument("--sweep", nargs="*", default=[], choices=list(VICTIMS), metavar="VICTIM",
                        help=f"kill at each system call, with these victims (as {' '.join(SWEPT)})")
    parser.add_argument("--every", type=int, default=1, metavar="K",
                        help="with --sweep: of calls that change nothing in the victim only each K-th, the first and the last")
    parser.add_argument("--seconds", type=float, default=0, help="end after this time (default: when all is done)")
    parser.add_argument("--options", default="", help="of memattach, for every attach: \"--hooks entry\"")
    parser.add_argument("--slice", type=float, default=SLICE_SECONDS, help="seconds of a slice (default %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="slices at the same time (default %(default)s)")
    parser.add_argument("--list", action="store_true", help="print the parts")
    parser.add_argument("--summary", action="store_true", help="print the table of the ledger and end")
    parser.add_argument("--each", action="store_true", help="with --summary: a row for each victim")
    parser.add_argument("--run-slice", metavar="PART", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--most", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("parts", nargs="*", help="only parts whose names start so")
    options = parser.parse_args()
    ledger = Ledger(options.ledger)
    if options.list:
        print("\n".join(parts(options.cycles, options.kills, options.censuses, options.sweep or SWEPT)))
        return 0
    if options.summary:
        summary(ledger, options.each)
        return 0
    for name in ("memattach", "targets"):
        if not getattr(options, name) or not os.path.exists(getattr(options, name)):
            parser.error(f"--{name}: there is no {getattr(options, name)}")
        setattr(options, name, os.path.abspath(getattr(options, name)))
    if options.run_slice:
        print(json.dumps(slice_of(options, ledger, options.run_slice, options.first)))
        return 0
    options.again = ["--memattach", options.memattach, "--targets", options.targets, "--ledger", options.ledger, "--label",
                     options.label, "--slice", str(options.slice), "--every", str(options.every), f"--options={options.options}"] + (["--work", options.work] if options.work else [])
    harmed = drive(options, ledger)
    print(f"{harmed} slices harmed their victim")
    return 1 if harmed else 0


if __name__ == "__main__":
    sys.exit(main())
