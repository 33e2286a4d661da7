"""`venue-control` in a Python that lacks a library. In a process of its own: what was imported
before is not there, and what is imported then does not stay."""

import subprocess
import sys

CODE = """
import sys
sys.modules[sys.argv[1]] = None
from controlplane.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


def run_without(library: str, *words: str) -> "subprocess.CompletedProcess[str]":
    command = (sys.executable, "-c", CODE, library, *words)
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
