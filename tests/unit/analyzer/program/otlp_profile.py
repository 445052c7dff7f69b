# SPDX-License-Identifier: MIT
"""Profiles of OpenTelemetry as protoc decodes them, and what their schema asks for beyond its fields (report_otlp.h)."""
import ast
import collections
import pathlib
import re
import subprocess

TYPES = ["inuse_space", "inuse_objects", "alloc_space", "alloc_objects", "inuse_samples", "alloc_samples"]
TABLES = ("mapping", "location", "function", "link", "string", "attribute", "stack")
SCHEMA = pathlib.Path(__file__).with_name("otlp.proto")


def parse(lines):
    """protoc's text of a message: each field a list of what came."""
    message = collections.defaultdict(list)
    for line in lines:
        line = line.strip()
        if line == "}":
            break
        if line.endswith(" {"):
            message[line[:-2]].append(parse(lines))
        else:
            name, _, value = line.partition(": ")
            message[name].append(ast.literal_eval("b" + value).decode("utf-8") if value.startswith('"') else int(value))
    return message


class OtlpProfile:
    def __init__(self, path):
        data = pathlib.Path(path).read_bytes()
        result = subprocess.run(["protoc", f"--proto_path={SCHEMA.parent}", "--decode=ProfilesData", SCHEMA.name], input=data, capture_output=True,
                                check=True)
        text = result.stdout.decode("utf-8")
        assert not re.search(r"(?m)^ *\d+[:{ ]", text), "a field that the schema has not"
        self.message = parse(iter(text.splitlines()))
        dictionary, = self.message["dictionary"]
        self.tables = {name: dictionary[f"{name}_table"] for name in TABLES}
        resource, = self.message["resource_profiles"]
        scope, = resource["scope_profiles"]
        self.profiles = scope["profiles"]
        pairs = [(a["key"][0], (a["value"][0]["string_value"] or a["value"][0]["int_value"])[0]) for a in resource["resource"][0]["attributes"]]
        self.resource = dict(pairs)
        assert len(self.resource) == len(pairs), "a key comes twice"
        self.check()

    def text(self, numbers):
        return self.tables["string"][numbers[0] if numbers else 0]

    def attributes(self, message):
        found = [self.tables["attribute"][number] for number in message["attribute_indices"]]
        assert all(number > 0 for number in message["attribute_indices"])
        return {self.text(a["key_strindex"]): a["value"][0]["string_value"][0] for a in found}

    def check(self):
        for name, table in self.tables.items():
            zero = "" if name == "string" else {"trace_id": ["\0" * 16], "span_id": ["\0" * 8]} if name == "link" else {}
            assert table and table[0] == zero, (name, table[:1])
        assert all(text.isprintable() for text in self.tables["string"])
        for name in ("string", "function", "mapping", "attribute", "stack"):
            keys = [repr(entry) for entry in self.tables[name]]
            assert len(set(keys)) == len(keys), f"twice in the table of {name}"
        for mapping in self.tables["mapping"][1:]:
            assert self.text(mapping["filename_strindex"]) and mapping["memory_limit"][0] > (mapping["memory_start"] or [0])[0], mapping
            assert all(re.fullmatch(r"([0-9a-f]{2})+", value) for value in self.attributes(mapping).values()), mapping
        for location in self.tables["location"][1:]:
            assert all(self.names_of(location)) and location["lines"], location
            assert not location["mapping_index"] or 0 < location["mapping_index"][0] < len(self.tables["mapping"]), location
        assert [self.text(p["sample_type"][0]["type_strindex"]) for p in self.profiles] == TYPES
        for profile in self.profiles:
            assert self.text(profile["sample_type"][0]["unit_strindex"]) in ("bytes", "count") and profile["period"][0] >= 1
            assert "intervals of" in self.attributes(profile)["memattach.comments"], self.attributes(profile)
            seen = {(sample["stack_index"][0], *sample["attribute_indices"]) for sample in profile["samples"]}
            assert len(seen) == len(profile["samples"]), "a sample comes twice"
            assert all(len(sample["values"]) == 1 and sample["values"][0] for sample in profile["samples"])

    def names_of(self, location):
        return [self.text(self.tables["function"][line["function_index"][0]]["name_strindex"]) for line in location["lines"]]

    def samples(self, kind):
        """Of each sample the names from the innermost outward, the thread, and the value."""
        for sample in self.profiles[TYPES.index(kind)]["samples"]:
            stack = self.tables["stack"][sample["stack_index"][0]]["location_indices"]
            names = tuple(name for number in stack for name in self.names_of(self.tables["location"][number]))
            yield names, self.attributes(sample).get("thread.name"), sample["values"][0]
