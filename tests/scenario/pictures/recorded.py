"""An application report for the documents, without facts of the machine that takes the pictures.

The following command shows a payload in the same way as `venue-agent collect`::

    python -m tests.scenario.pictures.recorded PAYLOAD.json
"""

import sys
from pathlib import Path

from rich.console import Console

from agent.presentation.terminal.report import report_view
from agent.wire.codec import decode
from agent.wire.payloads.application import ApplicationPayload
from tests.fixtures.healthy import healthy

QUEUES = "printqueue."


def recorded_till(payload: ApplicationPayload) -> ApplicationPayload:
    """Return ``payload`` with the recorded facts of a till. ``payload`` keeps its print queues."""
    till = healthy("linux-till")
    own = [field for field in till.snapshot.fields if not field.key.startswith(QUEUES)]
    queues = [field for field in payload.snapshot.fields if field.key.startswith(QUEUES)]
    snapshot = till.snapshot.model_copy(update={"fields": (*own, *queues)})
    return payload.model_copy(
        update={
            "snapshot": snapshot,
            "browser_fields": till.browser_fields,
            "completeness": till.completeness,
            "limitations": till.limitations,
            "environment": till.environment,
        }
    )


if __name__ == "__main__":
    payload = decode(Path(sys.argv[1]).read_text(), ApplicationPayload)
    Console(highlight=False).print(report_view(payload))
