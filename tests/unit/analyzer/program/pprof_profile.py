# SPDX-License-Identifier: MIT
"""Decodes profile.proto, and asserts what its readers want of it beyond the schema (report_pprof.h)."""
import collections
import gzip
import re

TYPES = [("alloc_samples", "count"), ("inuse_samples", "count"), ("alloc_objects", "count"), ("alloc_space", "bytes"),
         ("inuse_objects", "count"), ("inuse_space", "bytes")]
# Fields of the messages: name, and r: repeated, s: message, t: text, p: packed.
PROFILE = {1: "sample_type rs", 2: "sample rs", 3: "mapping rs", 4: "location rs", 5: "function rs", 6: "string_table rt", 7: "drop_frames", 9: "time_nanos",
           10: "duration_nanos", 11: "period_type s", 12: "period", 13: "comment r", 14: "default_sample_type"}
VALUE_TYPE = {1: "type", 2: "unit"}
SAMPLE = {1: "location_id p", 2: "value p", 3: "label rs"}
LABEL = {1: "key", 2: "str", 3: "num", 4: "num_unit"}
MAPPING = {1: "id", 2: "memory_start", 3: "memory_limit", 4: "file_offset", 5: "filename", 6: "build_id", 7: "has_functions", 8: "has_filenames",
           9: "has_line_numbers", 10: "has_inline_frames"}
LOCATION = {1: "id", 2: "mapping_id", 3: "address", 4: "line rs"}
LINE = {1: "function_id", 2: "line"}
FUNCTION = {1: "id", 2: "name", 3: "system_name", 4: "filename", 5: "start_line"}
BELOW = {"sample_type": VALUE_TYPE, "sample": SAMPLE, "mapping": MAPPING, "location": LOCATION, "function": FUNCTION, "period_type": VALUE_TYPE,
         "label": LABEL, "line": LINE}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            assert value < 1 << 64 and (byte or shift == 7), "a number has its shortest form"
            return value, at


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(signed(value))
    return values


def decode(data, fields):
    """A message as a dict; what is not there is 0, "" or []."""
    message = {}
    for entry in fields.values():
        name, _, kind = entry.partition(" ")
        message[name] = [] if "r" in kind or "p" in kind else {} if "s" in kind else 0
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        assert key >> 3 in fields, f"field {key >> 3}"
        name, _, kind = fields[key >> 3].partition(" ")
        assert key & 7 == (2 if set(kind) & set("spt") else 0), f"{name} has wire type {key & 7}"
        value, at = varint(data, at)
        if key & 7 == 2:
            assert at + value <= len(data), f"{name} is cut off"
            part, at = data[at:at + value], at + value
            value = decode(part, BELOW[name]) if "s" in kind else part.decode("utf-8") if "t" in kind else packed(part)
        if "r" in kind:
            message[name].append(value)
        else:
            assert not message[name], f"{name} comes twice"
            message[name] = value
    return message


class Profile:
    def __init__(self, path):
        with open(path, "rb") as f:
            data = f.read()
        assert data[:2] == b"\x1f\x8b" and data[4:8] == bytes(4) and not data[3], "gzip without a time and a name"
        self.plain = gzip.decompress(data)
        self.message = decode(self.plain, PROFILE)
        self.strings = self.message["string_table"]
        self.check_strings()
        self.check_tables()
        self.check_samples()
        self.check_head()

    def text(self, number):
        assert 0 <= number < len(self.strings), number
        return self.strings[number]

    def check_strings(self):
        assert self.strings[0] == "" and len(set(self.strings)) == len(self.strings)
        assert all(text.isprintable() for text in self.strings), [text for text in self.strings if not text.isprintable()]

    def check_tables(self):
        m = self.message
        for name in ("mapping", "location", "function"):
            assert [entry["id"] for entry in m[name]] == list(range(1, len(m[name]) + 1)), f"ids of {name}"
        assert m["mapping"], "Parca and Pyroscope want one"
        for mapping in m["mapping"]:
            assert 0 <= mapping["memory_start"] < mapping["memory_limit"] <= 1 << 48 and self.text(mapping["filename"]), mapping
            assert re.fullmatch(r"([0-9a-f]{2})*", self.text(mapping["build_id"])), mapping
        keys = [(function["name"], function["filename"]) for function in m["function"]]
        assert len(set(keys)) == len(keys), "a function comes twice"
        assert all(self.text(function["name"]) and self.text(function["system_name"]) for function in m["function"])
        used = {line["function_id"] for location in m["location"] for line in location["line"]}
        assert used == {function["id"] for function in m["function"]}, "functions that no line has"
        for location in m["location"]:
            self.check_location(location)
        self.check_flags()

    def check_location(self, location):
        assert 1 <= location["mapping_id"] <= len(self.message["mapping"]) and location["line"], location
        mapping = self.message["mapping"][location["mapping_id"] - 1]
        gap = self.names_of(location)[0].startswith("(")
        assert gap or mapping["memory_start"] <= location["address"] < mapping["memory_limit"], (location, mapping)

    def names_of(self, location):
        """Innermost first, as the lines are."""
        return [self.text(self.message["function"][line["function_id"] - 1]["name"]) for line in location["line"]]

    def check_flags(self):
        """has_* is true only where there is such a thing."""
        for mapping in self.message["mapping"]:
            mine = [location for location in self.message["location"] if location["mapping_id"] == mapping["id"]]
            lines = [line for location in mine for line in location["line"]]
            files = [line for line in lines if self.message["function"][line["function_id"] - 1]["filename"]]
            assert bool(mapping["has_filenames"]) == bool(files), mapping
            assert bool(mapping["has_line_numbers"]) == any(line["line"] for line in files), mapping
            assert bool(mapping["has_inline_frames"]) == any(len(location["line"]) > 1 for location in mine), mapping
            named = [name for location in mine for name in self.names_of(location)
                     if not re.search(r"\+?0x[0-9a-f]+$", name) and not name.startswith("(")]
            assert bool(mapping["has_functions"]) or not named, (mapping, named)

    def check_samples(self):
        m, seen, used = self.message, set(), set()
        assert [(self.text(t["type"]), self.text(t["unit"])) for t in m["sample_type"]] == TYPES
        assert self.text(m["default_sample_type"]) == TYPES[-1][0]
        for sample in m["sample"]:
            assert len(sample["value"]) == len(TYPES) and any(sample["value"]), sample
            assert sample["location_id"] and all(1 <= i <= len(m["location"]) for i in sample["location_id"]), sample
            used.update(sample["location_id"])
            for label in sample["label"]:
                if self.text(label["key"]) == "thread":
                    assert self.text(label["str"]) and not label["num"] and not label["num_unit"], label
                else:
                    assert self.text(label["key"]) == self.text(label["num_unit"]) == "bytes" and label["num"] >= 0 and not label["str"], label
            assert len({label["key"] for label in sample["label"]}) == len(sample["label"]), sample
            seen.add((tuple(sample["location_id"]), self.thread(sample)))
        assert len(seen) == len(m["sample"]), "a stack comes twice"
        self.used = used

    def thread(self, sample):
        """None: it is of several, or not known."""
        return next((self.text(label["str"]) for label in sample["label"] if self.text(label["key"]) == "thread"), None)

    def threads(self, value):
        sums = collections.Counter()
        for sample in self.message["sample"]:
            sums[self.thread(sample)] += sample["value"][[name for name, _ in TYPES].index(value)]
        return {thread: value for thread, value in sums.items() if value}

    def check_head(self):
        m = self.message
        assert (self.text(m["period_type"]["type"]), self.text(m["period_type"]["unit"])) == ("space", "bytes")
        assert m["period"] >= 1 and m["duration_nanos"] == 0 and m["time_nanos"] >= 0
        assert len(m["comment"]) >= 2 and all(self.text(number) for number in m["comment"])

    def comments(self):
        return [self.text(number) for number in self.message["comment"]]

    def totals(self):
        return {name: sum(sample["value"][i] for sample in self.message["sample"]) for i, (name, _) in enumerate(TYPES)}

    def stacks(self):
        """(names from the innermost outward, values by type) of each sample"""
        names = {location["id"]: self.names_of(location) for location in self.message["location"]}
        for sample in self.message["sample"]:
            yield ([name for number in sample["location_id"] for name in names[number]],
                   dict(zip((name for name, _ in TYPES), sample["value"])))
