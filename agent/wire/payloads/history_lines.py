"""The connectivity record as lines of text in a report, and the parsers of these lines.

For each function that writes a line there is a parser: `parse_event` parses what `event_line`
writes. The lines of a received report are untrusted. A parser returns None for a text that its
function cannot have written.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from agent.wire.payloads.history import CAUSES, EVENT_KINDS, Cause, Event, Hour, Incident

# The regular expressions are compiled when they are first used. The daemon parses no lines, so it
# never spends time and memory on them.

_TIME: Final = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"
_INCIDENT: Final = (
    rf"(?as){_TIME}/(?:{_TIME}|\.\.) ([a-z-]{{1,40}}) (\d{{1,9}}) s(?: x(\d{{1,6}}))?: (.*)"
)
_TOTAL: Final = r"(?a)([a-z-]{1,40}) (\d{1,9}) s x(\d{1,6})"
_EVENT: Final = rf"(?as){_TIME} ([a-z-]{{1,40}})(?:: (.*))?"
_HOUR: Final = (
    r"(?a)(\d{4}-\d\d-\d\dT\d\d(?::\d\d)?[+-]\d\d:\d\d): ((?:[a-z-]{1,40} \d{1,5} s, ){0,9})"
    r"(\d{1,6}) heartbeats(?:, (\d{1,6}) failed)?(?:, (\d{1,7}|-)/(\d{1,7}|-) ms)?"
    r"(?:, (-?\d{1,3}) dBm)?(?:, (\d{1,12}) link errors)?"
)


@dataclass(frozen=True, slots=True)
class HourRow:
    """The figures and the downtime of one hour.

    Here, ``hour.at`` is in the local time of the machine, not in UTC as in the record. ``downtime``
    has the seconds of downtime by cause, the longest first.
    """

    hour: Hour
    downtime: tuple[tuple[Cause, int], ...] = ()


@dataclass(frozen=True, slots=True)
class CauseTotal:
    """The number of interruptions with one cause in a period, and their downtime in seconds."""

    cause: Cause
    count: int
    downtime_s: int


def incident_line(incident: Incident) -> str:
    """Return an incident as a line of text.

    ``2026-11-22T18:02:11Z/2026-11-22T18:03:46Z provider-down 95 s: no answer from …``. The first
    part is an ISO 8601 interval, with ``..`` as its end while the incident lasts. The seconds are
    the downtime. If ``incident.count`` is more than 1, this number follows, such as `` x3``.
    """
    ended_at = incident.ended_at
    end_text = ".." if ended_at is None else _timestamp(max(ended_at, incident.began_at))
    count = f" x{incident.count}" if incident.count > 1 else ""
    interval = f"{_timestamp(incident.began_at)}/{end_text}"
    seconds = f"{incident.cause} {incident.downtime_s:.0f} s"
    return f"{interval} {seconds}{count}: {incident.evidence}"


def parse_incident(line: str) -> Incident | None:
    match = re.fullmatch(_INCIDENT, line)
    if match is None or (cause := _cause(match[3])) is None:
        return None
    began_at = _parse_timestamp(match[1])
    ended_at = _parse_timestamp(match[2] or match[1])
    if began_at is None or ended_at is None or ended_at < began_at:
        return None
    end = ended_at if match[2] else None
    return Incident(cause, began_at, end, float(match[4]), match[6], max(1, int(match[5] or 1)))


def total_line(total: CauseTotal) -> str:
    """Return a total as a line of text: ``provider-down 660 s x2``."""
    return f"{total.cause} {total.downtime_s} s x{total.count}"


def parse_total(line: str) -> CauseTotal | None:
    match = re.fullmatch(_TOTAL, line)
    if match is None or (cause := _cause(match[1])) is None:
        return None
    return CauseTotal(cause, int(match[3]), int(match[2]))


def event_line(event: Event) -> str:
    """Return an event as a line of text: ``2026-11-22T18:02:11Z access-point-changed: to …``."""
    detail = f": {event.detail}" if event.detail else ""
    return f"{_timestamp(event.at)} {event.kind}{detail}"


def parse_event(line: str) -> Event | None:
    match = re.fullmatch(_EVENT, line)
    if match is None:
        return None
    kind = next((kind for kind in EVENT_KINDS if kind == match[2]), None)
    at = _parse_timestamp(match[1])
    return None if kind is None or at is None else Event(kind, at, match[3] or "")


def hour_line(row: HourRow) -> str:
    """Return an hour as a line of text.

    ``2026-11-22T19+01:00: link-down 95 s, 60 heartbeats, 2 failed, 45/180 ms, -78 dBm``. The time
    is local, with its offset from UTC. The downtime by cause comes first. The milliseconds are the
    median and the 95th percentile of the round-trip time. If one of these two is unknown, it is
    ``-``. Parts that are 0 or unknown are left out, except the number of heartbeats.
    """
    return f"{_local_hour(row.hour.at)}: {', '.join(_hour_parts(row))}"


def parse_hour(line: str) -> HourRow | None:
    match = re.fullmatch(_HOUR, line)
    if match is None or (at := _parse_timestamp(match[1])) is None:
        return None
    parts = (part.split(" ") for part in match[2].split(", ")[:-1])  # the last one is empty
    downtime = tuple((_cause(name), int(seconds)) for name, seconds, _ in parts)
    known_downtime = tuple((cause, seconds) for cause, seconds in downtime if cause is not None)
    if len(known_downtime) < len(downtime):
        return None
    heartbeats, failures, p50, p95, signal_dbm, link_errors = map(_number, match.groups()[2:])
    figures = Hour(at, heartbeats or 0, failures or 0, p50, p95, signal_dbm, link_errors)
    return HourRow(figures, known_downtime)


def _number(text: str | None) -> int | None:
    return None if text is None or text == "-" else int(text)


def _hour_parts(row: HourRow) -> Iterator[str]:
    hour = row.hour
    yield from (f"{cause} {seconds} s" for cause, seconds in row.downtime)
    yield f"{hour.heartbeats} heartbeats"
    if hour.failures:
        yield f"{hour.failures} failed"
    times = hour.round_trip_p50_ms, hour.round_trip_p95_ms
    if times != (None, None):
        median, p95 = (
            "-" if milliseconds is None else f"{milliseconds:.0f}" for milliseconds in times
        )
        yield f"{median}/{p95} ms"
    if hour.signal_dbm is not None:
        yield f"{hour.signal_dbm} dBm"
    if hour.link_errors:
        yield f"{hour.link_errors} link errors"


def _local_hour(at: datetime) -> str:
    """Return the start of an hour in ISO 8601: ``2026-11-22T19+01:00``.

    Its minutes are left out if they are 0. They are 30 at an offset such as +05:30, because the
    record has the figures of whole hours of UTC.
    """
    offset = at.utcoffset() or timedelta()
    return at.strftime("%Y-%m-%dT%H:%M" if at.minute else "%Y-%m-%dT%H") + (
        f"{'-' if offset < timedelta() else '+'}{abs(offset) // timedelta(hours=1):02}"
        f":{abs(offset) // timedelta(minutes=1) % 60:02}"
    )


def _timestamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _parse_timestamp(text: str) -> datetime | None:
    """Parse a timestamp that a regular expression has matched. The result has the same offset."""
    try:
        at = datetime.fromisoformat(text)
        at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at


def _cause(text: str) -> Cause | None:
    return next((cause for cause in CAUSES if cause == text), None)
