"""Creates a merchant with millions of sales: SQL statements copy two weeks of the sandbox's sales.

Each copy is two weeks earlier than the previous one, at the same times of the week in UTC. Local
hours are calculated again for each copy, because daylight saving time changes the offset from UTC.
The database file is new and temporary, so writes need not wait for the disk.
"""

import math
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from sqlalchemy import text
from sqlalchemy.orm import Session

from controlplane.figures.local_time import clock_of, offsets
from controlplane.merchant.rebuild import rebuild
from controlplane.sandbox.loading import load
from controlplane.sandbox.plan import Plan
from controlplane.storage.database import Database
from controlplane.storage.merchant.columns import microseconds

NOW: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
BASE_DAYS: Final = 14
SHIFT_US: Final = BASE_DAYS * 86_400_000_000
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Undo(Exception):
    """Raised to roll back the transaction of a measured write."""


def load_base(database: Database, locations: int, sales: int, repetitions: int) -> int:
    """Write the two weeks of sales that `repeat` copies. Return the number of sales."""
    # The last day of the base is incomplete: count it as a tenth of a day.
    sales_per_day = math.ceil(sales / repetitions / locations / (BASE_DAYS - 0.9))
    plan = Plan(
        locations=locations,
        days=BASE_DAYS,
        sales_per_day=sales_per_day,
        goods=100,
        until=NOW.date(),
        is_awkward=True,
    )
    return database.write(lambda session: load(session, plan, NOW)).sales


def repeat(file: Path, repetitions: int) -> None:
    """Copy all sales and refunds, ``repetitions`` - 1 times. No other connection may use the
    database.
    """
    connection = sqlite3.connect(file, isolation_level=None)
    for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-600000"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    indexes = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        " AND tbl_name IN ('sales', 'refunds')"
    ).fetchall()
    connection.execute("BEGIN")
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    _store_offsets(connection, repetitions)
    last_sale, last_refund = (
        connection.execute(f"SELECT MAX(position) FROM {table}").fetchone()[0]
        for table in ("sales", "refunds")
    )
    for number in range(1, repetitions):
        for statement in _copies(number, last_sale, last_refund):
            connection.execute(statement)
    for _, sql in indexes:
        connection.execute(sql)
    connection.execute("DROP TABLE temp.clocks")
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode=WAL").fetchall()
    connection.close()


def rebuild_rollups(session: Session) -> None:
    session.execute(text("PRAGMA cache_size=-600000"))
    rebuild(session)


def _store_offsets(connection: sqlite3.Connection, repetitions: int) -> None:
    connection.execute("CREATE TEMP TABLE clocks (location, start_us, end_us, offset_us)")
    start = NOW - timedelta(days=BASE_DAYS * repetitions + 3)
    for position, zone in connection.execute("SELECT position, zone FROM locations").fetchall():
        connection.executemany(
            "INSERT INTO clocks VALUES (?, ?, ?, ?)",
            [
                (position, microseconds(begins), microseconds(ends), microseconds(EPOCH + offset))
                for begins, ends, offset in offsets(clock_of(zone).zone, start, NOW + timedelta(30))
            ],
        )


def _copies(number: int, last_sale: int, last_refund: int) -> list[str]:
    """Return the statements that write one copy of the rows.

    Args:
        number: number of the copy, from 1. The position of a row in the copy is its position in the
            original, plus ``number`` times the last position of the original.
        last_sale: position of the last sale of the original.
        last_refund: position of the last refund of the original.
    """
    shift, added_sales, added_refunds = number * SHIFT_US, number * last_sale, number * last_refund

    def hour(column: str) -> str:
        return f"({column} - {shift} + c.offset_us) / 3600000000"

    def clock(table: str, column: str) -> str:
        return (
            f"clocks c ON c.location = {table}.location"
            f" AND {column} - {shift} >= c.start_us AND {column} - {shift} < c.end_us"
        )

    # A UUID of version 7 begins with its timestamp in milliseconds.
    def new_id(table: str, column: str) -> str:
        return f"printf('%012x', ({column} - {shift}) / 1000) || substr({table}.id, 13)"

    statements = f"""
        INSERT INTO sales SELECT s.position + {added_sales}, {new_id("s", "s.initiated_at")},
          organization_id, s.location, point_of_sale, employee, number, ticket_number, status,
          initiated_at - {shift}, created_at - {shift}, updated_at - {shift},
          {hour("s.initiated_at")}, comment, external_data, currency, gross, discount, total,
          taxable_amount, tax, municipality_fee, tip, has_lines, pieces, unknown_tax_lines,
          payment_type, payment_method FROM sales s JOIN {clock("s", "s.initiated_at")}
        WHERE s.position <= {last_sale};
        INSERT INTO sale_lines SELECT sale + {added_sales}, number, snapshot, quantity, unit_price,
          gross, discount, share, total, tax FROM sale_lines WHERE sale <= {last_sale};
        INSERT INTO sale_payments SELECT sale + {added_sales}, number, method, amount
        FROM sale_payments WHERE sale <= {last_sale};
        INSERT INTO refunds SELECT r.position + {added_refunds}, {new_id("r", "r.created_at")},
          r.sale + {added_sales}, organization_id, r.location, employee, refunded_at - {shift},
          created_at - {shift}, CASE WHEN refunded_at IS NULL THEN NULL ELSE
          {hour("r.created_at")} END, currency, goods, fee, tip, tax, has_components,
          payment_type, payment_method FROM refunds r JOIN {clock("r", "r.created_at")}
        WHERE r.position <= {last_refund};
        INSERT INTO refund_lines SELECT refund + {added_refunds}, number, line, quantity, amount
        FROM refund_lines WHERE refund <= {last_refund}"""
    return statements.split(";")
