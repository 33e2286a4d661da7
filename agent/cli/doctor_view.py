"""Doctor's findings on a terminal, 80 columns wide."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agent.doctor.check import Outcome, Status

_MARKS: Final[dict[Status, tuple[str, str]]] = {
    "ok": ("ok", "green"),
    "warn": ("warn", "bold yellow"),
    "fail": ("FAIL", "bold red"),
    "skipped": ("-", "dim"),
}
_WORDS: Final[dict[Status, str]] = {
    "ok": "ok", "warn": "to look at", "fail": "failed", "skipped": "skipped",
}  # fmt: skip


def show(
    outcomes: Sequence[Outcome],
    duration_s: float,
    *,
    everything: bool = False,
    console: Console | None = None,
) -> None:
    console = console or Console(highlight=False)
    shown = [o for o in outcomes if everything or o.status != "skipped" or o.because]
    for group in dict.fromkeys(o.group for o in shown):
        console.print(Text(group, "bold"))
        console.print(Padding(_table([o for o in shown if o.group == group]), (0, 0, 1, 0)))
    console.print(_summary(outcomes, duration_s))


def _table(outcomes: Sequence[Outcome]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=4)
    table.add_column(width=15)
    table.add_column(overflow="fold")
    for outcome in outcomes:
        mark, style = _MARKS[outcome.status]
        quiet = "dim" if outcome.status == "skipped" else ""
        table.add_row(Text(mark, style), Text(outcome.name, quiet), _words(outcome, quiet))
    return table


def _words(outcome: Outcome, quiet: str) -> Text:
    text = Text(outcome.detail, quiet)
    if outcome.fix:
        text.append("\n→ ", "bold").append(outcome.fix)
    return text


def _summary(outcomes: Sequence[Outcome], duration_s: float) -> Text:
    counts = Counter(outcome.status for outcome in outcomes)
    parts: list[Text] = []
    for status, word in _WORDS.items():
        if counts[status]:
            parts.append(Text(f"{counts[status]} {word}", _MARKS[status][1]))
    return Text(", ").join(parts).append(f"  ({duration_s:.1f} s)", "dim")
