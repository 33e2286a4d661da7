"""The results of doctor on a terminal: first the results by group, then the fixes."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from agent.cli.terminal.screen import Part, Screen, Style
from agent.doctor.check import CheckResult, Status

_MARKS: Final[dict[Status, tuple[str, Style]]] = {
    "ok": ("ok", "good"),
    "warn": ("warn", "warn"),
    "fail": ("FAIL", "bad"),
    "skipped": ("-", "quiet"),
    "unseen": ("?", "warn"),
}
_WORDS: Final[dict[Status, str]] = {
    "ok": "ok", "warn": "with a warning", "fail": "failed", "skipped": "skipped",
    "unseen": "not visible to you",
}  # fmt: skip
_HEADINGS: Final = (" " * 4, " " * 15, "")
"""Blank headings set the minimum widths of the columns."""

Row = tuple[Part, Part, Part]


def show(
    results: Sequence[CheckResult], duration_s: float, screen: Screen, *, with_skipped: bool = False
) -> None:
    """Print the results; ``with_skipped`` also prints skipped checks."""
    for group, members in groupby(results, key=lambda result: result.group):
        if rows := _rows(tuple(members), with_skipped=with_skipped):
            screen.line((group, "strong"))
            screen.table(_HEADINGS, rows)
            screen.blank()
    for result in results:
        if result.status in {"warn", "fail"}:
            _show_fix(screen, result)
    _show_counts(screen, results, duration_s)


def _rows(results: tuple[CheckResult, ...], *, with_skipped: bool) -> list[Row]:
    """Return a row for each result if ``with_skipped`` is set.

    Otherwise, a check that did not run because of another check (``because``) has no row of its
    own: all checks with the same ``because`` share one row. Other skipped checks are left out.
    """
    if with_skipped:
        return [_row(result) for result in results]
    rows = [
        _row(result) for result in results if result.status != "skipped" and result.because is None
    ]
    causes = ((result.because, result.status) for result in results if result.because)
    for cause, status in dict.fromkeys(causes):
        names = ", ".join(r.name for r in results if (r.because, r.status) == (cause, status))
        label, reason = "skipped", f"fix {cause} first"
        if status == "unseen":
            label, reason = "not run", f"{cause} is not visible to you"
        rows.append((_MARKS[status], (label, "quiet"), (f"{names}: {reason}", "quiet")))
    return rows


def _row(result: CheckResult) -> Row:
    style: Style = "quiet" if result.status == "skipped" else "none"
    return _MARKS[result.status], (result.name, style), (result.detail, style)


def _show_fix(screen: Screen, result: CheckResult) -> None:
    screen.paragraph(f"{result.name}: {result.detail}", _MARKS[result.status][1])
    screen.paragraph(f"→ {result.fix}", indent="  ")
    screen.blank()


def _show_counts(screen: Screen, results: Sequence[CheckResult], duration_s: float) -> None:
    counts = Counter(result.status for result in results)
    parts: list[Part] = []
    for status, word in _WORDS.items():
        if counts[status]:
            parts += [", " if parts else "", (f"{counts[status]} {word}", _MARKS[status][1])]
    screen.line(*parts, (f"  ({duration_s:.1f} s)", "quiet"))
