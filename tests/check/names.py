# SPDX-License-Identifier: MIT
"""The check that the name of a function tells in which header it is declared."""
import re

# The two symbols of the payload that memattach asks a loader for: an interface, which old payloads have as well.
EXCEPTIONS = {"include/control.h": {"memattach_control"}}
IRREGULAR = {"halves": "half"}


def code_of(text):
    """Without comments, strings, and lines of the preprocessor."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", "", text, flags=re.M)


def outside_of_braces(code):
    """Declarations, and what is in front of the bodies of functions and of types."""
    depth, words = 0, ""
    for character in code:
        if character in "{;" and depth == 0:
            yield " ".join(words.split())
            words = ""
        elif depth == 0 and character != "}":
            words += character
        depth += (character == "{") - (character == "}")


def functions_of(code):
    """Names of functions that a header declares or defines."""
    attribute = re.compile(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")
    for declaration in outside_of_braces(code):
        name = re.match(r"[\w *]*?\b([a-z]\w*)\s*\((?!\*)", attribute.sub("", declaration).strip())
        if name and not declaration.startswith("typedef"):
            yield name[1]


def singular(word):
    if word in IRREGULAR:
        return IRREGULAR[word]
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("shes", "sh"), ("ches", "ch"), ("xes", "x"), ("ss", "ss"), ("s", "")):
        if word.endswith(ending):
            return word[:-len(ending)] + instead
    return word


def words_of(name):
    """Its words in the singular, which "rows_find" and "row_find" have in common."""
    return [singular(word) for word in name.strip("_").split("_")]


def begins(name, prefix):
    return words_of(name)[:len(words_of(prefix))] == words_of(prefix)


def prefixes(path, code, part):
    """What a name in this header may begin with: its stem, its folder below the part, a type that it defines."""
    yield re.sub(r"_(?:internal|part)$", "", path.stem)
    if path.parent.name != part:
        yield path.parent.name
    if path.parent.parent.name == "arch":
        yield "arch"
    yield from re.findall(r"^(?:typedef )?(?:struct|enum|union)\s+(\w+)\s*\{", code, re.M)


def check_names(tree):
    """A function of FOLDER/stem.h begins with "stem", with "folder", or with the name of a type of that header."""
    for part in ("include", "common", "payload", "injector", "analyzer"):
        for path in tree.part_files(part, (".h",)):
            code = code_of(path.read_text(encoding="utf-8"))
            known = [*prefixes(path, code, part)]
            for name in functions_of(code):
                if not any(begins(name, prefix) for prefix in known) and name not in EXCEPTIONS.get(tree.name(path), ()):
                    yield f"{tree.name(path)}: {name}() begins neither with the file's name, nor its folder's, nor that of a type in it"
