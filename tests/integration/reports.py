# SPDX-License-Identifier: MIT
"""memanalyze, and what each of its reports must be."""
import json
import re
import subprocess
import time

from procfs import Failure, PATIENCE


def analyze(context, dump, *arguments, expected=0):
    """memanalyze --json, parsed and checked for the documented fields."""
    result = subprocess.run([context.memanalyze, "--json", *arguments, dump], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    if result.returncode != expected:
        raise Failure(f"memanalyze ended with {result.returncode}: {result.stderr[-1000:]}")
    report = with_frames(json.loads(result.stdout))
    check_report(report)
    return report


def with_frames(report):
    """The frames of each stack in the place of their numbers, with path and build-id of their modules."""
    for frame in report["frames"]:
        for name in ("function", "file", "line", "module", "address", "language", "inlined"):
            frame.setdefault(name, False if name == "inlined" else None)
        module = report["modules"][frame["module"]] if frame["module"] is not None else {"path": None, "build_id": None}
        frame.update(module=module["path"], build_id=module["build_id"])
    for stack in report["stacks"]:
        stack.setdefault("truncated", False)
        stack["frames"] = [report["frames"][number] for number in stack["frames"]]
    return report


def analyze_text(context, dump, *arguments):
    result = subprocess.run([context.memanalyze, *arguments, dump], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, timeout=PATIENCE, check=False)
    if result.returncode:
        raise Failure(f"memanalyze ended with {result.returncode}: {result.stderr[-1000:]}")
    return result.stdout


def until(context, session, what, condition, *options):
    """Reads the dump until the condition holds; returns the report."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        report = analyze(context, session.dump, *options)
        if condition(report):
            return report
        time.sleep(0.25)
    raise Failure(f"{what}: not in {PATIENCE} s; {report['target']}")


def whole(context, dump):
    report = analyze(context, dump)
    assert report["complete"] and not report["damaged"], report
    return report


FIGURES = ("live_bytes", "live_count", "allocated_bytes", "allocated_count")


def check_figures(holder):
    for name in FIGURES:
        figure = holder[name]
        assert figure["low"] <= figure["estimate"] * (1 + 1e-9) + 1e-9, (name, figure)
        assert figure["estimate"] <= figure["high"] * (1 + 1e-9) + 1e-9, (name, figure)
        assert figure["stderr"] >= 0, (name, figure)


def check_report(report):
    assert report["format"] == 4
    assert set(report) >= {"format", "rate_bytes", "confidence", "complete", "target", "samples", "total", "stacks"}
    assert set(report["target"]) >= {"pid", "command", "attached_at", "duration_seconds", "ended"}
    assert report["target"]["ended"] in ("detached", "exited", "killed", "running", "abandoned"), report["target"]
    assert set(report["samples"]) >= {"taken", "live", "lost"}
    check_figures(report["total"])
    for stack in report["stacks"]:
        check_figures(stack)
        assert stack["samples"] >= stack["samples_live"] >= 0
        assert stack["truncated"] in (True, False)
        for frame in stack["frames"]:
            assert set(frame) >= {"function", "file", "line", "module", "build_id", "inlined", "language"}, frame
            assert frame["language"] in ("python", "java", None), frame
            assert (frame["address"] is None) if frame["language"] else re.match(r"^0x[0-9a-f]+$", frame["address"]), frame


def functions_of(stack):
    return [frame["function"] for frame in stack["frames"] if frame["function"]]


def stacks_with(report, function):
    return [stack for stack in report["stacks"] if function in functions_of(stack)]


def sum_of(stacks, figure, part="estimate"):
    return sum(stack[figure][part] for stack in stacks)


def truncated_share(report):
    samples = sum(stack["samples"] for stack in report["stacks"])
    cut = sum(stack["samples"] for stack in report["stacks"] if stack["truncated"])
    return cut / samples if samples else 0.0
