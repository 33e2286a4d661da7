"""The incidents in a report. Times are in seconds since 1970, by the clock of the device.

All functions are pure.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agent.presentation.connectivity.record import LINES_MAX, incidents_of
from agent.presentation.findings.snapshot_facts import facts_of
from agent.presentation.humanize import parse_timestamp
from agent.presentation.plain_text import plain
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.history import Cause, Incident

CLOCK_OFF_S: Final = 60
"""The times of a report are only corrected if the clock of its device differs by more than this
from the service's clock."""
EVIDENCE_MAX: Final = 300
"""Maximum length of the stored evidence of an incident."""


@dataclass(frozen=True, slots=True)
class IncidentContent:
    """An incident in a report. The fields are columns of `DeviceIncident`.

    ``reported_s`` is when the incident began, by the clock of the device. The times are not
    corrected yet. The other fields are those of `agent.wire.payloads.history.Incident`.
    """

    cause: Cause
    reported_s: int
    ended_s: int | None
    downtime_s: int
    count: int
    evidence: str


@dataclass(frozen=True, slots=True)
class RecordContent:
    """The incidents in a report.

    The report contains all interruptions from ``since_s`` to ``finished_s``. ``is_clock_right`` is
    whether the clock of the device is synchronised with a time source.
    """

    incidents: tuple[IncidentContent, ...]
    since_s: int
    finished_s: int
    is_clock_right: bool


def record_content_of(payload: ApplicationPayload) -> RecordContent | None:
    """Return the interruptions in the record of a snapshot. Local faults are left out.

    Returns None if the snapshot has no record, or if the times of the record are unreadable.
    """
    machine = facts_of(payload).machine
    since = parse_timestamp(machine.text("history.since"))
    finished_at = parse_timestamp(payload.finished_at)
    if since is None or finished_at is None:
        return None
    since_s, finished_s = seconds_of(since), seconds_of(finished_at)
    interruptions = (each for each in incidents_of(machine) if each.is_interruption)
    incidents = tuple(_incident(each, finished_s) for each in interruptions)
    if len(machine.texts("history.recent")) >= LINES_MAX:  # older incidents are left out
        since_s = max(since_s, min((each.reported_s for each in incidents), default=finished_s))
    is_right = machine.flag("os.clockSynchronised") is True
    return RecordContent(incidents, min(since_s, finished_s), finished_s, is_right)


def correction_s(record: RecordContent, arrived_s: int) -> int:
    """Return the seconds to add to the times of a report that arrived at ``arrived_s``.

    If the report finished in the future, the clock of the device is wrong. If it finished long ago,
    the clock is wrong, or the report waited on the device. If the clock was synchronised when such
    an old report finished, the report waited, and its times need no correction.
    """
    difference_s = arrived_s - record.finished_s
    is_late = difference_s > 0 and record.is_clock_right
    return 0 if abs(difference_s) <= CLOCK_OFF_S or is_late else difference_s


def seconds_of(at: datetime) -> int:
    return int(at.timestamp() // 1)


def _incident(incident: Incident, finished_s: int) -> IncidentContent:
    began_s, ended_at = seconds_of(incident.began_at), incident.ended_at
    latest_s = max(finished_s, began_s)
    return IncidentContent(
        cause=incident.cause,
        reported_s=began_s,
        ended_s=None if ended_at is None else min(seconds_of(ended_at), latest_s),
        downtime_s=round(incident.downtime_s),
        count=incident.count,
        evidence=plain(incident.evidence)[:EVIDENCE_MAX],
    )
