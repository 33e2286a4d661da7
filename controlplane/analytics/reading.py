"""Reads rollups from the database for the figures."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, TypeVar

from sqlalchemy import BigInteger, ColumnElement, Row, Select, bindparam, cast, func, select
from sqlalchemy.orm import Session

from controlplane.figures.buckets import DayRow, HourRow
from controlplane.figures.financial import MethodKey, Movements, QueryLocation
from controlplane.figures.items import Article
from controlplane.figures.sums import DaySums, HourSums, ItemSums, UnitSums, add_part
from controlplane.figures.windows import Days
from controlplane.merchant.contributions import SPAN_DAYS
from controlplane.storage.merchant import rollup_tables
from controlplane.storage.merchant.catalog_tables import LineSnapshot
from controlplane.storage.merchant.columns import uuid_text
from controlplane.storage.merchant.merchant_tables import PaymentMethod
from controlplane.storage.statements import in_steps

TRADING_COLUMNS: Final = ("gross", "discount", "sale_count", "undone")
"""The columns that `Reader.trading` sums. ``undone`` is the money that was refunded for goods of
the day's sales, without fees and tips. All refunds of these sales are included, also those of
later days and those without a date.
"""
Part = TypeVar("Part", DaySums, ItemSums)
SumsByColumns = tuple[str, Mapping[str, Any], Part]
"""A currency, the values of the requested columns, and the sums for these values."""
ROLLUPS: Final[Mapping[type, Any]] = {
    DaySums: rollup_tables.DayRollup,
    ItemSums: rollup_tables.ItemDayRollup,
}
"""The rollup of days for each type of sums. It has one column for each of the sums."""
Types = Collection[str] | None
"""Requested types of payment; None means all."""


@dataclass(frozen=True, slots=True)
class DayRange:
    """A range of local days, and the positions of the locations for which it is requested."""

    days: Days
    locations: tuple[int, ...]


def day_ranges(days: Mapping[QueryLocation, Days]) -> list[DayRange]:
    """Group the locations that have the same days."""
    locations_by_days: defaultdict[Days, list[int]] = defaultdict(list)
    for location, local_days in days.items():
        locations_by_days[local_days].append(location.position)
    return [
        DayRange(local_days, tuple(locations))
        for local_days, locations in locations_by_days.items()
    ]


class Reader:
    """Reads the data of one query.

    A *snapshot* is an article as it was when it was sold, identified by its position in the table
    of `LineSnapshot`.

    Args:
        types: Limits the data to these payment types.
    """

    def __init__(self, session: Session, organization_id: str, types: Types = None) -> None:
        # All statements select columns of tables, so they need a connection and no ORM session.
        self._connection = session.connection()
        self._organization_id = organization_id
        self._types = types

    def ledger(self, day_ranges: Iterable[DayRange]) -> dict[tuple[int, str], Movements]:
        """Return the movements by location (position) and currency."""
        ledger: defaultdict[tuple[int, str], Movements] = defaultdict(Movements)
        names = self._method_names
        for day_range in day_ranges:
            key: tuple[str, ...] = ("location", "currency", "payment_type", "payment_method")
            for location, currency, kind, method, *sums in self._sum(
                rollup_tables.DayRollup, key, day_range
            ):
                movements = ledger[location, currency].by_method
                add_part(movements, MethodKey(kind, names.get(method)), DaySums(*sums))
            key = ("location", "currency", "unit")
            for location, currency, unit, *unit_sums in self._sum(
                rollup_tables.UnitRollup, key, day_range
            ):
                ledger[location, currency].units[unit] = UnitSums(*unit_sums)
        return dict(ledger)

    def hours(self, day_ranges: Iterable[DayRange]) -> Iterator[HourRow]:
        """Yield the hours with sales or refunds, by location and hour.

        The hours contain all payment types, because the rollup of hours does not separate them.
        """
        for day_range in day_ranges:
            first, last = day_range.days.hours
            yield from self._rows(_HOURS, locations=day_range.locations, first=first, last=last)

    def trading(self, day_ranges: Iterable[DayRange]) -> list[DayRow]:
        """Return the sums over all locations, ordered by day and currency."""
        by_day: dict[tuple[int, str], HourSums] = {}
        for day_range in day_ranges:
            for day, currency, *sums in self._sum(
                rollup_tables.DayRollup, ("day", "currency"), day_range, TRADING_COLUMNS
            ):
                part = HourSums(**dict(zip(TRADING_COLUMNS, sums, strict=True)))
                add_part(by_day, (day, currency), part)
        return [(*key, *sums) for key, sums in sorted(by_day.items())]

    def items(self, day_ranges: Iterable[DayRange]) -> dict[str, dict[int, ItemSums]]:
        """Return the sums of each snapshot, by currency."""
        by_currency: defaultdict[str, dict[int, ItemSums]] = defaultdict(dict)
        for day_range in day_ranges:
            for rollup, days in self._pieces(day_range.days):
                piece = DayRange(days, day_range.locations)
                key = ("currency", "snapshot")
                for currency, snapshot, *sums in self._sum(rollup, key, piece):
                    add_part(by_currency[currency], snapshot, ItemSums(*sums))
        return dict(by_currency)

    def sums_by(
        self, sum_type: type[Part], day_ranges: Iterable[DayRange], columns: Sequence[str]
    ) -> Iterator[SumsByColumns[Part]]:
        """Yield sums by currency and ``columns``, from the rollup of ``sum_type`` (`ROLLUPS`)."""
        key = ("currency", *columns)
        for day_range in day_ranges:
            for currency, *row in self._sum(ROLLUPS[sum_type], key, day_range):
                values = dict(zip(columns, row, strict=False))
                yield currency, values, sum_type(*row[len(columns) :])

    def articles(self, snapshots: Collection[int]) -> dict[int, Article]:
        return {
            position: Article(*columns)
            for position, *columns in self._snapshots(_ARTICLES, snapshots)
        }

    def categories(self, snapshots: Collection[int]) -> dict[int, str | None]:
        """Return the category of each snapshot at the time of the sale."""
        return dict(self._snapshots(_CATEGORIES, snapshots))

    def _snapshots(
        self, query: Select[Any], snapshots: Collection[int]
    ) -> Iterator[Row[*tuple[Any, ...]]]:
        for step in in_steps(sorted(snapshots)):
            yield from self._rows(query, snapshots=step)

    def _pieces(self, days: Days) -> Iterator[tuple[Any, Days]]:
        """Yield rollups of items, each with a range. Together, the ranges cover ``days``.

        The range of `ItemDayRollup` is in days. The range of `ItemSpanRollup` is in spans of
        `SPAN_DAYS` days.
        """
        # The first and the last span of which all days are in ``days``.
        first, last = math.ceil(days.first / SPAN_DAYS), (days.last + 1) // SPAN_DAYS - 1
        # The rollup of spans does not contain the payment type.
        if self._types is not None or first > last:
            yield rollup_tables.ItemDayRollup, days
            return
        yield rollup_tables.ItemSpanRollup, Days(first, last)
        first_day, last_day = first * SPAN_DAYS, (last + 1) * SPAN_DAYS - 1
        if days.first < first_day:
            yield rollup_tables.ItemDayRollup, Days(days.first, first_day - 1)
        if last_day < days.last:
            yield rollup_tables.ItemDayRollup, Days(last_day + 1, days.last)

    def _sum(
        self,
        rollup: Any,
        key: tuple[str, ...],
        day_range: DayRange,
        names: tuple[str, ...] | None = None,
    ) -> Sequence[Sequence[Any]]:
        """Return the sums of the columns ``names``, or of all columns, grouped by ``key``."""
        query = _sums_of(rollup, key, names, has_types=self._types is not None)
        types = {} if self._types is None else {"types": list(self._types)}
        first, last = day_range.days.first, day_range.days.last
        return self._rows(query, locations=day_range.locations, first=first, last=last, **types)

    @cached_property
    def _method_names(self) -> dict[int, str]:
        rows = self._rows(_METHODS, organization_id=self._organization_id)
        return {row.position: row.name for row in rows}

    def _rows(self, query: Select[Any], **parameters: Any) -> Sequence[Row[*tuple[Any, ...]]]:
        return self._connection.execute(query, parameters).all()


# Statements are built once, because building one takes longer than executing it. They select
# columns of tables, not of classes: with tens of thousands of rows, the ORM is too slow.


@cache
def _sums_of(
    rollup: Any, key: tuple[str, ...], names: tuple[str, ...] | None, *, has_types: bool
) -> Select[Any]:
    """Return the statement for sums of the columns ``names``, or of all columns, by ``key``."""
    columns = rollup.__table__.c
    keys = [columns[name] for name in key]
    sums = [
        column
        for column in columns
        if not column.primary_key and (names is None or column.name in names)
    ]
    day_or_span = columns.span if "span" in columns else columns.day
    query = (
        select(*keys, *(_total(column) for column in sums))
        .where(_in("locations", columns.location), _between(day_or_span))
        .group_by(*keys)
    )
    return query.where(_in("types", columns.payment_type)) if has_types else query


def _total(column: ColumnElement[Any]) -> ColumnElement[Any]:
    # PostgreSQL returns sums of integers as numeric, which would become a Decimal.
    return cast(func.sum(column), BigInteger)


def _in(parameter: str, column: ColumnElement[Any]) -> ColumnElement[bool]:
    return column.in_(bindparam(parameter, expanding=True))


def _between(column: ColumnElement[Any]) -> ColumnElement[bool]:
    return column.between(bindparam("first"), bindparam("last"))


_hours: Final = rollup_tables.HourRollup.__table__.c
_HOURS: Final = (
    select(*_hours)
    .where(_in("locations", _hours.location), _between(_hours.hour))
    .order_by(_hours.location, _hours.hour, _hours.currency)
)
_snapshots: Final = LineSnapshot.__table__.c
_CATEGORIES: Final = select(_snapshots.position, uuid_text(_snapshots.category_id)).where(
    _in("snapshots", _snapshots.position)
)
_ARTICLES: Final = select(
    _snapshots.position,
    uuid_text(_snapshots.good_id),
    uuid_text(_snapshots.variation_id),
    _snapshots.name,
    _snapshots.uom_symbol,
).where(_in("snapshots", _snapshots.position))
_methods: Final = PaymentMethod.__table__.c
_METHODS: Final = select(_methods.position, _methods.name).where(
    _methods.organization_id == bindparam("organization_id")
)
