"""Functions that tests call in the processes of long calls.

The processes import this module, so the module has few imports of its own.
"""

import os
import signal
from pathlib import Path
from typing import Any

from sqlalchemy import text

from controlplane.operation.context import RequestContext
from controlplane.operation.errors import not_found


def process(context: RequestContext, _arguments: Any) -> tuple[int, int, int]:
    """Return the process id, the niceness, and the result of a query."""
    return os.getpid(), os.nice(0), context.session.execute(text("SELECT 7")).scalar_one()


def refuse(_context: RequestContext, _arguments: Any) -> None:
    raise not_found("location")


def fail(_context: RequestContext, _arguments: Any) -> None:
    raise ZeroDivisionError("secret")


def die(_context: RequestContext, _arguments: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_once(_context: RequestContext, marker: Path) -> int:
    """Kill the process at the first call. Later calls return its id."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()
