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

from tests.paths import ROOT

TARGETS: Final = ("test-deb", "test-service-deb", "wheel")
"""They build everything that a release contains, with a faster compression."""
RESULTS: Final = ("dist", "build/test-debs")
DIRECTORIES: Final = ("a", "longer/path/of-another-build")
BUILD_ROOT: Final = ROOT / "build/reproducible"


def build(tree: Path, targets: list[str]) -> dict[str, bytes]:
    """Build the targets in a copy of the source. Return the content of each result."""
    git = ("git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT))
    listed = subprocess.run((*git, "ls-files", "-z"), capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    epoch = subprocess.run((*git, "log", "-1", "--format=%ct"), capture_output=True, check=True)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch.stdout.decode().strip()}
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        environment.pop(name, None)
    subprocess.run(("make", "-C", str(tree), *targets), check=True, env=environment)
    files = [path for folder in RESULTS for path in (tree / folder).rglob("*") if path.is_file()]
    return {str(path.relative_to(tree)): path.read_bytes() for path in files}


def main() -> int:
    parser = argparse.ArgumentParser(description="Build twice and compare.")
    parser.add_argument("targets", nargs="*", default=TARGETS)
    options = parser.parse_args()
    BUILD_ROOT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD_ROOT) as place:
        first, second = (build(Path(place) / name, [*options.targets]) for name in DIRECTORIES)
    different = sorted(name for name in first | second if first.get(name) != second.get(name))
    sys.stdout.write("".join(f"different bytes: {name}\n" for name in different))
    sys.stdout.write(f"{len(first) - len(different)} of {len(first)} files are the same\n")
    return 1 if different or not first else 0


if __name__ == "__main__":
    sys.exit(main())
