# SPDX-License-Identifier: MIT
"""Checks of what is installed: by cmake, by the Debian package, and the units of systemd."""
import pathlib
import re
import tempfile


def check_debian(tree):
    """debian/ has the version, the licence and the build dependencies that the rest of the tree has."""
    debian = tree.source / "debian"
    version = re.search(r"^project\(memattach VERSION (\S+)", (tree.source / "CMakeLists.txt").read_text(), re.M).group(1)
    if not (debian / "changelog").read_text(encoding="utf-8").startswith(f"memattach ({version}) "):
        yield f"debian/changelog does not begin with memattach ({version})"
    listed = re.search(r"^BUILD_PACKAGES=\((.*?)\)", (tree.source / "scripts" / "packages.sh").read_text(), re.M | re.S).group(1).split()
    control = re.search(r"^Build-Depends:\n((?: .*\n)+)", (debian / "control").read_text(encoding="utf-8"), re.M).group(1)
    depends = {line.split()[0].rstrip(",") for line in control.splitlines()}
    always = {"gcc", "g++", "libc6-dev"}  # build-essential
    for name in sorted((set(listed) - always) ^ (depends - {"debhelper-compat"})):
        yield f"{name} is in only one of debian/control and BUILD_PACKAGES of scripts/packages.sh"
    licence = (tree.source / "LICENSE").read_text(encoding="utf-8").partition("\n\nPermission")[2].split()
    if " ".join(licence) not in " ".join(word for word in (debian / "copyright").read_text(encoding="utf-8").split() if word != "."):
        yield "debian/copyright has not the text of LICENSE"


INSTALLED = """bin/memanalyze bin/memattach share/bash-completion/completions/memanalyze share/bash-completion/completions/memattach
share/fish/vendor_completions.d/memanalyze.fish share/fish/vendor_completions.d/memattach.fish share/man/man1/memanalyze.1
share/man/man1/memattach.1 share/man/man5/memattach-dump.5 share/zsh/site-functions/_memanalyze share/zsh/site-functions/_memattach"""


def check_install(tree):
    """cmake --install puts these files, and nothing else, below a prefix; the programs run from there."""
    tree.need("cmake")
    with tempfile.TemporaryDirectory() as directory:
        result = tree.run("cmake", "--install", tree.build, "--prefix", directory)
        if result.returncode:
            yield f"cmake --install: {result.stderr.strip()}"
            return
        files = {str(path.relative_to(directory)) for path in pathlib.Path(directory).rglob("*") if not path.is_dir()}
        for name in sorted(files ^ set(INSTALLED.split())):
            yield f"{name} is {'installed, and not expected' if name in files else 'not installed'}"
        for program in ("memattach", "memanalyze"):
            if not tree.run(f"{directory}/bin/{program}", "--version").stdout.startswith(f"{program} "):
                yield f"{program} does not run where it was installed"


def check_units(tree):
    """The units of systemd/ are off by default in the package, and systemd finds nothing wrong in them."""
    if "dh_installsystemd --no-enable --no-start" not in (tree.source / "debian" / "rules").read_text(encoding="utf-8"):
        yield "debian/rules would start or enable the units"
    tree.need("systemd-analyze")
    with tempfile.TemporaryDirectory() as directory:
        for unit in (tree.source / "systemd").glob("*.service"):
            place = pathlib.Path(directory) / unit.name.replace("@", "@demo")
            place.write_text(unit.read_text(encoding="utf-8").replace("/usr/bin/memattach", str(tree.programs["memattach"])), encoding="utf-8")
            result = tree.run("systemd-analyze", "verify", "--man=no", place)
            if unit.name.removesuffix(".service") in result.stderr or result.returncode:
                yield f"{tree.name(unit)}: {result.stderr.strip()}"
