"""Proves the Windows side under Wine: in a Windows CPython, then as the packaged program's service.

Needs the Debian packages wine64 and gcc-mingw-w64-x86-64-win32, and the package index once. The
proof itself has no network but loopback, processes of its own, and a Windows made anew for it.
Root is not needed where user namespaces are allowed.

Usage: python -m tests.packaging.prove_wine [--keep DIR]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.lab.namespaces import LOOPBACK
from tests.packaging.local_service import local_service
from tests.packaging.windows_package import build_package
from tests.packaging.windows_proofs import PackageProof, SourceProof, say
from tests.packaging.wine_world import ROOT, WORLD, Wine, fresh_wine, prepare

INSIDE: Final = "VENUE_AGENT_PROOF_IS_ALONE"


def prove(wine: Wine, keep: Path | None) -> None:
    """Take every step, in order; the first that fails ends the proof. Each proof has a service of
    its own: two devices may not share its key."""
    with tempfile.TemporaryDirectory() as folder, local_service(Path(folder)) as service:
        SourceProof(wine, service, keep).take()
    package = build_package(wine)
    say(f"the package: {package.name}, {package.stat().st_size / 2**20:.1f} MiB")
    with tempfile.TemporaryDirectory() as folder, local_service(Path(folder)) as service:
        PackageProof(wine, service, keep, package).take()


def run_alone() -> int:
    """Run this proof again with a network and processes of its own, which end with it."""
    as_user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    own = ("unshare", *as_user, "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
    again = (sys.executable, "-m", "tests.packaging.prove_wine", *sys.argv[1:])
    words = (*own, "--", *LOOPBACK, *again)
    return subprocess.run(words, cwd=ROOT, env={**os.environ, INSIDE: "1"}, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description="Prove the Windows side under Wine.")
    parser.add_argument("--keep", type=Path, help="where the reports of the proof are kept")
    options = parser.parse_args()
    if INSIDE not in os.environ:
        prepare()
        return run_alone()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    shutil.rmtree(WORLD / "prefix", ignore_errors=True)
    with fresh_wine(WORLD / "prefix") as wine:
        say(f"a new Windows in {time.monotonic() - began:.1f} s")
        prove(wine, options.keep)
    sys.stdout.write(json.dumps({"seconds": round(time.monotonic() - began, 1)}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
