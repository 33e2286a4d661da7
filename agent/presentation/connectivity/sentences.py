"""Sentences about the connectivity record, in local time."""

from datetime import datetime, tzinfo

from agent.presentation.connectivity.titles import CAUSE_TITLES
from agent.presentation.humanize import ago, format_seconds
from agent.wire.payloads.history import History, Incident


def is_empty(history: History, until: datetime) -> bool:
    """Return whether nothing has been recorded before ``until``."""
    return history.since >= until and not history.incidents


def open_incident(history: History) -> Incident | None:
    """Return the incident that lasts now."""
    return next((each for each in reversed(history.incidents) if each.ended_at is None), None)


def connection_sentence(history: History, now: datetime, zone: tzinfo | None = None) -> str:
    """Return the incident that lasts, or the last one: ``no connection since 14:02: …``.

    Args:
        zone: the local time zone; None for the system's.
    """
    if lasting := open_incident(history):
        since = local_time(lasting.began_at, zone, now)
        return f"no connection since {since}: {lasting.evidence}"
    if not history.incidents:
        return f"no interruption since {local_time(history.since, zone, now)}"
    last = max(history.incidents, key=lambda each: each.ended_at or each.began_at)
    ended = ago((last.ended_at or last.began_at).isoformat(), now)
    title = CAUSE_TITLES[last.cause].sentence
    title = title[:1].lower() + title[1:]
    return f"last interruption {ended}, for {format_seconds(last.downtime_s)}: {title}"


def local_time(at: datetime, zone: tzinfo | None, now: datetime | None = None) -> str:
    """Return a time as ``22 Nov 18:02``, or only ``18:02`` if it is on the day of ``now``."""
    local = at.astimezone(zone)
    is_today = now is not None and now.astimezone(zone).date() == local.date()
    return f"{local:%H:%M}" if is_today else f"{local.day} {local:%b %H:%M}"
