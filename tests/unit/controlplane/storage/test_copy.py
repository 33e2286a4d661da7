"""Tests of copies of databases: all rows are copied, and new rows get the next positions."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Column, TypeDecorator, insert, select
from sqlalchemy.orm import Session

from controlplane.cli.main import main
from controlplane.sandbox.loading import load
from controlplane.sandbox.plan import Plan
from controlplane.settings import Settings
from controlplane.storage.copy import NotEmptyError, copied_tables, copy_rows
from controlplane.storage.database import Database
from tests.postgresql import new_database
from tests.unit.controlplane.running_service import FakeClock, service_on

pytestmark = pytest.mark.medium

Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture
async def source(tmp_path: Path) -> Path:
    """A database with a row in each table."""
    path = tmp_path / "source.db"
    with closing(Database(str(path))) as database:
        clock = FakeClock()
        plan = Plan(days=20, until=clock.now.date(), is_awkward=True)
        database.write(lambda session: load(session, plan, clock.now))
        async with service_on(database, Settings(rate_per_s=0), FakeClock()) as service:
            service.make_key(can_write=False, locations=["loc-0001", "Zürich \N{SNOWMAN}"])
            for _ in range(3):
                device = await service.device().enrolled()
                request_id = await device.create_request()
                await device.acknowledge(request_id, "running")
                assert (await device.submit(requestId=request_id)).status_code == 200
                await device.create_request("application")
            service.database.write(_fill_empty_tables)
    return path


def _fill_empty_tables(session: Session) -> None:
    """Write a row with a value in every column into each empty table."""
    for table in copied_tables():
        if session.execute(select(table).limit(1)).first() is None:
            session.execute(
                insert(table), [{column.name: _value_for(column) for column in table.columns}]
            )


def _value_for(column: Column[Any]) -> Any:
    """Return a value of the column's type. Columns with a `TypeDecorator` contain timestamps."""
    kind = column.type.python_type
    if isinstance(column.type, TypeDecorator):
        return datetime(2026, 11, 20, 12, 0, 0, 123456, tzinfo=UTC)
    values: dict[type, Any] = {
        UUID: UUID(int=7),
        bool: True,
        int: 2**31 - 1,
        float: 0.5,
        bytes: b"\x00\xff",
        list: [["a", None], 1],
        dict: {"id": "x", "more": [1.5]},
    }
    return values.get(kind, "a \N{SNOWMAN}")


def rows_of(database: Database) -> Rows:
    return database.read(
        lambda session: {
            table.name: [
                dict(row)
                for row in session.execute(
                    select(table).order_by(*table.primary_key.columns)
                ).mappings()
            ]
            for table in copied_tables()
        }
    )


@pytest.fixture(scope="module")
def empty_postgresql() -> Iterator[str]:
    with new_database() as url:
        yield url


async def _copy_and_copy_back(source: Path, middle: str, tmp_path: Path) -> None:
    with closing(Database(str(source))) as first, closing(Database(middle)) as second:
        expected = rows_of(first)
        assert all(expected.values()), "a table has no rows"
        counts = copy_rows(first, second, lambda *_: None)
        assert counts == {name: len(rows) for name, rows in expected.items()}
        assert rows_of(second) == expected
        with pytest.raises(NotEmptyError):
            copy_rows(first, second, lambda *_: None)
        with closing(Database(str(tmp_path / "back.db"))) as third:
            copy_rows(second, third, lambda *_: None)
            assert rows_of(third) == expected
        async with service_on(second, Settings(rate_per_s=0), FakeClock()) as service:
            device = await service.device().enrolled()
            assert (await device.submit()).status_code == 200
        newest = {name: rows[-1].get("position") for name, rows in rows_of(second).items()}
        for name in ("devices", "reports"):
            assert newest[name] == expected[name][-1]["position"] + 1


@pytest.mark.large  # usually, the next test is enough: it copies the same rows
async def test_every_row_is_copied_from_sqlite_to_sqlite(source: Path, tmp_path: Path) -> None:
    await _copy_and_copy_back(source, str(tmp_path / "middle.db"), tmp_path)


@pytest.mark.needs("postgresql")
async def test_every_row_is_copied_from_sqlite_to_postgresql_and_back(
    source: Path, tmp_path: Path, empty_postgresql: str
) -> None:
    await _copy_and_copy_back(source, empty_postgresql, tmp_path)


def test_the_command_reports_the_copied_rows(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "target.db")
    assert main(["database", "copy", str(source), target]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(copied_tables()) + 1
    assert main(["database", "copy", str(source), target]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert main(["database", "copy", str(tmp_path / "none.db"), target]) == 2
    assert not (tmp_path / "none.db").exists()
