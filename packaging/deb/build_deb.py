"""Builds a .deb from a PyInstaller directory, the units and the manual.

The same input creates the same bytes: owners and modes are fixed, and no file time in the package
is later than SOURCE_DATE_EPOCH.

Usage: python packaging/deb/build_deb.py --onedir DIR --manual DIR --output DIR [--version V]
       [--program venue-agent|venue-control] [--level 0-9]
"""

import argparse
import gzip
import math
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent import __version__

ROOT = Path(__file__).resolve().parents[2]
DEB = Path(__file__).resolve().parent
SCRIPTS = ("preinst", "postinst", "prerm", "postrm")
UPGRADE = ROOT / "packaging/upgrade/venue-agent-upgrade"
_INSERTION_MARK = f"    # The build inserts packaging/upgrade/{UPGRADE.name} here.\n"
"""The line of a maintainer script that is replaced by the script for upgrades. A maintainer script
contains a copy of the script for upgrades, because a maintainer script also runs when the package's
files are not installed yet, or are already removed."""
_PICTURES = re.compile(r"^ *(?:!\[[^]\n]*\]\([^)\n]*\)|<picture>.*?</picture>)\n+", re.M | re.S)
"""Matches the pictures in documents. They are removed, because the package contains no pictures."""
DEPENDS = "systemd (>= 247), passwd, init-system-helpers"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "armhf"}


@dataclass(frozen=True, slots=True)
class Program:
    """The package of one program. Paths are relative to the checkout.

    ``resources`` is the directory of the units and the sysusers file. ``conffiles`` are files in it
    that are installed in /etc/NAME.
    """

    name: str
    resources: str
    units: tuple[str, ...]
    documents: tuple[str, ...]
    description: str
    conffiles: tuple[str, ...] = ()


PROGRAMS = {
    program.name: program
    for program in (
        Program(
            name="venue-agent",
            resources="agent/adapters/service_manager",
            units=("venue-agent.service", "venue-agent-key.path", "venue-agent-key.service"),
            documents=(
                "docs/capabilities.md", "docs/harm-record.md", "docs/threat-model.md",
                "config.example.toml", "docs/cli.md", "docs/configuration.md", "docs/findings.md",
                "docs/deployment.md", "docs/install.md",
                "docs/privacy.md", "docs/rollout.md", "docs/sandbox.md", "docs/troubleshooting.md",
                "docs/upgrades.md",
            ),
            description="""\
Description: remote control and diagnostics agent of a venue's machine
 Enrolls this machine at a venue operations service, answers its requests for
 network and application reports, and describes each problem with its fix.
 Contains its own Python.
""",
        ),
        Program(
            name="venue-control",
            resources="controlplane/service",
            units=("venue-control.service",),
            documents=(
                "docs/controlplane.md", "docs/service-install.md",
                "packaging/proxy/nginx.conf", "packaging/proxy/Caddyfile",
            ),
            description="""\
Description: service that venue agents report to, with a web console
 Manages devices, requests reports from them and shows the reports in a web
 console. Uses SQLite or PostgreSQL. Listens on loopback, behind a reverse
 proxy with TLS. Contains its own Python.
""",
            conffiles=("serve.conf",),
        ),
    )
}  # fmt: skip

CONTROL = """\
Package: {name}
Version: {version}
Architecture: {architecture}
Maintainer: The venue-agent authors <venue-agent@localhost>
Installed-Size: {installed_kib}
Depends: libc6 (>= {glibc}), {depends}
Section: admin
Priority: optional
{description}"""


def lay_out(
    tree: Path, onedir: Path, manual: Path, program: Program = PROGRAMS["venue-agent"]
) -> None:
    """Copy the package's files to their paths below ``tree``."""
    name, resources = program.name, ROOT / program.resources
    shutil.copytree(onedir, tree / "usr/lib" / name, symlinks=True)
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin" / name).symlink_to(f"../lib/{name}/{name}")
    for unit in program.units:
        _copy(resources / unit, tree / "usr/lib/systemd/system" / unit)
    _copy(resources / f"{name}.sysusers", tree / f"usr/lib/sysusers.d/{name}.conf")
    _gzip((manual / f"{name}.1").read_bytes(), tree / f"usr/share/man/man1/{name}.1.gz")
    _copy(manual / f"{name}.bash", tree / "usr/share/bash-completion/completions" / name)
    docs = tree / "usr/share/doc" / name
    _copy(ROOT / "LICENSE", docs / "copyright")
    for document in program.documents:
        text = (ROOT / document).read_text(encoding="utf-8")
        path = docs / Path(document).name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_PICTURES.sub("", text), encoding="utf-8")
    if (ROOT / "CHANGELOG.md").exists():
        _gzip((ROOT / "CHANGELOG.md").read_bytes(), docs / "changelog.gz")
    (tree / "etc" / name).mkdir(parents=True)
    for conffile in program.conffiles:
        _copy(resources / conffile, tree / "etc" / name / conffile)


def add_upgrades(tree: Path) -> None:
    """Add the script that keeps and verifies versions.

    /usr/bin/venue-agent then leads to the version that this script has chosen.

    The package contains no `venue-agent.current`: the script creates this link (ADR 46).
    """
    _copy(UPGRADE, tree / "usr/libexec" / UPGRADE.name)
    (tree / "usr/libexec" / UPGRADE.name).chmod(0o755)
    unit = UPGRADE.with_suffix(".service")
    _copy(unit, tree / "usr/lib/systemd/system" / unit.name)
    program = tree / "usr/bin/venue-agent"
    program.unlink()
    program.symlink_to("../lib/venue-agent.current/venue-agent")


def maintainer_script(path: Path) -> str:
    """Return a maintainer script, in which the script for upgrades is inserted."""
    upgrade = UPGRADE.read_text(encoding="utf-8")
    return path.read_text(encoding="utf-8").replace(_INSERTION_MARK, upgrade)


def newest_glibc(tree: Path) -> str:
    """Return the newest version of glibc that a binary requires, such as ``2.34``."""
    versions = {(2, 17)}  # the minimum for the wheels of the libraries (manylinux2014)
    for file in _files(tree):
        content = file.read_bytes()
        if content.startswith(b"\x7fELF"):
            versions.update((2, int(minor)) for minor in re.findall(rb"GLIBC_2\.(\d+)", content))
    return ".".join(str(part) for part in max(versions))


def set_modes(tree: Path) -> None:
    """Set mode 755 for directories and programs, and 644 for other files.

    The modes of the package must not depend on the umask of the build.
    """
    for path in (tree, *tree.rglob("*")):
        if path.is_symlink():
            continue
        is_executable = path.is_dir() or path.stat().st_mode & 0o100
        path.chmod(0o755 if is_executable else 0o644)


def build(options: argparse.Namespace) -> Path:
    """Build the package, and return its path. The options are those of `read_options`."""
    program = PROGRAMS[options.program]
    architecture = ARCHITECTURES[platform.machine()]
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "tree"
        tree.mkdir()
        lay_out(tree, options.onedir, options.manual, program)
        if program.name == "venue-agent":
            add_upgrades(tree)
        set_modes(tree)
        control = CONTROL.format(
            name=program.name,
            depends=DEPENDS,
            description=program.description,
            version=options.version,
            architecture=architecture,
            installed_kib=sum(math.ceil(file.stat().st_size / 1024) for file in _files(tree)),
            glibc=newest_glibc(tree),
        )
        (tree / "DEBIAN").mkdir()
        (tree / "DEBIAN/control").write_text(control)
        for name in SCRIPTS:
            source = DEB / program.name / name
            if source.exists():
                (tree / "DEBIAN" / name).write_text(maintainer_script(source), encoding="utf-8")
                (tree / "DEBIAN" / name).chmod(0o755)
        if program.conffiles:
            paths = (f"/etc/{program.name}/{name}\n" for name in program.conffiles)
            (tree / "DEBIAN/conffiles").write_text("".join(paths))
        options.output.mkdir(parents=True, exist_ok=True)
        package = options.output / f"{program.name}_{options.version}_{architecture}.deb"
        subprocess.run(
            (
                "dpkg-deb", "--root-owner-group", "-Zxz", f"-z{options.level}", "--build",
                str(tree), str(package),
            ),
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "XZ_DEFAULTS": "--threads=1"},
        )  # fmt: skip
    return package


def _files(tree: Path) -> Iterator[Path]:
    return (path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _gzip(content: bytes, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(content, 9, mtime=0))


def read_options(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--onedir", type=Path, required=True)
    parser.add_argument("--manual", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--version", default=__version__)
    parser.add_argument("--program", choices=PROGRAMS, default="venue-agent")
    parser.add_argument("--level", type=int, default=9, help="level of compression, 0 to 9")
    return parser.parse_args()


def main() -> int:
    package = build(read_options("Build the Debian package."))
    sys.stdout.write(f"{package}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
