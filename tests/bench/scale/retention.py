"""Measures how fast the service deletes old reports on PostgreSQL.

Usage: python -m tests.bench.scale.retention [REPORTS]
"""

import random
import sys
import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert
from sqlalchemy.orm import Session

from controlplane.remote_control.retention import delete_old
from controlplane.storage.database import Database
from controlplane.storage.tables import Report
from tests.bench.fleet.fleet import Member, populate
from tests.bench.processes import cost_of
from tests.bench.scale.__main__ import postmaster_of
from tests.postgresql import postgresql

DEVICES = 1000
PAYLOAD_BYTES = 20_000
"""The size of a typical report."""
RETENTION = timedelta(days=180)
ROWS_A_STATEMENT = 500


def main() -> int:
    reports = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    now = datetime.now(UTC)
    with postgresql() as url:
        database = Database(url)
        fleet = populate(database, DEVICES)
        for first in range(0, reports, ROWS_A_STATEMENT):
            rows = [_row(fleet[at % DEVICES], now) for at in range(first, first + ROWS_A_STATEMENT)]
            database.write(lambda session, rows=rows: _insert(session, rows))
        before, began_s, deleted = cost_of(postmaster_of(url)).cpu_s, time.monotonic(), 0
        while count := database.write(lambda session: delete_old(session, now, RETENTION)):
            deleted += count
        took_s = time.monotonic() - began_s
        cpu_s = cost_of(postmaster_of(url)).cpu_s - before
        database.close()
    sys.stdout.write(
        f"{deleted:,} of {reports:,} reports deleted, {deleted / took_s:,.0f} a second, "
        f"{1000 * cpu_s / deleted:.2f} ms of PostgreSQL's processor time for a report\n"
    )
    return 0


def _insert(session: Session, rows: list[dict[str, Any]]) -> None:
    session.execute(insert(Report), rows)


def _row(member: Member, now: datetime) -> dict[str, Any]:
    # Random text, because PostgreSQL compresses large values.
    payload = '{"text":"' + random.randbytes(PAYLOAD_BYTES // 2).hex() + '"}'
    return {
        "id": uuid.uuid4(),
        "instance_id": member.instance_id,
        "binding_id": member.binding_id,
        "organization_id": "org-0001",
        "location_id": member.location_id,
        "request_id": None,
        "kind": "network",
        "outcome": "completed",
        "payload": payload,
        "payload_hash": "0" * 64,
        "body_hash": "0" * 64,
        "user_id": "operator",
        "tracker_status": "disabled",
        "tracker_event_id": "",
        "tracker_attempts": 0,
        "created_at": now - RETENTION - timedelta(days=1),
        "updated_at": now,
    }


if __name__ == "__main__":
    sys.exit(main())
