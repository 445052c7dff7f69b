#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the cases of this directory with the framework of tests/integration; the options are those of its run.py, and
--kills N, how often the cases that kill memattach do so.
"""
import importlib
import importlib.util
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]

import harness  # noqa: E402

# Under another name: this file is called run too.
specification = importlib.util.spec_from_file_location("integration_run", HERE.parent / "integration" / "run.py")
integration = importlib.util.module_from_spec(specification)
specification.loader.exec_module(integration)

harness.CASES.clear()
import harm  # noqa: E402

for path in sorted(HERE.glob("harm_*.py")):
    importlib.import_module(path.stem)

if __name__ == "__main__":
    if "--kills" in sys.argv:
        at = sys.argv.index("--kills")
        harm.KILLS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    sys.exit(integration.main())
