#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_html.py MEMANALYZE SEED...: what the HTML report shows in headless Chromium; skipped (77) where there is none.

- The totals are those of the JSON, and so are, to a fifth of a percent, the intervals of each function in the table, which the page
  computes by itself: for bytes and for blocks, own and in all, of a heap and of a growth.
- The sum of a search is that of --focus. The graph is drawn with its hottest function; zoom, figure and the other end are in the address.
- Functions whose names are markup are text.
"""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import hostile_dump as dump
from html_page import FIGURES

PATIENCE = 120
PART = 2e-3  # the page has standard errors with four digits
CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


class Shown:
    """The page of a file as a browser has it with this fragment, after its scripts have run."""
    def __init__(self, file, fragment, home):
        command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}", "--virtual-time-budget=3000",
                   "--dump-dom", f"file://{file}#{fragment}"]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False, env={**os.environ, "HOME": home})
        self.text = result.stdout.decode("utf-8", "replace")
        body = re.search(r"<body([^>]*)>", self.text)
        assert body and "data-total" in body[1], (result.returncode, self.text[:500], result.stderr[-2000:])
        self.data = {name: html.unescape(value) for name, value in re.findall(r'data-(\w+)="([^"]*)"', body[1])}
        self.rows = [({"own": own, "total": total}, html.unescape(name))
                     for own, total, name in re.findall(r'<tr class="[^"]*" data-own="([^"]*)" data-total="([^"]*)"><td[^>]*>([^<]*)', self.text)]

    def numbers(self, name):
        return [float(word) for word in self.data[name].split()]


def numbers(figure):
    return [figure[part] for part in ("estimate", "low", "high")]


def same(shown, expected, what):
    room = PART * max(abs(value) for value in expected) + 1
    assert all(abs(x - y) <= room for x, y in zip(shown, expected)), (what, shown, expected)


class Checks:
    def __init__(self, program, directory, seeds):
        self.program, self.directory, self.seeds = program, directory, seeds

    def analyze(self, *arguments):
        result = subprocess.run([self.program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
        assert result.returncode in (0, 1), (arguments, result)
        return result.stdout

    def report(self, *arguments):
        return json.loads(self.analyze("--json", *arguments))

    def show(self, fragment, *arguments):
        file = self.directory / "r.html"
        self.analyze("-o", file, *arguments)
        return Shown(file, fragment, str(self.directory / "home"))

    def check_table(self):
        """Function by function, for a figure of bytes and one of blocks; of a merge and of a stack that is cut off."""
        for figure, dumps in ((0, self.seeds[:1]), (3, self.seeds[1:2]), (1, self.seeds)):
            shown = self.show(f"tab=table&figure={figure}", *dumps)
            report = self.report(*dumps)
            assert shown.numbers("total") == [report["total"][name]["estimate"] for name in FIGURES]
            groups = self.report("--by=function", *dumps)["groups"]
            assert len(shown.rows) == int(shown.data["rows"]) == len(groups), (len(shown.rows), len(groups))
            by_figure = {}
            for group in groups:
                module = (group["module"] or "").rsplit("/", 1)[-1]
                name = module + group["function"] if group["function"].startswith("+") else group["function"]
                by_figure[name.replace("\x1b", "\ufffd")] = group
            for sides, name in shown.rows:
                group = by_figure[name]
                if name == "(stack not known)":  # which may lack no sample for want of a stack; --by does not look for that
                    continue
                for side, part in (("own", "exclusive"), ("total", "inclusive")):
                    same([float(word) for word in sides[side].split()], numbers(group[part][FIGURES[figure]]), (dumps, figure, name, side))

    def check_search(self):
        for seed, regex, figure in ((self.seeds[2], "inner", 0), (self.seeds[2], "inner", 3)):
            shown = self.show(f"q={regex}&figure={figure}", seed)
            expected = numbers(self.report(f"--focus={regex}", seed)["total"][FIGURES[figure]])
            assert 0 < expected[0] < self.report(seed)["total"][FIGURES[figure]]["estimate"]
            same(shown.numbers("hit"), expected, regex)
        assert "hit" not in self.show("q=(", self.seeds[0]).data

    def check_growth(self):
        old, new = self.seeds[:2]
        shown = self.show("tab=table", "--diff", old, new)
        groups = {}
        for stack in self.report("--diff", old, new)["stacks"]:
            groups.setdefault(len(stack["frames"]), []).append(stack)
        rows = {tuple(round(float(word)) for word in sides["total"].split()) for sides, _ in shown.rows}
        single = [stack for stacks in groups.values() for stack in stacks if stack["frame_count"] == 1]
        assert rows and single
        for stack in single:
            expected = numbers(stack["growth"]["live_bytes"])
            assert any(abs(row[0] - expected[0]) <= 2 and abs(row[1] - expected[1]) <= PART * abs(expected[1]) + 2 for row in rows), (expected, rows)
        flame = self.show("", "--diff", old, new)
        grown = any(stack["growth"]["significant"] for stack in self.report("--diff", old, new)["stacks"])
        assert int(flame.data["coloured"]) >= grown, flame.data
        assert int(self.show("", "--diff", old, self.copy(old)).data["coloured"]) == 0

    def copy(self, file):
        shutil.copy(file, self.directory / "copy")
        return self.directory / "copy"

    def check_graph(self):
        shown = self.show("dir=in&theme=dark", self.seeds[0])
        assert int(shown.data["boxes"]) > 1 and 'data-theme="dark"' in shown.text
        top = max(self.report("--by=function", self.seeds[0])["groups"], key=lambda group: group["exclusive"]["live_bytes"]["estimate"])
        assert shown.data["function"].endswith(top["function"]), (shown.data, top)
        assert "the larger of before" not in shown.text and "detection limit" in shown.text

    def check_hostile_names(self):
        """A module whose name is markup; the page has no element of it, and says it."""
        name = "<img src=x onerror=alert(1)><script><b>.so"
        made = dump.write_frames(self.directory / "hostile.dump", [(b"/</script>/" + name.encode(), b"")], [0x100], command=b"</title><b>x", program=b"/<i>")
        shown = self.show("tab=table", made)
        assert [row for _, row in shown.rows] == [name + "+0x100"], shown.rows
        before, after = shown.text.split("<noscript>")[0], shown.text.split("</noscript>")[1]
        elements = before + re.sub(r"<script.*?</script>", "", after, flags=re.S)
        assert not re.search(r"<(img|i|b)\b(?! class)", elements) and after.count("<script") == 4, "markup"


def main():
    if not CHROMIUM:
        print("skipped: there is no chromium")
        return 77
    program, *seeds = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        checks = Checks(os.path.abspath(program), pathlib.Path(directory), seeds)
        for name in sorted(name for name in dir(checks) if name.startswith("check_")):
            print(name, flush=True)
            getattr(checks, name)()
    return 0


if __name__ == "__main__":
    sys.exit(main())
