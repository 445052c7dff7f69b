# SPDX-License-Identifier: MIT
"""What the report says its figures are worth, of programs that hide their frees or their allocations, and of honest ones."""
from cases_figures import known_session
from harness import Session, Victim, case, check_receipt
from reports import analyze, analyze_text


def session_over(context, program, *arguments, rate, options=()):
    """Returns the truth and the session of a victim that did its work."""
    victim = Victim(context, program, *arguments, fixed_addresses=True)
    session = Session(context, victim.pid, "--max-overhead", "off", "--seed", "1", *options, rate=rate)
    victim.send("go")
    truth = victim.truth()
    check_receipt(session.stop(), victim.pid)
    victim.finish_by_stdin()
    return truth, session


def worth(report):
    return {key: part["value"] for key, part in report["trust"].items() if isinstance(part, dict) and "value" in part}


# With --hooks got: what the C library itself allocates is not seen, since its GOT entries may be copied.
FREES_ARE_MISSED = {"live_bytes": "unknown", "live_count": "unknown", "allocated_bytes": "lower_bound", "allocated_count": "lower_bound"}


def reasons(report, figure):
    return [reason["reason"] for reason in report["trust"][figure]["reasons"]]


@case()
def frees_by_a_kept_pointer(context):
    """The address of free was stored before the attach: live is too much, by share, and nothing is called a leak."""
    for rate in ("1", "4k", "64k"):
        _, session = session_over(context, "held_free", "100", rate=rate, options=("--hooks", "got"))
        report = analyze(context, session.dump)
        assert worth(report) == FREES_ARE_MISSED, (rate, report["trust"])
        assert "frees_missed" in reasons(report, "live_bytes"), report["trust"]
        missed = report["trust"]["missed_frees"]
        assert missed["low"] > 0.9 and missed["high"] > 0.999, (rate, missed)
        lines = analyze_text(context, session.dump).splitlines()
        assert "is not known" in lines[2] and "UNKNOWN" in lines[4] and any("frees are not seen" in line for line in lines[5:8]), lines[:8]
        leaks = analyze_text(context, session.dump, "--leaks", "--age", "10ms")
        assert "LEAK" not in leaks and "No stack is called a leak" in leaks, leaks


@case()
def some_frees_by_a_kept_pointer(context):
    """A quarter of the frees are hidden: the share is estimated."""
    merged = 0.015  # the C library merges free blocks: not every address is given out again, which the estimate does not see
    for rate in ("1", "4k"):
        truth, session = session_over(context, "held_free", "25", rate=rate, options=("--hooks", "got"))
        share = truth["keep"]["missed_bytes"] / truth["keep"]["freed_bytes"]
        report = analyze(context, session.dump)
        missed = report["trust"]["missed_frees"]
        assert missed["low"] - 0.002 <= share <= missed["high"] + merged, (rate, share, missed)
        assert missed["high"] - missed["low"] < 0.1, (rate, missed)
        assert worth(report)["allocated_bytes"] == "lower_bound", report["trust"]
        if rate == "1":
            assert worth(report) == FREES_ARE_MISSED, report["trust"]


@case()
def allocator_over_mmap(context):
    """Memory that grew without an allocation that was seen: unknown, with both figures; --mmap sees it."""
    truth, session = session_over(context, "own_pool", rate="64k")
    report = analyze(context, session.dump)
    assert set(worth(report).values()) == {"unknown"} and reasons(report, "live_bytes") == ["memory_unseen"], report["trust"]
    lines = analyze_text(context, session.dump).splitlines()
    assert "is not known" in lines[2] and "UNKNOWN" in lines[4], lines[:6]
    assert "private memory grew by 64." in lines[5] and "--mmap" in lines[5], lines[:6]
    truth, session = session_over(context, "own_pool", rate="64k", options=("--mmap",))
    report = analyze(context, session.dump)
    assert set(worth(report).values()) == {"measured"}, report["trust"]
    assert report["total"]["live_bytes"]["low"] <= truth["pool_grow"]["live_bytes"] <= report["total"]["live_bytes"]["high"]


@case()
def allocator_of_php(context):
    """Its pool is from before the attach, so nothing grows, and nothing is seen: that is not measured, unless all goes to malloc."""
    for value, worths in (("1", {"unknown"}), ("0", {"measured"})):
        victim = Victim(context, "own_pool_zend", environment={"USE_ZEND_ALLOC": value})
        victim.send("go")
        victim.truth()
        session = Session(context, victim.pid, rate="64k")
        check_receipt(session.stop(), victim.pid)
        victim.finish_by_stdin()
        report = analyze(context, session.dump)
        text = analyze_text(context, session.dump)
        assert set(worth(report).values()) == worths, (value, report["trust"])
        assert ("own_pool_zend has Zend's memory manager" in text) == (value == "1"), text
        assert ("Trust: measured" in text) == (value == "0"), text


@case()
def shared_memory_grows(context):
    """64 MiB of a memfd come during the session: named as shared memory, are no private memory, and ours is not counted."""
    for arguments, grown in ((("shared",), 64 << 20), ((), 0)):
        _, session = session_over(context, "own_pool", *arguments, rate="64k", options=("--mmap",))
        memory = analyze(context, session.dump)["memory"]
        assert grown <= memory["shared_growth_bytes"] < grown + (1 << 20), (arguments, memory)
        text = analyze_text(context, session.dump)
        assert (" = 64.0 MiB shared memory memfd:" in " ".join(text.split())) == bool(grown), text
        assert memory["mostly_unseen"] is False and "--mmap" not in text, text


@case()
def honest_programs_are_measured(context):
    """known_heap, and the victim above with no free hidden: not a word of missed frees."""
    for rate in ("1", "64k"):
        report, _, _ = known_session(context, "known_heap", rate)
        assert set(worth(report).values()) == {"measured"} and report["trust"]["missed_frees"] is None, report["trust"]
        _, session = session_over(context, "held_free", "0", rate=rate)
        report = analyze(context, session.dump)
        assert set(worth(report).values()) == {"measured"} and report["trust"]["missed_frees"] is None, report["trust"]
