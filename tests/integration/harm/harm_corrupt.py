# SPDX-License-Identifier: MIT
"""Whole attaches to programs whose images are damaged at random (corrupt.c). For a build with sanitizers:
python3 tests/integration/run.py --memattach build/asan/injector/memattach … --cycles 1000 corrupted_images
"""
import collections
import os
import time

from harness import Victim, case, log, run_memattach
from procfs import Failure

FINDINGS = ("Sanitizer", "runtime error:")
LIBRARIES = ("/usr/lib/x86_64-linux-gnu/libz.so.1", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "plugin.so", "scale_module.so")


def attach_to_damaged(context, seed, libraries):
    """How it ended."""
    victim = Victim(context, "corrupt", str(seed), libraries[seed % len(libraries)])
    dump = context.unique("corrupt", ".dump")
    result = run_memattach(context, "-p", victim.pid, "-d", "1ms", "-o", dump, "--no-cache", "--deadline", "2s")
    if result.returncode not in (0, 1, 2) or any(words in result.stderr for words in FINDINGS):
        raise Failure(f"seed {seed}: memattach ended with {result.returncode}: {result.stderr}")
    if os.path.exists(dump):
        os.unlink(dump)
    alive = victim.process.poll() is None
    victim.process.kill()
    victim.process.wait()
    if not alive:
        return "the program's loader fell over it"
    return {0: "attached and detached", 1: "refused", 2: "with residue"}[result.returncode]


@case(label="stress", timeout=3600, sanitized=True)
def corrupted_images(context):
    """Whatever stands in the images, memattach comes to an end of its own: attached and detached, or refused."""
    libraries = [name for name in (path if path.startswith("/") else context.target(path) for path in LIBRARIES) if os.path.exists(name)]
    first = int(os.environ.get("CORRUPT_FIRST", time.time_ns() // 1000000))
    ends = collections.Counter(attach_to_damaged(context, first + i, libraries) for i in range(context.cycles))
    log(f"corrupted_images: seeds from {first}:", ", ".join(f"{count} {how}" for how, count in sorted(ends.items())))
    assert ends["attached and detached"], ends
