"""Shows the progress of a run, on a terminal or in another output.

A terminal shows the current steps. Any other output gets a line for each finished step.

On a terminal, the elapsed time of each unfinished step and of the whole run is updated
continuously. Everything goes to stderr, so that the output of a command can be piped.
"""

import sys
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

from agent.presentation.humanize import format_seconds
from agent.presentation.plain_text import shorten

STEPS_MAX: Final = 64
"""Maximum number of displayed steps. Updates of further steps are ignored."""

_STEP_LENGTH: Final = 22
"""Maximum length of the displayed name of a step."""
_BAR_FROM: Final = 66
"""Minimum width of a terminal, in columns, for lines with a bar."""
_LABELS: Final = {
    "interfaces": "this machine's network",
    "scan": "addresses scanned",
    "mdns": "announcements received",
    "enrichment": "queries to devices",
    "sources": "facts of this machine",
}
"""Labels of the collectors' steps on a terminal. Any other output shows the names of the steps."""


class RunProgress:
    """Shows the progress of a run and its steps; use it as a context manager around the run.

    ``title`` is the label of the whole run. Calls of `update` for one step may come from any
    thread, but not at the same time.
    """

    def __init__(
        self,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        title: str = "",
    ) -> None:
        self._console = console or Console(file=sys.stderr, highlight=False)
        self._steps: dict[str, Task] = {}
        self._bars = Progress(
            *_columns(self._console),
            console=self._console,
            get_time=clock,
            disable=not self._console.is_interactive,
        )
        self._run = self._bars.add_task(title, total=None, amount="")

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._steps.values():
            if task.stop_time is None:
                self._finish(task)
        self._bars.update(self._run, completed=1, total=1)
        self._bars.stop()

    def update(self, step: str, done: int, total: int | None = None) -> None:
        """Show that ``done`` of ``total`` parts of ``step`` are done.

        ``total`` is None while it is unknown. A step without a total is finished when the run ends.
        """
        task = self._steps.get(step) or self._begin(step)
        if task is None or task.stop_time is not None:
            return
        amount = str(done) if total is None else f"{done} of {total}"
        self._bars.update(task.id, completed=done, total=total, amount=amount)
        if total is not None and done >= total:
            self._finish(task)

    def _begin(self, step: str) -> Task | None:
        if len(self._steps) >= STEPS_MAX:
            return None
        name = shorten(step, _STEP_LENGTH)
        task_id = self._bars.add_task(_LABELS.get(step, name), total=None, name=name, amount="")
        self._steps[step] = next(task for task in self._bars.tasks if task.id == task_id)
        return self._steps[step]

    def _finish(self, task: Task) -> None:
        self._bars.update(task.id, total=task.total or max(task.completed, 1))
        self._bars.stop_task(task.id)
        if not self._console.is_interactive:
            duration = format_seconds(task.elapsed or 0.0)
            line = f"{task.fields['name']}: {task.fields['amount']} in {duration}"
            self._console.print(Text(line), soft_wrap=True)


class _Elapsed(ProgressColumn):
    """Elapsed time in tenths of a second, so that a waiting user sees progress."""

    def render(self, task: Task) -> Text:
        elapsed_s = task.elapsed or 0.0
        label = f"{elapsed_s:.1f} s" if elapsed_s < 60 else format_seconds(elapsed_s)
        return Text(f"{label:>6}", style="dim")


def _columns(console: Console) -> Iterator[ProgressColumn]:
    is_unicode = console.encoding.lower().startswith("utf")
    yield SpinnerColumn("dots" if is_unicode else "line", finished_text="✓" if is_unicode else "+")
    yield TextColumn("{task.description}", markup=False)
    if console.width >= _BAR_FROM:
        yield BarColumn(bar_width=20)
    yield TextColumn("{task.fields[amount]}", style="dim", markup=False)
    yield _Elapsed()
