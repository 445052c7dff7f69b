#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_outputs.py MEMANALYZE LARGE_DUMP CC SEED... [--sanitized]: every form of a report says the same.

- Each file is as its readers want it: pprof (pprof_profile.py), speedscope's schema, what dh_view.html asserts, collapsed stacks.
- The sums of each are the totals of the JSON, in every view; the figures of each function are those of the JSON.
- A form that cannot show an option says so by name and writes nothing.
- Hostile names are text in each of them. Files are whole or not there. Go's pprof reads the profile, where it is installed.
"""
import collections
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

import hostile_dump as dump
from html_page import FIGURES as HTML_FIGURES, Page
from otlp_profile import OtlpProfile
from pprof_profile import Profile

FILES = {"text": "r.txt", "json": "r.json", "pprof": "r.pb.gz", "collapsed": "r.folded", "speedscope": "r.speedscope.json", "html": "r.html",
         "otlp": "r.otlp", "dhat": "dhat.out.r"}
VIEWS = ([], ["--at=5s"], ["--since=5s"], ["--since=1ms", "--at=20s"], ["--confidence=99"], ["--sort=live-count"], ["--sort=allocated-bytes"],
         ["--top=1"], ["--no-symbols"], ["--peak"], ["--size=1k.."], ["--focus=eventful"], ["--focus=leaky", "--hide=odd"], ["--hide=."],
         ["--ignore=.", "--since=5s"])
FIGURES = {"inuse_space": "live_bytes", "inuse_objects": "live_count", "alloc_space": "allocated_bytes", "alloc_objects": "allocated_count"}
SPEEDSCOPE = {"live bytes": "live_bytes", "live blocks": "live_count", "allocated bytes": "allocated_bytes", "allocated blocks": "allocated_count"}
PATIENCE = 300
MEMORY_BYTES = 400 << 20
GAP = re.compile(r"\((stack not known|\d+ more stacks|no frame is shown|outer frames not known|outer frames left out)\)")


def run(program, *arguments, status=(0, 1), **options):
    result = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False,
                            **options)
    assert result.returncode in status, (arguments, result)
    return result


def whole(value):
    """As the outputs round: away from zero."""
    return int(abs(value) + 0.5) * (1 if value >= 0 else -1)


def function_of(report, frame):
    module = report["modules"][frame["module"]]["path"] if "module" in frame else None
    name = frame.get("function") or (module.rsplit("/", 1)[-1] + "+" if module else "") + frame["address"]
    return "".join(c if c.isprintable() else "\ufffd" for c in name)


class Outputs:
    """All forms of one report; those that it refuses are missing."""
    def __init__(self, program, directory, arguments, formats=FILES):
        self.program, self.arguments = program, [str(word) for word in arguments]
        paths = {name: directory / FILES[name] for name in formats}
        for path in paths.values():
            path.unlink(missing_ok=True)
        run(program, *[f"--output={path}" for path in paths.values()], *arguments)
        self.paths = paths
        self.report = json.loads(paths["json"].read_text(encoding="utf-8"))

    def total(self, figure, growth=False):
        total = self.report["total"]["growth"] if growth else self.report["total"]
        return whole(total[figure]["estimate"])

    def names(self, stack):
        nothing = "(stack not known)" if stack.get("unknown") or not self.hides() else "(no frame is shown)"
        return [function_of(self.report, self.report["frames"][number]) for number in stack["frames"]] or [nothing]

    def whole_stacks(self, *figures):
        """The names of the frames of each stack that holds something, innermost first; None where not all is shown."""
        if self.compares() or any(word.startswith(("--top", "--depth")) for word in self.arguments):
            return None
        return sorted(self.names(stack) for stack in self.report["stacks"]
                      if any(stack[figure]["estimate"] >= 1 for figure in figures))

    def hides(self):
        return any(word.startswith("--hide") for word in self.arguments)

    def compares(self):
        return "growth" in self.report["total"]

    def check(self):
        if "pprof" in self.paths:
            self.check_pprof()
        if "otlp" in self.paths and "pprof" in self.paths and shutil.which("protoc"):
            self.check_otlp()
        if "collapsed" in self.paths:
            self.check_collapsed()
        if "speedscope" in self.paths:
            self.check_speedscope()
        if "dhat" in self.paths:
            self.check_dhat()
        if "html" in self.paths:
            self.check_html()

    def check_pprof(self):
        profile = Profile(self.paths["pprof"])
        totals = profile.totals()
        for name, figure in FIGURES.items():
            assert totals[name] == self.total(figure, self.compares()), (self.arguments, name, totals, self.report["total"])
        if not self.compares() and not any(word.startswith("--top") for word in self.arguments):
            self.check_threads(profile)
            self.check_functions(profile)
            self.check_addresses(profile)
        assert any(f"intervals of {100 * self.report['confidence']:g} %" in comment for comment in profile.comments()), profile.comments()
        for samples in (f"{totals['inuse_samples']:,} samples; allocated", f"{totals['alloc_samples']:,} samples; intervals"):
            assert any(samples in comment for comment in profile.comments()), (self.arguments, samples, profile.comments())
        wrappers = {re.sub(r"\(.*", "", frame["function"]) for frame in self.report["frames"] if frame.get("kind") == "allocator"}
        dropped = profile.text(profile.message["drop_frames"])
        assert len(wrappers) == (dropped.count("|") + 1 if dropped else 0) and all(re.fullmatch(dropped, name) for name in wrappers), (wrappers, dropped)
        filters = [word for word in self.arguments if word.startswith(("--focus", "--ignore", "--hide", "--size"))]
        said = [comment for comment in profile.comments() if comment.startswith("filter: ")]
        assert len(said) == bool(filters) and all(word.split("=")[0] in said[0] for word in filters), (filters, said)
        value = self.report["trust"]["live_bytes"]["value"]
        assert value == "measured" or any(value.replace("_", " ") in comment for comment in profile.comments()), profile.comments()

    def check_otlp(self):
        """It says what the profile for pprof says: the same stacks of the same threads with the same values."""
        ours, theirs = OtlpProfile(self.paths["otlp"]), Profile(self.paths["pprof"])
        stacks = [(names, theirs.thread(sample), values) for (names, values), sample in zip(theirs.stacks(), theirs.message["sample"])]
        for name in theirs.totals():
            expected = collections.Counter((tuple(names), thread, values[name]) for names, thread, values in stacks if values[name])
            assert collections.Counter(ours.samples(name)) == expected, (self.arguments, name)
        command = self.report.get("target", {}).get("command")
        assert command is None or ours.resource.get("service.name", "") == "".join(c if c.isprintable() else "\ufffd" for c in command), ours.resource

    def check_threads(self, profile):
        """What is live by thread is what --by=thread says; all has a label but what is of no thread."""
        expected = collections.Counter()
        groups = json.loads(run(self.program, "--json", "--by=thread", *self.arguments, "--sort=live-bytes").stdout)["groups"]
        for group in groups:
            expected[group["thread"] or (f"tid {group['tid']}" if group["tid"] else None)] += group["live_bytes"]["estimate"]
        threads = profile.threads("inuse_space")
        for name in set(threads) | set(expected):
            assert abs(threads.get(name, 0) - expected[name]) <= 2 + len(profile.message["sample"]), (self.arguments, name, threads, expected)

    def check_functions(self, profile):
        """Flat and cumulative figures by function, as -top shows them, are those of the JSON."""
        ours, theirs = collections.Counter(), collections.Counter()
        rows = collections.Counter()
        for stack in self.report["stacks"]:
            names = self.names(stack)
            for key in {("flat", names[0])} | {("cumulative", name) for name in names}:
                ours[key] += stack["live_bytes"]["estimate"]
                rows[key] += 1
        for names, values in profile.stacks():
            frames = [name for name in names if name != "(outer frames not known)"]
            for key in {("flat", frames[0])} | {("cumulative", name) for name in frames}:
                theirs[key] += values["inuse_space"]
        for key in set(ours) | set(theirs):
            assert abs(ours[key] - theirs[key]) <= rows[key] + 1e-6 * ours[key], (self.arguments, key, ours[key], theirs[key])

    def check_addresses(self, profile):
        """Those of the calls, in the program file; of the module that the JSON names."""
        ours = {(report_module["path"] if report_module else None, int(frame["address"], 16) - 1)
                for frame in self.report["frames"]
                for report_module in [self.report["modules"][frame["module"]] if "module" in frame else None]}
        mappings = {mapping["id"]: profile.text(mapping["filename"]) for mapping in profile.message["mapping"]}
        theirs = {(mappings[location["mapping_id"]], location["address"]) for location in profile.message["location"]
                  if location["address"] or not profile.names_of(location)[0].startswith("(")}
        clean = {("[no module]" if path is None else "".join(c if c.isprintable() else "\ufffd" for c in path), max(address, 0))
                 for path, address in ours}
        assert theirs == clean, (self.arguments, theirs ^ clean)

    def check_collapsed(self):
        figure = self.report["view"]["sort"].replace("-", "_")
        sums, pair = [0, 0], self.compares()
        for line in self.paths["collapsed"].read_text(encoding="utf-8").splitlines():
            match = re.fullmatch(r"(.+?) (\d+) (\d+)" if pair else r"(.+) ()(\d+)", line)
            assert match and line.isprintable(), line
            assert all(match[1].split(";")), line
            assert pair or not re.search(r" \d+(\.\d*)?$", match[1]), line  # would be a second figure
            sums = [sums[0] + int(match[2] or 0), sums[1] + int(match[3])]
        assert sums[1] == self.total(figure), (self.arguments, sums)
        assert not pair or sums[0] == whole(self.report["total"]["old"][figure]["estimate"]), (self.arguments, sums)

    def check_speedscope(self):
        file = json.loads(self.paths["speedscope"].read_text(encoding="utf-8"))
        assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
        assert set(file) == {"$schema", "name", "exporter", "activeProfileIndex", "profiles", "shared"} and set(file["shared"]) == {"frames"}
        frames = file["shared"]["frames"]
        for frame in frames:
            assert set(frame) <= {"name", "file"} and all(isinstance(value, str) and value.isprintable() for value in frame.values()), frame
            assert frame["name"], frame
        assert 0 <= file["activeProfileIndex"] < len(file["profiles"]) == (8 if self.compares() else 4)
        for profile in file["profiles"]:
            self.check_speedscope_profile(profile, frames)
        shown = sorted([name for name in [frames[number]["name"] for number in reversed(stack)] if name != "(outer frames not known)"]
                       for stack in file["profiles"][0]["samples"])
        assert self.whole_stacks("live_bytes") in (None, shown), self.arguments
        active = file["profiles"][file["activeProfileIndex"]]["name"].split(",")[0]
        assert SPEEDSCOPE[active] == self.report["view"]["sort"].replace("-", "_")

    def check_speedscope_profile(self, profile, frames):
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"} and profile["type"] == "sampled"
        figure, _, side = profile["name"].partition(", ")
        figure = SPEEDSCOPE[figure]
        assert profile["unit"] == ("bytes" if figure.endswith("bytes") else "none") and side in (("before", "after") if self.compares() else ("",))
        assert len(profile["samples"]) == len(profile["weights"]) and all(weight > 0 for weight in profile["weights"])
        assert all(stack and all(0 <= number < len(frames) for number in stack) for stack in profile["samples"])
        expected = whole(self.report["total"]["old"][figure]["estimate"]) if side == "before" else self.total(figure)
        assert profile["startValue"] == 0 and profile["endValue"] == sum(profile["weights"]) == expected, (self.arguments, profile["name"])

    def check_dhat(self):
        """What dh_view.js checks and throws at (checkFields, checkPP, "repeated location")."""
        file = json.loads(self.paths["dhat"].read_text(encoding="utf-8"))
        assert {"dhatFileVersion", "mode", "verb", "bklt", "bkacc", "tu", "Mtu", "cmd", "pid", "te", "pps", "ftbl"} <= set(file)
        assert file["dhatFileVersion"] == 2 and file["bklt"] in (True, False) and file["bkacc"] is False and file["te"] >= 0
        assert file["ftbl"][0] == "[root]" and all(text.isprintable() for text in file["ftbl"]) and file["cmd"].isprintable()
        assert all(re.match(r"0x[0-9A-F]+: .", text) or GAP.fullmatch(text) for text in file["ftbl"][1:]), file["ftbl"]
        stacks = [tuple(point["fs"]) for point in file["pps"]]
        assert len(set(stacks)) == len(stacks) and all(stack and 1 <= min(stack) and max(stack) < len(file["ftbl"]) for stack in stacks)
        live = self.report["view"]["sort"].startswith("live") and not file["bklt"]
        assert file["verb"] == ("Live" if live else "Allocated")
        shown = sorted([self.dhat_name(file["ftbl"][number]) for number in stack if file["ftbl"][number] != "(outer frames not known)"]
                       for stack in stacks)
        assert self.whole_stacks(*(("live_bytes", "live_count") if live else ("allocated_bytes", "allocated_count"))) in (None, shown), self.arguments
        for field, figure in (("tb", "bytes"), ("tbk", "count")):
            figure = ("live_" if live else "allocated_") + figure
            assert sum(point[field] for point in file["pps"]) == self.total(figure), (self.arguments, figure)
        if file["bklt"]:
            self.check_dhat_times(file)
        else:
            assert all(set(point) == {"tb", "tbk", "fs"} for point in file["pps"]) and not {"tg", "tuth"} & set(file)

    def check_dhat_times(self, file):
        """What is live at the end; at the peak, as --peak says; lifetimes within the session."""
        assert not any(word.startswith(("--at", "--since", "--peak", "--older")) for word in self.arguments)
        assert file["tuth"] > 0 and 0 <= file["tg"] <= file["te"], (file["tg"], file["te"])
        peak = json.loads(run(self.program, "--json", "--peak", *self.arguments).stdout)["total"]
        for figure, end, at_peak, most in (("live_bytes", "eb", "gb", "mb"), ("live_count", "ebk", "gbk", "mbk")):
            assert sum(point[end] for point in file["pps"]) == self.total(figure), (self.arguments, figure)
            assert sum(point[at_peak] for point in file["pps"]) == whole(peak[figure]["estimate"]), (self.arguments, figure, peak)
            assert all(point[most] in (point[end], point[at_peak]) for point in file["pps"]), self.arguments
        for point in file["pps"]:
            blocks = max(point[field] for field in ("tbk", "gbk", "ebk"))
            assert point["mb"] == max(point["gb"], point["eb"]) and 0 <= point["tl"] <= (blocks + 1) * (file["te"] + 1), point

    def check_html(self):
        """The sums of the tree are the totals, and those of each stack, by its functions, are those of the JSON."""
        page = Page(self.paths["html"])
        for figure in HTML_FIGURES:
            room = len(page.entries) + 1e-6 * self.report["total"][figure]["estimate"]
            assert abs(page.total(figure) - self.total(figure)) <= room, (self.arguments, figure, page.total(figure), self.total(figure))
            assert not self.compares() or abs(page.total(figure, True) - self.total(figure, True)) <= 2 * room, (self.arguments, figure)
        assert page.head["timeline"] or self.compares() or len(self.report.get("dumps", [])) > 1 or not self.report["target"]["duration_seconds"]
        assert sum(stacks for _, stacks, _, _ in page.entries) == page.head["stacks"]
        stacks = None if self.compares() or any(word.startswith(("--top", "--depth")) for word in self.arguments) else self.report["stacks"]
        ours, theirs = collections.Counter(), collections.Counter()
        for stack in stacks or []:
            ours[tuple(name.encode()[:500] for name in self.names(stack))] += stack["live_bytes"]["estimate"]
        for path, _, now, _ in page.entries if stacks is not None else []:
            theirs[tuple(name.encode()[:500] for name in reversed(path) if name != "(outer frames not known)")] += now[0]
        assert set(ours) == set(theirs) and all(abs(ours[path] - theirs[path]) <= 1 + 1e-6 * ours[path] for path in ours), self.arguments

    @staticmethod
    def dhat_name(text):
        """0x12: function (file:1), 0x12: ??? (in /path), 0x12: ??? or what stands for frames"""
        match = re.fullmatch(r"0x([0-9A-F]+): (.*?)(?: \((in )?([^()]*)\))?", text)
        if not match or match[2] != "???":
            return match[2] if match else text
        return (match[4].rsplit("/", 1)[-1] + "+" if match[4] else "") + f"0x{match[1].lower()}"


class Checks:
    def __init__(self, program, large_dump, compiler, directory, seeds, sanitized):
        self.program, self.large_dump, self.compiler, self.directory = program, large_dump, compiler, directory
        self.seeds, self.sanitized = seeds, sanitized

    def left(self):
        return sorted(path.name for path in self.directory.iterdir())

    def clear(self):
        for path in self.directory.iterdir():
            path.unlink()

    def check_views(self):
        times = 0
        for seed in self.seeds:
            for view in VIEWS:
                compares = any(word.startswith("--since") for word in view)
                formats = {name for name in FILES if not (name == "dhat" and compares)}
                outputs = Outputs(self.program, self.directory, [*view, seed], formats)
                outputs.check()
                times += "dhat" in formats and json.loads(outputs.paths["dhat"].read_text(encoding="utf-8"))["bklt"]
        assert times, "no dump knows lifetimes"
        for old in self.seeds:
            for new in self.seeds:
                if old != new:
                    Outputs(self.program, self.directory, ["--diff", old, new], set(FILES) - {"dhat"}).check()
        Outputs(self.program, self.directory, self.seeds).check()

    def check_resource(self):
        """What users say of a process wins; a part of the variable that is no attribute, or has no name that can be shown, is passed over."""
        if not shutil.which("protoc"):
            return
        said = {"OTEL_SERVICE_NAME": "shop", "OTEL_RESOURCE_ATTRIBUTES": "service.version=1%2C2, a\x1b=b,bad,=c,service.name=other,empty="}
        path = self.directory / "resource.otlp"
        run(self.program, f"--output={path}", self.seeds[0], env={**os.environ, **said})
        resource = OtlpProfile(path).resource
        assert (resource["service.name"], resource["service.version"]) == ("shop", "1,2"), resource
        assert not {"", "a", "a\ufffd", "bad", "empty"} & set(resource), resource

    def check_dropped_frames(self):
        """pprof leaves allocators out: their names are an expression that its readers take."""
        for arguments, dropped in (["--alloc-fn=[jit]"], r"\[jit\]"), (["--alloc-fn=[jit]", "--full-stacks"], ""), ([], ""):
            outputs = Outputs(self.program, self.directory, [*arguments, self.seeds[0]], {"pprof", "json"})
            profile = Profile(outputs.paths["pprof"])
            assert profile.text(profile.message["drop_frames"]) == dropped, (arguments, dropped)

    def check_growth_of_nothing(self):
        seed = self.seeds[1]
        copy = self.directory / "copy"
        shutil.copy(seed, copy)
        outputs = Outputs(self.program, self.directory, ["--diff", seed, copy], ["json", "pprof"])
        assert not any(outputs.total(figure, True) for figure in FIGURES.values()), "a dump and its copy differ"
        samples = Profile(outputs.paths["pprof"]).message["sample"]
        assert not any(any(sample["value"][2:]) for sample in samples), samples

    def check_same_bytes(self):
        first = {}
        for turn in range(2):
            outputs = Outputs(self.program, self.directory, [self.seeds[1]])
            for name, path in outputs.paths.items():
                assert first.setdefault(name, path.read_bytes()) == path.read_bytes(), (turn, name)

    def check_depth(self):
        formats = [name for name in FILES if name != "dhat"]
        outputs = Outputs(self.program, self.directory, ["--depth=1", self.seeds[1]], formats)
        outputs.check_collapsed()
        assert "(outer frames left out);" in outputs.paths["collapsed"].read_text()

    def check_refusals(self):
        stacks = {"pprof", "otlp", "collapsed", "speedscope", "dhat"}
        refused = {"--by=function": stacks | {"html"}, "--by=thread": stacks | {"html"}, "--leaks": stacks, "--plan=5": stacks | {"html"},
                   "--timeline": stacks, "--timeline=5": stacks, "--since=1s": {"dhat"}, "--depth=2": {"dhat"}}
        self.clear()
        for option, formats in refused.items():
            for name, file in FILES.items():
                path = self.directory / file
                result = run(self.program, f"--output={path}", option, self.seeds[1], status=(64,) if name in formats else (0,))
                assert path.exists() == (name not in formats), (option, name)
                if name in formats:
                    message = result.stderr.decode()
                    assert f"the format {name} cannot show {option.split('=')[0]}" in message, message
                self.clear()

    def check_names_of_files(self):
        self.clear()
        for name, text in (("a.PB.GZ", b"\x1f\x8b"), ("a.collapsed", b""), ("a.collapsedstack.txt", b""), ("dhat.out.17", b'{\n  "dhatFile'),
                           ("a.text", b""), ("a.speedscope.json", b'{\n  "$schema"'), ("a.json", b'{\n  "format"'), ("a.htm", b"<!doctype html>")):
            run(self.program, "-o", self.directory / name, self.seeds[1])
            assert (self.directory / name).read_bytes().startswith(text), name
        self.clear()
        for name in ("a", "a.dump", ".json", "x.gz"):
            message = run(self.program, "-o", self.directory / name, self.seeds[1], status=(64,)).stderr.decode()
            assert "does not tell the format" in message and "speedscope" in message, message
        run(self.program, "-o", self.directory / "a", "--format=json", self.seeds[1])
        assert self.left() == ["a"] and json.loads((self.directory / "a").read_text())
        message = run(self.program, "--format=xml", self.seeds[1], status=(64,)).stderr.decode()
        assert "'xml' is none of" in message, message
        out = run(self.program, "-o", "-", "--format=collapsed", self.seeds[1]).stdout
        assert re.search(rb" \d+\n$", out), out
        both = run(self.program, "-o", "-", "-o", self.directory / "a.json", self.seeds[1]).stdout
        assert b"still live" in both and (self.directory / "a.json").exists()
        assert "named twice" in run(self.program, "-o", "-", "-o", "-", self.seeds[1], status=(64,)).stderr.decode()

    def check_what_is_there(self):
        """A link stays, the mode of the file that is replaced too; a device is written to; a dump is not replaced."""
        self.clear()
        target, link = self.directory / "target", self.directory / "link.json"
        target.write_text("old")
        target.chmod(0o640)
        link.symlink_to("target")
        run(self.program, "-o", link, self.seeds[1])
        assert link.is_symlink() and target.stat().st_mode & 0o777 == 0o640 and json.loads(target.read_text())
        run(self.program, "-o", "/dev/null", "--format=json", self.seeds[1])
        assert pathlib.Path("/dev/null").is_char_device()
        copy = self.directory / "copy"
        shutil.copy(self.seeds[1], copy)
        message = run(self.program, "-o", copy, "--format=json", copy, status=(2,)).stderr.decode()
        assert "the dump that is to be read" in message and copy.read_bytes() == pathlib.Path(self.seeds[1]).read_bytes()

    def failing(self, path, words, **options):
        old = path.read_bytes() if path.is_file() else None
        before = self.left()
        result = run(self.program, "-o", path, self.seeds[1], status=(2,), **options)
        assert words in result.stderr.decode() and not result.stdout, (path, result)
        assert self.left() == before and (path.read_bytes() if path.is_file() else None) == old, path

    def check_failures(self):
        """What was there stays, and nothing is beside it."""
        def small():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
            resource.setrlimit(resource.RLIMIT_FSIZE, (256, 256))
        self.clear()
        self.failing(self.directory / "none" / "a.json", "No such file")
        self.failing(pathlib.Path("/proc/a.json"), "cannot write /proc/a.json")
        (self.directory / "d.json").symlink_to("/")
        self.failing(self.directory / "d.json", "Is a directory")
        for name in ("a.json", "b.txt", "c.speedscope.json", "dhat.out"):
            self.failing(self.directory / name, "File too large", preexec_fn=small)
            (self.directory / name).write_text("old")
            self.failing(self.directory / name, "File too large", preexec_fn=small)
        if os.access("/dev/full", os.W_OK):
            message = run(self.program, "-o", "/dev/full", "--format=pprof", self.seeds[1], status=(2,)).stderr.decode()
            assert "No space left" in message, message
        if os.geteuid() == 0:
            self.directory.chmod(0o555)
            self.failing(self.directory / "a.pb.gz", "Permission denied", preexec_fn=lambda: os.setuid(65534))
            self.directory.chmod(0o755)
        missing = self.directory / "no.dump"
        before = self.left()
        run(self.program, "-o", self.directory / "new.json", missing, status=(2,))
        assert self.left() == before

    def check_killed(self):
        """It waits for somebody to read the FIFO, with the other output opened."""
        self.clear()
        try:
            os.close(os.open(self.directory, os.O_TMPFILE | os.O_WRONLY))
        except OSError:
            print("  skipped: this file system knows no files without a name")
            return
        os.mkfifo(self.directory / "fifo")
        process = subprocess.Popen([self.program, "--format=json", "-o", self.directory / "a", "-o", self.directory / "fifo", self.seeds[1]])
        fd = os.open(self.directory / "fifo", os.O_RDONLY)  # now both are open
        process.kill()
        process.wait(PATIENCE)
        os.close(fd)
        assert self.left() == ["fifo"], self.left()

    def library(self):
        """Functions whose names are traps for each of the readers: no assembler takes them, so they are written over others."""
        names = [b"</script><script>alert(1)</script>", b"a;b;c", b"\x1b]0;x\x07\x1b[31m", b"name 17", b"name 17 18", b"tab\there", b"no \xff\xfe UTF-8",
                 "\u202eturned".encode(), b"new\nline", b"${x}{{7*7}}", b"'\"\\'", b"#comment", b"a" * 3000, b"-17", b"_[i]", b"%s%n", b"__proto__",
                 b"\xc2\x9b31m", b"(stack not known)"]
        stand_ins = [b"Q%02d" % i + b"q" * (len(name) - 3) for i, name in enumerate(names)]
        source = self.directory / "names.s"
        source.write_text(".text\n" + "".join(f".globl {name}\n.type {name},@function\n{name}:\n.fill 16,1,0x90\n.size {name}, 16\n"
                                              for name in (stand_in.decode() for stand_in in stand_ins)))
        path = self.directory / "lib<b>;\x1b[1m x\udcff.so"
        subprocess.run([self.compiler, "-shared", "-nostdlib", "-Wl,--build-id", "-o", path, source], check=True)
        source.unlink()
        notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
        build_id = bytes.fromhex(next(line.split()[-1] for line in notes.splitlines() if "Build ID" in line))
        symbols = subprocess.run(["readelf", "-W", "--dyn-syms", path], check=True, capture_output=True, text=True).stdout
        offsets = sorted(int(line.split()[1], 16) for line in symbols.splitlines() if " FUNC " in line)
        assert len(offsets) == len(names), (offsets, symbols)
        data = path.read_bytes()
        for stand_in, name in zip(stand_ins, names):
            assert len(stand_in) == len(name) and stand_in + b"\0" in data
            data = data.replace(stand_in + b"\0", name + b"\0")
        path.write_bytes(data)
        return path, build_id, offsets, [name.decode("utf-8", "replace") for name in names]

    def check_hostile_names(self):
        self.clear()
        path, build_id, offsets, names = self.library()
        headers = subprocess.run(["readelf", "-lW", path], check=True, capture_output=True, text=True).stdout
        at, address, size = (int(word, 16) for word in re.search(r"LOAD +(\w+) (\w+) \w+ \w+ (\w+) R E", headers).groups())
        segment = (address & -4096, (address + size + 4095) & -4096, at & -4096)
        for k, offset in enumerate(offsets):  # each of them innermost once
            order = [offset + 2] + [other + 2 for other in offsets if other != offset]
            hostile = dump.write_frames(self.directory / "hostile.dump", [(os.fsencode(path), build_id)], order, command=b"\x1b[31m</a>",
                                        program=b"/\xff\x1b</script>")
            outputs = Outputs(self.program, self.directory, [hostile])
            outputs.check()
            found = {name for frames, _ in Profile(outputs.paths["pprof"]).stacks() for name in frames}
            mapping = Profile(outputs.paths["pprof"]).message["mapping"][0]
            assert (mapping["memory_start"], mapping["memory_limit"], mapping["file_offset"]) == segment, (mapping, segment)
            plain = {name for name in names if name.isprintable()}
            assert plain <= found, plain - found
            for file in outputs.paths.values():
                if file.suffix not in (".gz", ".otlp"):  # whose texts have been checked
                    assert not re.search(rb"[\x1b\x07\r\x7f]|\xe2\x80\xae", file.read_bytes()), (k, file)
        line = outputs.paths["collapsed"].read_text(encoding="utf-8").splitlines()[0]
        assert len(line.split(";")) == len(names), line

    def check_inlined(self):
        """Each level of inlined calls is a frame, with its own file and line; sources have whole paths."""
        self.clear()
        (self.directory / "outer.c").write_text("""static inline __attribute__((always_inline)) int inner(int x)
{
	__asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
	return x * 3;
}
int outer(int x)
{
	return inner(x) + 1;
}
""")
        path, below = self.directory / "outer.so", self.directory / "below"
        below.mkdir()
        subprocess.run([self.compiler, "-shared", "-fPIC", "-O2", "-g", "-fcf-protection=none", "-nostdlib", "-Wl,--build-id", "-o", path,
                        "../outer.c"], check=True, cwd=below)
        below.rmdir()
        notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
        build_id = bytes.fromhex(next(line.split()[-1] for line in notes.splitlines() if "Build ID" in line))
        symbols = subprocess.run(["readelf", "-W", "--dyn-syms", path], check=True, capture_output=True, text=True).stdout
        offset = next(int(line.split()[1], 16) for line in symbols.splitlines() if " FUNC " in line)
        made = dump.write_frames(self.directory / "inlined.dump", [(os.fsencode(path), build_id)], [offset + 4])
        outputs = Outputs(self.program, self.directory, [made])
        outputs.check()
        profile = Profile(outputs.paths["pprof"])
        assert [names for names, _ in profile.stacks()] == [["inner", "outer"]] and profile.message["mapping"][0]["has_inline_frames"]
        lines = [line["line"] for line in profile.message["location"][0]["line"]]
        files = {profile.text(function["filename"]) for function in profile.message["function"]}
        assert lines == [3, 8] and files == {str(self.directory.resolve() / "outer.c")}, (lines, files)
        assert re.fullmatch(r"outer;inner_\[i\] \d+\n", outputs.paths["collapsed"].read_text())
        table = json.loads(outputs.paths["dhat"].read_text())["ftbl"][1:]
        assert [text.split(": ")[1] for text in table] == [f"inner ({next(iter(files))}:3)", f"outer ({next(iter(files))}:8)"], table

    def check_fifty_thousand_stacks(self):
        """Each in bounded memory; what it says is looked at in fewer."""
        self.clear()
        large = self.directory / "large.dump"
        subprocess.run([self.large_dump, large, "20000", "20000", "5000"], check=True, stdout=subprocess.DEVNULL)
        Outputs(self.program, self.directory, [large]).check()
        if self.sanitized:
            return
        subprocess.run([self.large_dump, large, "100000", "100000", "50000"], check=True, stdout=subprocess.DEVNULL)
        for name, file in FILES.items():
            process = subprocess.Popen([self.program, "-o", self.directory / file, large])
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert not status, (name, status)
            assert usage.ru_maxrss * 1024 < MEMORY_BYTES, (name, usage.ru_maxrss)
            size = (self.directory / file).stat().st_size
            print(f"  {name}: {size / 1e6:.1f} MB, {usage.ru_maxrss / 1024:.0f} MiB resident")
            assert name != "pprof" or size < 4 << 20, size

    def check_go(self):
        """-top of Go's pprof says what the JSON says, and nothing on stderr; -diff_base with itself is empty."""
        if not shutil.which("go"):
            print("  skipped: go is not installed")
            return
        self.clear()
        large = self.directory / "large.dump"
        subprocess.run([self.large_dump, large, "3000", "3000", "200"], check=True, stdout=subprocess.DEVNULL)
        outputs = Outputs(self.program, self.directory, [large])
        pprof = outputs.paths["pprof"]

        def go(*arguments):
            result = subprocess.run(["go", "tool", "pprof", *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False,
                                    env={**os.environ, "HOME": str(self.directory), "PPROF_TMPDIR": str(self.directory)})
            assert result.returncode == 0 and not result.stderr, (arguments, result)
            return result.stdout
        ours = collections.Counter()
        for stack in outputs.report["stacks"]:
            ours[outputs.names(stack)[0]] += stack["live_bytes"]["estimate"]
        top = go("-top", "-unit=B", "-nodecount=100000", "-nodefraction=0", pprof)
        flat = collections.Counter()
        for match in re.finditer(r"^ *(\d+)B? +[\d.]+% +[\d.]+% +\d+B? +[\d.]+% +(.*)$", top, re.MULTILINE):
            flat[match[2].removesuffix(" (inline)")] += int(match[1])
        assert sum(flat.values()) == outputs.total("live_bytes"), (sum(flat.values()), top[:3000])
        assert all(abs(flat[name] - value) <= 200 for name, value in ours.items()), (flat, ours)
        empty = go("-top", "-diff_base", pprof, pprof)
        assert re.search(r"nodes accounting for 0,", empty), empty
        assert "sqrt(n)" in top, top[:1000]
        thread, = Profile(pprof).threads("inuse_space")
        tagged = go("-top", "-unit=B", f"-tagfocus=thread={thread}", pprof)
        assert re.search(rf"nodes accounting for .* of {outputs.total('live_bytes')}B total", tagged), tagged

    def check_all(self):
        for name in sorted(name for name in dir(self) if name.startswith("check_") and name != "check_all"):
            print(name, flush=True)
            getattr(self, name)()


def main():
    sanitized = "--sanitized" in sys.argv
    program, large_dump, compiler, *seeds = (word for word in sys.argv[1:] if not word.startswith("--"))
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        Checks(os.path.abspath(program), large_dump, compiler, pathlib.Path(directory), seeds, sanitized).check_all()


if __name__ == "__main__":
    main()
