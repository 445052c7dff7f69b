# SPDX-License-Identifier: MIT
"""The check that pages name files, functions and tests that there are."""
import fnmatch
import re
import sys

PAGES = ("README.md", "HACKING.md", "CONTRIBUTING.md", "docs/*.md")
SUFFIXES = r"(?:c|h|S|py|js|html|css|cmake|md|sh|dump|svg|png|1|5)"
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(rf"^[\w*.-]+(?:/[\w*.-]+)*/?$")
FILE = re.compile(rf"^[\w/*.-]+\.{SUFFIXES}$")
CALL = re.compile(r"^([a-z]\w+)\(\)$")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
# Names of files that are no files of the tree: of a target, of a user, of other projects.
OTHERS = re.compile(r"^(heap|report|dhat\.out|memfd|perf|libc|libm|ld|libfoo|libjvm|demo|leak|core|stub|OLD|NEW|FILE|NAME)\b|^/|^\$|^build/|\.(so|dump)\b|^man/.*\*")
FOLDERS = ("", "injector/", "payload/", "payload/arch/x86_64/", "analyzer/", "common/", "include/", "injector/arch/", "injector/arch/x86_64/",
           "tests/", "tests/targets/", "tests/integration/", "docs/", "analyzer/html/page/")
UNIT = re.compile(r"\bunit (test_\w+(?:(?:,| and) (?:unit )?test_\w+)*)")


def exists(name, files):
    """The file, or the folder, of the tree, as pages name it: whole, below a part, or by its name alone."""
    name = name.rstrip("/")
    paths = {folder + name for folder in FOLDERS}
    if paths & files:
        return True
    if any(fnmatch.fnmatch(path, pattern) or path.startswith(pattern + "/") for path in files for pattern in paths):
        return True
    return "/" not in name and any(fnmatch.fnmatch(path.rpartition("/")[2], name) for path in files)


def check_pages(tree):
    """README, HACKING and docs/ name only files, folders, functions and tests that there are."""
    files = {tree.name(path) for path in tree.files()}
    source = "\n".join(path.read_text(encoding="utf-8") for path in tree.files()
                       if path.suffix in (".c", ".h", ".S", ".py", ".js") and "corpus" not in path.parts)
    words = set(re.findall(r"\w+", source))
    listed = tree.run(sys.executable, tree.source / "tests" / "integration" / "run.py", "--list").stdout
    cases = [line.split()[0] for line in listed.splitlines()]
    for page in (path for pattern in PAGES for path in sorted(tree.source.glob(pattern))):
        text = page.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{tree.name(page)}:{number}"
            for link in LINK.findall(line):
                if "://" not in link and not (page.parent / link).exists():
                    yield f"{where}: there is no {link}"
            for code in CODE.findall(line):
                call = CALL.match(code)
                if call and call[1] not in words:
                    yield f"{where}: there is no {call[1]}()"
                elif (FILE.match(code) or (PATH.match(code) and "/" in code)) and not OTHERS.search(code) and not exists(code, files):
                    yield f"{where}: there is no {code}"
        if page.name == "harm.md":
            yield from missing_tests(tree.name(page), text, cases, files)


def missing_tests(page, text, cases, files):
    """Names of tests in the last column of its tables that no test has."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("| ") or line.count("|") != 4:
            continue
        column = line.split("|")[3]
        for unit in re.findall(r"\btest_\w+", column):
            if not any(f"/{unit}.c" in path for path in files):
                yield f"{page}:{number}: there is no unit {unit}"
        for case in CODE.findall(column):
            if re.fullmatch(r"[a-z][\w*]+", case) and not fnmatch.filter(cases, case):
                yield f"{page}:{number}: there is no case {case}"
