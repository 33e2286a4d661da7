"""Builds the packages in two directories with different paths, and compares their bytes.

The source is the present content of all files that git tracks.
Usage: python -m tests.packaging.release.verify_reproducible [TARGET ...]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from release.checksums import digest

from tests.paths import ROOT

TARGETS: Final = ("test-deb", "test-service-deb", "wheel")
"""Targets that build the wheel of a release, and its amd64 Debian packages with a faster
compression."""
RESULTS: Final = ("dist", "build/test-debs")
DIRECTORIES: Final = ("a", "longer/path/of-another-build")
BUILD_ROOT: Final = ROOT / "build/reproducible"


def git(*words: str) -> str:
    command = ("git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *words)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def copy_source(tree: Path) -> None:
    """Copy all files that git tracks to the new directory ``tree``."""
    for name in filter(None, git("ls-files", "-z").split("\0")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)


def build(tree: Path, targets: list[str], epoch: str) -> dict[str, str]:
    """Build the targets in a copy of the source. Return the hash of each result."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    subprocess.run(("make", "-C", str(tree), *targets), check=True, env=environment)
    files = [path for folder in RESULTS for path in (tree / folder).rglob("*") if path.is_file()]
    return {str(path.relative_to(tree)): digest(path) for path in files}


def main() -> int:
    parser = argparse.ArgumentParser(description="Build twice and compare.")
    parser.add_argument("targets", nargs="*", default=TARGETS)
    options = parser.parse_args()
    BUILD_ROOT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD_ROOT) as place:
        trees = [Path(place) / name for name in DIRECTORIES]
        for tree in trees:
            copy_source(tree)
        epoch = git("log", "-1", "--format=%ct").strip()
        first, second = (build(tree, [*options.targets], epoch) for tree in trees)
    different = sorted(name for name in first | second if first.get(name) != second.get(name))
    sys.stdout.write("".join(f"different bytes: {name}\n" for name in different))
    sys.stdout.write(f"{len(first) - len(different)} of {len(first)} files are the same\n")
    return 1 if different or not first else 0


if __name__ == "__main__":
    sys.exit(main())
