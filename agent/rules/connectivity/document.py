"""The connectivity record as a JSON document (docs/cli.md, timeline)."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from agent.rules.connectivity.figures import hour_rows
from agent.wire.payloads.history import History


def record_document(
    history: History, until: datetime, *, is_enabled: bool | None
) -> dict[str, Any]:
    """Return the record as plain values.

    ``until`` is the time of the document. If the record does not begin before ``until``, nothing
    was recorded, and ``since`` is None in the document. ``is_enabled`` states whether the recorder
    is enabled; None if the configuration is unknown.
    """
    since = None if history.since >= until else history.since
    return {
        "version": 1,
        "recorder_enabled": is_enabled,
        "since": since and _timestamp(since),
        "until": _timestamp(until),
        "incidents": [
            {
                **asdict(incident),
                "began_at": _timestamp(incident.began_at),
                "ended_at": incident.ended_at and _timestamp(incident.ended_at),
                "downtime_s": round(incident.downtime_s, 1),
            }
            for incident in history.incidents
        ],
        "events": [{**asdict(event), "at": _timestamp(event.at)} for event in history.events],
        "hours": [
            {**asdict(row.hour), "at": _timestamp(row.hour.at), "downtime_s": dict(row.downtime)}
            for row in hour_rows(history, history.since, until, UTC)
        ],
    }


def _timestamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")
