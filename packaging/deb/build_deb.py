"""Puts a PyInstaller directory, the unit and the manual into a .deb, byte for byte the same from
the same input: fixed owners and modes, times clamped to SOURCE_DATE_EPOCH.

Usage: python packaging/deb/build_deb.py --onedir DIR --manual DIR --output DIR [--version V]
"""

import argparse
import gzip
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEB = Path(__file__).resolve().parent
UNITS = ROOT / "agent/adapters/service_manager"
SERVICE_UNITS = ("venue-agent.service", "venue-agent-key.path", "venue-agent-key.service")
DOCUMENTS = (
    "config.example.toml", "docs/cli.md", "docs/configuration.md", "docs/findings.md",
    "docs/install.md",
    "docs/privacy.md", "docs/sandbox.md", "docs/troubleshooting.md",
)  # fmt: skip
SCRIPTS = ("postinst", "prerm", "postrm")
_PICTURES = re.compile(r"^ *(?:!\[[^]\n]*\]\([^)\n]*\)|<picture>.*?</picture>)\n+", re.M | re.S)
"""They are not in the package."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "armhf"}

CONTROL = """\
Package: venue-agent
Version: {version}
Architecture: {architecture}
Maintainer: The venue-agent authors <venue-agent@localhost>
Installed-Size: {installed_kib}
Depends: libc6 (>= {glibc}), systemd (>= 247), passwd, init-system-helpers
Section: admin
Priority: optional
Description: remote control and diagnostics agent of a venue's machine
 Enrolls this machine at a venue operations service, answers its requests for
 network and application reports, and tells what is wrong, in words that a
 technician can act on. Brings its own Python.
"""


def source_version() -> str:
    """Return the version the agent itself tells."""
    found = re.search(r'__version__ = "([^"]+)"', (ROOT / "agent/__init__.py").read_text())
    if found is None:
        raise SystemExit("agent/__init__.py names no version")
    return found[1]


def stage(tree: Path, onedir: Path, manual: Path) -> None:
    """Lay out the package's files under ``tree``."""
    shutil.copytree(onedir, tree / "usr/lib/venue-agent", symlinks=True)
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/venue-agent").symlink_to("../lib/venue-agent/venue-agent")
    for name in SERVICE_UNITS:
        _copy(UNITS / name, tree / "usr/lib/systemd/system" / name)
    _copy(UNITS / "venue-agent.sysusers", tree / "usr/lib/sysusers.d/venue-agent.conf")
    _gzip((manual / "venue-agent.1").read_bytes(), tree / "usr/share/man/man1/venue-agent.1.gz")
    completions = tree / "usr/share/bash-completion/completions/venue-agent"
    _copy(manual / "venue-agent.bash", completions)
    docs = tree / "usr/share/doc/venue-agent"
    _copy(ROOT / "LICENSE", docs / "copyright")
    for name in DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        path = docs / Path(name).name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_PICTURES.sub("", text), encoding="utf-8")
    if (ROOT / "CHANGELOG.md").exists():
        _gzip((ROOT / "CHANGELOG.md").read_bytes(), docs / "changelog.gz")
    (tree / "etc/venue-agent").mkdir(parents=True)


def newest_glibc(tree: Path) -> str:
    """Return the newest version of the C library's symbols that any binary asks for."""
    versions = {(2, 17)}
    for file in _files(tree):
        content = file.read_bytes()
        if content.startswith(b"\x7fELF"):
            versions.update((2, int(minor)) for minor in re.findall(rb"GLIBC_2\.(\d+)", content))
    return ".".join(str(part) for part in max(versions))


def settle_modes(tree: Path) -> None:
    """Give every file the mode of its kind, whatever the umask was."""
    for path in (tree, *tree.rglob("*")):
        if path.is_symlink():
            continue
        is_program = path.is_dir() or path.stat().st_mode & 0o100
        path.chmod(0o755 if is_program else 0o644)


def build(onedir: Path, manual: Path, output: Path, version: str) -> Path:
    """Return the path of the package."""
    architecture = ARCHITECTURES[platform.machine()]
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "tree"
        tree.mkdir()
        stage(tree, onedir, manual)
        settle_modes(tree)
        control = CONTROL.format(
            version=version,
            architecture=architecture,
            installed_kib=sum(-(-f.stat().st_size // 1024) for f in _files(tree)),
            glibc=newest_glibc(tree),
        )
        (tree / "DEBIAN").mkdir()
        (tree / "DEBIAN/control").write_text(control)
        for name in SCRIPTS:
            _copy(DEB / name, tree / "DEBIAN" / name)
            (tree / "DEBIAN" / name).chmod(0o755)
        output.mkdir(parents=True, exist_ok=True)
        package = output / f"venue-agent_{version}_{architecture}.deb"
        subprocess.run(
            ("dpkg-deb", "--root-owner-group", "-Zxz", "-z9", "--build", str(tree), str(package)),
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "XZ_DEFAULTS": "--threads=1"},
        )
    return package


def _files(tree: Path) -> Iterator[Path]:
    return (path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _gzip(content: bytes, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(content, 9, mtime=0))


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the Debian package.")
    parser.add_argument("--onedir", type=Path, required=True)
    parser.add_argument("--manual", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--version", default=source_version())
    options = parser.parse_args()
    package = build(options.onedir, options.manual, options.output, options.version)
    sys.stdout.write(f"{package}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
