"""The incidents of the connectivity record since the earlier report."""

from collections.abc import Iterator

from agent.presentation.changes.change import Change, change
from agent.presentation.connectivity.record import record_of
from agent.presentation.connectivity.titles import CAUSE_TITLES
from agent.presentation.findings.history import LONG_S
from agent.presentation.findings.snapshot_facts import SnapshotFacts
from agent.presentation.humanize import format_seconds, times
from agent.presentation.severity import Severity
from agent.wire.payloads.history import CAUSES


def incident_changes(earlier: SnapshotFacts, later: SnapshotFacts) -> Iterator[Change]:
    """Yield a change for each cause of the incidents that began after the earlier report.

    The figures of the record differ between any two reports, and are not compared.
    """
    record = record_of(later.machine)
    if record is None or earlier.taken_at is None:
        return
    new_incidents = [
        incident for incident in record.incidents if incident.began_at > earlier.taken_at
    ]
    for cause in CAUSES:
        if incidents := [incident for incident in new_incidents if incident.cause == cause]:
            count = times(sum(incident.count for incident in incidents))
            downtime_s = sum(incident.downtime_s for incident in incidents)
            severity: Severity = "warn" if downtime_s >= LONG_S else "muted"
            duration = format_seconds(round(downtime_s))
            sentence = f"{CAUSE_TITLES[cause].sentence} {count}, {duration} in total."
            yield change(f"incident {cause}", "", ("", count), severity, sentence)
