"""The connectivity record on a page: hours by cause, small charts, incidents and events."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Final

from agent.presentation.connectivity.day_rows import DayHour, DayRow, causes_in, day_rows
from agent.presentation.connectivity.record import ReportedRecord, record_of
from agent.presentation.connectivity.sentences import Entry, entries, time_text
from agent.presentation.connectivity.titles import CAUSE_TITLES
from agent.presentation.findings.connectivity import WIFI_WEAK_DBM
from agent.presentation.findings.snapshot_facts import facts_of
from agent.presentation.humanize import counted, format_milliseconds, format_seconds, times
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.history import Hour
from agent.wire.payloads.history_lines import HourRow

ENTRIES_FIRST: Final = 8
"""Number of incidents and events that are visible at first."""
_LEFT, _TOP, _RIGHT, _BOTTOM = 46, 8, 336, 66
"""Edges of the area for the line, in a chart of 340 by 84 units. The template `connection.html`
repeats these numbers."""
_SIGNAL_DBM: Final = (-85.0, -55.0)
"""The vertical axis of the signal chart covers at least this range."""
_CUT_AT_MEDIANS: Final = 4.0
"""The chart of round-trip times is cut at this multiple of its median, so that one slow hour does
not flatten the rest of the line."""


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A cause with its letter. ``kind`` is the cause, which sets the colour in the style sheet."""

    kind: str
    letter: str
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A line over the hours. ``description`` is its caption.

    ``path`` is the line as SVG path data, in units of the chart. ``top`` and ``bottom`` label the
    vertical axis. ``midnights`` are horizontal positions with their labels. ``limit`` is the
    vertical position of a dashed line, or None.
    """

    title: str
    description: str
    path: str
    top: str
    bottom: str
    midnights: tuple[tuple[float, str], ...]
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class ConnectionView:
    """The connectivity record as the page shows it.

    ``summary`` is one sentence about all interruptions. ``days`` are the rows of the drawing of the
    hours, and ``description`` is its text alternative. ``entries`` are the newest incidents and
    events, which are visible at first, and ``more`` are the earlier ones. ``zone`` names the time
    zone of all times.
    """

    summary: str
    days: tuple[DayRow, ...]
    description: str
    legend: tuple[LegendEntry, ...]
    charts: tuple[Chart, ...]
    entries: tuple[Entry, ...]
    more: tuple[Entry, ...]
    zone: str

    @property
    def has_short_hours(self) -> bool:
        """Whether an hour has so little downtime that its letter is in lower case."""
        return any(hour.letter.islower() for day in self.days for hour in day.hours)


def connection_view(payload: ApplicationPayload) -> ConnectionView | None:
    """Return what the page shows of the record, or None if the snapshot has no record."""
    facts = facts_of(payload)
    record = record_of(facts.machine)
    if record is None:
        return None
    days = day_rows(record.hours)
    rows = entries(record.incidents, record.events, facts.taken_at, record.to_local)
    return ConnectionView(
        summary=summary_of(record, facts.taken_at),
        days=days,
        description=_description(days),
        legend=tuple(_legend(days, record)),
        charts=tuple(_charts(record.hours)),
        entries=rows[:ENTRIES_FIRST],
        more=rows[ENTRIES_FIRST:],
        zone="the machine's local time" if record.hours else "UTC",
    )


def summary_of(record: ReportedRecord, now: datetime | None) -> str:
    """Return one sentence: ``18 interruptions in 7 days, 1 h 48 min in total.``"""
    period = "in 7 days"
    if record.since is not None and (now is None or now - record.since < timedelta(days=7)):
        period = f"since {time_text(record.to_local(record.since))}"
    if not record.interruption_count:
        return f"No interruptions {period}."
    total = format_seconds(record.downtime_s)
    return f"{counted(record.interruption_count, 'interruption')} {period}, {total} in total."


def hour_tooltip(day: DayRow, hour: DayHour) -> str:
    """Return all facts of an hour: ``Sun 22 Nov 18:00: no link 4 min; 60 heartbeats, …``."""
    when = f"{day.title} {hour.hour:02}:00"
    if hour.row is None:
        return f"{when}: not recorded"
    downtime = ", ".join(
        f"{CAUSE_TITLES[cause].label} {format_seconds(s)}" for cause, s in hour.row.downtime
    )
    figures = ", ".join(_figures(hour.row.hour))
    return f"{when}: {'; '.join(filter(None, (downtime, figures)))}"


def _figures(hour: Hour) -> Iterator[str]:
    yield counted(hour.heartbeats, "heartbeat")
    if hour.failures:
        yield f"{hour.failures} failed"
    if hour.round_trip_p95_ms is not None:
        yield f"round trip {format_milliseconds(hour.round_trip_p95_ms)}"
    if hour.signal_dbm is not None:
        yield f"{hour.signal_dbm} dBm"
    if hour.link_errors:
        yield counted(hour.link_errors, "link error")


def _description(days: Sequence[DayRow]) -> str:
    hours = [hour for day in days for hour in day.hours if hour.row is not None]
    counts = Counter(hour.cause for hour in hours)
    causes = (f"{counts[cause]} with {CAUSE_TITLES[cause].label}" for cause in causes_in(days))
    parts = ", ".join((*causes, f"{counts[None]} without interruption"))
    return f"{counted(len(hours), 'hour')} by cause of interruption: {parts}"


def _legend(days: Sequence[DayRow], record: ReportedRecord) -> Iterator[LegendEntry]:
    totals = {total.cause: total for total in record.totals}
    for cause in causes_in(days):
        title, total = CAUSE_TITLES[cause], totals.get(cause)
        text = title.label
        if total is not None:
            text += f": {times(total.count)}, {format_seconds(total.downtime_s)}"
        yield LegendEntry(cause, title.letter, text)


# ---------------------------------------------------------------------------- charts


def _charts(rows: Sequence[HourRow]) -> Iterator[Chart]:
    replies = _points(rows, lambda hour: hour.round_trip_p95_ms)
    if len(replies) > 1:
        typical, slowest = median(value for _, value in replies), max(v for _, v in replies)
        top = min(slowest, _CUT_AT_MEDIANS * typical) or 1.0
        slowest_at = next(row.hour.at for row in rows if row.hour.round_trip_p95_ms == slowest)
        cut = " Higher values are cut." if slowest > top else ""
        yield Chart(
            title="Round-trip time of heartbeats",
            description=f"95th percentile of each hour: mostly {format_milliseconds(typical)}, at"
            f" most {format_milliseconds(slowest)} ({time_text(slowest_at)}).{cut}",
            path=_path(rows, replies, (0.0, top)),
            top=format_milliseconds(top),
            bottom="0",
            midnights=_midnights(rows),
        )
    signals = _points(rows, lambda hour: hour.signal_dbm)
    if len(signals) > 1:
        typical, weakest = median(value for _, value in signals), min(v for _, v in signals)
        low = min(weakest, _SIGNAL_DBM[0])
        span = (low, max(_SIGNAL_DBM[1], *(value for _, value in signals)))
        yield Chart(
            title="Wi-Fi signal",
            description=f"Weakest of each hour: mostly {typical:.0f} dBm, at worst {weakest:.0f}"
            f" dBm. Below the dashed line, at {WIFI_WEAK_DBM} dBm, the signal is weak.",
            path=_path(rows, signals, span),
            top=f"{span[1]:.0f} dBm",
            bottom=f"{span[0]:.0f} dBm",
            midnights=_midnights(rows),
            limit=_y(WIFI_WEAK_DBM, span),
        )


Points = list[tuple[datetime, float]]


def _points(rows: Sequence[HourRow], read: Callable[[Hour], float | None]) -> Points:
    values = ((row.hour.at, read(row.hour)) for row in rows)
    return [(at, value) for at, value in values if value is not None]


def _path(rows: Sequence[HourRow], points: Points, span: tuple[float, float]) -> str:
    """Return the line through the points. Hours without a value interrupt it."""
    parts: list[str] = []
    before: datetime | None = None
    for at, value in points:
        is_next = before is not None and at - before <= timedelta(hours=1)
        x, y = _x(at, rows), _y(value, span)
        # A point without neighbours becomes a short line, so that it is visible.
        parts.append(f"L{x:.1f} {y:.1f}" if is_next else f"M{x:.1f} {y:.1f}h0.1")
        before = at
    return "".join(parts)


def _x(at: datetime, rows: Sequence[HourRow]) -> float:
    first, last = rows[0].hour.at, rows[-1].hour.at
    share = (at - first) / (last - first) if last > first else 0.0
    return round(_LEFT + share * (_RIGHT - _LEFT), 1)


def _y(value: float, span: tuple[float, float]) -> float:
    low, high = span
    share = (min(max(value, low), high) - low) / ((high - low) or 1.0)
    return round(_BOTTOM - share * (_BOTTOM - _TOP), 1)


def _midnights(rows: Sequence[HourRow]) -> tuple[tuple[float, str], ...]:
    """Return the horizontal position of the start of each day, and the weekday.

    Days without recorded hours are left out, and so is the first day if its recorded hours begin
    after midnight.
    """
    hours = [row.hour.at for row in rows]
    starts = [at for before, at in pairwise(hours) if at.date() != before.date()]
    if hours[0].hour == 0:
        starts.insert(0, hours[0])
    return tuple((_x(at.replace(hour=0), rows), f"{at:%a}") for at in starts)
