"""Functions that the processes of long calls run in tests.

The processes import this module before they call a function. This is fast, because this module
imports almost only modules that the processes have imported already.
"""

import os
import signal
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sqlalchemy import text

from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import not_found
from controlplane.settings import Settings
from controlplane.web.core import Call, CallState

ONE_PROCESS: Final = Settings(rate_per_s=0, refusal_delay_s=0, long_call_processes=1)


def call(work: Any, arguments: Any = None, organization_id: str = "org-0001") -> Call[Any]:
    """Return a call that runs ``work`` in a process of long calls."""
    return Call(
        Caller(uuid.uuid4(), organization_id, can_write=False),
        CallState(datetime(2026, 11, 20, 12, tzinfo=UTC), ONE_PROCESS, cursor_key=b""),
        work,
        finish=tuple if work is describe_process else _unchanged,
        arguments=arguments,
    )


def _unchanged(value: Any) -> Any:
    return value


def describe_process(context: RequestContext, _arguments: Any) -> tuple[int, int, int]:
    """Return the process id, the niceness, and the result of a query."""
    return os.getpid(), os.nice(0), context.session.execute(text("SELECT 7")).scalar_one()


def refuse(_context: RequestContext, _arguments: Any) -> None:
    raise not_found("location")


def fail(_context: RequestContext, _arguments: Any) -> None:
    raise ZeroDivisionError("secret")


def kill_process(_context: RequestContext, _arguments: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_process_once(_context: RequestContext, marker: Path) -> int:
    """Kill the process at the first call. Later calls return the id of their process."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()
