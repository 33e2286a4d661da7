"""A database of release 0.1.0 is upgraded without a loss."""

import json
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, String, create_engine, inspect, select, text

from controlplane.devices.overview.summaries import sum_up_old
from controlplane.devices.priority import Priority, most_severe
from controlplane.storage import migrations
from controlplane.storage.audit_tables import AuditEntry
from controlplane.storage.database import Database, DatabaseVersionError
from controlplane.storage.layout import Base
from controlplane.storage.merchant.merchant_tables import Location
from controlplane.storage.monitoring_tables import (
    Alert,
    AlertNotification,
    AlertState,
    LocationHours,
    MonitoringState,
    OfflineInterval,
    PendingRequest,
)
from controlplane.storage.support_tables import SupportLink
from controlplane.storage.tables import Device, Report
from tests.paths import FIXTURES
from tests.postgresql import new_database

DUMPS = FIXTURES / "databases"
"""Data of a service of 0.1.0: devices, one of them revoked, requests in each state, reports of both
kinds, keys of two organizations.
"""
OWN = {"schema_version", "alembic_version"}


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.needs("postgresql"))]
)
def old_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the URL of a database in the layout of 0.1.0."""
    dump = (DUMPS / f"service-0.1.0.{request.param}.sql").read_text()
    if request.param == "sqlite":
        file = tmp_path / "service.db"
        with sqlite3.connect(file) as connection:
            connection.executescript(dump)
        connection.close()
        yield f"sqlite:///{file}"
        return
    with new_database() as url:
        engine = create_engine(url)
        with engine.begin() as begun:
            begun.exec_driver_sql(dump)
        engine.dispose()
        yield url


Columns = dict[str, list[str]]


def columns(url: str) -> Columns:
    engine = create_engine(url)
    with engine.connect() as connection:
        inspector = inspect(connection)
        results = {
            name: [column["name"] for column in inspector.get_columns(name)]
            for name in sorted(set(inspector.get_table_names()) - OWN)
        }
    engine.dispose()
    return results


def content(url: str, of: Columns | None = None) -> dict[str, list[Any]]:
    """Return every row of every table, or only the given columns."""
    engine = create_engine(url)
    with engine.connect() as connection:
        matches = {
            name: sorted(
                map(tuple, connection.execute(text(f"SELECT {', '.join(wanted)} FROM {name}"))),
                key=repr,
            )
            for name, wanted in (of or columns(url)).items()
        }
    engine.dispose()
    return matches


def differences(connection: Connection) -> list[Any]:
    return list(compare_metadata(MigrationContext.configure(connection), Base.metadata))


@pytest.mark.medium
def test_nothing_is_lost_and_the_layout_is_todays(old_database: str) -> None:
    known = columns(old_database)
    before = content(old_database, known)
    assert len(before["reports"]) == 9
    assert len(before["requests"]) == 9
    Database(old_database).close()
    assert content(old_database, known) == before
    engine = create_engine(old_database)
    with engine.connect() as connection:
        assert differences(connection) == []
        assert connection.execute(text("SELECT version FROM schema_version")).scalar_one() == 2
    engine.dispose()
    # A repeated upgrade changes nothing.
    after = content(old_database)
    Database(old_database).close()
    assert content(old_database) == after


def test_the_steps_make_the_tables_that_the_service_knows(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'service.db'}"
    Database(url).close()
    engine = create_engine(url)
    with engine.connect() as connection:
        assert differences(connection) == []
    engine.dispose()


def test_the_newest_step_is_the_last(tmp_path: Path) -> None:
    steps = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert steps.get_heads() == [migrations.HEAD]
    assert steps.get_bases() == [migrations.FIRST]


def test_a_step_that_fails_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "service.db"
    with sqlite3.connect(file) as connection:
        connection.executescript((DUMPS / "service-0.1.0.sqlite.sql").read_text())
        # This table prevents Alembic from creating one with the same name.
        connection.execute("CREATE TABLE _alembic_tmp_devices (n INTEGER)")
    connection.close()
    url = f"sqlite:///{file}"
    before = content(url)
    with pytest.raises(Exception, match="_alembic_tmp_devices"):
        Database(url)
    assert content(url) == before


def test_old_reports_are_summed_up_while_the_service_runs(old_database: str) -> None:
    database = Database(old_database)
    assert database.write(sum_up_old) == 9
    assert database.write(sum_up_old) == 0
    with database.read(lambda session: session) as session:
        reports = {report.position: report for report in session.scalars(select(Report))}
        assert all(report.headline and report.severity for report in reports.values())
        for device in session.scalars(select(Device)):
            own = [r.position for r in reports.values() if r.instance_id == device.instance_id]
            newest = (device.network_report, device.application_report)
            assert max(own, default=None) in {*newest, None}
            assert device.severity == most_severe(
                *(reports[each].severity for each in newest if each)
            )
            assert (device.priority == Priority.REVOKED) is (device.revoked_at is not None)
    database.close()


def test_an_old_report_that_cannot_be_read_keeps_no_other_waiting(tmp_path: Path) -> None:
    file = tmp_path / "service.db"
    with sqlite3.connect(file) as connection:
        connection.executescript((DUMPS / "service-0.1.0.sqlite.sql").read_text())
        connection.execute("UPDATE reports SET payload = '{}' WHERE position = 1")
    connection.close()
    database = Database(str(file))
    assert database.write(sum_up_old) == 9
    with database.read(lambda session: session) as session:
        unreadable = session.get(Report, 1)
        assert unreadable is not None
        assert (unreadable.headline, unreadable.severity) == (
            "This report cannot be summarized.",
            "muted",
        )
    database.close()


def migrate_to(url: str, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    engine = create_engine(url)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.stamp(config, migrations.FIRST)
        command.upgrade(config, revision)
    engine.dispose()


def insert(connection: Connection, table: str, **values: Any) -> None:
    columns, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
    connection.execute(text(f"INSERT INTO {table} ({columns}) VALUES ({marks})"), values)


AT = "2026-11-20 12:00:00+00:00"
ID = "0b8a2a1e6f9f4a649f0e0e6f3a2c7d11"
PLACE = {"organization_id": "org-0001", "location_id": "loc-0001"}
BODY = {"type": "notice.opened", "noticeId": ID, "condition": "dark", "detail": "notice"}


def write_monitoring(connection: Connection) -> None:
    """Insert rows into the tables and columns that step 0011 renames."""
    condition = {**PLACE, "instance": "", "condition": "dark"}
    dates = {"created_at": AT, "updated_at": AT}
    insert(connection, "listened", id=1, began_at=AT, judged_at=AT, resumed_at=AT)
    insert(connection, "gaps", device=1, since=AT)
    insert(
        connection, "watched_conditions", **condition, holds=True, began_at=AT, is_told=True,
        is_flapping=False, changes=json.dumps([AT]),
    )  # fmt: skip
    insert(
        connection, "notices", **condition, id=ID, is_flapping=False, opened_at=AT, told_at=AT,
        detail="2 devices are offline",
    )  # fmt: skip
    insert(
        connection, "notice_deliveries", id="msg_1", notice_id=ID, is_end=False,
        body=json.dumps(BODY), status="pending", attempts=2, due_at=AT, **dates,
    )  # fmt: skip
    insert(
        connection, "wishes", id=ID, organization_id="org-0001", instance_id=ID, kind="network",
        key_id=ID, state="asked", request_id=ID, tries=3, until=AT, **dates,
    )  # fmt: skip
    insert(
        connection, "audit_entries", at=AT, organization_id="org-0001", actor_kind="person",
        actor_name="Ada", credential_kind="wish", credential_hint="", operation="wish.create",
        subject_kind="device", subject_id=ID, subject_name="till-01", detail="wish",
        outcome="done", address="",
    )  # fmt: skip
    insert(
        connection, "support_links", id=ID, token_hash="hash", channel="chat", asked_by="Eve",
        asked_at=AT, expires_at=AT,
    )  # fmt: skip


@pytest.mark.medium
def test_renamed_tables_and_columns_keep_their_rows(old_database: str) -> None:
    migrate_to(old_database, "0010")
    engine = create_engine(old_database)
    with engine.begin() as connection:
        write_monitoring(connection)
    Database(old_database).close()
    with engine.connect() as connection:
        assert differences(connection) == []
    engine.dispose()
    database = Database(old_database)
    with database.read(lambda session: session) as session:
        timestamp, id_ = datetime.fromisoformat(AT), UUID(ID)
        monitoring = session.scalars(select(MonitoringState)).one()
        assert (monitoring.started_at, monitoring.checked_at) == (timestamp, timestamp)
        interval = session.scalars(select(OfflineInterval)).one()
        assert (interval.device, interval.since, interval.until) == (1, timestamp, None)
        state = session.scalars(select(AlertState)).one()
        assert (state.condition, state.is_active, state.is_firing) == ("site_outage", True, True)
        assert (state.active_since, state.inactive_since) == (timestamp, None)
        alert = session.scalars(select(Alert)).one()
        assert (alert.id, alert.condition) == (id_, "site_outage")
        assert (alert.started_at, alert.fired_at, alert.resolved_at) == (timestamp, timestamp, None)
        notification = session.scalars(select(AlertNotification)).one()
        assert (notification.alert_id, notification.is_resolved) == (id_, False)
        assert json.loads(notification.body) == {
            "type": "alert.firing", "alertId": ID, "condition": "site_outage", "detail": "notice",
        }  # fmt: skip
        pending = session.scalars(select(PendingRequest)).one()
        assert (pending.state, pending.requester_id, pending.attempts) == ("dispatched", id_, 3)
        entry = session.scalars(select(AuditEntry)).one()
        assert (entry.operation, entry.detail) == ("pending_request.create", "wish")
        assert (entry.actor_kind, entry.credential_kind) == ("user", "pending_request")
        link = session.scalars(select(SupportLink)).one()
        assert (link.requested_by, link.requested_at) == ("Eve", timestamp)
    # The sequence of positions was renamed, too.
    database.write(lambda session: session.add(OfflineInterval(device=2, since=timestamp)))
    assert database.read(lambda session: session.query(OfflineInterval).count()) == 2
    database.close()


@pytest.mark.medium
def test_the_time_zone_of_a_location_is_stored_once(
    old_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    migrate_to(old_database, "0010")
    engine = create_engine(old_database)
    with engine.begin() as connection:
        for number, zone in enumerate((None, "Asia/Dubai", "Asia/Dubai"), 2):
            insert(
                connection, "locations", position=number, id=f"loc-{number:04}",
                organization_id="org-0001", name="Harbour", zone=zone, currency="AED",
                created_at=AT,
            )  # fmt: skip
        for number in range(1, 5):
            insert(
                connection, "location_hours", organization_id="org-0001",
                location_id=f"loc-{number:04}", time_zone="Europe/Riga",
                opening_hours=json.dumps(["Mon-Fri 08:00-22:00"]),
            )  # fmt: skip
        write_sale(connection, location=4)
    engine.dispose()
    database = Database(old_database)
    with database.read(lambda session: session) as session:
        rows = session.scalars(select(Location).order_by(Location.id)).all()
        result = [(row.id, row.name, row.zone, row.currency) for row in rows]
        hours = session.scalars(select(LocationHours)).all()
        assert [row.opening_hours for row in hours] == [["Mon-Fri 08:00-22:00"]] * 4
    database.close()
    assert result == [
        ("loc-0001", None, "Europe/Riga", "XXX"),
        ("loc-0002", "Harbour", "Europe/Riga", "AED"),
        ("loc-0003", "Harbour", "Europe/Riga", "AED"),
        # Its sales are summed by local hours in this zone.
        ("loc-0004", "Harbour", "Asia/Dubai", "AED"),
    ]
    (warning,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert warning.startswith(
        "location loc-0004 has opening hours in Europe/Riga and sales in Asia/Dubai."
    )


def write_sale(connection: Connection, location: int) -> None:
    table = inspect(connection).get_columns("sales")
    values: dict[str, Any] = {}
    for column in table:
        if not column["nullable"] and column["name"] != "position":
            is_text = isinstance(column["type"], String)
            values[column["name"]] = "x" if is_text else 0
    values |= {"location": location, "id": ID, "has_lines": False}
    insert(connection, "sales", **values)


def test_a_layout_that_was_never_released_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "service.db"
    with sqlite3.connect(file) as connection:
        connection.executescript("CREATE TABLE schema_version (version INTEGER);")
        connection.execute("INSERT INTO schema_version VALUES (99)")
    connection.close()
    with pytest.raises(DatabaseVersionError, match="layout 0099"):
        Database(str(file))
