"""SQL for many rows at once. Inserts bypass the ORM and use the driver, which is faster."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, CursorResult, Delete, Table, Update, func, select, text
from sqlalchemy.orm import Session

Row = Sequence[Any]
Value = TypeVar("Value")


def in_steps(values: Iterable[Value], size: int = 500) -> Iterator[list[Value]]:
    """Yield the values in lists of at most ``size``, so that each list fits into one statement."""
    elements = list(values)
    for first in range(0, len(elements), size):
        yield elements[first : first + size]


def change_rows(session: Session, statement: Update | Delete) -> int:
    """Run an UPDATE or DELETE. Return the number of changed or deleted rows.

    Objects that the session has loaded are not updated: their update would take as long as the
    statement.
    """
    result = session.execute(statement, execution_options={"synchronize_session": False})
    return cast("CursorResult[Any]", result).rowcount


def insert_rows(session: Session, table: Any, rows: Iterable[Row]) -> None:
    """Insert rows that have a value for each column of the table, in order."""
    _execute_many(session, _insert_sql(table.__table__, _placeholder(session)), rows)


def insert_row(session: Session, table: Any, row: Row) -> int:
    """Insert a row and return its position.

    ``row`` has a value for each column except the first, which is the position.
    """
    sql = _insert_sql(table.__table__, _placeholder(session), skip=1) + " RETURNING position"
    return int(session.connection().exec_driver_sql(sql, tuple(row)).scalar_one())


def add_to_sums(session: Session, rollup: Any, rows: Iterable[Row]) -> None:
    """Add these rows to the stored sums with the same keys. Insert rows with new keys."""
    _execute_many(session, _add_sql(rollup.__table__, _placeholder(session)), rows)


def disable_jit(session: Session) -> None:
    """Prevent PostgreSQL from compiling the statements of this transaction.

    PostgreSQL overestimates the cost of subqueries. It would therefore compile statements whose
    compilation takes longer than their execution.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SET LOCAL jit = off"))


def advance_position(connection: Connection, table: Any) -> None:
    """Set PostgreSQL's sequence of positions to the highest stored position.

    SQLite has no sequence.
    """
    column = table.autoincrement_column
    if connection.dialect.name != "postgresql" or column is None or column.name != "position":
        return
    newest = connection.execute(select(func.max(column))).scalar()
    if newest is not None:
        connection.execute(
            text("SELECT setval(pg_get_serial_sequence(:table, 'position'), :newest)"),
            {"table": table.name, "newest": newest},
        )


def _execute_many(session: Session, sql: str, rows: Iterable[Row]) -> None:
    values = [tuple(row) for row in rows]
    if values:
        session.connection().exec_driver_sql(sql, values)


def _placeholder(session: Session) -> str:
    """Return the placeholder of a value in the SQL of the driver."""
    connection: Connection = session.connection()
    return "?" if connection.dialect.paramstyle == "qmark" else "%s"


@cache
def _insert_sql(table: Table, placeholder: str, skip: int = 0) -> str:
    columns = [column.name for column in table.columns][skip:]
    placeholders = ", ".join([placeholder] * len(columns))
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({placeholders})"


@cache
def _add_sql(table: Table, placeholder: str) -> str:
    key = ", ".join(column.name for column in table.primary_key)
    sums = (column.name for column in table.columns if not column.primary_key)
    assignments = ", ".join(f"{name} = {table.name}.{name} + excluded.{name}" for name in sums)
    return f"{_insert_sql(table, placeholder)} ON CONFLICT ({key}) DO UPDATE SET {assignments}"
