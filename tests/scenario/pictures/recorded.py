"""An application report for the documents, without facts of the machine that takes the pictures.

The following command shows a payload in the same way as `venue-agent collect`::

    python -m tests.scenario.pictures.recorded PAYLOAD.json
"""

import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from rich.console import Console

from agent.presentation.terminal.report import report_view
from agent.wire.codec import decode
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.history import History
from tests.unit.agent.histories import NOW, bad_venue, incident
from tests.unit.agent.presentation.findings.changed_report import with_record

QUEUES = "printqueue."
WIFI = "enp1s0"
"""The interface of the recorded till. The pictures show it as a Wi-Fi interface."""


def recorded_till(payload: ApplicationPayload) -> ApplicationPayload:
    """Return ``payload`` with the recorded facts of a till that had a bad evening.

    Only the print queues and the agent's version are still those of ``payload``.
    """
    version = payload.environment.native_app_version
    till = with_record(
        with_faults(bad_venue()), {f"{WIFI} interface.type": "wifi", "agent.version": version}
    )
    till_fields = [field for field in till.snapshot.fields if not field.key.startswith(QUEUES)]
    queue_fields = [field for field in payload.snapshot.fields if field.key.startswith(QUEUES)]
    snapshot = till.snapshot.model_copy(update={"fields": (*till_fields, *queue_fields)})
    return payload.model_copy(
        update={
            "snapshot": snapshot,
            "browser_fields": till.browser_fields,
            "completeness": till.completeness,
            "limitations": till.limitations,
            "environment": till.environment.model_copy(update={"native_app_version": version}),
        }
    )


def with_faults(history: History) -> History:
    """Return ``history`` with one more incident: the receipt printer had no paper.

    In the evidence of the other incidents, the interface "wlan0" is replaced by `WIFI`.
    """
    incidents = [
        replace(past_incident, evidence=past_incident.evidence.replace("wlan0", WIFI))
        for past_incident in history.incidents
    ]
    began_at = NOW - timedelta(minutes=100)
    evidence = "receipts: stopped (media-empty-error)"
    queue_incident = incident("queue-stopped", began_at, 1260, evidence)
    return replace(history, incidents=(*incidents, queue_incident))


if __name__ == "__main__":
    payload = decode(Path(sys.argv[1]).read_text(), ApplicationPayload)
    Console(highlight=False).print(report_view(payload))
