"""Copies all rows of a database to another one: from SQLite to PostgreSQL or back."""

from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, select
from sqlalchemy.orm import Session

from agent.presentation.humanize import counted
from controlplane.storage.account_tables import User
from controlplane.storage.database import Database
from controlplane.storage.layout import Base
from controlplane.storage.merchant.merchant_tables import Organization
from controlplane.storage.merchant.retail_tables import RetailKey
from controlplane.storage.statements import advance_position
from controlplane.storage.support_tables import SupportChannel, SupportLink
from controlplane.storage.tables import ApiKey, Device, Schema

ROWS_AT_ONCE = 500
"""Number of rows in one statement. All of them are in memory at the same time. A report has at
most 2 MiB, usually 20 KiB.
"""
_NOT_COPIED = frozenset({Schema.__tablename__})
"""Tables that are not copied: the target already has its own row with the layout version."""


class NotEmptyError(Exception):
    """The target already has keys, users, devices, a merchant, or support links or channels."""


def copied_tables() -> tuple[Table, ...]:
    return tuple(each for each in Base.metadata.sorted_tables if each.name not in _NOT_COPIED)


def copy_rows(
    source: Database, target: Database, progress: Callable[[str, int], None]
) -> dict[str, int]:
    """Copy all rows in one transaction and return the number of rows of each table.

    ``progress`` is called with each copied table and its number of rows. After a failure, nothing
    is written. Both databases have the layout of this program, because opening them upgrades them.
    Raises NotEmptyError.
    """

    def write(into: Session) -> dict[str, int]:
        connection = into.connection()
        _delete_initial_rows(connection)
        return source.read(lambda session: _copy_all(session.connection(), connection, progress))

    return target.write(write)


def _copy_all(
    source: Connection, target: Connection, progress: Callable[[str, int], None]
) -> dict[str, int]:
    counts = {}
    for table in copied_tables():
        counts[table.name] = 0
        for rows in _read_in_parts(source, table):
            target.execute(insert(table), rows)
            counts[table.name] += len(rows)
        advance_position(target, table)
        progress(table.name, counts[table.name])
    return counts


def _read_in_parts(source: Connection, table: Table) -> Iterator[list[dict[str, Any]]]:
    query = select(table).order_by(*table.primary_key.columns)
    result = source.execution_options(yield_per=ROWS_AT_ONCE).execute(query)
    for part in result.mappings().partitions():
        yield [dict(row) for row in part]


def _delete_initial_rows(target: Connection) -> None:
    """Delete the rows that a new service creates, such as its signing keys.

    Raises NotEmptyError if the target has any other data.
    """
    tables_with_data = (ApiKey, RetailKey, User, Device, Organization, SupportLink, SupportChannel)
    for table in (content.__table__ for content in tables_with_data):
        if count := target.execute(select(func.count()).select_from(table)).scalar():
            raise NotEmptyError(f"the table {table.description} has {counted(count, 'row')}")
    for table in reversed(copied_tables()):
        target.execute(delete(table))
