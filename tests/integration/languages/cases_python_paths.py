# SPDX-License-Identifier: MIT
"""Files of Python are called by the entry of sys.path that they lie in, which memattach reads from the process."""
import os
import pathlib
import zipfile

from cases_python import pythons
from cases_python_frames import TARGETS
from harness import Session, Snapshot, Victim, case, check_receipt, check_same, log
from reports import analyze, analyze_text

MAKER = "def make(size):\n    return bytearray(size)\n"
PROGRAM = TARGETS / "python_paths.py"
OWN_LINE = 1 + PROGRAM.read_text(encoding="utf-8").splitlines().index("    return bytearray(size)")
FILES = ("env/package/__init__.py", "env/package/inner.py", "rel/by_rel.py", "late/by_late.py")


def make_tree(root):
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(MAKER, encoding="utf-8")
    with zipfile.ZipFile(root / "archive.zip", "w") as archive:
        archive.writestr("by_zip.py", MAKER)


def victim_of(context, python, root):
    environment = {"PYTHONPATH": str(root / "env"), "PYTHONDONTWRITEBYTECODE": "1"}
    return Victim(context, [python, str(PROGRAM), str(root)], environment=environment)


@case(sanitized=True)
def python_files_lie_in_sys_path(context):
    """A program's directory, PYTHONPATH, a relative entry, an archive, and one that comes during the session."""
    for number, python in enumerate(pythons(context)):
        root = pathlib.Path(os.path.realpath(context.path(f"tree-{number}")))
        make_tree(root)
        victim = victim_of(context, python, root)
        before = Snapshot(victim.pid)
        session = Session(context, victim.pid, "--python-allocators", "off", rate="1")
        # Whatever comes now: the dump on the disk has what there was at the attach.
        entries = pathlib.Path(session.dump).read_bytes()
        assert all(f"\0{entry}\0".encode() in entries for entry in (TARGETS, root / "env", "rel", root / "rel")), "no sys.path"
        victim.send("go")
        victim.wait("^MADE")
        check_receipt(session.stop(), victim.pid)
        check_same(before, Snapshot(victim.pid), busy=True)
        stacks = analyze(context, session.dump, "--size=9000..60000")["stacks"]
        found = {(frame["module"], frame["file"]): stack["live_bytes"]["estimate"] - 1
                 for stack in stacks for frame in stack["frames"][:1] if frame["function"] == "make"}
        assert found[("python_paths", str(PROGRAM))] == 10000, found
        sizes = {module: size for (module, _), size in found.items()}
        assert sizes == {"python_paths": 10000, "by_rel": 20000, "by_zip": 30000, "package.inner": 40000, "by_late": 50000}, found
        assert ("package.inner", str(root / "env/package/inner.py")) in found, found
        text = analyze_text(context, session.dump, "--size=9000..60000", "--verbose", "--top=0")
        for file in (f"python_paths.py:{OWN_LINE}", "by_rel.py:2", "by_zip.py:2", "package/inner.py:2", "by_late.py:2"):
            assert f" {file}\n" in text, (file, text)
        log(f"{python}: {len(found)} modules")
        victim.send("end")
        assert victim.process.wait(60) == 0
