"""A collector that sends a few facts at once: `python -m tests.fakes.collectors.quick KIND`.

It implements the protocol of `collectors/contract.py`.
"""

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime

from collectors.contract import (
    ApplicationFacts,
    Checkpoint,
    Event,
    Facts,
    Field,
    LearnedPrinter,
    NetworkFacts,
    Printer,
    Progress,
    Result,
    SourceState,
)

STARTED_AT = "2026-11-20T12:00:00+00:00"
SUCCEEDED = SourceState("succeeded")


def facts_of(kind: str) -> Facts:
    if kind == "network":
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return NetworkFacts(
            scope="device",
            os_platform="linux",
            os_version=None,
            started_at=STARTED_AT,
            printers=(Printer("cups:kitchen", "Kitchen", "network", "reachable"),),
            learned=(LearnedPrinter("cups:kitchen", seen_at=now, mac_address="00:1b:a9:00:00:01"),),
            interfaces_source=SUCCEEDED,
            mdns_source=SUCCEEDED,
            scan_source=SUCCEEDED,
        )
    return ApplicationFacts(
        started_at=STARTED_AT, fields=(Field("os.name", "fake", "available", "Test"),)
    )


def _emit(event: Event) -> None:
    sys.stdout.write(json.dumps(asdict(event)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.stdin.readline()
    facts = facts_of(sys.argv[1])
    _emit(Progress("step", 0, 1))
    _emit(Checkpoint(facts))
    _emit(Progress("step", 1, 1))
    _emit(Result(facts))
