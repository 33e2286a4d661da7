"""How a collector of the tests is started: the agent gives its children no place of modules."""

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
    """Return what gives the command line of ``tests.fakes.collectors.NAME`` for a kind."""
    return lambda kind: (
        sys.executable,
        "-c",
        _RUN,
        str(ROOT),
        f"tests.fakes.collectors.{name}",
        kind,
    )
