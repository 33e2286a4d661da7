"""Builds incidents from a sequence of diagnoses.

An incident begins with the first sample that shows an interruption, or with the failed call that
was the reason for this sample. It ends when a sample shows no interruption. Some rules keep the
record short and correct:

- The cause of an interruption can change: after a link was down, for example, the machine has no
  address for some seconds. If a cause is diagnosed for less than ``RECOVERY_S``, and the cause
  before it is nearer to this machine, the whole time belongs to the nearer cause.
- A fault becomes visible step by step. If a cause is diagnosed for less than ``FIRST_S``, and then
  a cause nearer to this machine, the whole time belongs to the nearer cause.
- Interruptions with the same cause, less than ``MERGE_S`` apart, are one incident.
- More than ``FLAPPING_ABOVE`` incidents with the same cause within an hour become one with a count.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import reduce
from typing import Final

from agent.rules.connectivity.cause import Diagnosis
from agent.wire.payloads.history import CAUSES, Cause, Incident

RECOVERY_S: Final = 30.0
FIRST_S: Final = 6.0
MERGE_S: Final = 60.0
UNCERTAIN_S: Final = 60.0
"""If at least this time lies between the last failed call and the recorded end of an incident, the
end is uncertain."""
FLAPPING_ABOVE: Final = 6
FLAPPING_WITHIN: Final = timedelta(hours=1)


def with_uncertain_end(incident: Incident, failed_until: datetime) -> Incident:
    """Return an ended incident. If its end is uncertain, the evidence states how much earlier the
    incident may have ended.

    Args:
        failed_until: the time of the last failed call before the end.
    """
    ended_at = incident.ended_at or failed_until
    early_s = (ended_at - max(failed_until, incident.began_at)).total_seconds()
    if early_s < UNCERTAIN_S:
        return incident
    early = f"{early_s / 60:.0f} min" if early_s >= 120 else f"{early_s:.0f} s"
    return replace(incident, evidence=f"{incident.evidence}; the end may be up to {early} earlier")


@dataclass(frozen=True, slots=True)
class _Segment:
    """A part of an interruption with one cause."""

    cause: Cause
    began_at: datetime
    evidence: str


class IncidentBuilder:
    """Turns diagnoses into incidents. ``observe`` must be called in the order of time.

    ``recent`` are the ended incidents of the last hour, which a new incident may continue.
    ``open_incidents`` are the incidents that have not ended.
    """

    def __init__(
        self, recent: Iterable[Incident] = (), open_incidents: Iterable[Incident] = ()
    ) -> None:
        self._recent = [incident for incident in recent if incident.ended_at is not None]
        self._segments = [
            _Segment(incident.cause, incident.began_at, incident.evidence)
            for incident in open_incidents
        ]
        self._ended_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is an interruption that has not ended."""
        return bool(self._segments)

    @property
    def began_at(self) -> datetime | None:
        """The beginning of the present interruption."""
        return self._segments[0].began_at if self._segments else None

    def observe(
        self, at: datetime, diagnosis: Diagnosis | None, began_at: datetime | None = None
    ) -> tuple[Incident, ...]:
        """Add a diagnosis. Returns the incidents that ended.

        A returned incident replaces all incidents of the same cause that began during it.

        Args:
            at: the time of the sample.
            diagnosis: None if the sample shows no interruption.
            began_at: the beginning of this diagnosis, if it is known to be earlier than ``at``. An
                interruption never begins before the end of the previous one.
        """
        if diagnosis is not None:
            begins_at = began_at or at
            if self._ended_at is not None:
                begins_at = max(begins_at, self._ended_at)
            self._extend(_Segment(diagnosis.cause, begins_at, diagnosis.evidence))
            return ()
        ended_incidents = self._incidents_until(at)
        if ended_incidents:
            self._ended_at = at
        self._segments.clear()
        return tuple(self._merge(incident) for incident in ended_incidents)

    def shift(self, by: timedelta) -> None:
        """Move the present interruption, because the wall clock was set."""
        self._segments = [
            replace(segment, began_at=segment.began_at + by) for segment in self._segments
        ]
        self._ended_at = self._ended_at and self._ended_at + by

    def current_incidents(self, at: datetime) -> tuple[Incident, ...]:
        """Return the incidents of the present interruption, with their downtime until ``at``.

        The last one has not ended.
        """
        incidents = self._incidents_until(at)
        if incidents:
            incidents[-1] = replace(incidents[-1], ended_at=None)
        return tuple(incidents)

    def _extend(self, segment: _Segment) -> None:
        if not self._segments:
            self._segments.append(segment)
            return
        last = self._segments[-1]
        if segment.cause == last.cause:
            return
        is_short = (segment.began_at - last.began_at).total_seconds() < FIRST_S
        if is_short and _is_nearer(segment.cause, last.cause):
            segment = replace(segment, began_at=last.began_at)
            self._segments.pop()
        self._segments.append(segment)

    def _incidents_until(self, at: datetime) -> list[Incident]:
        """Return an incident for each segment. The last one ends at ``at``.

        A segment that belongs to the cause of the previous one is joined with it (`_continues`).
        """
        ends = [*(segment.began_at for segment in self._segments[1:]), at]
        parts: list[tuple[_Segment, datetime]] = []
        for segment, ends_at in zip(self._segments, ends, strict=False):
            if parts and _continues(parts[-1][0].cause, segment, ends_at):
                parts[-1] = (parts[-1][0], ends_at)
            else:
                parts.append((segment, ends_at))
        return [_incident(segment, ends_at) for segment, ends_at in parts]

    def _merge(self, incident: Incident) -> Incident:
        """Return the incident, joined with earlier ones (see `MERGE_S` and `FLAPPING_ABOVE`)."""
        earliest = incident.began_at - FLAPPING_WITHIN
        self._recent = [other for other in self._recent if _end_of(other) >= earliest]
        same_cause = [other for other in self._recent if other.cause == incident.cause]
        if same_cause and (incident.began_at - _end_of(same_cause[-1])).total_seconds() < MERGE_S:
            same_cause = same_cause[-1:]
        elif sum(other.count for other in same_cause) < FLAPPING_ABOVE:
            same_cause = []
        joined_incident = reduce(_join, (*same_cause, incident))
        self._recent = [other for other in self._recent if other not in same_cause]
        self._recent.append(joined_incident)
        return joined_incident


def _incident(segment: _Segment, ends_at: datetime) -> Incident:
    downtime_s = max(0.0, (ends_at - segment.began_at).total_seconds())
    return Incident(segment.cause, segment.began_at, ends_at, downtime_s, segment.evidence)


def _join(first: Incident, second: Incident) -> Incident:
    return replace(
        first,
        ended_at=second.ended_at,
        downtime_s=first.downtime_s + second.downtime_s,
        evidence=second.evidence,
        count=first.count + second.count,
    )


def _end_of(incident: Incident) -> datetime:
    return incident.ended_at or incident.began_at


def _continues(before: Cause, segment: _Segment, ends_at: datetime) -> bool:
    """Return whether a segment belongs to the cause of the previous one (see `RECOVERY_S`)."""
    is_short = (ends_at - segment.began_at).total_seconds() < RECOVERY_S
    return segment.cause == before or (is_short and _is_nearer(before, segment.cause))


def _is_nearer(cause: Cause, other: Cause) -> bool:
    return CAUSES.index(cause) < CAUSES.index(other)
