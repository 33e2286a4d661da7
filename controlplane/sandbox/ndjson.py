"""Exports a sandbox as lines of JSON, and imports such lines.

The first line is a header. Each further line is one row: an object with the columns and the name of
its table. An export contains the positions that its rows have in the exported database. An import
adds an offset to each position, so that imported rows do not collide with the rows of the
importing database. Local hours and rollups are not exported: an import computes them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, create_model
from sqlalchemy import JSON, Boolean, Column, Integer, Uuid, func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from agent.wire import codec
from agent.wire.base import Timestamp
from agent.wire.base import Uuid as UuidText
from agent.wire.validation import ValidationError
from controlplane.figures.local_time import clock_of, hour_of
from controlplane.merchant.rebuild import rebuild
from controlplane.sandbox.contents import CONTENTS, REFERENCES, belongs_to
from controlplane.sandbox.loading import OccupiedError
from controlplane.storage.merchant.columns import Microseconds
from controlplane.storage.merchant.merchant_tables import Location, Organization
from controlplane.storage.merchant.sales_tables import Refund, Sale
from controlplane.storage.statements import advance_position
from controlplane.storage.tables import UtcDateTime

FORMAT: Final = "venue-sandbox"
VERSION: Final = 1
BATCH: Final = 5_000
"""Number of rows that are read or written at once."""
COMPUTED_COLUMN: Final = "local_hour"
"""The column that an export does not contain. An import computes it."""
TIMESTAMP_COLUMNS: Final[Mapping[Any, str]] = {Sale: "initiated_at", Refund: "refunded_at"}
"""The columns from which `COMPUTED_COLUMN` is computed."""


class FormatError(Exception):
    """The lines are not an export."""


def export(session: Session, organization_id: str) -> Iterator[str]:
    """Yield the lines of an organization, each with its newline."""
    header = {"format": FORMAT, "version": VERSION, "organization": organization_id}
    yield json.dumps(header) + "\n"
    for table in CONTENTS:
        columns = _columns(table)
        query = (
            select(*columns)
            .where(belongs_to(table, organization_id))
            .order_by(*table.__table__.primary_key)
        )
        for row in session.execute(query).yield_per(BATCH):
            values = {c.name: _plain(value) for c, value in zip(columns, row, strict=True)}
            yield json.dumps({"table": table.__tablename__, **values}, ensure_ascii=False) + "\n"


def load_lines(session: Session, lines: Iterable[str]) -> dict[str, int]:
    """Write an export to the database and return the number of rows of each table.

    Raises:
        FormatError: The lines are not an export.
        OccupiedError: The organization, or a row with one of the imported ids, exists already.
    """
    return _Import(session).run(lines)


class _Import:
    """One import.

    ``_offsets`` has the number that is added to the positions of each table, and ``_zones`` the
    time zones of the imported locations by position.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._by_name = {table.__tablename__: table for table in CONTENTS}
        self._offsets = {table: self._last_position(table) for table in CONTENTS}
        self._zones: dict[int, str | None] = {}
        self._organization = ""
        self._counts: dict[str, int] = {}

    def run(self, lines: Iterable[str]) -> dict[str, int]:
        waiting: list[dict[str, Any]] = []
        table: Any = None
        for number, line in enumerate(lines, 1):
            values = _parse_line(number, line)
            if number == 1:
                self._read_header(values)
                continue
            following = self._table(number, values)
            if following is not table or len(waiting) >= BATCH:
                self._write(table, waiting)
                table, waiting = following, []
            waiting.append(self._row(number, following, values))
        self._write(table, waiting)
        if not self._counts.get("organizations"):
            raise FormatError("the file contains no organization")
        for each in CONTENTS:
            advance_position(self._session.connection(), each.__table__)
        rebuild(self._session)
        return self._counts

    def _read_header(self, header: dict[str, Any]) -> None:
        if header.get("format") != FORMAT or header.get("version") != VERSION:
            raise FormatError(f"line 1 is not the header of a {FORMAT} file of version {VERSION}")
        self._organization = str(header.get("organization"))
        if self._session.get(Organization, self._organization) is not None:
            raise OccupiedError(f"organization {self._organization} exists already")

    def _table(self, number: int, values: dict[str, Any]) -> Any:
        table = self._by_name.get(str(values.pop("table", None)))
        if table is None:
            raise FormatError(f"line {number} names an unknown table")
        return table

    def _row(self, number: int, table: Any, values: dict[str, Any]) -> dict[str, Any]:
        try:
            row = codec.validate(values, _model(table)).model_dump()
        except ValidationError as error:
            raise FormatError(f"line {number}: {error}") from None
        column = "id" if table is Organization else "organization_id"
        if row.get(column) not in {None, self._organization}:
            raise FormatError(f"line {number} belongs to another organization")
        if _has_position(table):
            row["position"] += self._offsets[table]
        for name, referred_table in REFERENCES.items():
            if row.get(name) is not None:
                row[name] += self._offsets[referred_table]
        if table is Location:
            self._zones[row["position"]] = row["zone"]
        if table in TIMESTAMP_COLUMNS:
            row[COMPUTED_COLUMN] = self._hour(number, row, row[TIMESTAMP_COLUMNS[table]])
        return row

    def _hour(self, number: int, row: dict[str, Any], timestamp: datetime | None) -> int | None:
        if row["location"] not in self._zones:
            raise FormatError(f"line {number} names a location that is not in the file")
        if timestamp is None:
            return None
        return hour_of(timestamp, clock_of(self._zones[row["location"]]).zone)

    def _write(self, table: Any, rows: list[dict[str, Any]]) -> None:
        if not rows:
            return
        name = table.__tablename__
        try:
            self._session.execute(insert(table.__table__), rows)
        except IntegrityError:
            raise OccupiedError(f"some of the {name} exist already") from None
        self._counts[name] = self._counts.get(name, 0) + len(rows)

    def _last_position(self, table: Any) -> int:
        if not _has_position(table):
            return 0
        query = select(func.max(table.position))
        return self._session.execute(query).scalar_one() or 0


def _columns(table: Any) -> list[Column[Any]]:
    return [column for column in table.__table__.columns if column.name != COMPUTED_COLUMN]


def _has_position(table: Any) -> bool:
    return "position" in table.__table__.columns


def _parse_line(number: int, line: str) -> dict[str, Any]:
    try:
        values = codec.parse_json(line)
    except ValidationError as error:
        raise FormatError(f"line {number} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise FormatError(f"line {number} is not an object")
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    return value.isoformat() if isinstance(value, datetime) else value


@cache
def _model(table: Any) -> type[BaseModel]:
    """Return a strict model of the table's rows."""
    fields: dict[str, Any] = {
        column.name: (_type(column) | None if column.nullable else _type(column), ...)
        for column in _columns(table)
    }
    config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    return create_model(table.__tablename__, __config__=config, **fields)


def _type(column: Column[Any]) -> Any:
    """Return the type of a column's values in an export."""
    if isinstance(column.type, Microseconds | UtcDateTime):
        return Timestamp
    if isinstance(column.type, Uuid):
        return UuidText
    if isinstance(column.type, Boolean):
        return bool
    if isinstance(column.type, Integer):
        return int
    return Any if isinstance(column.type, JSON) else str
