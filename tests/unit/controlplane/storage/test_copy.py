"""From one database to another: every row, in every column, and numbers that go on."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.background import watch_fleet
from controlplane.cli.main import main
from controlplane.remote_control.presence.places import add_maintenance, set_location
from controlplane.remote_control.presence.standing import Maintenance
from controlplane.settings import Settings
from controlplane.storage.copy import NotEmptyError, copy_rows, tables
from controlplane.storage.database import Database
from tests.postgresql import postgresql
from tests.unit.controlplane.running_service import FakeClock, RunningService, beside
from tests.unit.controlplane.simulated_device import SimulatedDevice

Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture
async def source(tmp_path: Path) -> Path:
    """A database with something in each table."""
    path = tmp_path / "source.db"
    with closing(Database(str(path))) as database:
        settings = Settings(rate_per_s=0, notify_url="http://hook.invalid/in")
        async with beside(database, settings, FakeClock()) as service:
            service.make_key(can_write=False, locations=["loc-0001", "Zürich \N{SNOWMAN}"])
            for _ in range(3):
                device = await service.device().enrolled()
                request_id = await device.asked_for()
                await device.acknowledge(request_id, "running")
                assert (await device.submit(requestId=request_id)).status_code == 200
                await device.asked_for("application")
            await _watched(service, device)
    return path


async def _watched(service: RunningService, device: SimulatedDevice) -> None:
    """Say something of a place, wish for a report, and let the devices fall silent."""
    now = service.clock()
    window = Maintenance(None, now, now + timedelta(days=1))

    def say(session: Session) -> None:
        set_location(session, ("org-0001", "loc-0001"), "Europe/Riga", None)
        add_maintenance(session, ("org-0001", "loc-0002"), window, "new cables")

    service.database.write(say)
    body = {"kind": "network", "until": window.until.isoformat()}
    wished = await device.call("/console/api/wish", **body, instanceIds=[device.instance_id])
    assert wished.status_code == 200, wished.text
    for _ in range(20):
        service.clock.advance(60)
        await watch_fleet(service.core)


def rows_of(database: Database) -> Rows:
    return database.read(
        lambda session: {
            table.name: [
                dict(row)
                for row in session.execute(
                    select(table).order_by(*table.primary_key.columns)
                ).mappings()
            ]
            for table in tables()
        }
    )


@pytest.fixture(scope="module")
def empty_postgresql() -> Iterator[str]:
    with postgresql() as url:
        yield url


async def _copied_there_and_back(source: Path, middle: str, tmp_path: Path) -> None:
    with closing(Database(str(source))) as first, closing(Database(middle)) as second:
        expected = rows_of(first)
        assert all(expected.values()), "each table has rows"
        counts = copy_rows(first, second, lambda *_: None)
        assert counts == {name: len(rows) for name, rows in expected.items()}
        assert rows_of(second) == expected
        with pytest.raises(NotEmptyError):
            copy_rows(first, second, lambda *_: None)
        with closing(Database(str(tmp_path / "back.db"))) as third:
            copy_rows(second, third, lambda *_: None)
            assert rows_of(third) == expected
        async with beside(second, Settings(rate_per_s=0), FakeClock()) as service:
            device = await service.device().enrolled()
            assert (await device.submit()).status_code == 200
        newest = {name: rows[-1].get("position") for name, rows in rows_of(second).items()}
        for name in ("devices", "reports"):
            assert newest[name] == expected[name][-1]["position"] + 1


async def test_every_row_from_sqlite_to_sqlite(source: Path, tmp_path: Path) -> None:
    await _copied_there_and_back(source, str(tmp_path / "middle.db"), tmp_path)


@pytest.mark.needs("postgresql")
async def test_every_row_from_sqlite_to_postgresql_and_back(
    source: Path, tmp_path: Path, empty_postgresql: str
) -> None:
    await _copied_there_and_back(source, empty_postgresql, tmp_path)


def test_the_command_tells_what_it_copied(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "target.db")
    assert main(["database", "copy", str(source), target]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(tables()) + 1
    assert main(["database", "copy", str(source), target]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert main(["database", "copy", str(tmp_path / "none.db"), target]) == 2
    assert not (tmp_path / "none.db").exists()
