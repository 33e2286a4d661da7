"""Connectivity records of a good and of a bad venue, for tests and pictures."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from agent.adapters.storage.database import Database
from agent.adapters.storage.record import Record
from agent.adapters.storage.state import StateDirectory
from agent.wire.payloads.history import Cause, Event, History, Hour, Incident

NOW: Final = datetime(2026, 11, 22, 20, 30, tzinfo=UTC)
SINCE: Final = datetime(2026, 11, 2, 8, 15, tzinfo=UTC)
_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)


def incident(
    cause: Cause,
    began_at: datetime,
    seconds: float,
    evidence: str = "the gateway 192.168.1.1 answers, no answer from name server 9.9.9.9",
) -> Incident:
    """Create an incident that consists of one interruption."""
    return Incident(cause, began_at, began_at + timedelta(seconds=seconds), seconds, evidence)


def unfinished(incident_: Incident) -> Incident:
    """Return the incident without an end, as one that still lasts."""
    return replace(incident_, ended_at=None)


def hours(signal_dbm: int | None = None, days: int = 7) -> tuple[Hour, ...]:
    """Create hourly figures of the last ``days`` days, with longer round trips in the evening."""
    first = NOW.replace(minute=0) - days * _DAY
    return tuple(
        Hour(
            at=first + timedelta(hours=number),
            heartbeats=60,
            round_trip_p50_ms=38.0 + number % 5,
            round_trip_p95_ms=(240.0 if 16 <= (first.hour + number) % 24 <= 21 else 60.0)
            + number % 7,
            signal_dbm=None if signal_dbm is None else signal_dbm + (number * 5) % 9,
            link_errors=0,
        )
        for number in range(days * 24 + 1)
    )


def good_venue() -> History:
    """Return the record of a machine on a cable whose connection was never interrupted."""
    return History(SINCE, events=(Event("agent-started", SINCE),), hours=hours())


def bad_venue() -> History:
    """Return the record of a machine with failures of its Wi-Fi, its router, its provider and its
    power.
    """
    evening = datetime(2026, 11, 22, 17, 2, 11, tzinfo=UTC)
    no_link = "wlan0 has no link"
    incidents = [
        incident("link-down", evening - 2 * _DAY, 95, no_link),
        incident("provider-down", evening - 3 * _DAY - 421 * _MINUTE, 300),
        incident("provider-down", evening - _DAY - 300 * _MINUTE, 360),
        incident(
            "gateway-silent", evening - 4 * _DAY - 720 * _MINUTE, 5400,
            "the gateway 192.168.1.1 does not answer",
        ),
        Incident("link-down", evening, evening + 95 * _MINUTE, 260, no_link, 12),
        incident("link-down", evening + 120 * _MINUTE, 40, no_link),
        incident("link-down", evening + 128 * _MINUTE, 31, no_link),
    ]  # fmt: skip
    power = [Event("power-lost", NOW - number * _DAY - 13 * _MINUTE) for number in (5, 3, 1)]
    access_point = Event("access-point-changed", evening + 4 * _MINUTE, "to 00:11:22:33:44:66")
    return History(
        since=SINCE,
        incidents=tuple(sorted(incidents, key=lambda stored_incident: stored_incident.began_at)),
        events=(*power, access_point),
        hours=tuple(
            replace(hour, failures=4 if hour.at.hour in (17, 18) else 0)
            for hour in hours(signal_dbm=-81)
        ),
    )


def shifted(history: History, by: timedelta) -> History:
    """Return the record with all times shifted. Hours stay whole hours of UTC."""
    return History(
        since=history.since + by,
        incidents=tuple(
            replace(
                stored_incident,
                began_at=stored_incident.began_at + by,
                ended_at=stored_incident.ended_at and stored_incident.ended_at + by,
            )
            for stored_incident in history.incidents
        ),
        events=tuple(replace(event, at=event.at + by) for event in history.events),
        hours=tuple(
            replace(hour, at=(hour.at + by).replace(minute=0, second=0, microsecond=0))
            for hour in history.hours
        ),
    )


def store(state: StateDirectory, history: History) -> History:
    """Write the record as the daemon does, shifted so that it ends now. Return this record."""
    recent = shifted(history, datetime.now(UTC) - NOW)
    state.prepare()
    database = Database(state)
    Record(database).write(
        incidents=recent.incidents,
        events=recent.events,
        hours=recent.hours,
        values=[("since", str(recent.since.timestamp()))],
    )
    database.close()
    return recent
