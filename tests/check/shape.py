# SPDX-License-Identifier: MIT
"""The checks of how functions are shaped: not too many parameters, and one way to pass an error on."""
import re

from names import code_of

PARTS = ("payload", "injector", "analyzer", "common", "include")
PARAMETERS = 7
# Shapes that others decide: a callback of libdwfl.
GIVEN = {"find_debug_file"}
FUNCTION = re.compile(r"^[a-z][\w *]*?\b(\w+)\(((?:[^(){};]|\([^()]*\))*)\)[^;{}()]*(?:__attribute__\(\(.*?\)\)[^;{}()]*)?[;{]", re.M)


def parameter_count(parameters):
    """How many there are: commas outside of parentheses."""
    flat = re.sub(r"\([^()]*\)", "", parameters)
    return flat.count(",") + 1


def check_parameters(tree):
    """No function has more than 7 parameters: what belongs together is a struct."""
    for part in PARTS:
        for path in tree.part_files(part, (".c", ".h")):
            for found in FUNCTION.finditer(code_of(path.read_text(encoding="utf-8"))):
                count = parameter_count(found[2])
                if count > PARAMETERS and found[1] not in GIVEN:
                    yield f"{tree.name(path)}: {found[1]}() has {count} parameters"


# A step of its own line after one that did not fail; where it has an else, or takes several lines, it may be.
CHAIN = re.compile(r"^[ \t]*if \((?:!(rc|r|s)|(rc|r|s) == 0)\)\n[ \t]*(rc|r|s) = \w+\([^\n]*\);\n(?![ \t]*else)", re.M)
IGNORED = re.compile(r"\bstruct err (?:ignored|unused|dummy)\b")
ERROR = re.compile(r"^struct err \*\w*$")


def error_places(code):
    """name -> number of the parameter that is a struct err *, of the functions of this text."""
    return {found[1]: number for found in FUNCTION.finditer(code) for number, parameter in enumerate(found[2].split(","))
            if ERROR.search(" ".join(parameter.split()))}


def arguments_of(code, at):
    """What stands between the parenthesis at this place and its end, cut at its commas."""
    depth, begin, found = 0, at + 1, []
    for place in range(at, len(code)):
        depth += (code[place] in "([{") - (code[place] in ")]}")
        if depth == 0 or (depth == 1 and code[place] == ","):
            found.append(code[begin:place].strip())
            begin = place + 1
        if depth == 0:
            return found
    return found


def check_errors(tree):
    """An error is passed on in one way: the next step by rc = rc ?: step(), and ERR_IGNORED where nobody wants its text."""
    files = {path: code_of(path.read_text(encoding="utf-8")) for part in PARTS for path in tree.part_files(part, (".c", ".h"))}
    declared = {}
    for path, code in files.items():
        if path.suffix == ".h":
            declared.update(error_places(code))
    for path, code in files.items():
        places = {**declared, **error_places(code)}
        for found in CHAIN.finditer(code):
            if found[3] in (found[1], found[2]):
                yield f"{tree.name(path)}: {' '.join(found[0].split())}: {found[3]} = {found[3]} ?: …"
        if IGNORED.search(code):
            yield f"{tree.name(path)}: a struct err that nobody reads is ERR_IGNORED"
        for call in re.finditer(r"\b([a-z]\w*)\(", code):
            if call[1] in places:
                arguments = arguments_of(code, call.end() - 1)
                if len(arguments) > places[call[1]] and arguments[places[call[1]]] == "NULL":
                    yield f"{tree.name(path)}: {call[1]}() is given NULL for its error"
