"""The record of the connection on a terminal: a row of hours for each day, incidents, events."""

from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import Final

from agent.cli.terminal.screen import Screen, Style
from agent.presentation.connectivity.day_rows import SHORT_S, DayRow, causes_in, day_rows
from agent.presentation.connectivity.sentences import local_time, open_incident
from agent.presentation.connectivity.titles import CAUSE_TITLES, EVENT_TITLES
from agent.presentation.humanize import counted, format_seconds
from agent.redaction.known import redact
from agent.rules.connectivity.figures import hour_rows, interruptions
from agent.wire.payloads.history import Event, History, Incident

LISTED_MAX: Final = 40
_TITLE_WIDTH: Final = 12
_HEAD_WIDTH: Final = 6
_WIDE_FROM: Final = 76
"""Width of the terminal from which on an hour has two columns."""

Part = tuple[str, Style]


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
        is_running: whether the daemon runs, so that the present hour is recorded.
        zone: the local time zone; None for the system's.
    """
    _show_verdict(screen, history, now, zone)
    if not is_running:
        screen.paragraph("The agent does not run: nothing is recorded now.", "warn")
    _show_days(screen, day_rows(hour_rows(history, history.since, now, zone)))
    _show_list(screen, history, zone, now)


def _show_verdict(screen: Screen, history: History, now: datetime, zone: tzinfo | None) -> None:
    since = local_time(history.since, zone)
    if lasting := open_incident(history):
        began = local_time(lasting.began_at, zone, now)
        screen.paragraph(f"No connection since {began}: {redact(lasting.evidence)}", "bad")
    known = list(interruptions(history, history.since, now))
    if not known:
        screen.paragraph(f"No interruptions since {since}.", "good")
        return
    total = format_seconds(round(sum(each.duration_s for each in known)))
    screen.paragraph(f"{counted(len(known), 'interruption')} since {since}, {total} in total.")


def _show_days(screen: Screen, days: tuple[DayRow, ...]) -> None:
    if not days:
        return
    width = 2 if screen.width >= _WIDE_FROM else 1
    screen.blank()
    heads: Iterator[Part] = (
        (f"{hour:<{_HEAD_WIDTH}}", "quiet") for hour in range(0, 24, _HEAD_WIDTH // width)
    )
    screen.line((" " * _TITLE_WIDTH, "none"), *heads)
    for day in days:
        cells: Iterator[Part] = (
            (f"{hour.letter:<{width}}", "quiet" if hour.cause is None else "bad")
            for hour in day.hours
        )
        total = f"  {format_seconds(day.downtime_s)}" if day.downtime_s else ""
        screen.line((f"{day.title:<{_TITLE_WIDTH}}", "none"), *cells, (total, "none"))
    _show_legend(screen, days)


def _show_legend(screen: Screen, days: tuple[DayRow, ...]) -> None:
    titles = [CAUSE_TITLES[cause] for cause in causes_in(days)]
    entries = [f"{each.letter} {each.label}" for each in titles]
    letters = {hour.letter for day in days for hour in day.hours}
    if any(letter.islower() for letter in letters):
        entries.append(f"small letter: less than {format_seconds(SHORT_S)}")
    entries.append(". works")
    if " " in letters:
        entries.append("blank: not recorded")
    screen.blank()
    screen.paragraph(" · ".join(entries), "quiet")


def _show_list(screen: Screen, history: History, zone: tzinfo | None, now: datetime) -> None:
    """Print the incidents and events, newest first."""
    entries = [(each.began_at, _incident_row(each, zone, now)) for each in history.incidents]
    entries += [(each.at, _event_row(each, zone)) for each in history.events]
    entries.sort(key=lambda each: each[0], reverse=True)
    if not entries:
        return
    screen.blank()
    screen.table(("when", "duration", "what"), [row for _, row in entries[:LISTED_MAX]])
    if len(entries) > LISTED_MAX:
        older = len(entries) - LISTED_MAX
        screen.line((f"there are {older} older rows: see --hours and --json", "quiet"))


def _incident_row(incident: Incident, zone: tzinfo | None, now: datetime) -> tuple[Part, ...]:
    title = CAUSE_TITLES[incident.cause].sentence
    if incident.count > 1:
        until = local_time(incident.ended_at or now, zone, incident.began_at)
        title = f"{title} {incident.count} times until {until}"
    lasts = incident.ended_at is None
    duration = (now - incident.began_at).total_seconds() if lasts else incident.downtime_s
    return (
        (local_time(incident.began_at, zone), "none"),
        (format_seconds(round(duration)) + ("…" if lasts else ""), "none"),
        (f"{title}: {redact(incident.evidence)}", "bad" if lasts else "none"),
    )


def _event_row(event: Event, zone: tzinfo | None) -> tuple[Part, ...]:
    detail = f": {redact(event.detail)}" if event.detail else ""
    title = EVENT_TITLES.get(event.kind, event.kind)
    return (local_time(event.at, zone), "none"), ("", "none"), (f"{title}{detail}", "quiet")
