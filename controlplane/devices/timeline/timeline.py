"""The timeline of a device: how long it was online on each of thirty days, and in each hour.

Days are in the time zone of the location, or in UTC if it has none. A day can have 23 or 25 hours.
Offline time while the location was closed or in maintenance is counted separately. Time before the
enrollment, in the future, or while the service was down is unknown.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

from agent.wire.base import Array, Tolerant
from controlplane.devices.locations.opening_hours import Span, merge_spans
from controlplane.devices.locations.status import Schedule

DAYS: Final = 30
CellState = Literal["online", "partial", "offline", "closed", "unknown"]
SIGNS: Final[dict[str, str]] = {
    "online": "█",
    "partial": "▄",
    "offline": "_",
    "closed": "·",
    "unknown": " ",
}
"""The character of each state in the line of a timeline."""


class TimelineCell(Tolerant):
    """A day or an hour of the timeline. Times are in whole seconds.

    ``offline_s`` is the time in which the device was offline but should have been online.
    ``closed_s`` is the time in which it was offline and need not have been online. The remaining
    seconds are unknown. ``state`` is a `CellState`: ``partial`` means that the device was online
    during one part of the time, and offline during another.
    """

    state: str
    online_s: int
    offline_s: int
    closed_s: int


class TimelineDay(TimelineCell):
    """A day with the number of its requests and reports."""

    date: str
    requests: int
    reports: int
    hours: Array[TimelineCell]


class Timeline(Tolerant):
    """``line`` has a character for each day. ``zone`` is the time zone of the location."""

    zone: str
    line: str
    days: Array[TimelineDay]


@dataclass(frozen=True, slots=True)
class Liveness:
    """The stored liveness of a device.

    Attributes:
        since: when the service began to record the liveness.
        until: now, or when the device was revoked.
        offline: its offline intervals. An end of None means that it is still offline.
        outages: intervals in which the service was down.
    """

    since: datetime
    until: datetime
    offline: tuple[tuple[datetime, datetime | None], ...]
    outages: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Events:
    """Number of requests and reports of each day."""

    requests: Counter[date] = field(default_factory=Counter)
    reports: Counter[date] = field(default_factory=Counter)


def build_timeline(
    liveness: Liveness,
    schedule: Schedule,
    zone: str,
    now: datetime,
    events: Events | None = None,
) -> Timeline:
    """Return the timeline until today, oldest day first."""
    events = events or Events()
    time_zone = ZoneInfo(zone)
    today = now.astimezone(time_zone).date()
    since = _midnight(today - timedelta(days=DAYS - 1), time_zone)
    recorded_spans = merge_spans([(liveness.since, min(liveness.until, now))], since, now)
    known_spans = _difference(recorded_spans, liveness.outages)
    offline_spans = merge_spans(
        [(start, end or now) for start, end in liveness.offline], since, now
    )
    not_required = _not_required(schedule, since, now)
    offline = _intersection(known_spans, offline_spans)
    parts = (
        _difference(known_spans, offline_spans),
        _difference(offline, not_required),
        _intersection(offline, not_required),
    )
    days = tuple(
        _day(today - timedelta(days=days_ago), time_zone, parts, events)
        for days_ago in reversed(range(DAYS))
    )
    return Timeline(zone=zone, line="".join(SIGNS[day.state] for day in days), days=days)


Parts = tuple[list[Span], list[Span], list[Span]]
"""Three lists of spans. In the first, the device was online. In the second, it was offline but
should have been online. In the third, it was offline and need not have been online."""


def _day(day: date, time_zone: ZoneInfo, parts: Parts, events: Events) -> TimelineDay:
    start, end = _midnight(day, time_zone), _midnight(day + timedelta(days=1), time_zone)
    hours, hour = [], start
    while hour < end:
        hours.append(_cell(hour, min(hour + timedelta(hours=1), end), parts))
        hour += timedelta(hours=1)
    return TimelineDay(
        **_cell(start, end, parts).model_dump(),
        date=day.isoformat(),
        requests=events.requests[day],
        reports=events.reports[day],
        hours=tuple(hours),
    )


def _cell(start: datetime, end: datetime, parts: Parts) -> TimelineCell:
    online_s, offline_s, closed_s = (_seconds(part, start, end) for part in parts)
    state: CellState = "closed" if closed_s else "unknown"
    if offline_s:
        state = "partial" if online_s else "offline"
    elif online_s:
        state = "online"
    return TimelineCell(state=state, online_s=online_s, offline_s=offline_s, closed_s=closed_s)


def _midnight(day: date, time_zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), time_zone).astimezone(UTC)


def _not_required(schedule: Schedule, since: datetime, until: datetime) -> list[Span]:
    """Return when the device need not be online."""
    spans = [(window.since, window.until) for window in schedule.maintenance]
    if schedule.hours is not None:
        spans += _difference([(since, until)], schedule.hours.spans(since, until))
    return merge_spans(spans, since, until)


def _intersection(spans: Iterable[Span], other_spans: Sequence[Span]) -> list[Span]:
    return [span for start, end in spans for span in merge_spans(other_spans, start, end)]


def _difference(spans: Iterable[Span], other_spans: Sequence[Span]) -> list[Span]:
    remaining_spans: list[Span] = []
    for start, end in spans:
        at = start
        for other_start, other_end in merge_spans(other_spans, start, end):
            remaining_spans.append((at, other_start))
            at = other_end
        remaining_spans.append((at, end))
    return [(start, end) for start, end in remaining_spans if start < end]


def _seconds(spans: Iterable[Span], since: datetime, until: datetime) -> int:
    total = sum(((end - start) for start, end in merge_spans(spans, since, until)), timedelta())
    return round(total.total_seconds())
