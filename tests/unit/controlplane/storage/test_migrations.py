"""Tests of migrations: an old database gets the newest layout and keeps its rows."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from controlplane.cli.main import main
from controlplane.devices.findings.judging import judge_again
from controlplane.devices.findings.rules import RULES_VERSION
from controlplane.devices.overview.summaries import summarize_old_reports
from controlplane.devices.priority import Priority, most_severe
from controlplane.devices.records import has_payload
from controlplane.storage import migrations
from controlplane.storage.database import Database, DatabaseVersionError
from controlplane.storage.layout import Base
from controlplane.storage.migrations import upgrade
from controlplane.storage.report_tables import DeviceFinding, FindingCount, JudgedReport
from controlplane.storage.tables import Device, Report
from tests.paths import FIXTURES
from tests.postgresql import new_database

DUMPS = FIXTURES / "databases"
"""Dumps of databases.

The dumps of release 0.1.0 contain devices (one of them is revoked), requests in each state, reports
of both kinds, and keys of two organizations.
"""
VERSION_TABLES = {"schema_version", "alembic_version"}


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.needs("postgresql"))]
)
def old_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the URL of a database that release 0.1.0 wrote."""
    dump = f"service-0.1.0.{request.param}.sql"
    if request.param == "sqlite":
        file = tmp_path / "service.db"
        load_dump(file, dump)
        yield f"sqlite:///{file}"
        return
    with new_database() as url:
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.exec_driver_sql((DUMPS / dump).read_text())
        engine.dispose()
        yield url


Columns = dict[str, list[str]]


def columns(url: str) -> Columns:
    engine = create_engine(url)
    with engine.connect() as connection:
        inspector = inspect(connection)
        results = {
            name: [column["name"] for column in inspector.get_columns(name)]
            for name in sorted(set(inspector.get_table_names()) - VERSION_TABLES)
        }
    engine.dispose()
    return results


def content(url: str, columns_by_table: Columns | None = None) -> dict[str, list[Any]]:
    """Return every row of every table, or only the given columns."""
    engine = create_engine(url)
    with engine.connect() as connection:
        rows = {
            name: sorted(
                map(tuple, connection.execute(text(f"SELECT {', '.join(names)} FROM {name}"))),
                key=repr,
            )
            for name, names in (columns_by_table or columns(url)).items()
        }
    engine.dispose()
    return rows


def schema(url: str) -> dict[str, Any]:
    """Return the columns, keys, constraints and indexes of each table.

    Lists are sorted, so that the order of columns does not matter.
    """
    engine = create_engine(url)
    with engine.connect() as connection:
        inspector = inspect(connection)
        # These methods query all tables at once.
        parts: dict[str, Any] = {
            "columns": inspector.get_multi_columns(),
            "primary keys": inspector.get_multi_pk_constraint(),
            "unique constraints": inspector.get_multi_unique_constraints(),
            "indexes": inspector.get_multi_indexes(),
        }
    result = {
        part: {
            table: sorted(map(as_text, value)) if isinstance(value, list) else value
            for (_, table), value in values.items()
        }
        for part, values in parts.items()
    }
    engine.dispose()
    return result


def as_text(description: Any) -> str:
    return json.dumps(description, sort_keys=True, default=str)


def differences_of(url: str) -> list[Any]:
    """Return the differences between a database and the models."""
    engine = create_engine(url)
    with engine.connect() as connection:
        result = list(compare_metadata(MigrationContext.configure(connection), Base.metadata))
    engine.dispose()
    return result


def load_dump(file: Path, dump: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript((DUMPS / dump).read_text())


@pytest.mark.medium
def test_an_old_database_keeps_its_rows_and_gets_the_newest_layout(old_database: str) -> None:
    old_columns = columns(old_database)
    before = content(old_database, old_columns)
    assert len(before["reports"]) == 9
    assert len(before["requests"]) == 9
    Database(old_database).close()
    assert content(old_database, old_columns) == before
    assert differences_of(old_database) == []
    engine = create_engine(old_database)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT version FROM schema_version")).scalar_one() == 2
    engine.dispose()
    # A repeated upgrade changes nothing.
    after = content(old_database)
    Database(old_database).close()
    assert content(old_database) == after


def test_a_new_database_has_the_tables_of_the_models(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'service.db'}"
    Database(url).close()
    assert differences_of(url) == []


def test_each_layout_has_one_migration() -> None:
    steps = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert steps.get_heads() == [migrations.HEAD]
    newest_first = [step.revision for step in steps.walk_revisions()]
    assert newest_first == list(reversed(migrations.LAYOUTS))


def test_a_failed_upgrade_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "service.db"
    with sqlite3.connect(file) as connection:
        connection.executescript((DUMPS / "service-0.1.0.sqlite.sql").read_text())
        # Alembic creates a table with this name, so the migration fails.
        connection.execute("CREATE TABLE _alembic_tmp_devices (n INTEGER)")
    connection.close()
    url = f"sqlite:///{file}"
    before = (schema(url), content(url))
    with pytest.raises(Exception, match="_alembic_tmp_devices"):
        Database(url)
    assert (schema(url), content(url)) == before


def test_a_table_of_another_program_is_not_changed(old_database: str) -> None:
    engine = create_engine(old_database)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE users (n INTEGER)"))
    engine.dispose()
    before = schema(old_database), content(old_database)
    with pytest.raises(SQLAlchemyError, match=r"users.* already exists"):
        Database(old_database)
    assert (schema(old_database), content(old_database)) == before


def test_old_reports_are_summarized_after_the_upgrade(old_database: str) -> None:
    database = Database(old_database)
    assert database.write(summarize_old_reports) == 9
    assert database.write(summarize_old_reports) == 0
    with database.read(lambda session: session) as session:
        reports = {report.position: report for report in session.scalars(select(Report))}
        assert all(report.headline and report.severity for report in reports.values())
        for device in session.scalars(select(Device)):
            positions = [
                r.position for r in reports.values() if r.instance_id == device.instance_id
            ]
            newest = (device.network_report, device.application_report)
            assert not positions or max(positions) in newest
            assert device.severity == most_severe(
                *(reports[position].severity for position in newest if position)
            )
            assert (device.priority == Priority.REVOKED) is (device.revoked_at is not None)
    database.close()


def test_an_unreadable_old_report_does_not_block_others(tmp_path: Path) -> None:
    file = tmp_path / "service.db"
    with sqlite3.connect(file) as connection:
        connection.executescript((DUMPS / "service-0.1.0.sqlite.sql").read_text())
        connection.execute("UPDATE reports SET payload = '{\"version\": 2}' WHERE position = 1")
    connection.close()
    database = Database(str(file))
    assert database.write(summarize_old_reports) == 9
    with database.read(lambda session: session) as session:
        unreadable = session.get(Report, 1)
        assert unreadable is not None
        assert (unreadable.headline, unreadable.severity) == (
            "This report cannot be summarized.",
            "muted",
        )
    database.close()


@pytest.mark.parametrize(
    "engine_name", ["sqlite", pytest.param("postgresql", marks=pytest.mark.needs("postgresql"))]
)
def test_an_upgrade_from_layout_0017_fills_the_tables_of_counted_findings(
    tmp_path: Path, engine_name: str
) -> None:
    with ExitStack() as stack:
        is_sqlite = engine_name == "sqlite"
        url = f"sqlite:///{tmp_path / 'service.db'}"
        if not is_sqlite:
            url = stack.enter_context(new_database())
        Database(url).close()
        expected = schema(url)
        engine = create_engine(url)
        with engine.begin() as connection:
            for statement in DOWNGRADE_TO_0017.split(";"):
                connection.exec_driver_sql(statement)
        engine.dispose()
        Database(url).close()
        assert schema(url) == expected
        tables = {
            "counted_devices": ["device", "location_id", "platform", "version"],
            "devices": ["position", "symbols"],
            "finding_subjects": ["position", "subject"],
            "finding_counts": ["location_id", "subject", "version", "devices"],
        }
        rows = content(url, tables)
        # A character stands for a subject in the column `symbols`.
        symbols = {subject: chr(32 + number) for number, subject in rows["finding_subjects"]}
        assert set(symbols) == {"device", "any", "network", "disk-full", "problem"}
        codes = ("device", "any", "network", "disk-full", "problem")
        assert rows["counted_devices"] == [
            (1, "loc-1", "linux", "1.0.0"),
            (2, "loc-1", "linux", ""),
            (3, "loc-2", "linux", "1.0.0"),
        ]
        assert rows["devices"] == [
            (1, "".join(symbols[each] for each in codes)),
            (2, symbols["device"]),
            (3, ""),
        ]
        assert rows["finding_counts"] == [
            ("", "device", "", 1),
            ("", "device", "1.0.0", 1),
            ("loc-1", "device", "", 1),
            ("loc-1", "device", "1.0.0", 1),
        ]
        query = "SELECT subjects FROM counted_devices WHERE device = 1"
        with engine.connect() as connection:
            subjects = connection.execute(text(query)).scalar_one()
        engine.dispose()
        assert (json.loads(subjects) if is_sqlite else subjects) == list(codes)


DOWNGRADE_TO_0017 = """
DROP INDEX devices_by_group;
ALTER TABLE devices DROP COLUMN symbols;
DROP TABLE finding_subjects;
DROP INDEX printer_problems_by_organization;
CREATE INDEX printer_problems_by_organization ON printer_problems (organization_id, until);
UPDATE alembic_version SET version_num = '0017';
INSERT INTO devices (position, instance_id, binding_id, key_id, organization_id, location_id,
    legacy_install_id, app_version, capabilities, platform, public_key, user_id, foreground,
    created_at, enrolled_at, last_seen_at, revoked_at)
VALUES
    (1, '11111111111111111111111111111111', '11111111111111111111111111111111',
     '11111111111111111111111111111111', 'org-1', 'loc-1', 'till', '1.0.0', '[]', 'linux', '', '',
     false, '2026-11-01 10:00:00', '2026-11-01 10:00:00', '2026-11-01 10:00:00', NULL),
    (2, '22222222222222222222222222222222', '22222222222222222222222222222222',
     '22222222222222222222222222222222', 'org-1', 'loc-1', 'till', NULL, '[]', 'linux', '', '',
     false, '2026-11-01 10:00:00', '2026-11-01 10:00:00', '2026-11-01 10:00:00', NULL),
    (3, '33333333333333333333333333333333', '33333333333333333333333333333333',
     '33333333333333333333333333333333', 'org-1', 'loc-2', 'till', '1.0.0', '[]', 'linux', '', '',
     false, '2026-11-01 10:00:00', '2026-11-01 10:00:00', '2026-11-01 10:00:00',
     '2026-11-02 10:00:00');
INSERT INTO counted_devices VALUES
    (1, 'org-1', 'loc-1', 'linux', '1.0.0', '["any", "network", "disk-full", "problem"]'),
    (3, 'org-1', 'loc-2', 'linux', '1.0.0', '[]')
"""
"""Turns an empty database of the newest layout into one of layout 0017 with three devices.

The findings of the first device are counted, the second device has no findings, and the third
device is revoked.
"""

REPLACED_TABLES = {"alert_notifications"}
"""Tables of layout 0012 that later layouts replace."""


@pytest.mark.parametrize("old", migrations.LAYOUTS[:1])  # only the first layout has a dump
def test_a_database_with_an_older_layout_gets_the_schema_of_a_new_one(
    tmp_path: Path, old: str
) -> None:
    file, new = tmp_path / "service.db", tmp_path / "new.db"
    load_dump(file, f"layout-{old}.sqlite.sql")
    url = f"sqlite:///{file}"
    old_columns = {
        name: value for name, value in columns(url).items() if name not in REPLACED_TABLES
    }
    before = content(url, old_columns)
    Database(str(file)).close()
    Database(str(new)).close()
    assert content(url, old_columns) == before
    assert schema(url) == schema(f"sqlite:///{new}")
    assert differences_of(url) == []


OLD_ALERTS = """
INSERT INTO alerts (id, organization_id, location_id, instance, condition, is_flapping, started_at,
    fired_at, detail) VALUES
    ('11111111111111111111111111111111', 'org-1', 'loc-1', '', 'site_outage', 0,
     '2026-11-01 10:00:00', '2026-11-01 10:05:00', ''),
    ('22222222222222222222222222222222', 'org-2', 'loc-2', 'x', 'offline', 0,
     '2026-11-01 10:00:00', '2026-11-01 10:05:00', '');
INSERT INTO alert_webhooks VALUES ('org-1', 'https://hooks.example.com/in', 'whsec_x');
INSERT INTO alert_notifications (id, alert_id, is_resolved, body, status, attempts, due_at,
    created_at, updated_at) VALUES
    ('msg_1', '11111111111111111111111111111111', 0, '{}', 'pending', 3, '2026-11-01 10:09:00',
     '2026-11-01 10:05:00', '2026-11-01 10:08:00'),
    ('msg_2', '22222222222222222222222222222222', 0, '{}', 'sent', 1, NULL,
     '2026-11-01 10:05:00', '2026-11-01 10:05:01');
"""
"""Adds two alerts, a webhook and two notifications to a database of layout 0014."""


def test_old_notifications_and_webhooks_become_notifications_and_routes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "service.db"
    load_dump(file, "layout-0012.sqlite.sql")
    engine = create_engine(f"sqlite:///{file}")
    with monkeypatch.context() as patch, engine.begin() as connection:
        patch.setattr(upgrade, "HEAD", "0014")
        upgrade.upgrade(connection)
    engine.dispose()
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(OLD_ALERTS)
    Database(str(file)).close()
    with closing(sqlite3.connect(file)) as connection:
        query = "SELECT organization_id, id, route, status, attempts, due_at FROM notifications"
        assert connection.execute(f"{query} ORDER BY position").fetchall() == [
            ("org-1", "msg_1", "webhook", "pending", 3, "2026-11-01 10:09:00"),
            ("org-2", "msg_2", "", "sent", 1, None),
        ]
        query = "SELECT notification, route, alert_id FROM notified_alerts ORDER BY position"
        assert connection.execute(query).fetchall() == [
            ("msg_1", "webhook", "1" * 32),
            ("msg_2", "", "2" * 32),
        ]
        query = "SELECT organization_id, id, kind, target, secret, is_enabled FROM alert_routes"
        assert connection.execute(query).fetchall() == [
            ("org-1", "webhook", "webhook", "https://hooks.example.com/in", "whsec_x", 1)
        ]
        query = "SELECT severity FROM alerts ORDER BY position"
        assert connection.execute(query).fetchall() == [("critical",), ("warning",)]


@pytest.fixture
def database_0014(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of a database with layout 0014, and with the devices and reports of the dump
    of release 0.1.0.
    """
    file, first = tmp_path / "layout-0014.db", tmp_path / "first.db"
    load_dump(file, "layout-0012.sqlite.sql")
    url = f"sqlite:///{file}"
    engine = create_engine(url)
    with monkeypatch.context() as patch, engine.begin() as connection:
        patch.setattr(upgrade, "HEAD", "0014")
        upgrade.upgrade(connection)
    engine.dispose()
    load_dump(first, "service-0.1.0.sqlite.sql")
    Database(str(first)).close()
    old_columns = columns(url)
    with closing(sqlite3.connect(file)) as target, target:
        target.execute("ATTACH ? AS first", (str(first),))
        for table in ("devices", "reports"):
            names = ", ".join(old_columns[table])
            target.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM first.{table}")
    return url


def test_reports_of_the_first_release_are_judged_after_the_upgrade(old_database: str) -> None:
    check_judging(old_database)


def test_reports_of_layout_0014_are_judged_after_the_upgrade(database_0014: str) -> None:
    check_judging(database_0014)


def check_judging(url: str) -> None:
    """Check that the rules are applied to the newest reports only, and only once."""
    database = Database(url)
    with database.read(lambda session: session) as session:
        newest = newest_reports(session)
        now = max(report.created_at for report in newest.values())
        rows = session.scalars(select(JudgedReport)).all()
        assert {(row.device, row.kind): row.report for row in rows} == {
            key: report.position for key, report in newest.items()
        }
        assert {(row.rules_version, row.is_recent) for row in rows} == {(0, False)}
        assert session.scalars(select(DeviceFinding)).all() == []
    assert newest
    assert database.write(lambda session: judge_again(session, now)) == len(newest)
    assert database.write(lambda session: judge_again(session, now)) == 0
    with database.read(lambda session: session) as session:
        rows = session.scalars(select(JudgedReport)).all()
        assert {(row.rules_version, row.is_recent) for row in rows} == {(RULES_VERSION, True)}
        codes = {
            "network": ("printer-moved", "printer-unreachable"),
            "application": ("disk-silent",),
        }
        expected = {(device, kind, code) for device, kind in newest for code in codes[kind]}
        findings = session.scalars(select(DeviceFinding)).all()
        assert {(each.device, each.kind, each.rule) for each in findings} == expected
        sums = session.scalars(select(FindingCount).where(FindingCount.location_id == "")).all()
        counts = {each.subject: each.devices for each in sums}
        assert (counts["printer-moved"], counts["disk-silent"], counts["problem"]) == (2, 2, 6)
    database.close()


def newest_reports(session: Session) -> dict[tuple[int, str], Report]:
    """Return the newest reports with content of the devices that are not revoked.

    A key contains the position of the device and the kind of the report.
    """
    bound_devices = select(Device).where(Device.revoked_at.is_(None))
    positions = {each.binding_id: each.position for each in session.scalars(bound_devices)}
    oldest_first = session.scalars(select(Report).order_by(Report.position)).all()
    # The last report of each key remains.
    return {
        (positions[each.binding_id], each.kind): each
        for each in oldest_first
        if each.binding_id in positions and has_payload(each)
    }


def test_a_database_with_the_newest_layout_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "service.db"
    load_dump(file, "layout-0012.sqlite.sql")
    url = f"sqlite:///{file}"
    Database(str(file)).close()
    before = schema(url), content(url)
    Database(str(file)).close()
    assert (schema(url), content(url)) == before
    assert differences_of(url) == []


def test_an_old_database_gets_the_schema_of_a_new_one(old_database: str, tmp_path: Path) -> None:
    Database(old_database).close()
    if old_database.startswith("sqlite"):
        new_file = tmp_path / "new.db"
        Database(str(new_file)).close()
        assert schema(old_database) == schema(f"sqlite:///{new_file}")
        return
    with new_database() as new:
        Database(new).close()
        assert schema(old_database) == schema(new)


@pytest.mark.parametrize("revision", ["0002", "0005", "0011"])
def test_a_layout_of_a_development_version_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], revision: str
) -> None:
    file = tmp_path / "service.db"
    Database(str(file)).close()
    set_layout(file, revision)
    before = file.read_bytes()
    assert main(["keys", "list", "--database", str(file)]) == 2
    message, hint = capsys.readouterr().err.splitlines()
    assert f"it has layout {revision}, which only development versions had" in message
    assert "Use a new database" in hint
    restored = tmp_path / "restored.db"
    assert main(["restore", str(file), "--database", str(restored)]) == 2
    assert capsys.readouterr().err.splitlines()[1] == hint
    assert not restored.exists()
    assert main(["database", "copy", str(file), str(restored)]) == 2
    assert capsys.readouterr().err.splitlines()[1] == hint
    assert file.read_bytes() == before


def set_layout(file: Path, revision: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        connection.commit()


MIGRATION_SCRIPT = f"""
from alembic import op

revision = "9999"
down_revision = "{migrations.HEAD}"


def upgrade():
    op.execute("CREATE TABLE made_by_the_script (n INTEGER)")
"""


def test_migration_scripts_run_only_for_databases_at_layout_0012_or_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "migrations"
    shutil.copytree(Path(migrations.__file__).parent, directory)
    (directory / "versions/9999_test.py").write_text(MIGRATION_SCRIPT)
    names = ("first.db", "later.db", "empty.db")
    first, later, empty = (tmp_path / name for name in names)
    load_dump(first, "service-0.1.0.sqlite.sql")
    load_dump(later, "layout-0012.sqlite.sql")
    monkeypatch.setattr(upgrade, "HEAD", "9999")
    monkeypatch.setattr(upgrade, "LAYOUTS", (*migrations.LAYOUTS, "9999"))
    monkeypatch.setattr(upgrade, "__file__", str(directory / "upgrade.py"))
    # Only a database with layout 0012 or later needs the migration script. A database of release
    # 0.1.0 and an empty database get the newest layout from the models.
    for file, runs_script in ((first, False), (later, True), (empty, False)):
        engine = create_engine(f"sqlite:///{file}")
        with engine.begin() as connection:
            upgrade.upgrade(connection)
            assert upgrade.layout(connection) == "9999"
            assert inspect(connection).has_table("made_by_the_script") is runs_script
        engine.dispose()


def test_a_newer_layout_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "service.db"
    with sqlite3.connect(file) as connection:
        connection.executescript("CREATE TABLE schema_version (version INTEGER);")
        connection.execute("INSERT INTO schema_version VALUES (99)")
    connection.close()
    with pytest.raises(DatabaseVersionError, match="layout 0099") as refused:
        Database(str(file))
    assert refused.value.hint.startswith("Install the release that created the database")
