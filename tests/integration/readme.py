# SPDX-License-Identifier: MIT
"""README's report of the demo, beside one that was just made: the same lines, words and columns; the figures are of another session."""
import re
import shutil
import subprocess

from contracts import read
from procfs import PATIENCE

ROWS_TITLE = "Held by, innermost function first"
NAMES_AT = 5


def shape(line):
    """Without figures, and what of a line one session has and another has not."""
    for pattern, word in ((r"^  RSS .*", "RSS"), (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}", "DATE"), (r" on \S+\),", " on HOST),"),
                          (r" while that takes at most \S+ % of the CPU time", ""), (r"\d+ stacks?", "N stacks"), (r"< start_thread.*|< clone.*", "< START"),
                          (r"(?<=memanalyze )\S*\.dump$|(?<=writing )\S*\.dump$", "DUMP"), (r"[+-]?\d[\d,.]* [KMG]?i?B\b", "SIZE"),
                          (r"\b[\d,.]+ %", "SHARE"), (r"per SIZE to SIZE", "per SIZE"), (r"(?<![\w.:])\d[\d,.]*(?!\w)", "N"), (r"  +", "  ")):
        line = re.sub(pattern, word, line)
    return line.strip()


def parts(lines):
    """The lines before the rows, the title of the columns, each row as its lines, the lines behind."""
    at = lines.index(ROWS_TITLE)
    end = lines.index("", at)
    rows = []
    for line in lines[at + 2:end]:
        if re.match(r" [ \d]\d  ?\S", line[:6]) or re.match(r" [ \d]\d +\d", line):
            rows.append([])
        if not line.startswith(("    no sample", "    these are chosen", "    frames of")):
            rows[-1].append(line)
    behind = [line for line in lines[end:] if line and " more stack" not in line]
    return lines[:at], lines[at + 1], rows, behind


def check_columns(title, rows):
    """Figures end where the title of their column ends, names begin at one column."""
    for row in rows:
        for name in ("share", "kept", "blocks", "each", "samples"):
            end = title.index(name) + len(name)
            assert row[0][end - 1] != " " and row[0][end:end + 1] in ("", " "), (name, row[0])
        assert row[1][NAMES_AT] != " " == row[1][NAMES_AT - 1], row[1]
        for line in row[2:]:
            assert line.index("<") == NAMES_AT, line


def readme_of_demo():
    text = read("README.md")
    block = re.search(r"<!-- report:begin -->\n(.*)<!-- report:end -->", text, re.S)[1]
    lines = [line[4:] for line in block.splitlines()]
    starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
    session = re.sub(r"\n *(?!attached |detached |memanalyze )", " ", "\n".join(lines[starts[0] + 1:starts[1]]))
    return text, session.splitlines(), lines[starts[1]], lines[starts[1] + 1:]


def check_readme(context, session):
    """session is of demo_service, and has ended."""
    text, said, command, shown = readme_of_demo()
    real_said = [shape(line) for line in session.said().splitlines()]
    for line in said:
        assert shape(line) in real_said, ("README has another line of memattach", line, real_said)
    shutil.copy(session.dump, context.path("demo.dump"))
    real = subprocess.run([context.memanalyze, *command.split()[2:]], cwd=context.work, stdout=subprocess.PIPE, text=True, timeout=PATIENCE,
                          check=True).stdout.splitlines()
    (head, title, rows, behind), (real_head, real_title, real_rows, real_behind) = parts(shown), parts(real)
    assert title == real_title, (title, real_title)
    for line, real_line in zip(head + rows[0] + behind, real_head + real_rows[0] + real_behind):
        assert shape(line) == shape(real_line), ("README is not what memanalyze prints", line, real_line)
    assert (len(head), len(rows[0]), len(behind)) == (len(real_head), len(real_rows[0]), len(real_behind)), (shown, real)
    check_columns(title, rows + real_rows)
    share = re.search(r"holds (\d+)[\d.]* %", " ".join(head))[1]
    assert f"Here `remember_rejected` holds {share} %" in text, share
