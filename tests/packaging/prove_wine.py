"""Proves the Windows side under Wine, with a Windows CPython and then as the packaged program.

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
import time
from typing import Final

from tests.packaging.wine_world import ROOT, WORLD, Wine, fresh_wine, prepare

INSIDE: Final = "VENUE_AGENT_PROOF_IS_ALONE"
HOME: Final = r"C:\ProgramData\venue-agent"


def say(text: str) -> None:
    sys.stdout.write(f"ok  {text}\n")
    sys.stdout.flush()


class PythonProof:
    """The agent in a Windows CPython, from this source tree."""

    def __init__(self, wine: Wine) -> None:
        self.wine = wine

    def agent(self, *words: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        return self.wine.python("-m", "agent", *words, expect=expect)

    def import_everything(self) -> None:
        done = self.wine.python("-W", "error", "-m", "tests.packaging.inside_wine", "imports")
        platform, number = done.stdout.split()
        assert platform == "win32", platform
        say(f"all {number} modules of the agent and the collectors import on {platform}")

    def answer(self) -> None:
        say(self.agent("--version").stdout.strip())


def prove(wine: Wine) -> None:
    proof = PythonProof(wine)
    for step in (proof.answer, proof.import_everything):
        step()


def run_alone() -> int:
    """Run this proof again with a network and processes of its own, which end with it."""
    as_user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    own = ("unshare", *as_user, "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
    again = (sys.executable, "-m", "tests.packaging.prove_wine", *sys.argv[1:])
    words = (*own, "--", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *again)
    return subprocess.run(words, cwd=ROOT, env={**os.environ, INSIDE: "1"}, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description="Prove the Windows side under Wine.")
    parser.parse_args()
    if INSIDE not in os.environ:
        prepare()
        return run_alone()
    began = time.monotonic()
    shutil.rmtree(WORLD / "prefix", ignore_errors=True)
    with fresh_wine(WORLD / "prefix") as wine:
        say(f"a new Windows in {time.monotonic() - began:.1f} s")
        prove(wine)
    sys.stdout.write(json.dumps({"seconds": round(time.monotonic() - began, 1)}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
