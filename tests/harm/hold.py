#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long the longest-held thread is held: the median of many attaches and detaches, for three programs. For a quiet machine."""
import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile

import run  # noqa: F401 sets the paths
import harness
from harm import run_memattach
from harm_redis import RedisIdle

ROUNDS = 50


def loop(context):
    return harness.Victim(context, "alloc_loop", "4")


def sleeper(context):
    return harness.Victim(context, "sleeper", "pause")


PROGRAMS = {"redis-server, idle": RedisIdle, "4 threads that allocate": loop, "idle sleeper": sleeper}


def measure(context, make, rounds):
    victim = make(context)
    stops = {"attach": [], "detach": []}
    for _ in range(rounds):
        receipt, dump = context.unique("receipt", ".json"), context.unique("hold", ".dump")
        result = run_memattach(context, "-q", "-p", victim.pid, "-d", "20ms", "-o", dump, "--receipt", receipt, "--deadline", "20s")
        if result.returncode:
            raise harness.Failure(f"memattach ended with {result.returncode}: {result.stderr}")
        os.unlink(dump)
        with open(receipt, encoding="utf-8") as file:
            for name, value in json.load(file)["stopped_ms"].items():
                stops[name].append(value)
    victim.finish()
    return stops


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--memattach", required=True, help="the program")
    parser.add_argument("--targets", required=True, help="directory of the built victims")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="attaches of each program (default %(default)s)")
    options = parser.parse_args()
    print("| program | attach: median | 90 % | longest | detach: median | 90 % | longest |\n|---|---:|---:|---:|---:|---:|---:|")
    for name, make in PROGRAMS.items():
        work = tempfile.mkdtemp(prefix="memattach-hold-")
        context = harness.Context(os.path.abspath(options.memattach), None, os.path.abspath(options.targets), work, 0)
        try:
            stops = measure(context, make, options.rounds)
        except harness.Skip as reason:
            print(f"| {name} | skipped: {reason} |")
            continue
        finally:
            context.close()
            shutil.rmtree(work, ignore_errors=True)
        cells = []
        for values in (sorted(stops["attach"]), sorted(stops["detach"])):
            cells += [statistics.median(values), values[len(values) * 9 // 10], values[-1]]
        print(f"| {name} | " + " | ".join(f"{cell:.2f} ms" for cell in cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
