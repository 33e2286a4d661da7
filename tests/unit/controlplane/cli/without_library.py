"""Runs `venue-control` in a process in which a library cannot be imported.

Another process is required, because the process of the tests might have imported the library.
"""

import subprocess
import sys

CODE = """
import sys
sys.modules[sys.argv[1]] = None
from controlplane.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


def run_without(library: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run `venue-control` with the arguments ``words``. Importing ``library`` fails."""
    command = (sys.executable, "-c", CODE, library, *words)
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
