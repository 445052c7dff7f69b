#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs integration cases: run.py --memattach M --memanalyze A --targets DIR [--work DIR] [--cycles N] [--kills N] CASE...

run.py --list prints one line per case: name, labels, timeout in seconds. Exit code 0 right, 1 wrong, 77 skipped (the reason is
printed). Each case gets a process of its own, with which all ends that it started, and a directory, which is kept when it fails.
"""
import argparse
import ctypes
import faulthandler
import importlib
import itertools
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import traceback

PR_SET_CHILD_SUBREAPER = 36
sys.dont_write_bytecode = not sys.pycache_prefix

import harness  # noqa: E402
from folders import FOLDERS  # noqa: E402
from middle import ELSEWHERE, MIDDLE, SANITIZED  # noqa: E402


def load(module):
    """The cases of one file, or of all: to read all takes longer than many a case."""
    files = (path for folder in FOLDERS for pattern in ("cases_*.py", "harm_*.py") for path in folder.glob(pattern))
    for path in sorted(files, key=lambda path: path.stem):
        if module in (None, path.stem):
            importlib.import_module(path.stem)
    if module:
        return
    for name in itertools.chain(*MIDDLE.values()):
        harness.CASES[name].labels.append("middle")
    for name in ELSEWHERE:
        harness.CASES[name].labels.append("elsewhere")
    assert "sanitized" in harness.CASES[SANITIZED].labels
    harness.CASES[SANITIZED].labels.append("middle_sanitized")


def run(case, options):
    work = tempfile.mkdtemp(prefix=f"memattach-{case.name}-", dir=options.work)
    os.environ["XDG_CACHE_HOME"] = work  # not the user's own
    context = harness.Context(options.memattach, options.memanalyze, options.targets, work, options.cycles, options.kills)
    code = 1
    try:
        case.function(context)
        print(f"{case.name}: ok")
        code = 0
    except harness.Skip as reason:
        print(f"{case.name}: skipped: {reason}")
        code = 77
    except Exception as error:  # every failure of a case is reported alike
        if not isinstance(error, harness.Failure):
            traceback.print_exc()
        print(f"{case.name}: FAILED: {type(error).__name__}: {error}\n  files: {work}", flush=True)
    finally:
        context.close()
        if code != 1:
            shutil.rmtree(work, ignore_errors=True)
    sys.stdout.flush()
    return code


class TooLong(Exception):
    pass


def too_long(*_):
    raise TooLong


def run_alone(case, options):
    """In a child, until the case's timeout. What that leaves behind, children of children too, comes to this process, and is ended."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(case.timeout - 5)  # where it hangs, before it is ended
        os._exit(run(case, options))
    code = 1
    signal.alarm(case.timeout)
    try:
        while (ended := os.wait())[0] != child:
            pass
        code = os.waitstatus_to_exitcode(ended[1])
        signal.alarm(0)
    except TooLong:
        print(f"{case.name}: FAILED: not at its end after {case.timeout} s")
    while pids := pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split():
        for pid in map(int, pids):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return code if code in (0, 77) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the cases")
    parser.add_argument("--memattach", help="the program")
    parser.add_argument("--memanalyze", help="the program")
    parser.add_argument("--targets", help="directory of the built victims")
    parser.add_argument("--module", help="the file of the cases, without .py (default: all are read)")
    parser.add_argument("--work", help="where the cases may write (default: the system's temporary directory)")
    parser.add_argument("--cycles", type=int, default=5, help="attach/detach cycles of the cases that repeat")
    parser.add_argument("--kills", type=int, default=harness.KILLS, help="kills of the cases that kill memattach at random moments")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    load(options.module)
    if options.list:
        for case in harness.CASES.values():
            print(case.name, ",".join(case.labels), case.timeout)
        return 0
    for name in ("memattach", "memanalyze", "targets"):
        if not getattr(options, name) or not os.path.exists(getattr(options, name)):
            parser.error(f"--{name}: there is no {getattr(options, name)}")
        setattr(options, name, os.path.abspath(getattr(options, name)))
    unknown = [name for name in options.cases if name not in harness.CASES]
    if unknown or not options.cases:
        parser.error(f"unknown case {' '.join(unknown)}" if unknown else "no case was named")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGALRM, too_long)
    codes = [run_alone(harness.CASES[name], options) for name in options.cases]
    return 1 if 1 in codes else max(codes)


if __name__ == "__main__":
    sys.exit(main())
