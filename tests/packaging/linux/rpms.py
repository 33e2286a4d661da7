"""Builds the RPM packages that the tests install."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.paths import ROOT

BUILD: Final = ROOT / "packaging/rpm/build_rpm.py"
PARTS: Final = {
    "venue-agent": ("build/onedir/venue-agent", "build/manual"),
    "venue-control": ("build/service-onedir/venue-control", "build/service-manual"),
}
"""For each program, PyInstaller's output directory and the directory of the manual."""
NEXT: Final = "99.0"
"""The version of an upgrade that works."""
BROKEN: Final = "100.0"
"""The version of an upgrade whose program does not start."""
DOES_NOT_START: Final = "#!/bin/sh\nexit 1\n"
SYSTEM_SPEC: Final = """\
Name: system
Version: {version}
Release: 1
Summary: The capabilities of a distribution
License: Apache-2.0
BuildArch: noarch
Provides: libc.so.6(GLIBC_{glibc})(64bit)
Provides: systemd = {systemd}
Provides: /bin/sh
Provides: policycoreutils
%description
Stands for the packages of a distribution with RPM. It contains none of their files, because Debian
packages provide these files on the machine that runs the tests.
%files
"""


def build(
    program: str, output: Path, version: str | None = None, onedir: Path | None = None
) -> list[Path]:
    """Build a program's packages from PyInstaller's output directory. Compress them quickly."""
    default_onedir, manual = PARTS[program]
    words = (
        "--onedir", onedir or default_onedir, "--manual", manual, "--program", program,
        "--level", "0",
    )  # fmt: skip
    defaults = {"PYTHONPATH": str(ROOT), "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run(
        (sys.executable, BUILD, *words, "--output", output,
         *(("--version", version) if version else ())),
        cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env={**defaults, **os.environ},
    )  # fmt: skip
    return sorted(output.glob(f"{program}-*.rpm"))


def build_broken(place: Path, output: Path) -> Path:
    """Build a package of the agent with a program that does not start."""
    onedir = place / "broken-onedir"
    shutil.copytree(ROOT / PARTS["venue-agent"][0], onedir, symlinks=True)
    (onedir / "venue-agent").write_text(DOES_NOT_START)
    return build("venue-agent", output, BROKEN, onedir)[0]


def build_system(output: Path, glibc: str, systemd: int = 252) -> Path:
    """Build a package that provides what our packages require from a distribution."""
    with tempfile.TemporaryDirectory() as directory:
        spec = Path(directory) / "system.spec"
        spec.write_text(SYSTEM_SPEC.format(version=glibc, glibc=glibc, systemd=systemd))
        subprocess.run(
            ("rpmbuild", "-bb", "--quiet", "-D", f"_topdir {directory}", "-D", f"_rpmdir {output}",
             "-D", "_rpmfilename %{NAME}-%{VERSION}.rpm", spec),
            check=True, capture_output=True,
        )  # fmt: skip
    return output / f"system-{glibc}.rpm"
