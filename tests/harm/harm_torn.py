# SPDX-License-Identifier: MIT
"""What the program does to the memory that slots and their addresses are in: it tears at its libraries, and leaves addresses of hooks in
places where nobody will look for them, or where somebody will.
"""
import signal

from harm import harm_victim, remains
from harness import Session, case, check_receipt


@case()
def dead_signal_frame(context):
    """What a signal left on an alternate stack keeps no gate; a handler that may go on, and a copy beside the frames, do."""
    for mode, stays in (("dead", False), ("left", True), ("plain", True)):
        victim = harm_victim(context, "frames", mode)
        session = Session(context, victim.pid)
        victim.send("put")
        at = victim.wait("^PUT").split()[1]
        session.process.send_signal(signal.SIGINT)
        receipt = session.end(expected=2 if stays else 0)
        check_receipt(receipt, victim.pid, clean=not stays)
        assert not stays or f"in memory at 0x{at}" in " ".join(receipt["residue"]), (mode, at, receipt)
        assert bool(remains(victim.pid)) == stays, remains(victim.pid)
        victim.send("back")
        victim.wait("^BACK")
        victim.finish_by_stdin()
