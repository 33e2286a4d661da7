"""Doctor's findings on a terminal, 80 columns wide: what is, then what to do."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from agent.cli.screen import Screen, Style
from agent.doctor.check import Outcome, Status

_MARKS: Final[dict[Status, tuple[str, Style]]] = {
    "ok": ("ok", "good"),
    "warn": ("warn", "warn"),
    "fail": ("FAIL", "bad"),
    "skipped": ("-", "quiet"),
    "unseen": ("?", "warn"),
}
_WORDS: Final[dict[Status, str]] = {
    "ok": "ok", "warn": "to look at", "fail": "failed", "skipped": "skipped",
    "unseen": "not visible to you",
}  # fmt: skip
_COLUMNS: Final = (" " * 4, " " * 15, "")

Row = tuple[tuple[str, Style], tuple[str, Style], tuple[str, Style]]


def show(
    outcomes: Sequence[Outcome], duration_s: float, screen: Screen, *, everything: bool = False
) -> None:
    """Write everything that was asked; with ``everything`` also each check that was not."""
    for group, members in groupby(outcomes, key=lambda outcome: outcome.group):
        if rows := _rows(tuple(members), everything=everything):
            screen.line((group, "strong"))
            screen.table(_COLUMNS, rows)
            screen.blank()
    for outcome in outcomes:
        if outcome.status in {"warn", "fail"}:
            _show_what_to_do(screen, outcome)
    _show_counts(screen, outcomes, duration_s)


def _rows(outcomes: tuple[Outcome, ...], *, everything: bool) -> list[Row]:
    if everything:
        return [_row(o) for o in outcomes]
    rows = [_row(o) for o in outcomes if o.status != "skipped" and o.because is None]
    for cause in dict.fromkeys(o.because for o in outcomes if o.because):
        names = ", ".join(o.name for o in outcomes if o.because == cause)
        rows.append((("-", "quiet"), ("not asked", "quiet"), (f"{names}: {cause} first", "quiet")))
    return rows


def _row(outcome: Outcome) -> Row:
    style: Style = "quiet" if outcome.status == "skipped" else "none"
    return _MARKS[outcome.status], (outcome.name, style), (outcome.detail, style)


def _show_what_to_do(screen: Screen, outcome: Outcome) -> None:
    screen.paragraph(f"{outcome.name}: {outcome.detail}", _MARKS[outcome.status][1])
    screen.paragraph(f"→ {outcome.fix}", indent="  ")
    screen.blank()


def _show_counts(screen: Screen, outcomes: Sequence[Outcome], duration_s: float) -> None:
    counts = Counter(outcome.status for outcome in outcomes)
    parts: list[tuple[str, Style]] = []
    for status, word in _WORDS.items():
        if counts[status]:
            parts += [
                (", " if parts else "", "none"),
                (f"{counts[status]} {word}", _MARKS[status][1]),
            ]
    screen.line(*parts, (f"  ({duration_s:.1f} s)", "quiet"))
