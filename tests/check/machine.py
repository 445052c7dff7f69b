# SPDX-License-Identifier: MIT
"""The boundary of the machine (docs/porting.md): what is in arch/ folders, and nowhere else. Used by check.py."""
import re

PARTS = ("payload", "injector", "analyzer", "common", "include")
# In code, its texts included. Each with an example, so that a rule that finds nothing any more is noticed.
RULES = (
    ("a relocation type", r"\bR_(X86_64|AARCH64)_\w+", "type == R_X86_64_64"),
    ("the number of a machine", r"\b(EM|AUDIT_ARCH)_(X86_64|AARCH64)\b", "h->e_machine != EM_X86_64"),
    ("the name of a machine", r"\bx86[-_]64\b|\baarch64\b|\b__(amd64|arm\w*)__", '#include "arch/x86_64/stub.h"'),
    ("registers as the kernel has them", r"\buser_(\w*regs\w*|pt_regs)\b|\bNT_(PRSTATUS|X86_\w+|ARM_\w+)\b|\bPTRACE_[GS]ETREGS\b",
     "struct user_regs_struct regs;"),
    ("the name of a register", r"\b([er][abcd]x|[er][sd]i|[er][sb]p|rip|r8|r9|r1[0-5]|orig_rax|eflags|[fg]s_base|mxcsr|[xyz]mm\d*|[wx](\d|[12]\d|30))\b(?!/)",
     "data.rax = 0"),
    ("a decoder of instructions", r"\bZydis\w*", "#include <Zydis/Zydis.h>"),
    ("an opcode", r"\b(code|push|jump|insn)\w*\[[^]]*\]\s*([=!]=|&)\s*0x|\b(INT3|ENDBR\w*|LOCK_PREFIX|OPCODE\w*)\b", "code[at - 1] == 0xe8"),
    ("bytes of instructions", r'\bmem(cmp|mem)\([^;]*"\\x', 'memcmp(code, "\\xf3\\x0f", 2)'),
    ("where addresses end", r">> *47\b", "word >> 47"),
    ("an instruction", r'\b(__asm__|asm)\b\s*(volatile|goto)?\s*\(\s*"[^"]', '__asm__ volatile("pause")'),
)
# Registers are named by what they are for in comments, too.
COMMENTS = re.compile(r"%[er]?(ax|bx|cx|dx|si|di|bp|sp|ip|[fg]s)\b|\b(rax|rsp|rbp|rip|rdi|rsi|int3|endbr64)\b")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# A place that the assembler uses: NAME(%register), NAME + 8(%register), [register, #NAME].
PLACE = re.compile(r"\b([A-Z][A-Z0-9_]{3,})\b(?=[ +*\w\\-]*\(%|\])")


def machine_free(tree):
    """Files that know of no machine: all of the parts but those in arch/."""
    for part in PARTS:
        for path in tree.part_files(part):
            if "arch" not in path.relative_to(tree.source).parts:
                yield path


def foreign(text):
    """(line, what) of each thing of a machine in the text of a source."""
    for comment in COMMENT.finditer(text):
        for found in COMMENTS.finditer(comment.group()):
            yield text.count("\n", 0, comment.start() + found.start()) + 1, f"the name of a register or instruction ({found.group()})"
    code = COMMENT.sub(lambda comment: "\n" * comment.group().count("\n"), text)
    for what, pattern, _ in RULES:
        for found in re.finditer(pattern, code):
            yield code.count("\n", 0, found.start()) + 1, f"{what} ({' '.join(found.group().split())})"


def options(tree):
    """(file, line, what) of options of the compiler, and names of machines, in what builds the parts."""
    for part in PARTS:
        for path in sorted((tree.source / part).rglob("*")):
            if (path.name != "CMakeLists.txt" and path.suffix != ".cmake") or "arch" in path.relative_to(tree.source).parts:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                found = re.search(r"(?<![\w-])-m[a-z]\w*|-fcf-protection|\bx86_64\b|\baarch64\b", line.partition("#")[0])
                if found:
                    yield f"{tree.name(path)}:{number}: an option or the name of a machine ({found.group()})"


def numbers(tree):
    """Places that assembler files use as numbers of a header, and that neither compiler nor assembler compares with what is there."""
    headers = {path: path.read_text(encoding="utf-8") for part in PARTS for path in tree.part_files(part, (".h",))}
    written = {name: path for path, text in headers.items()
               for name in re.findall(r"^#define (\w+) (?:0x[0-9a-f]+|\d+)(?:\s|$)", text, re.M)}
    compared = set()
    for text in headers.values():
        for assertion in re.findall(r"^(?:_Static_assert|AT)\(.*?\);|^_Static_assert\(.*?;", text, re.M | re.S):
            compared.update(re.findall(r"\w+", assertion))
    files = [path for part in PARTS for path in tree.part_files(part, (".S",))]
    for path in files:
        compared.update(re.findall(r"\bis_at\s+(\w+)", path.read_text(encoding="utf-8")))
    for path in files:
        for name in sorted(set(PLACE.findall(COMMENT.sub("", path.read_text(encoding="utf-8"))))):
            if name in written and name not in compared:
                yield f"{tree.name(written[name])}: nothing compares {name}, which {tree.name(path)} uses, with the structure"


def entrances(tree):
    """Places in trampolines that the assembler does not compare with what is there."""
    for header in (tree.source / "include" / "arch").glob("*/hook_code.h"):
        code = tree.source / "payload" / "arch" / header.parent.name / "trampolines.S"
        checked = set(re.findall(r"\bis_at\s+(\w+)", code.read_text(encoding="utf-8"))) if code.exists() else set()
        for name in re.findall(r"^#define (TRAMPOLINE_(?!CODE_BYTES)\w+) \d", header.read_text(encoding="utf-8"), re.M):
            if name not in checked:
                yield f"{tree.name(code)}: no is_at {name}"


def contracts(tree):
    """Each header of an arch/ folder that is no machine's is a contract; docs/porting.md has a row for each, and no other."""
    page = (tree.source / "docs" / "porting.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([\w/]+/arch/\w+\.h)`", page, re.M))
    there = {tree.name(path) for part in PARTS for path in (tree.source / part / "arch").glob("*.h")}
    for name in sorted(there - rows):
        yield f"docs/porting.md has no row for {name}"
    for name in sorted(rows - there):
        yield f"docs/porting.md has a row for {name}, which does not exist"
    tests = {path.stem for path in (tree.source / "tests").rglob("test_*")} | \
            {path.stem for path in (tree.source / "tests" / "integration").rglob("*.py")}
    for row in re.findall(r"^\| `[\w/]+/arch/.*\|$", page, re.M):
        for name in re.findall(r"`((?:test|cases|harm)_\w+)`", row.rsplit("|", 2)[1]):
            if name not in tests:
                yield f"docs/porting.md: there is no {name}"


def check_machine(tree):
    """Outside of arch/ nothing is known of a machine; places that the assembler uses are compared with the structures by the
    compiler; docs/porting.md has each contract."""
    for what, pattern, example in RULES:
        if not re.search(pattern, example):
            yield f"the rule about {what} does not find its example"
    for path in machine_free(tree):
        for line, what in foreign(path.read_text(encoding="utf-8")):
            yield f"{tree.name(path)}:{line}: {what}"
    yield from options(tree)
    yield from numbers(tree)
    yield from entrances(tree)
    yield from contracts(tree)


# Instructions without those that align, of x86-64's hooks and of all trampolines: assembler code, the same with each compiler.
HOOK_INSTRUCTIONS = {
    "trampoline_code": 26112, "hook_malloc": 15, "hook_calloc": 21, "hook_realloc": 31, "hook_free": 14,
    "hook_posix_memalign": 18, "hook_mmap": 22, "hook_munmap": 2, "hook_mremap": 2, "hook_outer_calloc": 21,
    "hook_outer_realloc": 31, "hook_keep_malloc": 17, "hook_keep_free": 16, "hook_keep_python_malloc": 17,
    "hook_enter": 41, "hook_enter_keeping": 84, "outer_enter": 21,
}


def check_hook_instructions(tree):
    """The ways through the hooks that no call of C makes are as long as they were when they were measured (HACKING.md)."""
    tree.need("objdump")
    code = tree.run("objdump", "-D", "-j", ".text", "--no-show-raw-insn", tree.programs["payload"]).stdout
    if "elf64-x86-64" not in code:
        return
    for name, expected in HOOK_INSTRUCTIONS.items():
        body = re.search(rf"^[0-9a-f]+ <{name}>:\n((?: .*\n)*)", code, re.M)
        lines = body[1].split("\tadd    %al,(%rax)", 1)[0].splitlines() if body else ()
        count = sum(not re.search(r"\t(?:data16 )*(?:cs )?nop|\txchg   %ax,%ax", line) for line in lines)
        if count != expected:
            yield f"{name} has {count} instructions, not {expected}: measure it, then write that here"
