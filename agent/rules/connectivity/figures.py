"""Figures of the connectivity record: interruptions in a period, and the downtime of each hour."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from agent.wire.payloads.history import PATH_CAUSES, Cause, History, Hour, Incident
from agent.wire.payloads.history_lines import HourRow

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Interruption:
    """One interruption of the connection, or one local fault.

    While it lasts, ``ended_at`` is the end of the examined period.
    """

    cause: Cause
    began_at: datetime
    ended_at: datetime

    @property
    def duration_s(self) -> float:
        return (self.ended_at - self.began_at).total_seconds()


def interruptions(
    history: History,
    since: datetime,
    until: datetime,
    causes: Collection[Cause] = PATH_CAUSES,
) -> Iterator[Interruption]:
    """Yield the interruptions between two times. Parts outside of this period are cut off.

    If an incident consists of several interruptions, the record does not contain their times. The
    interruptions are therefore spread evenly over the incident.

    Args:
        causes: only incidents with these causes are used. With `LOCAL_CAUSES`, the function yields
            local faults instead of interruptions.
    """
    for incident in history.incidents:
        if incident.cause not in causes:
            continue
        for interruption in _interruptions(incident, until):
            if interruption.began_at < until and (
                interruption.ended_at > since
                or interruption.began_at >= since  # of length 0, at the time ``since``
            ):
                began_at = max(interruption.began_at, since)
                ended_at = min(interruption.ended_at, until)
                yield replace(interruption, began_at=began_at, ended_at=ended_at)


def _interruptions(incident: Incident, until: datetime) -> Iterator[Interruption]:
    ends_at = max(incident.began_at, incident.ended_at or until)
    step = (ends_at - incident.began_at) / incident.count
    length = min(step, timedelta(seconds=incident.downtime_s / incident.count))
    for number in range(incident.count):
        began_at = incident.began_at + number * step
        is_open = incident.ended_at is None and number == incident.count - 1
        yield Interruption(incident.cause, began_at, ends_at if is_open else began_at + length)


def hour_rows(
    history: History, since: datetime, until: datetime, zone: tzinfo | None
) -> tuple[HourRow, ...]:
    """Return each hour with figures or downtime between the two times, oldest first.

    Args:
        zone: the local time zone; None for the system's.
    """
    downtime: defaultdict[datetime, defaultdict[Cause, float]] = defaultdict(
        lambda: defaultdict(float)
    )
    for interruption in interruptions(history, since, until):
        for at, seconds in _by_hour(interruption):
            downtime[at][interruption.cause] += seconds
    figures = {hour.at: hour for hour in history.hours if since - _HOUR < hour.at < until}
    return tuple(
        HourRow(
            replace(figures.get(at, Hour(at)), at=_local(at, zone)),
            tuple(
                (cause, max(1, min(3600, round(seconds))))  # a short downtime is shown as 1 s
                for cause, seconds in sorted(downtime[at].items(), key=lambda item: -item[1])
            ),
        )
        for at in sorted({*figures, *downtime})
    )


def _local(at: datetime, zone: tzinfo | None) -> datetime:
    """Return a local time with a fixed offset from UTC.

    Without a fixed offset, the hours around a change to or from summer time compare wrongly.
    """
    local = at.astimezone(zone)
    return local.replace(tzinfo=timezone(local.utcoffset() or timedelta()), fold=0)


def _by_hour(interruption: Interruption) -> Iterator[tuple[datetime, float]]:
    """Yield each hour of UTC that the interruption touches, and its seconds in this hour."""
    began_at = interruption.began_at.astimezone(UTC)
    at = began_at.replace(minute=0, second=0, microsecond=0)
    # The second condition yields the hour of an interruption of length 0.
    while at < interruption.ended_at or at <= began_at < at + _HOUR:
        ends_at = min(interruption.ended_at, at + _HOUR)
        yield at, (ends_at - max(interruption.began_at, at)).total_seconds()
        at += _HOUR
