"""All rows of one database into another, of either kind: from SQLite to PostgreSQL and back."""

from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, select, text
from sqlalchemy.orm import Session

from controlplane.storage.account_tables import User
from controlplane.storage.database import Database
from controlplane.storage.layout import Base
from controlplane.storage.merchant.merchant_tables import Organization
from controlplane.storage.merchant.retail_tables import RetailKey
from controlplane.storage.support_tables import SupportChannel, SupportLink
from controlplane.storage.tables import ApiKey, Device, Schema

ROWS_AT_ONCE = 500
"""Reports are up to 2 MiB each; most are of some 20 KiB."""
_NOT_COPIED = frozenset({Schema.__tablename__})
"""The target has its own account of its layout."""


class NotEmptyError(Exception):
    """The target has keys, devices, a merchant or what support said already."""


def tables() -> tuple[Table, ...]:
    return tuple(t for t in Base.metadata.sorted_tables if t.name not in _NOT_COPIED)


def copy_rows(
    source: Database, target: Database, told: Callable[[str, int], None]
) -> dict[str, int]:
    """Copy in one transaction and return the number of rows of each table.

    ``told`` hears of each table when it is copied. Nothing is written where anything fails. Both
    databases have this program's layout: opening them has seen to it. Raises NotEmptyError.
    """

    def write(into: Session) -> dict[str, int]:
        connection = into.connection()
        _empty(connection)
        return source.read(lambda session: _copy_all(session.connection(), connection, told))

    return target.write(write)


def _copy_all(
    source: Connection, target: Connection, told: Callable[[str, int], None]
) -> dict[str, int]:
    counts = {}
    for table in tables():
        counts[table.name] = 0
        for rows in _parts(source, table):
            target.execute(insert(table), rows)
            counts[table.name] += len(rows)
        _count_on(target, table)
        told(table.name, counts[table.name])
    return counts


def _parts(source: Connection, table: Table) -> Iterator[list[dict[str, Any]]]:
    ordered = select(table).order_by(*table.primary_key.columns)
    found = source.execution_options(yield_per=ROWS_AT_ONCE).execute(ordered)
    for part in found.mappings().partitions():
        yield [dict(row) for row in part]


def _empty(target: Connection) -> None:
    """Delete what a service writes down by itself; whatever people or devices made needs a key,
    what was sold a merchant, and support needs neither."""
    made = (ApiKey, RetailKey, User, Device, Organization, SupportLink, SupportChannel)
    for table in (each.__table__ for each in made):
        if count := target.execute(select(func.count()).select_from(table)).scalar():
            raise NotEmptyError(f"{table.description} has {count} rows already")
    for table in reversed(tables()):
        target.execute(delete(table))


def _count_on(target: Connection, table: Table) -> None:
    """Have PostgreSQL number the next row after the last one; SQLite looks by itself."""
    column = table.autoincrement_column
    if target.dialect.name != "postgresql" or column is None or column.name != "position":
        return
    newest = target.execute(select(func.max(column))).scalar()
    if newest is not None:
        target.execute(
            text("SELECT setval(pg_get_serial_sequence(:table, :column), :newest)"),
            {"table": table.name, "column": column.name, "newest": newest},
        )
