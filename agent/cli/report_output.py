"""A report for the person who asked: on the terminal, and as a page in a file."""

import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from agent.errors import AgentError
from agent.presentation.page.html import report_page
from agent.presentation.terminal.report import report_view
from agent.rules.reports.sealing import Payload


def show_report(payload: Payload) -> None:
    Console(highlight=False).print(report_view(payload))


def write_page(
    path: Path, payload: Payload, write: Callable[[bytes], object] | None = None
) -> None:
    """Write it by ``write``, where this process has not the rights to. Raises AgentError."""
    try:
        (write or path.write_bytes)(report_page(payload).encode())
    except OSError as error:
        raise AgentError(f"{path} cannot be written: {error.strerror}") from None
    sys.stderr.write(f"written to {path}\n")
