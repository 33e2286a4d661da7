"""What is being waited for, on stderr: one living line at a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable
from http import HTTPStatus
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from agent.presentation.plain_text import plain

if TYPE_CHECKING:
    from rich.status import Status

QUIET_S: Final = 10.0
"""Where lines stay, a wait is told at most so often."""
_SPINNER: Final = 4
"""Columns of the sign that moves, and of the room beside it."""


class Progress:
    """Use as a context manager. ``show`` changes the living line, ``tell`` adds one that stays.

    ``show`` is seen at a terminal only, ``tell`` everywhere, ``log`` in logs and pipes only.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._status: Status | None = None
        self._text = ""
        self._told_wait_s: float | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console  # rich only where shown
            from rich.status import Status

            console = Console(file=sys.stderr, highlight=False)
            is_unicode = console.encoding.lower().startswith("utf")
            spinner = "dots" if is_unicode else "line"
            self._status = Status("", console=console, spinner=spinner)
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def show(self, text: str) -> None:
        self._text = text
        self._render(text)

    def tell(self, line: str) -> None:
        if self._status is not None:
            self._status.console.print(plain(line), soft_wrap=True, markup=False)
        else:
            sys.stderr.write(f"{plain(line)}\n")
            sys.stderr.flush()

    def log(self, line: str) -> None:
        if self._status is None:
            self.tell(line)

    def waits(self, wait_s: float, status: int) -> None:
        """Tell that the service asked to be left alone for a while."""
        why = "asks to slow down" if status == HTTPStatus.TOO_MANY_REQUESTS else "is busy"
        said = f"the service {why}: waiting {max(1, round(wait_s))} s"
        now_s = self._monotonic()
        if self._status is not None:
            self._render(f"{said} · {self._text}" if self._text else said)
        elif self._told_wait_s is None or now_s - self._told_wait_s >= QUIET_S:
            self._told_wait_s = now_s
            self.tell(said)

    def _render(self, text: str) -> None:
        if self._status is None:
            return
        from rich.text import Text

        shown = Text(plain(text), no_wrap=True)
        shown.truncate(max(1, self._status.console.width - _SPINNER), overflow="ellipsis")
        self._status.update(shown)
