# SPDX-License-Identifier: MIT
"""Reads an HTML report without a browser, by the rules of analyzer/html/html_data.h, and asserts what holds of each."""
import base64
import hashlib
import html
import json
import re

PAGE_BYTES = 8_000_000
SCRIPT_BYTES = (34 * 1024, 6 * 1024)  # of every page, and of that of a folder
FIGURES = ("live_bytes", "live_count", "allocated_bytes", "allocated_count")


class Page:
    def __init__(self, path):
        self.text = path.read_bytes().decode("utf-8")
        assert len(self.text.encode()) <= PAGE_BYTES, len(self.text)
        self.blocks = re.findall(r'<script type="application/json" id="(\w+)"(?: data-step="\d+")?>(.*?)</script>', self.text, re.S)
        self.check_policy()
        self.data = {name: json.loads(block) for name, block in self.blocks}
        assert list(self.data)[:4] == ["head", "frames", "nodes", "spans"], list(self.data)
        self.head, self.frames, self.nodes, self.spans = list(self.data.values())[:4]
        self.machine = self.data.get("machine")
        assert self.machine or len(self.data) == 4, list(self.data)
        self.compares = self.head["compares"]
        self.plain = html.unescape(re.search(r"<noscript><pre>(.*?)</pre></noscript>", self.text, re.S)[1])
        self.entries = list(self.read())
        self.step = int(re.search(r'id="spans" data-step="(\d+)"', self.text)[1])
        assert bool(self.spans) == bool(self.step)
        self.cells = list(self.read_spans()) if self.spans else []

    def check_policy(self):
        """Nothing but its own style and script is allowed, and the data cannot end their element."""
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', self.text)[1]
        style, script = re.findall(r"<style>(.*?)</style>", self.text, re.S), re.findall(r"<script>(.*?)</script>", self.text, re.S)
        assert len(style) == 1 and len(script) == 1 + ("machine" in dict(self.blocks)), (len(style), len(script))
        hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (*style, *script)]
        rules = re.fullmatch(r"default-src 'none'; style-src (\S+); script-src (\S+) (\S+); base-uri 'none'; form-action 'none'", policy)
        assert rules and list(rules.groups())[:len(hashes)] == hashes, policy
        assert all(len(text.encode()) <= most for text, most in zip(script, SCRIPT_BYTES)), [len(text) for text in script]
        assert self.text.count("<script") == len(self.blocks) + len(script) and not any("<" in block for _, block in self.blocks), "markup in the data"
        rest = self.text
        for text in script:
            rest = rest.replace(text, "")
        assert not re.search(r"\b(src|href|srcset|action)\s*=|url\(|@import|https?:|\son\w+=", re.sub(r"(?s)<noscript>.*?</noscript>", "", rest.split('<script type', 1)[0])), "a reference"

    def read(self):
        """(path of functions, outermost first, stacks, now, growth): the values of the four figures."""
        numbers, path = iter(self.nodes), []

        def sums():
            if not (samples := next(numbers)):
                next(numbers)
                return [0, 0]
            bytes_, _, seen, count, _, _ = (next(numbers) for _ in range(6))
            assert samples > 0 and 0 <= seen <= bytes_ * (1 + 1e-9) + 1, (samples, bytes_, seen)
            return [bytes_, count]
        while (code := next(numbers)) >= 0:
            up = next(numbers)
            assert 0 <= up <= len(path)
            del path[len(path) - up:]
            path.append(code // 2)
            assert len(path) <= 513, len(path)
            if code % 2:
                stacks, _ = next(numbers), next(numbers)
                now = sums() + sums()
                growth = None
                if self.compares:
                    plus = now if self.frames["allHasCome"] else sums() + sums()
                    growth = [a - b for a, b in zip(plus, sums() + sums())]
                yield tuple(self.frames["frames"][frame][0] for frame in path), stacks, now, growth
        assert next(numbers, None) is None

    def read_spans(self):
        """Of each entry its cells: (step of birth, step of free or None, bytes, blocks). Those that are live are what the entry says."""
        numbers = iter(self.spans)
        steps = -(-len(self.head["timeline"]) // self.step)
        for path, _, now, _ in self.entries:
            cells = []
            for _ in range(next(numbers)):
                born, gone, samples = next(numbers), next(numbers) - 1, next(numbers)
                assert 0 <= born < steps and (gone < 0 or born <= gone <= steps) and samples > 0, (path, born, gone, samples)
                if samples == 1:
                    size, weight = next(numbers), next(numbers)
                    assert size >= 0 and weight >= 1
                    bytes_, count = size * weight, weight
                else:
                    bytes_, _, seen, count, _, weight = (next(numbers) for _ in range(6))
                    assert seen <= bytes_ * (1 + 1e-9) + 1 and weight >= 1
                cells.append((born, gone if gone >= 0 else None, bytes_, count))
            assert [cell[:2] for cell in cells] == sorted({cell[:2] for cell in cells}, key=lambda cell: (cell[0], -1 if cell[1] is None else cell[1])), cells
            for number, figure in ((2, 0), (3, 1)):
                live = sum(cell[number] for cell in cells if cell[1] is None)
                assert abs(live - now[figure]) <= 1e-4 * live + 1 + len(cells), (path, live, now)
            yield cells
        assert next(numbers) == -1 and next(numbers, None) is None

    def total(self, figure, growth=False):
        number = FIGURES.index(figure)
        return sum((change if growth else now)[number] for _, _, now, change in self.entries)
