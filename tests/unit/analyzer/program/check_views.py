#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_views.py MEMANALYZE PAGE DUMP...: every view of each dump is JSON with the documented members, and text of 120 columns, and

- every number of the text follows from the JSON: those of a row from the members of that stack, function or module, the others from the rest;
- every member of the JSON is named in the manual PAGE.
"""
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys

VIEWS = ([], ["--leaks"], ["--leaks", "--age=1s"], ["--since=5s"], ["--at=5s"], ["--since=1ms", "--at=20s"], ["--by=function"],
         ["--by=module"], ["--by=file"], ["--by=line"], ["--by=size"], ["--by=size", "--top=1"], ["--by=function", "--top=1"], ["--by=thread", "--top=1"], ["--by=size", "--sort=allocated-bytes", "--at=5s"], ["--by=lifetime"], ["--by=residency"],
         ["--by=lifetime", "--sort=allocated-count"], ["--focus=a"], ["--ignore=a", "--by=thread"], ["--size=100..8k", "--sort=allocated-bytes"],
         ["--thread=main|1", "--older=1s", "--hide=libc"], ["--focus=o", "--leaks"], ["--show-from=e", "--since=5s"],
         ["--timeline"], ["--timeline=7", "--focus=a"], ["--timeline=7", "--older=2s"], ["--peak", "--older=2s"], ["--timeline=200", "--size=1k.."], ["--peak"], ["--peak", "--ignore=a"], ["--by=thread"], ["--by=thread", "--at=5s", "--sort=live-count"], ["--plan=5"], ["--plan=5", "--sort=live-count"],
         ["--sort=allocated-count", "--top=1", "--depth=1"],
         ["--no-symbols", "--confidence=50"], ["--native"], ["--native", "--by=line"], ["--leaks", "--confidence=99.9", "--sort=allocated-bytes"])
ALWAYS = {"format", "rate_bytes", "confidence", "complete", "damaged", "exact", "target", "view", "samples", "counters", "python", "java", "own_code", "skipped",
          "detection_limit_bytes", "hidden_block_bytes", "memory", "total", "notes", "stack_count", "stacks", "frames", "modules"}
FIGURES = ("live_bytes", "live_count", "allocated_bytes", "allocated_count")
FRAMES_MAX = 128
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?: (?:B|KiB|MiB|GiB|TiB|%))?")
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def run(program, *arguments):
    result = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert result.returncode in (0, 1), (arguments, result)
    return result.stdout.decode("utf-8")  # strict


def no_constant(name):
    raise AssertionError(f"{name} is no JSON")


def check_tables(report, where):
    """Each frame and each module that is referred to is there, and once; then the frames take the place of their numbers."""
    frames, modules = report["frames"], report["modules"]
    for table in (frames, modules):
        assert len({json.dumps(entry) for entry in table}) == len(table), where
    assert {number for stack in report["stacks"] for number in stack["frames"]} == set(range(len(frames))), where
    assert all(frame["module"] in range(len(modules)) for frame in frames if "module" in frame), where
    for stack in report["stacks"]:
        stack["frames"] = [frames[number] for number in stack["frames"]]


def check_json(text, where):
    report = json.loads(text, parse_constant=no_constant)
    assert ALWAYS <= set(report), (where, ALWAYS - set(report))
    check_tables(report, where)
    assert report["format"] == 4, where
    for part in [report["total"], *report["stacks"]]:
        for name in FIGURES:
            figure = part[name]
            assert figure["low"] <= figure["estimate"] <= figure["high"], (where, name, figure)
            if name.endswith("count"):
                assert 0 <= figure["unseen"] == int(figure["unseen"]) and (not report["exact"] or not figure["unseen"]), (where, figure)
            if "growth" in part:
                growth = part["growth"][name]
                assert growth["low"] <= growth["estimate"] <= growth["high"], (where, name, growth)
    for point in report.get("timeline", []):
        for name in ("live_bytes", "allocated_bytes"):
            assert point[name]["low"] <= point[name]["estimate"] <= point[name]["high"], (where, point)
    for stack in report["stacks"]:
        assert {"share", "samples", "samples_live", "frames"} <= set(stack), where
    by_thread = report.get("by") == "thread"
    if report.get("by") in ("size", "lifetime", "residency"):
        for name in FIGURES:
            parts, whole = sum(group[name]["estimate"] for group in report["groups"]), report["total"][name]["estimate"]
            # Where the sums of stacks are damaged, records may know of more.
            assert abs(parts - whole) <= 1e-9 * whole or report["damaged"], (where, name, parts, whole)
        return report
    for thread in report["groups"] if by_thread else []:
        assert set(thread) - {"fragmentation"} == {"thread", "tid", "pid", "others", "live_bytes", "live_count", "samples_live", "share"}, where
        for name in ("live_bytes", "live_count"):
            assert thread[name]["low"] <= thread[name]["estimate"] <= thread[name]["high"], (where, name, thread)
    if by_thread:
        parts, whole = sum(thread["live_bytes"]["estimate"] for thread in report["groups"]), report["total"]["live_bytes"]["estimate"]
        assert abs(parts - whole) <= 1e-9 * whole or "--top=1" in where, (where, parts, whole)
        return report
    if report.get("groups") and "fragmentation" in report["total"]:
        assert any("fragmentation" in group["inclusive"] for group in report["groups"]), where
    for group in report.get("groups", []):
        for name in FIGURES:
            for part in (group["inclusive"], group["exclusive"]):
                assert part[name]["low"] <= part[name]["estimate"] <= part[name]["high"], (where, name, part)
            assert group["exclusive"][name]["estimate"] <= group["inclusive"][name]["estimate"], (where, group)
    assert not report["exact"] or report["complete"], where
    return report


def check_text(text, where):
    for line in text.splitlines()[1:]:  # the first is the name of the file
        assert len(line) <= 120 or line.startswith(("  target", "  not seen", "No symbols", "Symbols of")), (where, len(line), line)
        assert line.isprintable(), (where, line)


def scalars(value):
    if isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            yield from scalars(member)
    else:
        yield value


def leaves(value):
    return (float(v) for v in scalars(value) if isinstance(v, (int, float)) and not isinstance(v, bool))


def members(value):
    """Names of all members, but of the objects whose names are those of another page or are data."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield name
            if name not in ("counters", "parts", "skipped"):
                yield from members(member)
    elif isinstance(value, list):
        for member in value:
            yield from members(member)


def as_size(value):
    unit = 0
    while abs(value) >= 1023.995 and unit < 6:
        value /= 1024
        unit += 1
    decimals = 0 if unit == 0 or abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    return f"{value:.{decimals}f} {UNITS[unit]}"


def as_percent(share):
    return f"{100 * share:.{2 if 0 < share < 0.0995 else 1}f} %"


def spellings(value):
    """How the text may write a number of the JSON."""
    yield from (as_size(value), as_size(-value), f"{value:,.0f}", f"{value:.1f}", f"{value:.3g}", f"{value:g}", f"{value:.9g}", as_percent(value),
                f"{100 * value:g} %")


def ratio(a, b):
    return a / b if b else 0


def seconds_of(report):
    return report["view"].get("at_seconds", report["target"].get("duration_seconds", 0))


def derived(report, part):
    """Numbers that the text works out of those of the JSON."""
    slack = isinstance(part, dict) and (part.get("fragmentation") or part.get("inclusive", {}).get("fragmentation"))
    if slack:
        yield ratio(slack["slack_bytes"]["estimate"], slack["requested_bytes"])
    if isinstance(part, dict) and "frame_count" in part:
        yield part["frame_count"] - sum(not frame.get("inlined") for frame in part["frames"])
    if isinstance(part, dict) and isinstance(part.get("allocated_bytes"), dict):
        for unit in ("bytes", "count"):
            if f"live_{unit}" in part:
                yield ratio(part[f"live_{unit}"]["estimate"], part[f"allocated_{unit}"]["estimate"])
        for figure in ("live", "allocated"):
            if isinstance(part.get(f"{figure}_count"), dict):
                yield ratio(part[f"{figure}_bytes"]["estimate"], part[f"{figure}_count"]["estimate"])
        for name in ("live_bytes", "allocated_bytes"):
            yield ratio(part.get(name, {"estimate": 0})["estimate"], seconds_of(report))
    if part is report:
        counters = report["counters"]
        taken = counters["samples_taken"]
        yield min(1, ratio(counters["stacks_truncated"] + counters["stacks_deep"], taken))
        yield from derived(report, report["total"])
        for row in report["stacks"]:  # what is said of the blocks that each may lack
            yield (row.get("growth") or row)["live_count"]["unseen"]
        growth = [row["growth"] for row in [report["total"], *report["stacks"]] if "growth" in row]
        since = seconds_of(report) - report["view"].get("since_seconds", 0)
        yield from (ratio(part[figure]["estimate"], since) for part in growth for figure in ("live_bytes", "allocated_bytes"))
        yield from (sum(bool(row.get("leak", row).get(name)) for row in report["stacks"]) for name in ("leaks", "grows"))
        yield sum(bool(row.get("leak", row).get("grows")) and not row.get("leak", row).get("leaks") for row in report["stacks"])
        before = 0
        for point in report.get("timeline", []):
            yield ratio(point["allocated_bytes"]["estimate"], point["seconds"] - before)
            before = point["seconds"]
        if report["view"]["filter"]:
            yield ratio(report["view"]["filter"]["kept"], report["view"]["filter"]["of"])
        for dump in report.get("dumps", [report["target"]]):
            rates = [change[name] for change in dump["rate_changes"] for name in ("old_bytes", "new_bytes")]
            yield from (min(rates + [dump["first_rate_bytes"]]), max(rates + [dump["first_rate_bytes"]]))
        yield from (FRAMES_MAX, len(report.get("dumps", [])), 1 - report["confidence"])


def known(report, *parts):
    found = set()
    for part in parts:
        for value in itertools.chain(leaves(part), derived(report, part)):
            found.update(spellings(value))
    return found


def rest_of(report, all_rows, shown):
    """What the last lines say of the rows that are not shown."""
    figure = report["view"]["sort"].replace("-", "_")
    live = figure.startswith("live")
    rows = [row for row in all_rows[shown:] if row["samples_live" if live else "samples"]]
    amount = sum(row[figure]["estimate"] for row in rows)
    none = sum(not row["samples_live" if live else "samples"] for row in all_rows)
    return [len(rows), amount, ratio(amount, report["total"][figure]["estimate"]), none]


def rest_of_groups(report, groups, shown):
    """The same of functions, by what is their own, and of threads."""
    figure = report["view"]["sort"].replace("-", "_")
    samples = "samples_live" if figure.startswith("live") else "samples"
    rows = [group.get("exclusive", group) for group in groups[shown:]]
    amounts = [row[figure]["estimate"] for row in rows if row.get(samples, row[figure]["estimate"])]
    return [len(amounts), sum(amounts), ratio(sum(amounts), report["total"][figure]["estimate"])]


def numbers_of(line, words):
    """The numbers of a line, without the words of the JSON in it (paths, notes, names)."""
    for word in sorted(words, key=len, reverse=True):
        line = line.replace(word, " ")
    line = line.replace("+-", " ")
    return NUMBER.findall(line)


def words_of(value):
    return (v for v in scalars(value) if isinstance(v, str) and any(c.isdigit() for c in v))


def next_row(rows, wanted, report, general):
    """The next row of the JSON that has these numbers; views leave out rows that have nothing to say."""
    for row in rows:
        if set(wanted) <= known(report, row) | general:
            return row
    return None


def check_numbers(text, report, whole, where):
    """text and report are of the same view, whole has all rows."""
    head = {key: value for key, value in report.items() if key not in ("stacks", "groups", "frames")}
    words = set(words_of(head))
    general = known(report, report["total"], report if not report["stacks"] else head)
    general |= known(report, rest_of(report, whole["stacks"], len(report["stacks"]))) | {"0", "0 %"}
    if whole.get("groups"):
        general |= known(report, rest_of_groups(report, whole["groups"], 1 if "--top=1" in where else 20))
    if whole["stacks"]:
        general |= set(as_percent(whole["stacks"][0]["share"]).split("|"))  # the verdict
        general |= known(report, whole["stacks"][0].get("leak"))
    for value in derived(report, report):
        general.update(spellings(value))
    name_at = 50 if report.get("by") in ("thread", "size", "lifetime", "residency") else 57
    by_stack, section, row, wrong = not report.get("groups"), "head", None, []
    samples = "samples_live" if report["view"]["sort"].startswith("live") else "samples"
    rows = (row for row in (report["stacks"] if by_stack else report["groups"]) if by_stack or row.get(samples, 1))
    for line in text.splitlines()[1:]:
        if not line.startswith(" ") and line:
            section, row = "head", None  # a title, or the lines behind the rows
        if re.match(r"  session|  copy|  (target|old|new) |No symbols for|Symbols of|Debug file used for", line):
            continue  # paths; and a time of this place
        if section == "holders" and re.match(r" {5}\S", line) or line.startswith("Next: "):
            continue  # a frame; options
        if re.match(r"(Held|Allocated) by, ", line):
            section = "holders"
        if section == "holders" and re.match(r" [ \d]\d +\S", line):
            found = numbers_of(line[3:], words)
            row = next_row(rows, found, report, set())
            wrong += [] if row else [(line, found)]
            continue
        first = re.match(r" *\d+\. ", line) if by_stack else section == "groups" and re.match(r" +[\d.,]+( \w+)?  \S", line)
        if by_stack and re.match(r"        \S", line) and row and "... " not in line:
            continue  # a frame: names, lines and offsets
        if re.match(r" +(own|estimate)  interval ", line):
            section = "groups"
        elif first:
            found = numbers_of(re.sub(r"^ *\d+\. ", "", line) if by_stack else line[:name_at], words)
            row = next_row(rows, found, report, general)
            wrong += [] if row else [(line, found)]
        else:
            allowed = known(report, row) | general if row else general
            wrong += [(line, token) for token in numbers_of(line, words | set(words_of(row or {}))) if token not in allowed]
    assert not wrong, (where, wrong[:5], text)


def main():
    os.environ["XDG_CACHE_HOME"] = "/nonexistent"  # not the user's own
    program, page, *dumps = sys.argv[1:]
    assert dumps
    page = pathlib.Path(page).read_text(encoding="utf-8")
    documented = set(re.findall(r"[a-z_]+", page[page.index(".SH JSON"):page.index(".SH EXIT STATUS")].replace("\\-", "-")))
    pairs = [["--diff", *pair] for pair in itertools.permutations(dumps, 2)]
    for arguments in [view + [dump] for view in VIEWS for dump in dumps] + pairs + [dumps]:
        whole = check_json(run(program, "--json", *arguments), arguments)
        missing = set(members(whole)) - documented
        assert not missing, (arguments, "not in the page", missing)
        text, brief = run(program, "--verbose", *arguments), run(program, *arguments)
        check_text(text, arguments)
        check_text(brief, arguments)
        # The text shows 20 rows where JSON shows all.
        top = [] if any(word.startswith("--top") for word in arguments) else ["--top=20"]
        report = check_json(run(program, "--json", *top, *arguments), arguments) if len(whole["stacks"]) > 20 else whole
        if "--top=1" in arguments:
            whole = check_json(run(program, "--json", "--top=0", *[word for word in arguments if word != "--top=1"]), arguments)
        check_numbers(text, report, whole, arguments)
        check_numbers(brief, report, whole, arguments)


main()
