#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_views.py MEMANALYZE DUMP...: every view of each dump is JSON with the documented members, and text of 120 columns."""
import itertools
import json
import subprocess
import sys

VIEWS = ([], ["--leaks"], ["--leaks", "--age=1s"], ["--since=5s"], ["--at=5s"], ["--since=1ms", "--at=20s"], ["--by=function"],
         ["--by=module"], ["--plan=5"], ["--efficiency"], ["--sort=allocated-count", "--top=1", "--depth=1"], ["--no-symbols", "--confidence=50"])
ALWAYS = {"format", "rate_bytes", "confidence", "complete", "damaged", "exact", "target", "view", "samples", "counters", "skipped",
          "detection_limit_bytes", "hidden_block_bytes", "memory", "total", "notes", "stack_count", "stacks", "modules"}
FIGURES = ("live_bytes", "live_count", "allocated_bytes", "allocated_count")


def run(program, *arguments):
    result = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert result.returncode in (0, 1), (arguments, result)
    return result.stdout.decode("utf-8")  # strict


def no_constant(name):
    raise AssertionError(f"{name} is no JSON")


def check_json(text, where):
    report = json.loads(text, parse_constant=no_constant)
    assert ALWAYS <= set(report), (where, ALWAYS - set(report))
    assert report["format"] == 1, where
    for part in [report["total"], *report["stacks"]]:
        for name in FIGURES:
            figure = part[name]
            assert figure["low"] <= figure["estimate"] <= figure["high"], (where, name, figure)
            if "growth" in part:
                growth = part["growth"][name]
                assert growth["low"] <= growth["estimate"] <= growth["high"], (where, name, growth)
    for stack in report["stacks"]:
        assert {"share", "samples", "samples_live", "truncated", "deep", "unknown", "frame_count", "frames"} <= set(stack), where
    if report.get("groups") and "fragmentation" in report["total"]:
        assert any("fragmentation" in group["inclusive"] for group in report["groups"]), where
    for group in report.get("groups", []):
        for name in FIGURES:
            for part in (group["inclusive"], group["exclusive"]):
                assert part[name]["low"] <= part[name]["estimate"] <= part[name]["high"], (where, name, part)
            assert group["exclusive"][name]["estimate"] <= group["inclusive"][name]["estimate"], (where, group)
    assert not report["exact"] or report["complete"], where


def check_text(text, where):
    for line in text.splitlines()[1:]:  # the first is the name of the file
        assert len(line) <= 120 or line.startswith(("  target", "  not seen", "No symbols")), (where, len(line), line)
        assert line.isprintable(), (where, line)


def main():
    program, *dumps = sys.argv[1:]
    assert dumps
    pairs = [["--diff", *pair] for pair in itertools.permutations(dumps, 2)]
    for arguments in [view + [dump] for view in VIEWS for dump in dumps] + pairs + [dumps]:
        check_json(run(program, "--json", *arguments), arguments)
        check_text(run(program, *arguments), arguments)


main()
