"""Measures the device lists of the console with a large fleet on SQLite: `make bench-console`.

Each call is timed inside the service, from the transaction to the JSON, without HTTP. Goals: 95 of
100 pages take at most 50 ms with any filter, and the summary takes at most 200 ms. The exit code is
1 if a goal is missed.
"""

import os
import random
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

from sqlalchemy import insert
from sqlalchemy.orm import Session

from agent.wire.base import Message
from agent.wire.codec import encode
from agent.wire.device_operations import EmptyRequest
from agent.wire.payloads.history import PATH_CAUSES
from controlplane.devices.incidents.listing import incidents
from controlplane.devices.incidents.records import IncidentsRequest
from controlplane.devices.overview.listing import overview
from controlplane.devices.overview.printers import printers
from controlplane.devices.overview.records import OverviewRequest, PrintersRequest
from controlplane.devices.overview.report_contents import PrinterState
from controlplane.devices.overview.start_page import summary
from controlplane.devices.priority import Priority, priority_of
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.server import set_up_garbage_collection
from controlplane.settings import Settings
from controlplane.storage.database import Database
from controlplane.storage.report_tables import (
    DeviceIncident,
    DevicePrinter,
    RecordPeriod,
    ReportText,
)
from controlplane.storage.tables import Device, Report

PAGE_GOAL_MS: Final = 50
SUMMARY_GOAL_MS: Final = 200
"""Goals for the 95th percentile."""
DEVICES: Final = 50_000
CALLS: Final = 100
NOW: Final = datetime.now(UTC)
CURSOR_KEY: Final = b"k" * 32
ORGANIZATION: Final = "org-0001"
FILTERS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"size": 200},
    *({"state": state} for state in ("offline", "broken", "healthy", "online", "busy", "revoked")),
    {"location": "loc-0100"},
    {"platform": "windows"},
    {"version": "0.2.0"},
    {"version": "9"},
    {"search": "49999"},
    {"search": "nothing loc"},
    {"search": "abcdef12"},
    {"search": "paper"},
    {"search": "no-such-word", "count": True},
)
PRINTER_FILTERS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"state": "healthy"},
    {"location": "loc-0100"},
    {"search": "paper"},
)
INCIDENT_FILTERS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"size": 500, "days": 30},
    {"size": 300, "days": 1, "shared": True},
    {"location": "loc-0100", "days": 30},
)
INCIDENTS: Final = 10
"""Incidents of each device in thirty days. Half of them are shared by the devices of a location."""
PRINTERS: Final = 3
"""Printers of each device."""


def devices() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the rows of each device and of its newest report."""
    for position in range(1, DEVICES + 1):
        severity = random.choices(("good", "warn", "bad"), (80, 15, 5))[0]
        states = (
            priority_of(severity),
            Priority.OFFLINE,
            Priority.NEVER_CONNECTED,
            Priority.REVOKED,
        )
        priority = random.choices(states, (90, 5, 2, 3))[0]
        offline_s = 3600 if priority == Priority.OFFLINE else random.randrange(60)
        seen = NOW - timedelta(seconds=offline_s)
        common = {
            "instance_id": uuid.uuid4(),
            "binding_id": uuid.uuid4(),
            "organization_id": ORGANIZATION,
            "location_id": f"loc-{random.randrange(2000):04}",
            "user_id": "key",
            "created_at": NOW,
        }
        yield (
            common | {
                "key_id": uuid.uuid4(), "legacy_install_id": f"till-{position:05}",
                "app_version": random.choice(("0.1.0", "0.2.0", None)), "capabilities": ["network"],
                "platform": random.choice(("linux", "windows")), "public_key": "a" * 88,
                "foreground": False, "enrolled_at": NOW, "last_seen_at": seen, "severity": severity,
                "revoked_at": NOW if priority == Priority.REVOKED else None, "priority": priority,
                "network_report": position,
            },
            common | {
                "id": uuid.uuid4(), "kind": "network", "outcome": "completed",
                "payload": "{}" * 2000, "payload_hash": "x", "body_hash": "x",
                "tracker_status": "disabled", "tracker_event_id": "x", "tracker_attempts": 0,
                "severity": severity, "updated_at": NOW,
                "headline": "The printer Bar has moved to 192.168.1.61:9100. And 2 more.",
            },
        )  # fmt: skip


def contents() -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield the text of each report, and its printers."""
    for position in range(1, DEVICES + 1):
        printer_rows = []
        for number in range(PRINTERS):
            state = random.choices(list(PrinterState), (3, 5, 2, 90))[0]
            reason = "The printer reports: out of paper." if state == PrinterState.WARNING else ""
            printer_rows.append(
                {
                    "organization_id": ORGANIZATION, "device": position, "state": state,
                    "printer_id": f"queue-{number}", "name": f"Receipts {number}", "since": NOW,
                    "address": f"192.168.1.{number}:9100",
                    "detail": reason or "Answers on port 9100; matched by its MAC address.",
                }
            )  # fmt: skip
        words = (text for each in printer_rows for text in (each["name"], each["detail"]))
        yield (
            {
                "organization_id": ORGANIZATION, "device": position, "kind": "network",
                "text": " ".join(words).lower() + " debian 12 all 3 printers are reachable.",
            },
            printer_rows,
        )  # fmt: skip


def incident_rows(locations: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the incidents of all devices. ``locations`` has one location for each device, in the
    order of the devices' positions.
    """
    now_s = int(NOW.timestamp())
    shared = {
        each: [random.randrange(30 * 86_400) for _ in range(INCIDENTS // 2)]
        for each in sorted(set(locations))
    }
    for position, location_id in enumerate(locations, 1):
        separate = (random.randrange(30 * 86_400) for _ in range(INCIDENTS // 2))
        for ago_s in (*separate, *shared[location_id]):
            began_s = now_s - ago_s - random.randrange(20)
            yield {
                "organization_id": ORGANIZATION, "location_id": location_id, "device": position,
                "cause": random.choice(PATH_CAUSES), "reported_s": began_s, "began_s": began_s,
                "ended_s": began_s + 95, "downtime_s": 95, "count": 1, "correction_s": 0,
                "evidence": "the gateway 192.168.1.1 does not answer",
            }  # fmt: skip


def periods(locations: Sequence[str]) -> Iterator[dict[str, Any]]:
    until_s = int(NOW.timestamp())
    for position, location_id in enumerate(locations, 1):
        yield {
            "organization_id": ORGANIZATION, "location_id": location_id, "device": position,
            "since_s": until_s - 30 * 86_400, "until_s": until_s,
        }  # fmt: skip


def fill(session: Session) -> None:
    rows, reports = zip(*devices(), strict=True)
    session.execute(insert(Device), rows)
    session.execute(insert(Report), reports)
    texts, rows_of_printers = zip(*contents(), strict=True)
    session.execute(insert(ReportText), texts)
    session.execute(insert(DevicePrinter), list(chain.from_iterable(rows_of_printers)))
    locations = [row["location_id"] for row in rows]
    session.execute(insert(DeviceIncident), list(incident_rows(locations)))
    session.execute(insert(RecordPeriod), list(periods(locations)))


@dataclass(frozen=True, slots=True)
class Call:
    """A call to measure, with the goal for its 95th percentile."""

    name: str
    goal_ms: int
    work: Callable[[RequestContext], Message]


def measure(database: Database, calls: Iterable[Call]) -> bool:
    """Measure each call and print the result. Return whether each call met its goal."""
    print(f"{DEVICES} devices, load {os.getloadavg()[0]:.1f}", "ms: median, 95 %", sep="\n")
    has_met_goals = True
    for call in calls:
        median, p95 = measure_ms(database, call.work)
        has_met_goals &= p95 <= call.goal_ms
        print(f"{call.name:76} {median:6.1f} {p95:6.1f}", flush=True)
    return has_met_goals


def measure_ms(
    database: Database, work: Callable[[RequestContext], Message]
) -> tuple[float, float]:
    """Return the median and the 95th percentile of the duration of ``work``, in milliseconds."""
    caller = Caller(uuid.uuid4(), ORGANIZATION, can_write=True)
    times = []
    for _ in range(CALLS):
        began_s = time.perf_counter()
        database.read(
            lambda session: encode(
                work(RequestContext(session, caller, NOW, Settings(), CURSOR_KEY))
            )
        )
        times.append((time.perf_counter() - began_s) * 1000)
    return statistics.median(times), statistics.quantiles(times, n=20)[-1]


def main() -> int:
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        database = Database(str(Path(folder) / "service.db"))
        database.write(fill)
        set_up_garbage_collection()
        pages: list[tuple[str, Any, Any]] = [
            *((f"{each or 'all'}", overview, OverviewRequest(**each)) for each in FILTERS),
            *((f"printers {each}", printers, PrintersRequest(**each)) for each in PRINTER_FILTERS),
            *((f"incidents {each}", incidents, IncidentsRequest(**each))
              for each in INCIDENT_FILTERS),
        ]  # fmt: skip
        calls = [Call(name, PAGE_GOAL_MS, partial(work, body=body)) for name, work, body in pages]
        calls.append(Call("summary", SUMMARY_GOAL_MS, partial(summary, _body=EmptyRequest())))
        has_met_goals = measure(database, calls)
        database.close()
    return 0 if has_met_goals else 1


if __name__ == "__main__":
    sys.exit(main())
