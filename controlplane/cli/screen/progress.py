"""Progress on stderr. On a terminal, one line is updated. Otherwise, lines are added."""

import sys
import time
from collections.abc import Callable
from http import HTTPStatus
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from agent.presentation.plain_text import plain

if TYPE_CHECKING:
    from rich.status import Status

WAIT_LINE_INTERVAL_S: Final = 10.0
"""Minimum time between two lines about waiting, if stderr is not a terminal."""
_SPINNER_WIDTH: Final = 4
"""Columns of the spinner and the space around it."""


class Progress:
    """Shows the progress of a command. Use it in a ``with`` statement.

    On a terminal, ``show`` updates the progress line. ``write_line`` always prints a line. ``log``
    prints a line only if stderr is not a terminal.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._spinner: Status | None = None
        self._text = ""
        self._last_wait_line_at_s: float | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console  # rich is slow to import
            from rich.status import Status

            console = Console(file=sys.stderr, highlight=False)
            is_unicode = console.encoding.lower().startswith("utf")
            spinner = "dots" if is_unicode else "line"
            self._spinner = Status("", console=console, spinner=spinner)
            self._spinner.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner = None

    def show(self, text: str) -> None:
        self._text = text
        self._render(text)

    def write_line(self, line: str) -> None:
        if self._spinner is not None:
            self._spinner.console.print(plain(line), soft_wrap=True, markup=False)
        else:
            sys.stderr.write(f"{plain(line)}\n")
            sys.stderr.flush()

    def log(self, line: str) -> None:
        if self._spinner is None:
            self.write_line(line)

    def show_wait(self, wait_s: float, status: int) -> None:
        """Report that the client waits, because the service refused a call with ``status``."""
        reason = "limits the rate of calls" if status == HTTPStatus.TOO_MANY_REQUESTS else "is busy"
        line = f"the service {reason}: waiting {max(1, round(wait_s))} s"
        now_s = self._monotonic()
        if self._spinner is not None:
            self._render(f"{line} · {self._text}" if self._text else line)
        elif (
            self._last_wait_line_at_s is None
            or now_s - self._last_wait_line_at_s >= WAIT_LINE_INTERVAL_S
        ):
            self._last_wait_line_at_s = now_s
            self.write_line(line)

    def _render(self, text: str) -> None:
        if self._spinner is None:
            return
        from rich.text import Text

        line = Text(plain(text), no_wrap=True)
        line.truncate(max(1, self._spinner.console.width - _SPINNER_WIDTH), overflow="ellipsis")
        self._spinner.update(line)
