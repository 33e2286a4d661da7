"""Command lines that start the collectors of the tests.

They set the module path, because the agent does not set it for its child processes.
"""

import sys
from collections.abc import Callable
from typing import Final

from tests.paths import ROOT

_RUN: Final = """
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def command_of(name: str) -> Callable[[str], tuple[str, ...]]:
    """Return a function that returns the command line of a collector for a kind of report.

    The collector is the module ``tests.fakes.collectors.NAME``.
    """
    return lambda kind: (
        sys.executable,
        "-c",
        _RUN,
        str(ROOT),
        f"tests.fakes.collectors.{name}",
        kind,
    )
