# SPDX-License-Identifier: MIT
"""memattach and memanalyze on terminals of any width."""
import os
import re
import signal

from harness import DEADLINE, Session, Victim, case
from reports import analyze
from terminal import ESCAPE, Terminal

WIDTHS = (60, 80, 120, 200)
STATUS = rb"\d\d:\d\d:\d\d  \d+ samples  live "


def profile(context, pid, columns, *options):
    return Terminal(context, [context.memattach, "-p", str(pid), "-r", "4k", "-o", context.unique("terminal", ".dump"), "--deadline",
                              DEADLINE, *options, *context.options], columns)


def end_by_ctrl_c(terminal):
    terminal.type(b"\x03")


def end_by_sigterm(terminal):
    terminal.kill(signal.SIGTERM)


@case()
def status_line_fits_the_terminal(context):
    """At each width, while it changes, until Ctrl-C or SIGTERM; the next line takes its place, and it is gone at the end."""
    victim = Victim(context, "alloc_loop", "calm")
    for number, columns in enumerate(WIDTHS):
        other = WIDTHS[-1 - number]
        terminal = profile(context, victim.pid, columns, "--verbose")
        terminal.sees(STATUS)
        assert not terminal.wide_lines(columns), terminal.wide_lines(columns)
        terminal.resize(other)
        terminal.read(0)
        before = len(terminal.text)
        terminal.sees(rb"\r\033\[K" + STATUS, before)
        terminal.sees(rb"\r\033\[K" + STATUS, terminal.text.index(b"\r\033[K", before) + 1)
        (end_by_ctrl_c if number % 2 else end_by_sigterm)(terminal)
        terminal.sees(rb"the process is as before")
        assert terminal.end() == 0, terminal.text
        first = terminal.text.index(b"\r\033[K", before) + 1  # what came before may have been drawn at the old width
        assert not terminal.wide_lines(other, first), (other, terminal.wide_lines(other, first))
    victim.finish()


@case()
def status_line_is_of_memory(context):
    """With --mmap, too: what it calls live is the memory of the report, and not the mappings of files."""
    victim, dump = Victim(context, "known_maps", fixed_addresses=True), context.unique("memory", ".dump")
    terminal = Terminal(context, [context.memattach, "-p", str(victim.pid), "-r", "1", "-o", dump, "--deadline", DEADLINE, "--mmap", *context.options])
    terminal.sees(STATUS)
    victim.send("go")
    victim.truth()
    terminal.sees(STATUS, len(terminal.text))
    end_by_ctrl_c(terminal)
    assert terminal.end() == 0, terminal.text
    victim.finish_by_stdin()
    report = analyze(context, dump)
    memory, files = report["total"]["live_bytes"]["estimate"], report["mapped_files"]["live_bytes"]["estimate"]
    value, unit = re.findall(STATUS + rb"([\d.]+) (\w+)", terminal.text)[-1]
    said = float(value) * {b"B": 1, b"KiB": 1 << 10, b"MiB": 1 << 20}[unit]
    assert files > memory / 20 and abs(said / memory - 1) < 0.01, (said, memory, files)


@case()
def messages_fit_the_terminal(context):
    """Refusals, wrong options, --doctor."""
    victim = Victim(context, "alloc_loop", "calm")
    for columns in WIDTHS:
        for code, options in ((0, ["--doctor", "-p", str(victim.pid)]), (0, ["--doctor", "--verbose", "-p", str(victim.pid)]),
                              (1, ["-p", str(os.getpid()), "-o", "/proc/no such directory/of/any/kind/can/be/made.dump"]),
                              (1, ["-p", "1999999999"]), (64, ["-p", "1", "--rate", "no rate at all"])):
            terminal = Terminal(context, [context.memattach, *options], columns)
            assert terminal.end() == code, (options, terminal.text)
            assert not terminal.wide_lines(columns), (columns, options, terminal.wide_lines(columns))
    victim.finish()


def sentences(text):
    """What is said on a terminal to be not seen, as one line each."""
    lines = re.sub(r"\n {2,}(?!not seen|note|TRUST|still)(?=\S)", " ", ESCAPE.sub("", text.decode()).replace("\r\n", "\n")).split("\n")
    return [re.sub(r"^\s*not seen:?\s+", "", line) for line in lines if re.match(r"\s*not seen:?\s", line)]


@case()
def what_is_not_seen_is_folded(context):
    """One sentence for each reason, which names the first; with --verbose and in JSON each function of each module."""
    victim = Victim(context, "cxx_exceptions")
    for verbose in ((), ("--verbose",)):
        dump = context.unique("folded", ".dump")
        terminal = Terminal(context, [context.memattach, "-p", str(victim.pid), "-o", dump, "--deadline", DEADLINE, "-d", "0.1s", "--hooks", "got",
                                      *verbose, *context.options], 80)
        assert terminal.end() == 0, terminal.text
        notes = [note["text"] for note in analyze(context, dump)["notes"] if note["kind"] == "not_patched"]
        parts = [re.fullmatch(r"(\S+): (\S+) not patched: (.*)", text) for text in notes]
        assert all(parts) and len(parts) > len({part[3] for part in parts}), notes
        report = Terminal(context, [context.memanalyze, *verbose, dump], 80)
        assert report.end() == 0, report.text
        for shown in terminal, report:
            said = sentences(shown.text)
            assert not shown.wide_lines(80), shown.wide_lines(80)
            for part in parts:
                holding = [line for line in said if part[3] in line]
                same = [other for other in parts if other[3] == part[3]]
                assert len(holding) == (len(same) if verbose else 1), (verbose, part[3], said)
                assert not verbose or part[0] in holding, (part[0], said)
                assert verbose or len(same) == 1 or (holding[0].startswith("calls of ") and same[0][1] in holding[0]), (same, holding)
    victim.finish()


@case()
def live_view_fits_the_terminal(context):
    victim = Victim(context, "alloc_loop", "calm")
    for number, columns in enumerate(WIDTHS):
        other = WIDTHS[-1 - number]
        terminal = profile(context, victim.pid, columns, "--live")
        terminal.sees(rb" LIVE ")
        assert not terminal.wide_lines(columns), (columns, terminal.wide_lines(columns))
        terminal.read(0)
        before = len(terminal.text)
        terminal.resize(other)
        terminal.sees(rb" LIVE ", before)
        (end_by_ctrl_c if number % 2 else end_by_sigterm)(terminal)
        terminal.sees(rb"the process is as before")
        assert terminal.end() == 0, terminal.text
        assert not terminal.wide_lines(max(columns, other)), terminal.wide_lines(max(columns, other))
    victim.finish()


@case()
def reports_come_to_any_terminal(context):
    victim = Victim(context, "known_heap")
    session = Session(context, victim.pid, rate="1")
    victim.send("go")
    victim.truth()
    session.stop()
    for columns in WIDTHS:
        for options in ((), ("--by=function",), ("--verbose",), ("--leaks",)):
            assert Terminal(context, [context.memanalyze, *options, session.dump], columns).end() == 0, (columns, options)
        terminal = Terminal(context, [context.memanalyze, "/no such directory/of/any/kind/can/be/read.dump"], columns)
        assert terminal.end() == 2 and not terminal.wide_lines(columns), terminal.text
    victim.finish_by_stdin()
