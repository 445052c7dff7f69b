# SPDX-License-Identifier: MIT
"""Kernels that lack a call which memattach uses: it does without, or refuses by name. tests/tools/without makes the calls fail."""
import copy
import os
import pathlib

from harm_disturbance import restartable_sequences_are_aborted
from harness import UNCHANGED, Victim, case, run_memattach
from snapshot import Snapshot, check_same

WITHOUT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "without"


def older(context, calls):
    """The same context with a memattach that runs on such a kernel."""
    wrapper = context.path("memattach-without")
    with open(wrapper, "w", encoding="ascii") as file:
        file.write(f'#!/bin/sh\nexec python3 {WITHOUT} {calls} {context.memattach} "$@"\n')
    os.chmod(wrapper, 0o755)
    result = copy.copy(context)
    result.memattach = wrapper
    return result


@case(alone=True)  # it waits for the moment in which a thread that never rests is in a call
def restartable_sequences_before_linux_5_13(context):
    """Where the kernel does not say where a thread's sequences are, only a thread in a system call is borrowed."""
    restartable_sequences_are_aborted(older(context, "rseq_configuration"))


@case()
def refuse_without_kcmp(context):
    """Nobody can tell then whether another process runs in the target's memory."""
    victim = Victim(context, "sleeper", "poll")
    before = Snapshot(victim.pid)
    dump = context.path("c.dump")
    result = run_memattach(older(context, "kcmp"), "-p", victim.pid, "-o", dump)
    assert result.returncode == 1 and "kcmp(2)" in result.stderr and UNCHANGED in result.stderr, result
    assert not os.path.exists(dump), "a dump was left"
    check_same(before, Snapshot(victim.pid), busy=False)
