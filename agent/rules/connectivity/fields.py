"""The fields of the application snapshot that show the connectivity record."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from statistics import median
from typing import Final

from agent.redaction.known import redact
from agent.rules.connectivity.figures import Interruption, hour_rows, interruptions
from agent.rules.reports.fit import clip
from agent.wire.payloads.history import LOCAL_CAUSES, Cause, History
from agent.wire.payloads.history_lines import (
    CauseTotal,
    event_line,
    hour_line,
    incident_line,
    total_line,
)
from collectors.contract import Field, FieldValue

SOURCE: Final = "agent"
DAY: Final = timedelta(days=1)
WEEK: Final = timedelta(days=7)
LINES_MAX: Final = 32
"""Maximum number of lines of `history.recent` and `history.events`."""
WORST_HOURS_MAX: Final = 3

_EPOCH: Final = datetime.fromtimestamp(0, UTC)


def missing_history_fields(reason: str) -> Iterator[Field]:
    """Yield the fields of a machine without a record, for example if the recorder is off."""
    fields = history_fields(History(_EPOCH), _EPOCH)  # only the keys are used
    return (Field(field.key, SOURCE, "not-applicable", None, clip(reason)) for field in fields)


def history_fields(history: History, now: datetime, zone: tzinfo | None = None) -> Iterator[Field]:
    """Yield the fields of the record, which docs/application-fields.md describes.

    Args:
        zone: the local time zone of the machine; None for the system's.
    """
    day_interruptions = tuple(interruptions(history, now - DAY, now))
    week_interruptions = tuple(interruptions(history, now - WEEK, now))
    week_faults = interruptions(history, now - WEEK, now, LOCAL_CAUSES)
    roams = [
        event for event in history.events
        if event.kind == "access-point-changed" and now - DAY <= event.at <= now
    ]  # fmt: skip
    hours = hour_rows(history, now - WEEK, now, zone)
    last_24_hours = [hour for hour in history.hours if now - DAY <= hour.at <= now]
    round_trips_ms = [ms for hour in last_24_hours if (ms := hour.round_trip_p95_ms) is not None]
    signals = [hour.signal_dbm for hour in last_24_hours if hour.signal_dbm is not None]
    causes = map(total_line, _totals((*week_interruptions, *week_faults)))
    values: dict[str, FieldValue | None] = {
        "history.since": history.since.isoformat(timespec="seconds"),
        "history.incidents24h": len(day_interruptions),
        "history.incidents7d": len(week_interruptions),
        "history.downtimeSeconds24h": _downtime_s(day_interruptions),
        "history.downtimeSeconds7d": _downtime_s(week_interruptions),
        "history.causes7d": tuple(causes),
        "history.worstHours": tuple(_worst_hours(week_interruptions, zone)),
        "history.recent": _newest(incident_line(incident) for incident in history.incidents),
        "history.events": _newest(event_line(event) for event in history.events),
        "history.roundTripP95Ms24h": round(median(round_trips_ms), 1) if round_trips_ms else None,
        "history.signalMinDbm24h": min(signals, default=None),
        "history.roams24h": len(roams),
        "history.hours": tuple(clip(hour_line(row)) for row in hours),
    }
    absences = {
        "history.roundTripP95Ms24h": "no heartbeat was answered in the last 24 hours",
        "history.signalMinDbm24h": "no Wi-Fi signal was measured in the last 24 hours",
    }
    for key, value in values.items():
        if value is None:
            yield Field(key, SOURCE, "not-applicable", None, absences[key])
        else:
            yield Field(key, SOURCE, "available", value)


def _downtime_s(selected: Iterable[Interruption]) -> int:
    return round(sum(interruption.duration_s for interruption in selected))


def _totals(selected: Iterable[Interruption]) -> Iterator[CauseTotal]:
    """Yield the total of each cause, the longest downtime first."""
    by_cause: defaultdict[Cause, list[Interruption]] = defaultdict(list)
    for interruption in selected:
        by_cause[interruption.cause].append(interruption)
    for cause, members in sorted(by_cause.items(), key=lambda item: -_downtime_s(item[1])):
        yield CauseTotal(cause, len(members), _downtime_s(members))


def _worst_hours(selected: Iterable[Interruption], zone: tzinfo | None) -> Iterator[str]:
    counts = Counter(interruption.began_at.astimezone(zone).hour for interruption in selected)
    worst = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:WORST_HOURS_MAX]
    return (f"{hour:02}:00: {count} incident{'' if count == 1 else 's'}" for hour, count in worst)


def _newest(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the newest lines, the newest first. ``lines`` are ordered by time, oldest first.

    Evidence can contain text from the service, so the lines are redacted.
    """
    return tuple(clip(redact(line)) for line in reversed(tuple(lines)[-LINES_MAX:]))
