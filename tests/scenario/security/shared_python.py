"""Finds a Python that the owner of the agent's state directory can run with our libraries.

Some machines have no such Python.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.paths import ROOT
from tests.scenario.hostile.state import SERVICE

LIBRARIES: Final = Path(pytest.__file__).parents[1]
ENVIRONMENT: Final = {
    "PATH": os.defpath,
    "PYTHONPATH": f"{ROOT}{os.pathsep}{LIBRARIES}",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def shared_python() -> str:
    """Return a Python of this version that the owner of the agent's state directory can run.

    This Python can import our libraries.

    Raises:
        LookupError: There is no such Python.
    """
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    probe = "import agent.app, cryptography, rich"
    for python in (sys.executable, f"/usr/bin/{name}", f"/usr/local/bin/{name}"):
        try:
            result = subprocess.run(
                [python, "-c", probe], user=SERVICE, group=SERVICE, extra_groups=(), cwd="/",
                env=ENVIRONMENT, capture_output=True, check=False,
            )  # fmt: skip
        except OSError:
            continue
        if result.returncode == 0:
            return python
    raise LookupError(f"other users cannot run {sys.executable} with the libraries in {LIBRARIES}")
