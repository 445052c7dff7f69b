# SPDX-License-Identifier: MIT
"""--doctor names the allocators of a process, who calls them how, and what is not seen of that."""
import contextlib
import lzma
import os
import re
import shutil
import subprocess

from harness import PATIENCE, Skip, Snapshot, Victim, case, check_same, read_text


def doctor(context, victim, *options, expected=0):
    """What --doctor says, by name; further lines of a fact are a part of it. The process is as before."""
    before = Snapshot(victim.pid)
    result = subprocess.run([context.memattach, "--doctor", "-p", str(victim.pid), *options], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    assert result.returncode == expected and not result.stderr, result
    check_same(before, Snapshot(victim.pid), busy=True)
    victim.check_alive()
    facts, name = {}, None
    for line in result.stdout.splitlines():
        name = line[:16].strip() or name
        facts.setdefault(name, []).append(line[16:])
    return facts


def finish(victim):
    """The victim goes on as it would have: allocates, checks what it wrote, ends well."""
    victim.send("go")
    assert victim.truth()
    victim.finish_by_stdin()


def about(facts, pattern):
    """The lines on the allocator whose first line matches."""
    lines = facts["allocators"]
    for start, line in enumerate(lines):
        if re.match(pattern, line):
            end = next((i for i in range(start + 1, len(lines)) if not lines[i].startswith("  ")), len(lines))
            return "\n".join(lines[start:end])
    raise AssertionError(f"no allocator is {pattern!r}: {lines}")


def hookable(text):
    found = re.search(r"entry hooks are possible for (\d+) of (\d+) functions, for (\d+) of them only while", text)
    assert found, text
    return [int(number) for number in found.groups()]


@case(sanitized=True)
def doctor_finds_allocators_in_programs(context):
    """Linked statically: the program's own calls are direct, and --doctor says that they are not seen."""
    for name, pattern in (("jemalloc", r"jemalloc 5\.\S+ in the program known_heap_jemalloc, the one in force$"),
                          ("tcmalloc", r"tcmalloc of gperftools 2\.\S+ in the program known_heap_tcmalloc, the one in force$")):
        victim = Victim(context, f"known_heap_{name}")
        facts = doctor(context, victim)
        text = about(facts, pattern)
        assert re.search(r"\n +called directly by its own module at \d+ places\n", text), text
        assert re.search(r"\n +called through \d+ GOT entr", text), text
        assert "its functions would be hooked at their entries: all calls are seen" in text, text
        possible, functions, _ = hookable(text)
        assert possible == functions >= 8, text
        assert facts["not covered"] == ["nothing known"], facts
        assert re.match(rf"{functions} functions of {name} .*at their entries, and 0 GOT entries", facts["hooks"][0]), facts
        facts = doctor(context, victim, "--hooks", "got")
        assert "not the direct ones; entry hooks would see all" in about(facts, pattern), facts
        assert any(re.match(rf"calls of {name} by known_heap_{name} itself, at \d+ places", line)
                   for line in facts["not covered"]), facts
        assert re.match(r"\d+ GOT entries; no code is changed", facts["hooks"][0]), facts
        assert not re.search("called", about(facts, "glibc ")), facts
        finish(victim)


@case()
def doctor_finds_allocators_in_libraries(context):
    """Libraries are called through GOT entries: all calls are seen."""
    victim = Victim(context, "alloc_loop")
    facts = doctor(context, victim)
    assert len([line for line in facts["allocators"] if not line.startswith(" ")]) == 1, facts
    text = about(facts, r"glibc 2\.\d+ in libc\.so\.6, the one in force$")
    assert "directly" not in text and hookable(text)[0] >= 8, text
    assert facts["not covered"] == ["nothing known"], facts
    victim.finish()
    victim = Victim(context, "known_heap_mimalloc")
    facts = doctor(context, victim)
    text = about(facts, r"mimalloc \d+\.\d+\.\d+ in libmimalloc\.so\S*, the one in force$")
    assert re.search(r"called through \d+ GOT entries of \d+ modules", text), text
    finish(victim)


@case()
def doctor_finds_the_allocator_of_musl(context):
    victim = Victim(context, "alloc_loop_musl")
    facts = doctor(context, victim)
    text = about(facts, r"musl in libc\.so, the one in force$")
    assert re.search(r"called through \d+ GOT entr", text) and hookable(text)[0] >= 5, text
    victim.finish()


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")


def objcopy(*arguments):
    subprocess.run(["objcopy", *arguments], check=True, timeout=PATIENCE)


def names_are_found(context, program):
    """An allocator that is found in a program, and called by nobody else."""
    victim = Victim(context, [program])
    text = about(doctor(context, victim), r"jemalloc 5\.\S+ in the program ")
    assert "its functions would be hooked at their entries: all calls are seen" in text, text
    facts = doctor(context, victim, "--hooks", "got")
    text = about(facts, r"jemalloc 5\.\S+ in the program ")
    assert "GOT entries see nothing of it; entry hooks would see all calls" in text, text
    # The allocator is called by the program alone: nothing of it is seen, and that is said.
    assert any(re.search(r"calls of jemalloc by|contains (jemalloc|a malloc of its own)", line) for line in facts["not covered"]), facts
    finish(victim)


def names_are_missing(context, program):
    victim = Victim(context, [program])
    facts = doctor(context, victim)
    text = "\n".join(facts["allocators"])
    assert "jemalloc 5" not in text, text
    assert any("allocates by jemalloc, if it does" in line for line in facts["not covered"]), facts
    assert "has messages of jemalloc in it, but no symbols" in text and "without debug symbols of the program" in text, text
    finish(victim)


def stripped(context, name):
    """The program without names."""
    need("objcopy")
    plain = context.target("known_heap_hidden")
    path = context.path(name)
    objcopy("--strip-all", plain, path)
    return plain, path


@case(sanitized=True)
def doctor_reads_every_source_of_names(context):
    """.symtab, .gnu_debugdata; a program that has neither is told so."""
    plain, bare = stripped(context, "bare")
    names_are_found(context, plain)
    names_are_missing(context, bare)
    only, packed, whole = context.path("only"), context.path("packed.xz"), context.path("with-names")
    objcopy("--only-keep-debug", plain, only)
    objcopy("--strip-debug", only)
    with open(only, "rb") as source, open(packed, "wb") as sink:
        sink.write(lzma.compress(source.read()))
    objcopy("--add-section", f".gnu_debugdata={packed}", bare, whole)
    names_are_found(context, whole)


@case(sanitized=True)
def doctor_survives_hostile_names(context):
    """.gnu_debugdata that is no xz, unpacks to far more than it should, or to no ELF file: no names, no harm."""
    _, bare = stripped(context, "bare")
    for number, content in enumerate((b"", b"\xfd7zXZ\x00" + os.urandom(4096), lzma.compress(bytes(256 << 20), preset=0),
                                      lzma.compress(os.urandom(1 << 16)), lzma.compress(b"\x7fELF\x02\x01\x01" + bytes(57)))):
        packed, whole = context.path("packed.xz"), context.path(f"hostile-{number}")
        with open(packed, "wb") as sink:
            sink.write(content or b"x")
        objcopy("--add-section", f".gnu_debugdata={packed}", bare, whole)
        names_are_missing(context, whole)


@case(alone=True)  # the file that it puts below /usr/lib/debug is that of other cases' programs, too
def doctor_reads_debug_files(context):
    """By build-id, and only the right one."""
    if os.geteuid() != 0:
        raise Skip("not root: no file can be put below /usr/lib/debug")
    need("readelf")
    plain, bare = stripped(context, "bare")
    notes = subprocess.run(["readelf", "-n", plain], stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
    folder = f"/usr/lib/debug/.build-id/{build_id[:2]}"
    place = f"{folder}/{build_id[2:]}.debug"
    if os.path.exists(place):
        raise Skip(f"{place} exists")
    existed = os.path.isdir(folder)
    try:
        os.makedirs(folder, exist_ok=True)
        objcopy("--only-keep-debug", plain, place)
        names_are_found(context, bare)
        # The debug file of another program, under this name.
        objcopy("--only-keep-debug", context.target("known_heap_jemalloc"), place)
        names_are_missing(context, bare)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place)
        if not existed:
            with contextlib.suppress(OSError):
                os.rmdir(folder)


@case()
def doctor_knows_redis(context):
    """Debian's server has jemalloc by library."""
    server = context.program("redis-server")
    process = context.start([server, "--port", "0", "--unixsocket", context.path("redis.sock"), "--save", ""],
                            stdout=subprocess.DEVNULL)
    socket = context.path("redis.sock")
    for _ in range(600):
        if os.path.exists(socket) or process.poll() is not None:
            break
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
    assert os.path.exists(socket), read_text(f"/proc/{process.pid}/status")
    result = subprocess.run([context.memattach, "--doctor", "-p", str(process.pid)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    assert result.returncode == 0 and re.search(r"^allocators +jemalloc 5\.\S+ in libjemalloc\.so\.2, the one in force$",
                                                result.stdout, re.M), result
    assert process.poll() is None
