"""Sentences and rows about the connectivity record, in local time."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo

from agent.presentation.connectivity.titles import CAUSE_TITLES, EVENT_TITLES
from agent.presentation.humanize import ago, format_seconds, times
from agent.presentation.severity import Severity
from agent.wire.payloads.history import Event, History, Incident

ToLocal = Callable[[datetime], datetime]
"""Returns a time in the local time of the machine."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An incident or an event. ``duration`` is "" for an event. All texts may be untrusted."""

    when: str
    duration: str
    text: str
    severity: Severity


def is_empty(history: History, until: datetime) -> bool:
    """Return whether the record begins at ``until`` or later, and has no incident."""
    return history.since >= until and not history.incidents


def open_interruption(incidents: Iterable[Incident]) -> Incident | None:
    """Return the interruption that has not ended yet; None if the connection works."""
    open_incidents = (incident for incident in incidents if incident.ended_at is None)
    return next((incident for incident in open_incidents if incident.is_interruption), None)


def connection_sentence(history: History, now: datetime, zone: tzinfo | None = None) -> str:
    """Return a sentence about the open interruption: ``no connection since 14:02: …``.

    If none is open, the sentence is about the last interruption, or states that there was none.

    Args:
        zone: the local time zone. None means the time zone of the system.
    """
    if incident := open_interruption(history.incidents):
        since = time_text(incident.began_at.astimezone(zone), now.astimezone(zone))
        return f"no connection since {since}: {incident.evidence}"
    interruptions = [incident for incident in history.incidents if incident.is_interruption]
    if not interruptions:
        since = time_text(history.since.astimezone(zone), now.astimezone(zone))
        return f"no interruption since {since}"
    last = max(interruptions, key=lambda incident: incident.ended_at or incident.began_at)
    when = ago((last.ended_at or last.began_at).isoformat(), now)
    title = CAUSE_TITLES[last.cause].sentence
    title = title[:1].lower() + title[1:]
    return f"last interruption {when}, for {format_seconds(round(last.downtime_s))}: {title}"


def time_text(local: datetime, today: datetime | None = None) -> str:
    """Return ``22 Nov 18:02``, or only ``18:02`` if ``today`` is on the same day."""
    is_today = today is not None and today.date() == local.date()
    return f"{local:%H:%M}" if is_today else f"{local.day} {local:%b %H:%M}"


def entries(
    incidents: Iterable[Incident],
    events: Iterable[Event],
    now: datetime | None,
    to_local: ToLocal,
) -> tuple[Entry, ...]:
    """Return the incidents and events, newest first. ``now`` is None if it is unknown."""
    rows = [(incident.began_at, _incident_entry(incident, now, to_local)) for incident in incidents]
    rows += [(event.at, _event_entry(event, to_local)) for event in events]
    return tuple(entry for _, entry in sorted(rows, key=lambda row: row[0], reverse=True))


def _incident_entry(incident: Incident, now: datetime | None, to_local: ToLocal) -> Entry:
    title, began_at = CAUSE_TITLES[incident.cause].sentence, to_local(incident.began_at)
    if incident.count > 1:
        ended_at = incident.ended_at or now
        until = f" until {time_text(to_local(ended_at), began_at)}" if ended_at else ""
        title = f"{title} {times(incident.count)}{until}"
    text = f"{title}: {incident.evidence}" if incident.evidence else title
    duration_s, is_open = incident.downtime_s, incident.ended_at is None
    if is_open and now is not None:
        duration_s = max(0.0, (now - incident.began_at).total_seconds())
    duration = format_seconds(round(duration_s)) + ("…" if is_open else "")
    return Entry(time_text(began_at), duration, text, "bad" if is_open else "warn")


def _event_entry(event: Event, to_local: ToLocal) -> Entry:
    detail = f": {event.detail}" if event.detail else ""
    return Entry(time_text(to_local(event.at)), "", f"{EVENT_TITLES[event.kind]}{detail}", "muted")
