"""Computes rollups from the stored sales and refunds, with SQL.

This is needed after a bulk load or a change of time zone, and to verify the stored rollups.
`controlplane.merchant.contributions` computes the same sums for a single sale or refund.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.orm import Session

from controlplane.figures.local_time import DAY_HOURS
from controlplane.merchant.contributions import SPAN_DAYS
from controlplane.storage.merchant import rollup_tables

COMPLETED: Final = "s.status = 'completed'"
REFUNDS: Final = "refunds r JOIN sales s ON s.position = r.sale"
"""The refunds, each with its sale."""
DATED: Final = f"{COMPLETED} AND r.local_hour IS NOT NULL"
"""The condition for refunds with a date, of completed sales."""
# The next four are keys of rollups: columns with their SQL expressions (`Summand`).
SALE_DAY: Final = {"location": "s.location", "day": f"s.local_hour / {DAY_HOURS}",
                   "currency": "s.currency", "payment_type": "s.payment_type",
                   "payment_method": "COALESCE(s.payment_method, 0)"}  # fmt: skip
REFUND_DAY: Final = {"location": "r.location", "day": f"r.local_hour / {DAY_HOURS}",
                     "currency": "r.currency", "payment_type": "r.payment_type",
                     "payment_method": "COALESCE(r.payment_method, 0)"}  # fmt: skip
SALE_HOUR: Final = {"location": "s.location", "hour": "s.local_hour", "currency": "s.currency"}
REFUND_HOUR: Final = {"location": "r.location", "hour": "r.local_hour", "currency": "r.currency"}
MISSING: Final = "CASE WHEN s.has_lines THEN 0 ELSE {} END"
"""SQL of a value that counts only for sales without lines. The placeholder is the value."""
REFUNDED_AMOUNT: Final = "r.goods + r.fee + r.tip"


@dataclass(frozen=True, slots=True)
class Summand:
    """What a source adds to a rollup: the ``sums`` of the rows of ``source`` that match ``where``.

    ``key`` and ``sums`` map columns of the rollup to SQL expressions. Columns that are in neither
    of them get 0. Every ``source`` has a column ``s.location``, so that a query can be restricted
    to one location.
    """

    source: str
    where: str
    key: dict[str, str]
    sums: dict[str, str]


SUMMANDS: Final[Mapping[Any, Sequence[Summand]]] = {
    rollup_tables.HourRollup: (
        Summand("sales s", COMPLETED, SALE_HOUR,
             {"gross": "s.gross", "discount": "s.gross - s.total", "sale_count": "1"}),
        Summand(REFUNDS, COMPLETED, SALE_HOUR, {"undone": "r.goods"}),
        Summand(REFUNDS, DATED, REFUND_HOUR, {"refund": "r.goods", "refund_count": "1"}),
    ),
    rollup_tables.DayRollup: (
        Summand("sales s", COMPLETED, SALE_DAY, {
            "gross": "s.gross", "discount": "s.gross - s.total", "sale_count": "1",
            "pieces": "s.pieces", "municipality_fee": "s.municipality_fee", "tip": "s.tip",
            "sale_tax": "s.tax", "unknown_tax_lines": "s.unknown_tax_lines",
            "missing_count": MISSING.format(1), "missing_amount": MISSING.format("s.total"),
        }),
        Summand("sales s", "s.status <> 'completed'", SALE_DAY,
             {"unresolved_count": "1", "unresolved_amount": "s.total"}),
        Summand(REFUNDS, COMPLETED, SALE_DAY, {
            "undone": "r.goods",
            "undated_count": "CASE WHEN r.local_hour IS NULL THEN 1 ELSE 0 END",
            "undated_amount": f"CASE WHEN r.local_hour IS NULL THEN {REFUNDED_AMOUNT} ELSE 0 END",
        }),
        Summand(REFUNDS, DATED, REFUND_DAY, {
            "refund": "r.goods", "refund_count": "1", "refunded_fee": "r.fee",
            "refunded_tip": "r.tip", "refund_tax": "COALESCE(r.tax, 0)",
            "refund_unknown_tax": "CASE WHEN r.tax IS NULL THEN 1 ELSE 0 END",
            "refund_unknown_components": "CASE WHEN r.has_components THEN 0 ELSE 1 END",
        }),
    ),
    rollup_tables.ItemDayRollup: (
        Summand(
            "sale_lines l JOIN sales s ON s.position = l.sale"
            " JOIN line_snapshots n ON n.position = l.snapshot",
            COMPLETED,
            SALE_DAY | {"snapshot": "l.snapshot"},
            {"quantity_milli": "l.quantity * n.unit_milli", "line_count": "1",
             "gross": "l.gross", "discount": "l.discount + l.share"},
        ),
        Summand("sales s", f"{COMPLETED} AND NOT s.has_lines", SALE_DAY | {"snapshot": "0"},
             {"gross": "s.gross", "discount": "s.gross - s.total"}),
        Summand(
            f"{REFUNDS} JOIN refund_lines b ON b.refund = r.position"
            " JOIN sale_lines l ON l.sale = r.sale AND l.number = b.line"
            " JOIN line_snapshots n ON n.position = l.snapshot",
            DATED,
            REFUND_DAY | {"snapshot": "l.snapshot"},
            {"refunded_milli": "b.quantity * n.unit_milli", "refund": "b.amount"},
        ),
        Summand(
            REFUNDS,
            f"{DATED} AND NOT EXISTS"
            " (SELECT 1 FROM refund_lines b WHERE b.refund = r.position)",
            REFUND_DAY | {"snapshot": "0"},
            {"refund": "r.goods"},
        ),
    ),
    # The last two rollups are computed from ItemDayRollup, which has fewer rows than the sales.
    rollup_tables.UnitRollup: (
        Summand(
            "item_day_rollups s JOIN line_snapshots n ON n.position = s.snapshot",
            "s.line_count > 0",
            {"location": "s.location", "day": "s.day", "currency": "s.currency",
             "payment_type": "s.payment_type", "unit": "COALESCE(n.uom_symbol, '')"},
            {"quantity_milli": "s.quantity_milli", "line_count": "s.line_count"},
        ),
    ),
    rollup_tables.ItemSpanRollup: (
        Summand(
            "item_day_rollups s",
            "1 = 1",
            {"location": "s.location", "span": f"s.day / {SPAN_DAYS}",
             "currency": "s.currency", "snapshot": "s.snapshot"},
            {name: f"s.{name}" for name in (
                "quantity_milli", "line_count", "gross", "discount", "refunded_milli",
                "refund")},
        ),
    ),
}  # fmt: skip


def rebuild(session: Session, location: int | None = None) -> dict[str, int]:
    """Compute the rollups again. ``location`` is the position of one location; None means all.

    Returns:
        For each table, how many rows were wrong, missing or superfluous.
    """
    counts = {}
    for rollup, summands in SUMMANDS.items():
        table = rollup.__table__.name
        session.execute(text(f"DROP TABLE IF EXISTS fresh_{table}"))
        fresh_sums = _fresh_sums(rollup, summands, location)
        session.execute(text(f"CREATE TEMPORARY TABLE fresh_{table} AS {fresh_sums}"))
        counts[table] = _count_wrong(session, rollup, location)
        if counts[table]:
            columns = ", ".join(_columns(rollup))
            session.execute(text(f"DELETE FROM {table} WHERE {_within(location)}"))
            session.execute(
                text(
                    f"INSERT INTO {table} ({columns}) SELECT {columns} FROM fresh_{table}"
                    f" ORDER BY {', '.join(_key(rollup))}"
                )
            )
        session.execute(text(f"DROP TABLE fresh_{table}"))
    return counts


def sum_query(
    parts: Iterable[tuple[Summand, str]], keys: Sequence[str], sums: Sequence[str]
) -> str:
    """Return a query for the sums of summands, grouped by ``keys``.

    The query first sums up the rows of each summand separately. Then it adds up the results, which
    are only a few rows.

    Args:
        parts: Summands, each with an SQL condition. The condition applies in addition to the
            ``where`` of the summand.
        keys: The columns by which the sums are grouped.
        sums: The columns that are summed up.
    """
    groups = ", ".join(str(number) for number in range(1, len(keys) + 1))  # numbers of columns
    queries = []
    for summand, condition in parts:
        columns = [f"{summand.key[name]} AS {name}" for name in keys]
        columns += [f"SUM({summand.sums.get(name, 0)}) AS {name}" for name in sums]
        where = f"{condition} AND {summand.where}"
        queries.append(
            f"SELECT {', '.join(columns)} FROM {summand.source} WHERE {where} GROUP BY {groups}"
        )
    totals = ", ".join(f"CAST(SUM({name}) AS BIGINT) AS {name}" for name in sums)
    names = ", ".join(keys)
    union = " UNION ALL ".join(queries)
    return f"SELECT {names}, {totals} FROM ({union}) summands GROUP BY {names}"


def _count_wrong(session: Session, rollup: Any, location: int | None) -> int:
    table, key = rollup.__table__.name, ", ".join(_key(rollup))
    stored_select = f"SELECT * FROM {table} WHERE {_within(location)}"
    if session.execute(text(f"SELECT NOT EXISTS ({stored_select})")).scalar_one():
        return int(session.execute(text(f"SELECT COUNT(*) FROM fresh_{table}")).scalar_one())
    fresh_select = f"SELECT * FROM fresh_{table}"
    # A row with a wrong sum is in both differences. UNION counts its key only once.
    wrong_keys = " UNION ".join(
        f"SELECT {key} FROM ({rows} EXCEPT {other_rows}) d{number}"
        for number, (rows, other_rows) in enumerate(
            ((fresh_select, stored_select), (stored_select, fresh_select))
        )
    )
    return int(session.execute(text(f"SELECT COUNT(*) FROM ({wrong_keys}) k")).scalar_one())


def _fresh_sums(rollup: Any, summands: Sequence[Summand], location: int | None) -> str:
    key = _key(rollup)
    sums = [name for name in _columns(rollup) if name not in key]
    return sum_query(
        [(summand, _within(location, "s.location")) for summand in summands], key, sums
    )


def _within(location: int | None, column: str = "location") -> str:
    return "1 = 1" if location is None else f"{column} = {location:d}"


def _columns(rollup: Any) -> list[str]:
    return [column.name for column in rollup.__table__.columns]


def _key(rollup: Any) -> list[str]:
    return [column.name for column in rollup.__table__.primary_key]
