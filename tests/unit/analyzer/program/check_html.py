#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_html.py MEMANALYZE SEED...: what the HTML report shows in headless Chromium; skipped (77) where there is none.

- The totals are those of the JSON, and so are the rows of the table: by function, file and module, for bytes and for blocks, own and
  in all, also where the tree of the page is cut. What the page sums up by itself is right to a fifth of a percent, else it says so.
- The sum of a search is that of --focus. The graph begins with its hottest function; the address says what is shown.
- Leaks are those of --leaks.
- A span of the timeline shows what --since and --at do; it is drawn by mouse, finger and keys.
- Functions whose names are markup are text. A stack of 512 functions is drawn to its end.
"""
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import hostile_dump as dump
from html_page import FIGURES, Page

sys.path.append(str(pathlib.Path(__file__).parents[3] / "integration"))
from browser import CHROMIUM, Browser, Driven, Shown  # noqa: E402

PATIENCE = 120
PART = 2e-3  # the page has standard errors with four digits


def numbers(figure):
    return [figure[part] for part in ("estimate", "low", "high")]


def same(shown, expected, what):
    room = PART * max(abs(value) for value in expected) + 1
    assert all(abs(x - y) <= room for x, y in zip(shown, expected)), (what, shown, expected)


def whole(figure):
    """As the table has them: the ends are rounded outward."""
    estimate, low, high = numbers(figure)
    return [math.floor(estimate + 0.5), math.floor(low), math.ceil(high)]


def equal(sides, group, figure, what):
    """A row of the table, and one of --by --json."""
    for side, part in (("own", "exclusive"), ("total", "inclusive")):
        assert [int(word) for word in sides[side].split()] == whole(group[part][figure]), (what, side, sides, group)


class Checks:
    def __init__(self, program, directory, seeds, browser):
        self.program, self.directory, self.seeds, self.browser = program, directory, seeds, browser

    def analyze(self, *arguments):
        result = subprocess.run([self.program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
        assert result.returncode in (0, 1), (arguments, result)
        return result.stdout

    def report(self, *arguments):
        return json.loads(self.analyze("--json", *arguments))

    def written(self, *arguments):
        file = self.directory / "r.html"
        self.analyze("-o", file, *arguments)
        return file

    def show(self, fragment, *arguments):
        return Shown(self.browser, self.written(*arguments), fragment)

    def check_table(self):
        """Function by function, for a figure of bytes and one of blocks; of one dump and of three."""
        for figure, dumps in ((0, self.seeds[:1]), (3, self.seeds)):
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
                equal(sides, by_figure[name], FIGURES[figure], (dumps, figure, name))

    def check_table_of_samples(self):
        """Threads, sizes and lifetimes are those of the JSON, sizes and lifetimes in their order; of a span or a comparison there are none."""
        for by, figure in (("thread", 0), ("thread", 1), ("size", 0), ("size", 3), ("lifetime", 1), ("lifetime", 2)):
            name, part = FIGURES[figure], "samples_live" if figure < 2 else "samples"
            shown = self.show(f"tab=table&by={by}&figure={figure}&sort=0", *self.seeds)
            groups = [group for group in self.report(f"--by={by}", "--top=0", *self.seeds)["groups"] if group[part]]
            expected = [whole(group[name]) for group in groups]
            rows = [[int(word) for word in sides["total"].split()] for sides, _ in shown.rows]
            assert rows and (sorted(rows) == sorted(expected) if by == "thread" else rows == expected), (by, figure, rows, expected)
        shown = self.show("tab=table&by=thread&figure=2", *self.seeds)
        assert not shown.rows and "what a thread has allocated in all is not known:" in shown.text.split("<script")[0]
        shown = self.show("tab=table&by=size", "--diff", self.seeds[0], self.seeds[0])
        assert "<option>size<" not in shown.text and "<option>module<" in shown.text

    def check_table_of_a_cut_tree(self):
        """Of so many stacks that most are summed up in the tree each row is that of --by; what is not listed is told; a search says what it lacks."""
        made = dump.write_many(self.directory / "many.dump", 60000)
        file = self.written(made)
        page = Page(file)
        assert "coarse" in page.frames, "the tree is not cut"
        for by in ("function", "module"):
            table, groups = page.head["table"][by], self.report(f"--by={by}", made)["groups"]
            by_name = {(group.get("function", group["module"]).removeprefix("+"), group["module"]): group for group in groups}
            assert len(table["rows"]) + table["more"] == len(groups) == len(by_name), (by, len(groups))
            for name, path, _, *values in table["rows"]:
                group = by_name[name.split("+")[-1], path]
                for i, part in enumerate(("exclusive", "inclusive")):
                    for f, figure in enumerate(FIGURES):
                        shown = values[16 * i + 4 * f:][1:4]
                        assert shown == whole(group[part][figure]), (name, part, figure, shown, group)
            shown = Shown(self.browser, file, f"tab=table&by={by}")
            assert int(shown.data["rows"]) == len(table["rows"]) and len(shown.rows) == min(300, len(groups))
            for sides, name in shown.rows:
                equal(sides, next(group for (last, _), group in by_name.items() if last == name.split("+")[-1]), "live_bytes", name)
        assert "it may lack some of them" not in shown.text.split("<script")[0]
        searched = Shown(self.browser, file, "q=lib0&figure=0")
        assert "it may lack some of them" in searched.text.split("<script")[0]
        assert not re.search(r"largest stack[^.]*, holds 0\.00 %", page.plain), page.plain[:400]

    def check_search(self):
        seed = self.seeds[2]
        shown = self.show("q=inner&figure=3", seed)
        expected = numbers(self.report("--focus=inner", seed)["total"]["allocated_count"])
        assert 0 < expected[0] < self.report(seed)["total"]["allocated_count"]["estimate"]
        same(shown.numbers("hit"), expected, shown.data)
        seed = self.seeds[0]  # where samples have lost their stack: they may be of what is searched for
        assert self.report(seed)["samples"]["without_stack"]
        for name in ("opt.event", "nobody"):
            for figure in (0, 1):
                expected = numbers(self.report(f"--focus={name}", seed)["total"][FIGURES[figure]])
                assert bool(expected[0]) == (name == "opt.event") and expected[2], expected
                same(self.show(f"q={name}&figure={figure}", seed).numbers("hit"), expected, (seed, name))
        for name in ("opt.event", "nobody"):
            focus = self.report(f"--focus={name}", seed)
            assert focus["view"]["filter"]["samples_not_assigned"]
            same(self.show("span=0-199", f"--focus={name}", seed).numbers("span")[:3], numbers(focus["total"]["live_bytes"]), (seed, name))

    def check_span(self):
        """What came between two moments is --since --at, and what was live at the second one --at; of all of the session both are the totals."""
        for seed in self.seeds:
            whole = self.report(seed)
            # What a lost sample may weigh is a mean over other samples there: of the span, and here of the session. Of bytes both are the interval.
            figures = [name for name in FIGURES if not whole["samples"]["lost"] or name.endswith("bytes")]
            file = self.written(seed)
            points = Page(file).head["timeline"]
            at = [f"--at={points[139][0]:.9f}s"]
            then, born = self.report(*at, seed)["total"], self.report(f"--since={points[59][0]:.9f}s", *at, seed)["total"]
            assert then["live_bytes"]["estimate"] > 0
            with Driven(self.browser, file, "") as page:
                def shown(fragment):
                    words = page.value(f"location.hash = '{fragment}'; dispatchEvent(new Event('hashchange')); document.body.dataset.span").split()
                    return dict(zip(FIGURES, zip(*[map(float, words)] * 3)))

                def compare(fragment, expected, names):
                    sums = shown(fragment)
                    for name in names:
                        same(sums[name], numbers(expected[name]), (seed, fragment, name))
                compare("span=60-139&kind=end", then, figures)
                for kind in ("kept", "gone"):
                    compare(f"tab=table&span=60-139&kind={kind}", born, figures[len(figures) // 2:])
                compare("span=0-199", whole["total"], FIGURES[:2])
                kept, gone = shown("span=0-199"), shown("span=0-199&kind=gone")
                same([gone["live_bytes"][0] + kept["live_bytes"][0]], [kept["allocated_bytes"][0]], (seed, "kept and gone"))
                assert not shown("span=139-60") and not shown("span=1") and not shown("")

    def check_usage(self):
        """What was resident is drawn below the timeline, with its kinds, and told at the mouse, as the dump has it."""
        file = self.written(self.seeds[0])
        kinds, points = Page(file).head["usage"]
        told = self.report("--timeline", self.seeds[0])["resident_timeline"]
        assert kinds == ["malloc-live", "malloc-freed", "files"] and len(points) == len(told) == 24, (kinds, points)
        for point, expected in zip(points, told):
            assert point[1] == expected["looked_at"] and point[2] == expected["resident"], (point, expected)
            assert point[3:] == [expected["parts"][kind] for kind in kinds] * expected["looked_at"], (point, expected)
        with Driven(self.browser, file, "tab=timeline") as page:
            left, top, width, height = (page.value(f"document.getElementById('times').getBoundingClientRect().{side}") for side in ("left", "top", "width", "height"))
            colours = page.value("(() => { const c = document.getElementById('times'), k = c.width / c.clientWidth, at = y => [...c.getContext('2d').getImageData("
                                 "c.width / 2, y * k, 1, 1).data].join(' '); return new Set([10, 35, 60, 90].map(y => at(c.clientHeight - 30 - y))).size; })()")
            assert colours >= 3, colours  # files, freed, live and none, or two of them the same where a line is
            page.mouse("Moved", left + width / 2, top + height - 60)
            page.until("/; resident [0-9.]+ MiB, malloc-live 30\\.0 MiB, malloc-freed [0-9.]+ MiB, files 20\\.0 MiB/.test(document.body.textContent)")

    def check_census(self):
        """The page of a census: its style is what its policy allows, boxes fill the picture, names are text, and there is no script."""
        file, made = self.directory / "census.html", pathlib.Path(self.seeds[0]).parents[1] / "census" / "sample"
        self.analyze("-o", file, made)
        text = file.read_text(encoding="utf-8")
        assert "<script" not in text and "http" not in re.sub(r"http-equiv", "", text) and "\033" not in text, text
        with Driven(self.browser, file, ready="!!document.querySelector('svg')") as page:
            assert page.value("getComputedStyle(document.body).maxWidth") == "1400px"
            assert page.value("document.querySelector('h1').textContent") == "server (PID 812): 1.00 MiB resident"
            titles = page.value("[...document.querySelectorAll('h2')].map(e => e.textContent).join('|')")
            assert titles.startswith("Resident memory: 4.00 KiB|Live blocks by type: 1.46 KiB|Live blocks by holder"), titles
            assert page.value("[...document.querySelectorAll('svg')].every(s => Math.abs([...s.querySelectorAll('rect[y=\"0\"]')].reduce("
                              "(sum, r) => sum + +r.getAttribute('width'), 0) - 1000) < 0.1)")
            assert page.value("[...document.querySelectorAll('text')].every(t => !t.getBBox().width || t.getBBox().width < 1000)")

    def check_brush(self):
        """A span is drawn by mouse, by finger and by keys, and taken back by a click, the button and Escape."""
        with Driven(self.browser, self.written(self.seeds[0]), "tab=timeline") as page:
            def span():
                return page.value("new URLSearchParams(location.hash.slice(1)).get('span')")
            left, top, width = (page.value(f"document.getElementById('times').getBoundingClientRect().{side}") for side in ("left", "top", "width"))
            at = [left + 74 + part * (width - 82) for part in (0.25, 0.5, 0.75)]  # of the time
            page.mouse("Pressed", at[2], top + 50)
            page.mouse("Moved", at[1], top + 60)
            page.mouse("Moved", at[0], top + 40)
            page.mouse("Released", at[0], top + 40)
            first, last = map(int, span().split("-"))
            assert abs(first - 50) <= 1 and abs(last - 150) <= 1, (first, last)
            assert page.value("!document.getElementById('picked').hidden && document.body.dataset.span.split(' ').length === 12")
            page.value("document.getElementById('times').focus()")
            page.key("ArrowLeft")
            assert span() == f"{first - 1}-{last - 1}"
            page.key("ArrowRight", shift=True)
            assert span() == f"{first - 1}-{last}"
            page.mouse("Pressed", at[1], top + 50)
            page.mouse("Released", at[1], top + 50)
            assert span() is None and page.value("document.getElementById('picked').hidden && !document.body.dataset.span")
            page.touch("Start", (at[0], top + 50))
            for step in range(1, 5):
                page.touch("Move", (at[0] + step * (at[1] - at[0]) / 4, top + 50))
            page.touch("End")
            first, last = map(int, span().split("-"))
            assert abs(first - 50) <= 2 and abs(last - 100) <= 2, (first, last)
            page.value("document.getElementById('whole').click()")
            assert span() is None
            page.key("ArrowRight")
            assert span() == "0-0"
            page.key("Escape")
            assert span() is None

    def check_callers_and_callees(self):
        """A click in the table leads to the graph of one function, whose sum is that of its row; Back leads back; so does a button, to its row."""
        with Driven(self.browser, self.written(self.seeds[0]), "tab=table&figure=2") as page:
            name, total = (page.value(f"document.querySelector('#list tbody {part}") for part in ("td').firstChild.textContent", "tr').dataset.total"))
            page.value("document.querySelector('#list tbody td').click()")
            assert page.value("document.body.dataset.function") == name
            same(*([float(word) for word in text.split()] for text in (page.value("document.body.dataset.of"), total)), name)
            assert page.value("!document.getElementById('flame').hidden && +new URLSearchParams(location.hash.slice(1)).get('fn') >= 0")
            page.value("document.querySelectorAll('#detail button')[1].click()")
            assert page.value("document.querySelector('#list tbody td').firstChild.textContent") == name and page.value("document.body.dataset.rows") == "1"
            for tab in ("flame", "table"):
                page.value("history.back()")
                page.until(f"!document.getElementById('{tab}').hidden")
            assert not page.value("new URLSearchParams(location.hash.slice(1)).get('q')")

    def check_leaks(self):
        """Each row is that of --leaks, which says the same of it; a click leads to its stack in the graph. A page that --leaks asks for has the same."""
        called = set()
        for seed in self.seeds:
            stacks = [stack for stack in self.report("--leaks", "--top=0", seed)["stacks"] if stack["leak"]["samples_older"]]
            text = " ".join(self.analyze("--leaks", "--top=0", seed).decode().split())
            for more in ([], ["--leaks"]):
                shown = self.show("tab=leaks", *more, seed)
                assert [row.split() for row in re.findall(r'<tr[^>]* data-leak="([^"]*)"', shown.text)] == [
                    [str(word) for word in (2 if leak["leaks"] else int(leak["grows"]), *whole(leak["older_bytes"]), *whole(leak["older_count"]),
                                            *whole(leak["bytes_per_second"]), leak["samples_older"])] for leak in (stack["leak"] for stack in stacks)], seed
                leaks = Page(self.directory / "r.html").head["leaks"]
                assert " ".join(leaks["verdict"].split()) in text and not leaks["more"], (leaks, text)
                assert bool(leaks["note"]) == any(stack["leak"]["history_dropped"] for stack in stacks)
                rest = text
                for _, verdict, *_ in leaks["rows"]:
                    assert f" {verdict} " in rest, (verdict, text)
                    rest = rest.split(f" {verdict} ", 1)[1]
                    called.add(verdict)
            shown = self.show("tab=leaks", "--since=1s", seed)
            assert ">Table<" in shown.text and ">Leaks" not in shown.text
        assert "LEAK" in called and len(called) > 1, called
        seed = self.seeds[0]
        report = self.report("--leaks", seed)
        first = report["stacks"][0]
        duration, age = report["target"]["duration_seconds"], report["view"]["age_seconds"]
        same(numbers(first["leak"]["bytes_per_second"]), [value / (duration - age) for value in numbers(first["leak"]["older_bytes"])], seed)
        with Driven(self.browser, self.written(seed), "tab=leaks&span=0-3") as page:
            assert page.value("document.getElementById('tab-leaks').textContent") == "Leaks (1)"
            page.value("document.querySelector('#leaklist tbody td').click()")
            assert not page.value("document.getElementById('flame').hidden")
            frame, detail = report["frames"][first["frames"][0]], page.value("document.getElementById('detail').innerText")
            assert f"+{frame['address']}" in detail and f"{first['samples_live']} samples" in detail, (frame, detail)

    def check_rows_lead_to_the_graph(self):
        """A click on a file or a module searches for it: the graph has what the row said."""
        made = dump.write_deep(self.directory / "file.dump", 200)
        for by, sought in (("file", "^deep\\.c$"), ("module", "^\\/deep$")):
            with Driven(self.browser, self.written(made), f"tab=table&figure=0&by={by}") as page:
                total = page.value("document.querySelector('#list tbody tr').dataset.total")
                page.value("document.querySelector('#list tbody td').click()")
                assert page.value("new URLSearchParams(location.hash.slice(1)).get('q')") == sought
                same(*([float(word) for word in text.split()] for text in (page.value("document.body.dataset.hit"), total)), by)

    def check_deep_stacks(self):
        """A stack of 512 functions is drawn to its end; what is deeper is not in the page."""
        for depth in (512, 700):
            made = dump.write_deep(self.directory / f"deep{depth}.dump", depth)
            shown = self.show("figure=0&dir=out", made)
            assert int(shown.data["boxes"]) == 1 + min(depth, 512) + (depth > 512), (depth, shown.data["boxes"])
            height = int(re.search(r'<canvas id="graph"[^>]*height="(\d+)"', shown.text)[1])
            assert height == 19 * int(shown.data["boxes"]), height

    def check_hostile_names(self):
        """A module whose name is markup; the page has no element of it, and says it."""
        name = "<img src=x onerror=alert(1)><script><b>.so"
        made = dump.write_frames(self.directory / "hostile.dump", [(b"/</script>/" + name.encode(), b"")], [0x100], command=b"</title><b>x", program=b"/<i>")
        shown = self.show("tab=table", made)
        assert [row for _, row in shown.rows] == [name + "+0x100"], shown.rows
        before, after = shown.text.split("<noscript>")[0], shown.text.split("</noscript>")[1]
        elements = before + re.sub(r"<script.*?</script>", "", after, flags=re.S)
        assert not re.search(r"<(img|i|b)\b(?! class)", elements) and after.count("<script") == 5, "markup"
        assert not re.search(r"\(\?<[=!]", after), "browsers before 2023 do not run scripts with such a pattern"


def main():
    if not CHROMIUM:
        print("skipped: there is no chromium")
        return 77
    program, *seeds = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory, Browser(os.path.join(directory, "home")) as browser:
        checks = Checks(os.path.abspath(program), pathlib.Path(directory), seeds, browser)
        for name in sorted(name for name in dir(checks) if name.startswith("check_")):
            print(name, flush=True)
            getattr(checks, name)()
    return 0


if __name__ == "__main__":
    sys.exit(main())
