"""Calculates the sums of a dashboard from the raw rows. SQLite and DuckDB execute the same SQL
statement.
"""

import csv
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

NAMES: Final = (
    "saleCount", "grossCents", "discountCents", "saleCents", "municipalityFeeCents", "refundCount",
    "refundCents", "refundAmountCents", "refundedFeeCents", "refundTipCents", "knownVatCents",
    "netCents",
)  # fmt: skip
STATEMENT: Final = """
WITH periods (place, start_us, end_us) AS (VALUES {windows}),
amounts AS (
  SELECT currency, 1 AS sale_count, gross, gross - total AS discount, total AS sale,
    municipality_fee AS fee, 0 AS refund_count, 0 AS refund, 0 AS refund_amount, 0 AS refunded_fee,
    0 AS refunded_tip, tax AS vat
  FROM periods JOIN sales ON location = place
    AND initiated_at >= start_us AND initiated_at < end_us
  WHERE status = 'completed'
  UNION ALL
  SELECT currency, 0, 0, 0, 0, 0, 1, goods, goods + fee + tip, fee, tip, -COALESCE(tax, 0)
  FROM periods JOIN refunds ON location = place
    AND refunded_at >= start_us AND refunded_at < end_us
)
SELECT currency, SUM(sale_count), SUM(gross), SUM(discount), SUM(sale), SUM(fee),
  SUM(refund_count), SUM(refund), SUM(refund_amount), SUM(refunded_fee), SUM(refunded_tip),
  SUM(vat), SUM(sale) - SUM(refund)
FROM amounts GROUP BY currency ORDER BY currency
"""
Windows = Sequence[tuple[int, int, int]]
"""Each row has the number of a location (``locations.position``), and the start and exclusive end
of a period, both in microseconds since 1970 in UTC.
"""
TABLES: Final = {
    "sales": ("location", "initiated_at", "currency", "status", "gross", "total",
              "municipality_fee", "tax"),
    "refunds": ("location", "refunded_at", "currency", "goods", "fee", "tip", "tax"),
}  # fmt: skip


def statement(windows: Windows) -> str:
    return STATEMENT.format(windows=", ".join(str(tuple(each)) for each in windows))


def sums(rows: Sequence[Sequence[Any]]) -> dict[str, dict[str, int]]:
    """Return the sums of the rows by currency, with the contract's field names."""
    return {row[0]: dict(zip(NAMES, map(int, row[1:]), strict=True)) for row in rows}


def totals_of_reply(currencies: Sequence[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Return the sums in a dashboard's reply, in the form that `sums` returns. Currencies without
    sales and refunds are left out, because the SQL statement returns no row for them.
    """
    return {
        each["currency"]: {name: each["figures"][name] for name in NAMES}
        for each in currencies
        if each["figures"]["saleCount"] or each["figures"]["refundCount"]
    }


def copy_to_duckdb(file: Path, folder: Path) -> Any:
    """Copy to DuckDB the columns that the statement reads. Return the connection to DuckDB."""
    import duckdb

    source = sqlite3.connect(file)
    connection = duckdb.connect(str(folder / "figures.duckdb"))
    for table, columns in TABLES.items():
        kinds = {
            name: "VARCHAR" if name in {"currency", "status"} else "BIGINT" for name in columns
        }
        with (folder / f"{table}.csv").open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(columns)
            writer.writerows(source.execute(f"SELECT {', '.join(columns)} FROM {table}"))
        spec = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        connection.execute(f"CREATE TABLE {table} ({spec})")
        connection.execute(f"COPY {table} FROM '{folder / f'{table}.csv'}' (HEADER)")
        (folder / f"{table}.csv").unlink()
    source.close()
    return connection


def query_duckdb(connection: Any, query: str) -> list[Any]:
    return list(connection.execute(query).fetchall())
