"""Measures the lists of findings with 50,000 devices and 500,000 findings: `make bench-findings`.

Each call is repeated and timed inside the service, from the transaction to the JSON, without HTTP.
Goal for each call: 95 of 100 repetitions take at most 100 ms. The exit code is 1 if a call misses
this goal. The database is SQLite, or PostgreSQL if `VENUE_TEST_DATABASE` is set.
"""

import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlalchemy import insert, text
from sqlalchemy.orm import Session

from controlplane.devices.findings.counting import add_subjects, day_of
from controlplane.devices.findings.listing import finding_devices, findings
from controlplane.devices.findings.printers import worst_printers
from controlplane.devices.findings.records import (
    FindingDevicesRequest,
    FindingsRequest,
    WorstPrintersRequest,
)
from controlplane.devices.findings.rules import (
    ANY,
    DEVICE,
    NON_RULE_SUBJECTS,
    PROBLEM,
    RULES,
    RULES_VERSION,
)
from controlplane.devices.overview.report_contents import PrinterState
from controlplane.server import set_up_garbage_collection
from controlplane.storage.database import Database
from controlplane.storage.report_tables import (
    CountedDevice,
    DeviceFinding,
    DevicePrinter,
    FindingCount,
    FindingDay,
    JudgedReport,
    PrinterProblem,
    ReportText,
)
from controlplane.storage.tables import Device
from tests.bench.console.console_list import (
    NOW,
    ORGANIZATION,
    Call,
    contents,
    devices,
    measure,
)

GOAL_MS: Final = 100
"""Goal for the 95th percentile."""
FINDINGS: Final = 10
"""Findings of each device."""
LOCATIONS: Final = 500
CODES: Final = sorted(RULES)
WEIGHTS: Final = [1 / (number + 3) for number in range(len(CODES))]
"""Relative frequencies of the rules in `CODES`."""
FILTERS: Final[tuple[dict[str, Any], ...]] = (
    {}, {"location": "loc-0100"}, {"platform": "windows"}, {"version": ""},
    {"platform": "windows", "version": "0.2.0"}, {"state": "broken"}, {"state": "healthy"},
    {"state": "online"}, {"state": "offline"}, {"state": "busy"},
    {"state": "online", "platform": "windows"}, {"state": "online", "location": "loc-0100"},
    {"search": "till-4999"}, {"search": "windows"}, {"search": "paper"},
    {"state": "online", "search": "windows"},
)  # fmt: skip
RULE: Final = {"rule": CODES[0]}
"""The filter for the rule with the most findings."""
NEW: Final = {"is_new": True}
Row = dict[str, Any]


def finding_rows(device: Row, position: int) -> Iterator[Row]:
    codes = set(random.choices(CODES, WEIGHTS, k=3 * FINDINGS))
    for code in list(codes)[:FINDINGS]:
        kind = RULES[code].kinds[0]
        since = NOW - timedelta(hours=random.expovariate(1 / 240))
        yield {
            "organization_id": ORGANIZATION, "location_id": device["location_id"],
            "device": position, "kind": kind, "rule": code, "severity": RULES[code].severity,
            "sentence": RULES[code].title, "since": since, "last_seen": NOW, "report": position,
        }  # fmt: skip


def fill(session: Session) -> None:
    rows = [row for row, _ in devices()]
    for row in rows:
        row["location_id"] = f"loc-{random.randrange(LOCATIONS):04}"
    symbols = add_subjects(session, {*CODES, *NON_RULE_SUBJECTS})
    counts, days = Counter[tuple[str, ...]](), Counter[tuple[Any, ...]]()
    total = 0
    for first in range(0, len(rows), 5000):
        findings_of_step: list[Row] = []
        counted: list[Row] = []
        for position, row in enumerate(rows[first : first + 5000], first + 1):
            if row["revoked_at"] is not None:
                continue
            device_findings = list(finding_rows(row, position))
            findings_of_step += device_findings
            subjects = [each["rule"] for each in device_findings]
            subjects += ["network", "application", ANY, DEVICE]
            subjects += [PROBLEM for each in device_findings if each["severity"] in ("bad", "warn")]
            counted.append(
                {
                    "device": position, "organization_id": ORGANIZATION, "subjects": subjects,
                    "location_id": row["location_id"], "platform": row["platform"],
                    "version": row["app_version"] or "",
                }
            )  # fmt: skip
            row["symbols"] = "".join(symbols[each] for each in subjects)
            for each in subjects:
                for location in ("", row["location_id"]):
                    key = (location, each, row["platform"], row["app_version"] or "")
                    counts[key] += 1
            for each in device_findings:
                if NOW - each["since"] < timedelta(days=30):
                    for location in ("", row["location_id"]):
                        platform_and_version = (row["platform"], row["app_version"] or "")
                        days[
                            location, each["rule"], *platform_and_version, day_of(each["since"])
                        ] += 1
        session.execute(insert(DeviceFinding), findings_of_step)
        session.execute(insert(CountedDevice), counted)
        total += len(findings_of_step)
    # All rows need the same columns, and a revoked device has no symbols.
    session.execute(insert(Device), [{"symbols": ""} | row for row in rows])
    names = ("location_id", "subject", "platform", "version")
    organization = {"organization_id": ORGANIZATION}
    session.execute(
        insert(FindingCount),
        [
            organization | dict(zip(names, key, strict=True)) | {"devices": n}
            for key, n in counts.items()
        ],
    )
    day_names = (*names, "day")
    session.execute(
        insert(FindingDay),
        [
            organization | dict(zip(day_names, key, strict=True)) | {"change": n}
            for key, n in days.items()
        ],
    )
    session.execute(insert(JudgedReport), list(judged(rows)))
    session.execute(insert(DevicePrinter), list(printers(rows)))
    session.execute(insert(PrinterProblem), list(problems(rows)))
    session.execute(insert(ReportText), [text for text, _ in contents()])
    print(f"{total} findings, {len(counts)} sums, {len(days)} daily changes")


def judged(rows: list[Row]) -> Iterator[Row]:
    for position, row in enumerate(rows, 1):
        for kind in ("network", "application"):
            if row["revoked_at"] is None:
                yield {
                    "device": position, "kind": kind, "report": position, "arrived_at": NOW,
                    "rules_version": RULES_VERSION, "is_recent": True,
                }  # fmt: skip


def printers(rows: list[Row]) -> Iterator[Row]:
    for position in range(1, len(rows) + 1):
        state = random.choices((PrinterState.BROKEN, PrinterState.HEALTHY), (3, 97))[0]
        yield {
            "organization_id": ORGANIZATION, "device": position, "state": state,
            "printer_id": "queue-0", "name": "Receipts", "since": NOW - timedelta(days=2),
            "address": None, "detail": "",
        }  # fmt: skip


def problems(rows: list[Row]) -> Iterator[Row]:
    for position, row in list(enumerate(rows, 1))[::3]:
        since = NOW - timedelta(days=random.uniform(3, 29))
        yield {
            "organization_id": ORGANIZATION, "location_id": row["location_id"], "device": position,
            "printer_id": "queue-0", "name": "Receipts", "since": since,
            "until": since + timedelta(hours=random.expovariate(1 / 8)),
        }  # fmt: skip


def main() -> int:
    random.seed(1)
    with ExitStack() as stack:
        if "VENUE_TEST_DATABASE" in os.environ:
            from tests.postgresql import new_database

            url = stack.enter_context(new_database())
        else:
            url = str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "service.db")
        database = Database(url)
        database.write(fill)
        if database.postgresql is not None:
            database.write(lambda session: session.execute(text("ANALYZE")))
        set_up_garbage_collection()
        calls: list[tuple[str, Any, Any]] = [
            *((f"counts {each}", findings, FindingsRequest(**each))
              for filters in FILTERS for each in (filters, RULE | filters)),
            *((f"list {each}", finding_devices, FindingDevicesRequest(**each))
              for filters in FILTERS for each in (filters, RULE | filters, NEW | filters)),
            *((f"worst printers {each}", worst_printers, WorstPrintersRequest(**each))
              for each in FILTERS),
        ]  # fmt: skip
        has_met_goals = measure(
            database, (Call(name, GOAL_MS, partial(work, body=body)) for name, work, body in calls)
        )
        database.close()
    return 0 if has_met_goals else 1


if __name__ == "__main__":
    sys.exit(main())
