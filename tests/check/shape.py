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
