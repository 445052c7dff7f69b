#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_folder_page.py MEMANALYZE SEED...: the HTML report of a folder of dumps; in headless Chromium, too, where there is one.

- Its table has the figures of --by process, program, unit and container, and the text that --by process prints.
- The report of one process has the figures of its dump's, that of a program those of all its dumps together; a click leads there, Back back.
- Three hundred processes with large dumps fit into the file. Names that are markup are text.
"""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import hostile_dump as dump
from check_html import whole
from html_page import FIGURES, Page

sys.path.append(str(pathlib.Path(__file__).parents[3] / "integration"))
from browser import CHROMIUM, Browser, Driven  # noqa: E402

PATIENCE = 300
KINDS = ("process", "program", "unit", "container")
MARKUP = "</script><img src=x onerror=alert(1)>&amp;\""
CONTAINER = "0123456789abcdef" * 4


class Checks:
    def __init__(self, program, directory, seeds):
        self.program, self.directory, self.seeds = program, directory, seeds
        self.folder = directory / "dumps"
        self.folder.mkdir()
        for i, seed in enumerate(seeds):
            shutil.copy(seed, self.folder / f"seed{i}.dump")
        for i in range(5):
            # The last two are one program, and one process of which there are two sessions.
            group = f"/system.slice/{'web' if i < 3 else 'docker-' + CONTAINER}.{'service' if i < 3 else 'scope'}".encode()
            dump.write_many(self.folder / f"many{i}.dump", 40 * (i + 1), pid=100 + min(i, 3), command=MARKUP.encode() if i == 2 else b"web%d" % min(i, 3),
                            program=b"/<b>" if i == 2 else b"/usr/bin/web", cgroup=group, image=b"" if i < 3 else b"docker.io/library/web:7", private=(1 << 20, (2 + i) << 20))
        (self.folder / "memattach.system.1.2").write_text(f"memattach-system\t1\nhost\th\nunseen\t3\t7\t{MARKUP}\t<b>why\n")
        self.page = Page(self.written(self.folder))

    def analyze(self, *arguments):
        result = subprocess.run([self.program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
        assert result.returncode in (0, 1), (arguments, result)
        return result.stdout

    def report(self, *arguments):
        return json.loads(self.analyze("--json", *arguments))

    def written(self, folder, *arguments):
        file = self.directory / (folder.name + ".html")
        self.analyze("-o", file, *arguments, folder)
        return file

    def rows(self, kind):
        return self.page.machine["tables"][kind]["rows"]

    def check_table(self):
        for kind, by in enumerate(KINDS):
            groups = self.report("--by", by, "--top", "0", self.folder)["groups"]
            assert len(groups) == len(self.rows(kind)) and not self.page.machine["tables"][kind]["more"], (by, groups)
            for group, (name, sessions, memory, _, *rest) in zip(groups, self.rows(kind)):
                assert (name, sessions, memory) == (group[by], group["sessions"], group["private_growth"]), (by, name, group)
                values = rest if kind else rest[3:]
                for f, figure in enumerate(FIGURES):
                    assert values[4 * f + 1:4 * f + 4] == whole(group[figure]), (by, name, figure, values, group)
        for name, *_, program, unit, container in (row[:7] for row in self.rows(0)):
            expected = ("/<b>" if name.startswith("<") else "/usr/bin/web", "web.service" if name.startswith("web") and "100" in name else None)
            assert not name.startswith("web") or self.rows(1)[program][0] == expected[0], name
            assert not expected[1] or self.rows(2)[unit][0] == expected[1], name
            assert "PID 103" not in name or self.rows(3)[container][0] == f"docker.io/library/web:7 {CONTAINER[:12]}", name
        assert self.page.machine["notProfiled"] == [[3, MARKUP, "<b>why"]], self.page.machine["notProfiled"]

    def check_text(self):
        """Its first lines name the directory, and who has most."""
        folder = self.directory / "two"
        folder.mkdir()
        for i, seed in enumerate(self.seeds[:2]):
            data = bytearray(pathlib.Path(seed).read_bytes())
            struct.pack_into("<i", data, 56, 77 + i)
            struct.pack_into("<64s", data, 80, b"two")
            (folder / f"{i}.dump").write_bytes(data)
        text = self.analyze(folder).decode()
        first = self.report("--by", "process", folder)["groups"][0]["process"]
        assert text.startswith(f"{folder}: a directory of 2 dumps\n"), text[:300]
        assert re.search(rf"^{re.escape(first)} holds [\d.]+ % \([\d.]+ % \.\. [\d.]+ %\) of it\.$", text, re.M), text[:1000]

    def check_reports_of_single_ones(self):
        """Each part of the page against the report of its dumps."""
        found = 0
        for kind in (0, 1):
            for name, sessions, _, part, *_ in self.rows(kind):
                if part is None:
                    assert kind == 1 and sessions == 1, (name, "has no report")
                    continue
                dumps = [path for path in sorted(self.folder.glob("*.dump")) if self.is_of(path, kind, name)]
                assert len(dumps) == sessions, (name, dumps)
                report, head = self.report(*dumps), self.page.data[f"head{part}"]
                for figure, shown in zip(FIGURES, head["figures"]):
                    assert whole(shown["total"]) == whole(report["total"][figure]), (name, figure, shown["total"], report["total"][figure])
                functions = self.report("--by", "function", "--top", "0", *dumps)["groups"]
                assert len(head["table"]["function"]["rows"]) == len(functions), name
                found += 1
        assert found == sum(name.startswith("head") for name in self.page.data) - 1 >= 7, found

    def is_of(self, path, kind, name):
        target = self.report(path)["target"]
        return name == (target["program"] if kind else f"{target['command']} (PID {target['pid']} on {target['host']})")

    def check_size(self):
        """Of each of 300 processes a part of its stacks has room."""
        folder = self.directory / "fleet"
        folder.mkdir()
        for i in range(300):
            dump.write_many(folder / f"p{i}.dump", 1500, pid=1000 + i, command=b"worker\x01" * 9, program=b"/opt/%d/" % (i % 10) + b"<" * 200)
        page = Page(self.written(folder, "--no-symbols"))
        rows = page.machine["tables"][0]["rows"]
        assert len(rows) == 300 and all(row[3] is not None for row in rows), [row for row in rows if row[3] is None]
        assert len(page.machine["tables"][1]["rows"]) == 10
        assert any("coarse" in page.data[f"frames{row[3]}"] for row in rows), "nothing had to be left out: the test tests nothing"
        print(f"300 processes: {len(page.text)} bytes")

    def check_in_a_browser(self):
        """What is shown is what the text says; a click leads to the graph of the process, Back back; markup is text."""
        text = self.analyze("--by", "process", "--top", "0", self.folder).decode()
        lines = re.findall(r"^ +([\d,.]+ \w+)  (\S.*?) {2,}([\d.]+ %)  (\S.*)$", text, re.M)
        with Browser(str(self.directory / "home")) as browser, Driven(browser, self.directory / "dumps.html") as page:
            cells = json.loads(page.value("JSON.stringify([...document.querySelectorAll('#fleet tbody tr')].map(tr => [...tr.cells].map(td => td.textContent)))"))
            shown = [(row[1], row[2], row[3], row[0]) for row in cells if row[5] != "0"]
            assert len(lines) >= 5 and shown == lines, (shown, lines)
            assert page.value("document.querySelectorAll('img, b img, #all b').length") == 0
            assert MARKUP in page.value("document.getElementById('all').textContent")
            for row, name in enumerate(page.value("[...document.querySelectorAll('#fleet tbody tr')].map(tr => tr.cells[0].textContent).join('\\n')").split("\n")):
                self.open_row(page, row, name)
            self.sort_and_group(page)

    def open_row(self, page, row, name):
        figures = page.value(f"document.querySelectorAll('#fleet tbody tr')[{row}].dataset.figures").split()
        page.value(f"document.querySelectorAll('#fleet tbody td:first-child button')[{row}].click()")
        page.until("/of=\\d/.test(location.hash) && !document.getElementById('app').hidden && document.body.dataset.of")
        assert page.value("document.title").startswith(name.split(" (PID")[0]) or "sessions" in page.value("document.title"), name
        total = float(page.value("document.body.dataset.total").split()[0])
        assert abs(total - float(figures[1])) <= 1 + 1e-6 * total, (name, total, figures)
        page.value("history.back()")
        page.until("document.getElementById('app').hidden && document.body.dataset.listed")

    def sort_and_group(self, page):
        names = "[...document.querySelectorAll('#fleet tbody tr')].map(tr => tr.cells[0].textContent)"
        page.value("document.querySelector('#fleet thead button').click()")
        by_name = json.loads(page.value(f"JSON.stringify({names})"))
        assert by_name == json.loads(page.value(f"JSON.stringify({names}.sort((x, y) => x.localeCompare(y)))")), by_name
        page.value("const kinds = document.getElementById('kinds'); kinds.value = 2; kinds.onchange()")
        row = json.loads(page.value(f"JSON.stringify({names})")).index("web.service")
        page.value(f"document.querySelectorAll('#fleet tbody td:first-child button')[{row}].click()")
        assert page.value("document.body.dataset.listed") == "3" and page.value("document.getElementById('only').value") == "web.service"


def main():
    program, *seeds = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        checks = Checks(os.path.abspath(program), pathlib.Path(directory), seeds)
        for name in sorted(name for name in dir(checks) if name.startswith("check_")):
            if name.endswith("browser") and not CHROMIUM:
                print("there is no chromium: the page is not looked at in a browser")
                continue
            print(name, flush=True)
            getattr(checks, name)()
    return 0


if __name__ == "__main__":
    sys.exit(main())
