# SPDX-License-Identifier: MIT
"""The folders of the cases, of which each module may import any other by its name."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
FOLDERS = sorted(path for path in HERE.iterdir() if any(path.glob("*.py")))
sys.path[:0] = [str(path) for path in (HERE, *FOLDERS)]
