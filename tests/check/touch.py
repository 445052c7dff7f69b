# SPDX-License-Identifier: MIT
"""The check that only injector/touch/ changes a target, and what is planted to see that the checks of the tree find it."""
import argparse
import pathlib
import re
import tempfile

# What changes a target, and where it may be called: only below touch/, and memory is written at one place.
TOUCHES = re.compile(r"\b(ptrace|process_vm_writev|target_write|target_writer_(?:change|undo|add_change)|tracee_set_\w+|registers_write|changes_(?:add|made))\s*\(")
WRITES = re.compile(r"\b(p?writev?(?:64)?|whole_io_pwrite)\s*\(\s*[\w.>-]*(?:mem|writer|w->fd)")
# arch/ defines how registers are written; who calls that is below touch/.
MAY_TOUCH = ("injector/touch/", "injector/arch/")
WRITER = "injector/touch/remote/target_write.c"


def code_lines(path):
    """(number, line) without comments."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), path.read_text(encoding="utf-8"), flags=re.S)
    return enumerate(re.sub(r"//.*", "", text).splitlines(), 1)


def check_touch(tree):
    """Only files below injector/touch/ change a target: stop threads, set registers, write memory; and all that is written goes by
    the table of changes (touch/changes.h)."""
    for path in tree.part_files("injector", (".c", ".h")):
        name = tree.name(path)
        for number, line in code_lines(path):
            touches = TOUCHES.search(line)
            if touches and not name.startswith(MAY_TOUCH):
                yield f"{name}:{number}: {touches[1]}() outside of injector/touch/"
            writes = WRITES.search(line)
            if writes and name != WRITER:
                yield f"{name}:{number}: {writes[1]}() to a target's memory beside {WRITER}"


def check_once(tree):
    """Each header is read once: #pragma once."""
    for path in (path for part in ("include", "common", "payload", "injector", "analyzer", "tests") for path in tree.part_files(part, (".h",))):
        if "\n#pragma once\n" not in path.read_text(encoding="utf-8"):
            yield f"{tree.name(path)} has no #pragma once"


# Processes, their filters of calls, and what ends them with their parent: one folder.
STARTS = re.compile(r"\b(v?fork|posix_spawnp?|popen|SYS_v?fork|SYS_clone3?)\b(?=\s*[(,])|\b(PR_SET_PDEATHSIG|PR_SET_SECCOMP|SYS_seccomp|struct sock_fprog)\b")
SANDBOX = "common/sandbox/"


def check_sandbox(tree):
    """Child processes are started, and filters of system calls put in place, in common/sandbox/ alone."""
    for path in (path for part in ("common", "injector", "analyzer") for path in tree.part_files(part, (".c", ".h"))):
        name = tree.name(path)
        for number, line in code_lines(path):
            starts = STARTS.search(line)
            if starts and not name.startswith(SANDBOX):
                yield f"{name}:{number}: {starts[1] or starts[2]} outside of {SANDBOX}"


# (check, file, what is planted there): each check has to find it. A folder: 31 files are planted there.
PLANTED = (
    ("touch", "injector/run/steps/attach.c", "int f(void)\n{\n\treturn ptrace(PTRACE_SETREGS, 1, 0, 0);\n}\n"),
    ("touch", "injector/run/steps/attach.c", "int f(void)\n{\n\treturn target_write(&s->writer, CHANGE_PAYLOAD, at, &x, 1, e);\n}\n"),
    ("touch", "injector/prove/safe_point.c", "int f(void)\n{\n\treturn tracee_set_registers(t, &regs, e);\n}\n"),
    ("touch", "injector/prove/quiesce.c", "bool f(void)\n{\n\treturn registers_write(1, &regs);\n}\n"),
    ("touch", "injector/session/session.c", "long f(void)\n{\n\treturn process_vm_writev(1, a, 1, b, 1, 0);\n}\n"),
    ("touch", "injector/touch/patches/load.c", "long f(void)\n{\n\treturn pwrite(h->image.mem, a, 1, 0);\n}\n"),
    ("touch", "injector/touch/patches/load.c", "bool f(void)\n{\n\treturn whole_io_pwrite(w->fd, a, 1, 0);\n}\n"),
    ("touch", "injector/prove/quiesce.c", "int f(void)\n{\n\treturn target_writer_undo(w, 1, NULL, e);\n}\n"),
    ("sandbox", "injector/run/steps/attach.c", "int f(void)\n{\n\treturn fork();\n}\n"),
    ("sandbox", "common/live/live_guard.c", "void f(void)\n{\n\tprctl(PR_SET_PDEATHSIG, SIGTERM);\n}\n"),
    ("sandbox", "common/files/owner.c", "int f(void)\n{\n\treturn prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);\n}\n"),
    ("folders", "injector/maps/maps.c", '#include "target_file.h"\n'),
    ("folders", "injector/maps/maps.c", '#include "touch/changes.h"\n'),
    ("folders", "injector/plans/plan.c", "int x;\n"),
    ("folders", "tests/unit/many/", "int x;\n"),
    ("once", "injector/maps/target_file.h", "/* It. */\nint x;\n"),
    ("once", "injector/maps/target_file.h", "#ifndef MEMATTACH_A_H\n#define MEMATTACH_A_H\n#endif\n"),
    ("parameters", "injector/maps/maps.c", "static int f(int a, int b, int (*c)(int, int), int d,\n             int e, int f, int g, int h)\n{\n\treturn a;\n}\n"),
    ("parameters", "injector/maps/maps.h", "int maps_add(int a, int b, int c, int d, int e, int f, int g, const char *h) WARN_UNUSED;\n"),
    ("errors", "injector/maps/maps.c", "int f(struct err *e)\n{\n\tint rc = g(e);\n\tif (rc == 0)\n\t\trc = h(e);\n\treturn rc;\n}\n"),
    ("errors", "analyzer/stats/trust.c", "int f(void)\n{\n\tint s = g();\n\tif (!s)\n\t\ts = h(1);\n\treturn s;\n}\n"),
    ("errors", "injector/maps/maps.c", "int f(void)\n{\n\tstruct err ignored;\n\treturn g(&ignored);\n}\n"),
    ("errors", "injector/maps/maps.h", "int maps_read(int a, struct err *e) WARN_UNUSED;\nstatic inline int maps_f(void)\n{\n\treturn maps_read(1, NULL);\n}\n"),
    ("names", "injector/maps/maps.h", "/* It. */\nint read_maps(struct maps *m, struct err *e) WARN_UNUSED;\n"),
    ("names", "injector/maps/maps.h", "struct mapping {\n\tint x;\n};\nstatic inline int mapped(const struct mapping *m)\n{\n\treturn m->x;\n}\n"),
    ("names", "common/base/size.h", "__attribute__((cold)) const char *\ntime_format(double seconds, char text[8]);\n"),
    ("pages", "HACKING.md", "how it ends: `injector/run/no_such_file.c`\n"),
    ("pages", "HACKING.md", "how it ends: `no_such_file.h`\n"),
    ("pages", "docs/glossary.md", "**end** · `no_such_function()`\n"),
    ("pages", "README.md", "See [the page](docs/no_such_page.md).\n"),
    ("pages", "docs/harm.md", "| it breaks | it is mended | `no_such_case` |\n"),
    ("pages", "docs/harm.md", "| it breaks | it is mended | unit test_of_nothing |\n"),
)


def plants(tree, checks):
    """What the checks do not find."""
    for name, where, text in PLANTED:
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for header in ("injector/maps/target_file.h", "injector/touch/changes.h"):
                (root / header).parent.mkdir(parents=True, exist_ok=True)
                (root / header).write_text("/* nothing */\n#pragma once\n", encoding="utf-8")
            (root / "include").mkdir()
            (root / "include/a.h").write_text("/* nothing */\n#pragma once\n", encoding="utf-8")
            planted = type(tree)(argparse.Namespace(source=directory, build=directory, cc=tree.cc, program=[]))
            if found := list(checks[name](planted)):
                yield f"check_{name} finds in a tree without faults: {found}"
            for path in [root / where] if not where.endswith("/") else [root / where / f"file{number}.c" for number in range(31)]:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            if not any(where.rstrip("/") in finding for finding in checks[name](planted)):
                yield f"check_{name} does not find in {where}: {text!r}"
