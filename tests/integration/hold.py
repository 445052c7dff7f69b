#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long the longest-held thread is held: the median of many attaches and detaches, for typical servers and two programs of
our own. For a quiet machine."""
import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import folders  # noqa: E402, F401 pylint: disable=unused-import
import servers  # noqa: E402
from harm_redis import RedisIdle  # noqa: E402
from harness import Context, Victim, run_memattach  # noqa: E402
from procfs import Failure, Skip, read_text  # noqa: E402

ROUNDS = 50


def loop(context):
    return Victim(context, "alloc_loop", "4")


def sleeper(context):
    return Victim(context, "sleeper", "pause")


class Server:
    """A server of bench/servers.py as a victim."""

    def __init__(self, context, start):
        self.running = contextlib.ExitStack()
        folder = Path(context.path("server"))
        folder.mkdir()
        os.chmod(context.work, 0o755)
        try:
            self.pid = self.running.enter_context(start(folder)).pid
        except servers.Missing as reason:
            raise Skip(str(reason)) from reason

    def finish(self):
        self.running.close()


def nginx(context):
    return Server(context, servers.nginx)


def children(pid):
    return {int(child) for child in read_text(f"/proc/{pid}/task/{pid}/children").split()}


def postgres(context):
    """A backend, which waits for the next command of psql."""
    server = Server(context, servers.postgres)
    before = children(server.pid)
    client = subprocess.Popen(["psql", "-q", "-h", "127.0.0.1", "-p", "16392", "-U", "postgres"], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, text=True)
    server.running.callback(client.wait)
    server.running.callback(client.stdin.close)
    client.stdin.write("select 1;\n")
    client.stdin.flush()
    time.sleep(1)
    server.pid = next(pid for pid in children(server.pid) - before if "127.0.0.1" in read_text(f"/proc/{pid}/cmdline"))
    return server


PROGRAMS = {"redis-server, idle": RedisIdle, "nginx, idle": nginx, "PostgreSQL backend, idle": postgres,
            "4 threads that allocate": loop, "idle sleeper": sleeper}


def measure(context, make, rounds):
    victim = make(context)
    stops = {"attach": [], "detach": []}
    for _ in range(rounds):
        receipt, dump = context.unique("receipt", ".json"), context.unique("hold", ".dump")
        result = run_memattach(context, "-q", "-p", victim.pid, "-d", "20ms", "-o", dump, "--receipt", receipt)
        if result.returncode:
            raise Failure(f"memattach ended with {result.returncode}: {result.stderr}")
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
        context = Context(os.path.abspath(options.memattach), None, os.path.abspath(options.targets), work, 0)
        try:
            stops = measure(context, make, options.rounds)
        except Skip as reason:
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
