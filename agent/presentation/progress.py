"""How far a run has come: a bar for each step on a terminal, a line for each step elsewhere.

Everything goes to stderr, so that what a command prints can be piped.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from agent.presentation.humanize import seconds_in_words
from agent.presentation.plain_text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

STEPS_MAX: Final = 64
"""Steps that are shown; events of further ones are ignored."""

_STEP_LENGTH: Final = 28


@dataclass(slots=True)
class _Step:
    name: str
    started_s: float
    bar: TaskID
    done: int = 0
    total: int | None = None
    is_finished: bool = False


class RunProgress:
    """Shows ``(step, done, total)`` events; use it as a context manager around the run.

    ``total`` is None while it is not known. A step is finished once ``done`` reaches ``total``,
    one without a total when the run ends. Events of one step may come from any thread, but not
    at the same time.
    """

    def __init__(
        self, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console or Console(file=sys.stderr, highlight=False)
        self._clock = clock
        self._steps: dict[str, _Step] = {}
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[amount]}", style="dim", markup=False),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_interactive,
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for step in self._steps.values():
            if not step.is_finished:
                self._finish(step)
        self._bars.stop()

    def update(self, step: str, done: int, total: int | None = None) -> None:
        """Tell that ``done`` of ``total`` parts of ``step`` are done."""
        known = self._steps.get(step) or self._begin(step)
        if known is None or known.is_finished:
            return
        known.done, known.total = done, total
        self._bars.update(known.bar, completed=done, total=total, amount=_amount(done, total))
        if total is not None and done >= total:
            self._finish(known)

    def _begin(self, step: str) -> _Step | None:
        if len(self._steps) >= STEPS_MAX:
            return None
        name = shorten(step, _STEP_LENGTH)
        begun = _Step(name, self._clock(), self._bars.add_task(name, total=None, amount=""))
        self._steps[step] = begun
        return begun

    def _finish(self, step: _Step) -> None:
        step.is_finished = True
        self._bars.update(step.bar, completed=step.done, total=step.total or max(step.done, 1))
        self._bars.stop_task(step.bar)
        if not self._console.is_interactive:
            took = seconds_in_words(self._clock() - step.started_s)
            line = f"{step.name}: {_amount(step.done, step.total)} in {took}"
            self._console.print(Text(line), soft_wrap=True)


def _amount(done: int, total: int | None) -> str:
    return str(done) if total is None else f"{done} of {total}"
