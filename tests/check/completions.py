#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the completions of the shells: completions.py --completions DIR --program NAME=PATH...

They name the options of --help, bash proposes by them what it should, zsh and fish (where they are installed) can parse
them, and the words that are proposed for a value are those that the program takes.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BAD_USAGE = 64
# A stand-in for readline: fills in what it would, with "=" as a word of its own, and prints the proposals.
ASK = """
set -u
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
function=$(complete -p "$1"); function=${function#complete -F }
"${function% *}"
((${#COMPREPLY[@]})) && printf '%s\\n' "${COMPREPLY[@]}"
exit 0
"""


def named_by_help(path):
    """Letters and names of all options: {"-r", "--rate"}."""
    text = subprocess.run([path, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout.partition("\nExamples:\n")[0]
    found = set()
    for letter, name in re.findall(r"^ +(?:(-\w), )?(--[\w-]+)", text, re.M):
        found |= {letter, name} - {""}
    return found


class Bash:
    def __init__(self, completions, directory):
        self.completions, self.directory = completions, directory

    def proposals(self, *words):
        result = subprocess.run(["bash", "--norc", "-c", ASK, "bash", self.completions / "bash" / words[0], *words],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, cwd=self.directory)
        assert result.returncode == 0 and not result.stderr, (words, result)
        return sorted(result.stdout.splitlines())


def named_by_bash(bash, program):
    return {word.rstrip("=") for start in ("--", "-") for word in bash.proposals(program, start)}


def named_by_zsh(completions, program):
    return set(re.findall(r"^ +'\*(--?[\w-]+?)[+=-]*\[", (completions / "zsh" / f"_{program}").read_text(), re.M))


def named_by_fish(completions, program):
    found = set()
    for letter, name in re.findall(r"^complete -c \w+(?: -s (\w))? -l ([\w-]+)",
                                   (completions / "fish" / f"{program}.fish").read_text(), re.M):
        found |= {f"-{letter}", f"--{name}"} - {"-"}
    return found


def check_names(completions, programs, bash):
    for program, path in programs.items():
        told = named_by_help(path)
        assert len(told) > 20, told
        for shell, named in (("bash", named_by_bash(bash, program)), ("zsh", named_by_zsh(completions, program)),
                             ("fish", named_by_fish(completions, program))):
            assert named == told, f"{program}: {shell} and --help differ by {sorted(named ^ told)}"


def check_bash(bash):
    """Whoever types it gets what can stand there, and nothing else."""
    for name in ("a heap.dump", "notes.txt", "other.dump", "folder/inner.dump"):
        path = pathlib.Path(bash.directory, name)
        path.parent.mkdir(exist_ok=True)
        path.touch()
    dumps, files = ["a heap.dump", "folder", "other.dump"], ["a heap.dump", "folder", "notes.txt", "other.dump"]
    sorts = ["allocated-bytes", "allocated-count"]
    expected = (
        (("memattach", "--hoo"), ["--hook=", "--hooks="]),
        (("memattach", "--hooks", ""), ["auto", "entry", "got"]),
        (("memattach", "--hooks", "=", "e"), ["entry"]),
        (("memattach", "--hooks", "="), ["auto", "entry", "got"]),
        (("memattach", "--hook", ""), []),
        (("memattach", "--", "memattach-no-such"), []),
        (("memattach", "-q", "--", "printf", "n"), ["notes.txt"]),
        (("memattach", "-d", "1"), ["10m", "10s", "1h", "1m"]),
        (("memattach", "-o", ""), files),
        (("memanalyze", ""), dumps),
        (("memanalyze", "--diff", "other.dump", "a"), ["a heap.dump"]),
        (("memanalyze", "n"), ["notes.txt"]),
        (("memanalyze", "--json", "--by", "li"), ["lifetime", "line"]),
        (("memanalyze", "-s", "al"), sorts),
        (("memanalyze", "--sort", "=", "al"), sorts),
        (("memanalyze", "-D", ""), ["folder"]),
        (("memanalyze", "--time"), ["--timeline"]),
        (("memanalyze", "--timeline", ""), dumps),
        (("memanalyze", "--timeline", "=", ""), []),
        (("memanalyze", "--no-such-option", "="), []),
        (("memanalyze", "--", "--by"), []),
        (("memanalyze", "--by", "line", "--", "o"), ["other.dump"]),
    )
    for words, wanted in expected:
        got = bash.proposals(*words)
        assert got == wanted, f"{' '.join(words)!r}: {got}, not {wanted}"
    assert "printf" in bash.proposals("memattach", "-r", "1", "--", "print")
    assert str(os.getpid()) in bash.proposals("memattach", "")
    assert str(os.getpid()) in bash.proposals("memattach", "-p", "")
    assert str(os.getpid()) in bash.proposals("memattach", "--pid", "=", str(os.getpid())[0])


def check_fish(completions):
    if not shutil.which("fish"):
        print("fish is not installed: its proposals were not tried")
        return
    for program, line, wanted in (("memanalyze", "memanalyze --by li", ["lifetime", "line"]),
                                  ("memattach", "memattach --hoo", ["--hook", "--hooks"]),
                                  ("memattach", "memattach -d 1", ["10m", "10s", "1h", "1m"]),
                                  ("memattach", "memattach -q -- mktem", ["mktemp"])):
        script = f"source $argv[1]; complete -C '{line}'"
        result = subprocess.run(["fish", "--no-config", "-c", script, completions / "fish" / f"{program}.fish"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        got = sorted(proposal.partition("\t")[0] for proposal in result.stdout.splitlines())
        assert got == wanted, (line, result)


def check_words(programs, bash):
    """Each proposed word is understood, and another one is not."""
    arguments = {"memattach": ["-p", "2147483647"], "memanalyze": ["/nonexistent/dump"]}
    for program, option in (("memattach", "--hooks"), ("memanalyze", "--format"), ("memanalyze", "--by"), ("memanalyze", "--sort")):
        words = bash.proposals(program, option, "")
        assert len(words) > 2, (option, words)
        for word in [*words, "nonsense"]:
            output = ["-o", pathlib.Path(bash.directory, "out")] if option == "--format" else []
            result = subprocess.run([programs[program], option, word, *output, *arguments[program]], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, check=False)
            assert (result.returncode == BAD_USAGE) == (word == "nonsense"), (option, word, result)


def check_syntax(completions):
    for shell, *arguments in (("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")):
        if not shutil.which(shell):
            print(f"{shell} is not installed: its files were not parsed")
            continue
        for path in sorted((completions / shell).iterdir()):
            result = subprocess.run([shell, *arguments, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            assert result.returncode == 0 and not result.stdout, (path, result.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--completions", type=pathlib.Path, required=True)
    parser.add_argument("--program", action="append", required=True)
    options = parser.parse_args()
    programs = dict(item.split("=", 1) for item in options.program)
    with tempfile.TemporaryDirectory() as directory:
        bash = Bash(options.completions.resolve(), directory)
        check_names(options.completions, programs, bash)
        check_bash(bash)
        check_fish(options.completions)
        check_words(programs, bash)
        check_syntax(options.completions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
