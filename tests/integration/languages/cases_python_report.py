# SPDX-License-Identifier: MIT
"""What reports say of Python: the lines that hold memory, native frames beside them, and in all forms the same sums."""
import collections

from cases_python import running
from cases_python_frames import LEAST, TARGETS, blocks_of
from harness import case, log
from reports import analyze, analyze_text

OWN = f"--size={LEAST}.."  # the program's own blocks


def is_python(frame):
    return frame["language"] == "python"


def sums_of(report):
    """(function, file, line, functions around) -> live bytes."""
    found = collections.Counter()
    for stack in report["stacks"]:
        frames = [frame for frame in stack["frames"] if is_python(frame)]
        if frames:
            found[frames[0]["function"], frames[0]["file"], frames[0]["line"],
                  tuple(frame["function"] for frame in frames[1:])] += stack["live_bytes"]["estimate"]
    return found


def modules_of(report, python):
    return [{frame["module"].rsplit("/", 1)[-1] for frame in stack["frames"] if frame["module"] and is_python(frame) == python}
            for stack in report["stacks"] if any(map(is_python, stack["frames"]))]


@case()
def python_lines_in_reports(context):
    """At rate 1: each line holds in the report what it has made, with and without native frames, and sums are the totals."""
    dump, made = blocks_of(context, next(iter(running(context, TARGETS / "python_blocks.py"))))
    plain, native, lines = (analyze(context, dump.path, OWN, *more) for more in ([], ["--native"], ["--by=line"]))
    by_line = {group["line"]: group["exclusive"]["live_bytes"]["estimate"] for group in lines["groups"]}
    for report in (plain, native):
        found = sums_of(report)
        for function, file, line, size, outer in made:
            assert found[function, file, line, tuple(outer)] == size, (function, file, line, size, outer)
        assert report["python"]["samples"] == report["python"]["samples_complete"] > 100, report["python"]
        assert sum(stack["live_bytes"]["estimate"] for stack in report["stacks"]) == report["total"]["live_bytes"]["estimate"]
    sizes = collections.Counter()
    for _, file, line, size, _ in made:
        sizes[f"{file}:{line}"] += size
    for line, size in sizes.items():
        assert by_line[line] == size, (line, size, by_line[line])
    assert sum(by_line.values()) == lines["total"]["live_bytes"]["estimate"] == plain["total"]["live_bytes"]["estimate"]
    assert len(plain["stacks"]) < len(native["stacks"]), "nothing became equal"
    hidden = [any(name.startswith(("python", "libpython")) for name in names) for names in modules_of(native, False)]
    assert all(hidden) and not any(name.startswith(("python", "libpython")) for names in modules_of(plain, False) for name in names)
    text = analyze_text(context, dump.path, OWN, "--verbose", "--top=0")
    assert "100.0 % of these have all of its frames" in text, text[:2000]
    assert "python_blocks.py:" in text and "\x1b[31m" not in text
    log(f"{len(plain['stacks'])} stacks, {len(native['stacks'])} with native frames, {len(by_line)} lines")
