"""Tests of backups: a backup contains every report that was accepted before the backup began."""

import asyncio
import contextlib
import json
import os
import sqlite3
import stat
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import select

from agent.wire.codec import encode
from controlplane.cli.main import main
from controlplane.settings import Settings
from controlplane.storage.backup import BackupError, restore, snapshot, write_atomically
from controlplane.storage.database import Database
from controlplane.storage.tables import Report
from tests.fixtures.payloads import small_venue
from tests.unit.controlplane.running_service import FakeClock, service_on

SUBMISSIONS = 200
CONCURRENT_SUBMISSIONS = 16
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
REPORT = json.loads(encode(small_venue()))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "service.db"


def reports_in(file: Path) -> set[UUID]:
    with closing(Database(str(file))) as database:
        return set(database.read(lambda session: session.scalars(select(Report.id)).all()))


@pytest.mark.medium
async def test_a_backup_contains_all_reports_accepted_before_the_backup_began(path: Path) -> None:
    accepted: set[UUID] = set()
    accepted_before: set[UUID] = set()
    backup = path.with_name("backup.db")

    def back_up() -> None:
        accepted_before.update(accepted)
        assert main(["backup", str(backup), "--database", str(path)]) == 0

    # The timeout is long, so that submissions do not fail on a slow machine.
    with closing(Database(str(path), busy_timeout_s=60)) as database:
        async with service_on(database, Settings(rate_per_s=0), FakeClock()) as service:
            device = await service.device().enrolled()
            slots = asyncio.Semaphore(CONCURRENT_SUBMISSIONS)
            quarter_accepted = asyncio.Event()

            async def submit() -> None:
                async with slots:
                    reply = await device.submit(REPORT)
                assert reply.status_code == 200, reply.text
                accepted.add(UUID(reply.json()["reportId"]))
                if len(accepted) == SUBMISSIONS // 4:
                    quarter_accepted.set()

            async with asyncio.TaskGroup() as group:
                for _ in range(SUBMISSIONS):
                    group.create_task(submit())
                await quarter_accepted.wait()
                await asyncio.to_thread(back_up)
                accepted_after = len(accepted)
    assert len(accepted) == SUBMISSIONS
    assert SUBMISSIONS // 4 <= len(accepted_before) < SUBMISSIONS, (
        "the backup was not taken under load"
    )
    restored = path.with_name("restored.db")
    assert main(["restore", str(backup), "--database", str(restored)]) == 0
    restored_reports = reports_in(restored)
    assert accepted_before <= restored_reports <= accepted
    # Each restored report was accepted before the backup ended, or its reply was not received yet.
    assert len(restored_reports) <= accepted_after + CONCURRENT_SUBMISSIONS


def test_a_database_in_use_is_not_replaced(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controlplane.storage.backup._BUSY_S", 0.01)
    Database(str(path)).close()
    backup = path.with_name("backup.db")
    assert main(["backup", str(backup), "--database", str(path)]) == 0
    with closing(Database(str(path))) as database:
        database.read(lambda session: session.scalars(select(Report.id)).all())
        assert main(["restore", str(backup), "--database", str(path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "in use" in lines[0]
    assert main(["restore", str(backup), "--database", str(path)]) == 0
    assert list(path.parent.glob("service.db.before-*"))


def test_restore_keeps_the_replaced_database(path: Path) -> None:
    Database(str(path)).close()
    with snapshot(path) as copy, copy.open("rb") as backup:
        replaced = restore(backup, path, NOW)
    assert replaced == path.with_name("service.db.before-20261120T120000Z")
    assert reports_in(replaced) == set()


def test_restore_refuses_files_that_are_no_backups_and_backups_of_newer_releases(
    path: Path, tmp_path: Path
) -> None:
    text = tmp_path / "text"
    text.write_text("not a database, but long enough to be taken for one" * 100)
    newer = tmp_path / "newer.db"
    Database(str(newer)).close()
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    for file, message in ((text, "not a backup"), (newer, "layout 9999")):
        with file.open("rb") as backup, pytest.raises(BackupError, match=message):
            restore(backup, path, NOW)
        assert not path.exists()


def test_a_damaged_backup_is_refused(path: Path, tmp_path: Path) -> None:
    intact = tmp_path / "whole.db"
    Database(str(intact)).close()
    content = bytearray(intact.read_bytes())
    # Pages 3 to 12. A page of SQLite has 4,096 bytes.
    content[4096 * 2 : 4096 * 12] = b"\xff" * 4096 * 10
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(content)
    with damaged.open("rb") as backup, pytest.raises(BackupError):
        restore(backup, path, NOW)
    assert not path.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="the test reads POSIX file modes")
def test_a_backup_is_either_complete_or_absent_and_only_its_owner_can_read_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "backup.db"
    with contextlib.suppress(OSError), write_atomically(file) as out:
        out.write(b"half")
        raise OSError("the disk is full")
    assert list(tmp_path.iterdir()) == []
    with write_atomically(file) as out:
        out.write(b"whole")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError), write_atomically(file):
        pass
    assert file.read_bytes() == b"whole"


def test_a_backup_is_written_to_a_file_system_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_paths: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    file = tmp_path / "backup.db"
    with write_atomically(file) as out:
        out.write(b"whole")
    assert [each.name for each in tmp_path.iterdir()] == ["backup.db"]
    assert file.read_bytes() == b"whole"


def test_the_unfinished_file_of_a_killed_backup_does_not_prevent_the_next_backup(
    tmp_path: Path,
) -> None:
    file = tmp_path / "backup.db"
    writer = write_atomically(file)
    writer.__enter__().write(b"half")  # a killed process does not leave the `with` block
    with write_atomically(file) as out:
        out.write(b"whole")
    assert file.read_bytes() == b"whole"
    with pytest.raises(FileExistsError):
        writer.__exit__(None, None, None)


def test_backup_and_restore_refuse_postgresql(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("backup", "restore"):
        assert main([command, "x", "--database", "postgresql+psycopg:///venue"]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 2
