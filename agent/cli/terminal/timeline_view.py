"""The record of the connection on a terminal: a row of hours for each day, incidents, events."""

from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import Final

from agent.cli.terminal.screen import SEVERITY_STYLES, Part, Screen, Style
from agent.presentation.connectivity.day_rows import SHORT_S, DayRow, causes_in, day_rows
from agent.presentation.connectivity.sentences import (
    Entry,
    ToLocal,
    entries,
    open_interruption,
    time_text,
)
from agent.presentation.connectivity.titles import CAUSE_TITLES
from agent.presentation.humanize import counted, format_seconds
from agent.redaction.known import redact
from agent.rules.connectivity.figures import hour_rows, interruptions
from agent.wire.payloads.history import History, Hour
from agent.wire.payloads.history_lines import HourRow

LISTED_MAX: Final = 40
_TITLE_WIDTH: Final = 12
_HEAD_WIDTH: Final = 6
"""Width of each hour number in the head of the table. The head has every sixth hour, or every third
hour if an hour has two columns."""
_WIDE_FROM: Final = 76
"""Minimum width of the terminal at which each hour has two columns instead of one."""


def show_timeline(
    screen: Screen,
    history: History,
    now: datetime,
    *,
    is_running: bool,
    zone: tzinfo | None = None,
) -> None:
    """Print the record.

    Args:
        is_running: whether the daemon runs, and therefore records the present hour.
        zone: the local time zone. None means the time zone of the system.
    """

    def to_local(at: datetime) -> datetime:
        return at.astimezone(zone)

    _show_verdict(screen, history, now, to_local)
    if not is_running:
        screen.paragraph("The daemon does not run: nothing is recorded now.", "warn")
    rows = hour_rows(history, history.since, now, zone)
    present = HourRow(Hour(to_local(now).replace(minute=0, second=0, microsecond=0)))
    if is_running and rows and rows[-1].hour.at < present.hour.at:
        rows = (*rows, present)  # the record has no row of an hour that has not ended
    _show_days(screen, day_rows(rows))
    _show_list(screen, history, now, to_local)


def _show_verdict(screen: Screen, history: History, now: datetime, to_local: ToLocal) -> None:
    since = time_text(to_local(history.since))
    if incident := open_interruption(history.incidents):
        began = time_text(to_local(incident.began_at), to_local(now))
        screen.paragraph(f"No connection since {began}: {redact(incident.evidence)}", "bad")
    for fault in history.incidents:
        if fault.ended_at is None and not fault.is_interruption:
            began = time_text(to_local(fault.began_at), to_local(now))
            title = CAUSE_TITLES[fault.cause].sentence
            screen.paragraph(f"Ongoing since {began}: {title}: {redact(fault.evidence)}", "warn")
    incidents = list(interruptions(history, history.since, now))
    if not incidents:
        screen.paragraph(f"No interruptions since {since}.", "good")
        return
    total = format_seconds(round(sum(incident.duration_s for incident in incidents)))
    screen.paragraph(f"{counted(len(incidents), 'interruption')} since {since}, {total} in total.")


def _show_days(screen: Screen, days: tuple[DayRow, ...]) -> None:
    if not days:
        return
    width = 2 if screen.width >= _WIDE_FROM else 1
    screen.blank()
    heads: Iterator[Part] = (
        (f"{hour:<{_HEAD_WIDTH}}", "quiet") for hour in range(0, 24, _HEAD_WIDTH // width)
    )
    screen.line(" " * _TITLE_WIDTH, *heads)
    for day in days:
        cells: Iterator[Part] = (
            (f"{hour.letter:<{width}}", "quiet" if hour.cause is None else "bad")
            for hour in day.hours
        )
        total = f"  {format_seconds(day.downtime_s)}" if day.downtime_s else ""
        screen.line(f"{day.title:<{_TITLE_WIDTH}}", *cells, total)
    _show_legend(screen, days)


def _show_legend(screen: Screen, days: tuple[DayRow, ...]) -> None:
    titles = [CAUSE_TITLES[cause] for cause in causes_in(days)]
    legend = [f"{title.letter} {title.label}" for title in titles]
    letters = {hour.letter for day in days for hour in day.hours}
    if any(letter.islower() for letter in letters):
        legend.append(f"small letter: less than {format_seconds(SHORT_S)}")
    if "." in letters:
        legend.append("dot: works")
    if " " in letters:
        legend.append("blank: not recorded")
    screen.blank()
    screen.paragraph(" · ".join(legend), "quiet")


def _show_list(screen: Screen, history: History, now: datetime, to_local: ToLocal) -> None:
    """Print the incidents and events, newest first."""
    rows = entries(history.incidents, history.events, now, to_local)
    if not rows:
        return
    screen.blank()
    screen.table(("when", "duration", "what"), [_row(row) for row in rows[:LISTED_MAX]])
    if len(rows) > LISTED_MAX:
        older = len(rows) - LISTED_MAX
        screen.line((f"there are {older} older rows: --json prints all rows", "quiet"))


def _row(entry: Entry) -> tuple[Part, ...]:
    # Most rows are warnings. They get no colour, so that the other rows stand out.
    style: Style = "none" if entry.severity == "warn" else SEVERITY_STYLES[entry.severity]
    return entry.when, entry.duration, (redact(entry.text), style)
