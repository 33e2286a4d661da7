"""Builds the Windows package under Wine, for tests only: releases are built on Windows."""

import hashlib
import shutil
from pathlib import Path
from typing import Final

from agent import __version__
from tests.packaging.wine.wine import CACHE, ROOT, Wine, windows

SOURCES: Final = (
    "agent", "collectors", "packaging/entry.py", "packaging/program.spec",
    "packaging/windows/build_zip.py", "constraints.txt", "pyproject.toml",
)  # fmt: skip
BUILD_WITHIN_S: Final = 3600.0


def build_package(wine: Wine) -> Path:
    """Return the package of this source tree as a zip. Build it unless it already exists."""
    onedir, dist, marker = CACHE / "onedir", CACHE / "dist", CACHE / "packaged"
    if not marker.exists() or marker.read_text() != _hash_of_sources():
        marker.unlink(missing_ok=True)
        for folder in (onedir, dist):
            shutil.rmtree(folder, ignore_errors=True)
        _freeze(wine, onedir)
        words = (windows(onedir / "venue-agent"), __version__, windows(dist))
        wine.python(windows(ROOT / "packaging/windows/build_zip.py"), *words)
        marker.write_text(_hash_of_sources())
    (package,) = dist.glob("*.zip")
    return package


def _freeze(wine: Wine, onedir: Path) -> None:
    work = ("--distpath", windows(onedir), "--workpath", windows(CACHE / "pyinstaller"))
    spec = windows(ROOT / "packaging/program.spec")
    options = ("--noconfirm", "--log-level", "ERROR")
    wine.python("-m", "PyInstaller", *options, *work, spec, within_s=BUILD_WITHIN_S)


def _hash_of_sources() -> str:
    digest = hashlib.sha256()
    for name in SOURCES:
        path = ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else (path,):
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
