"""Sums of sales and refunds, grouped by month, day, hour, article, employee and others (`GroupBy`).

They are computed by the same functions as the figures, buckets and items of the dashboard.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import select

from agent.wire.codec import to_plain
from controlplane.agent_protocol.tools.tool import ToolContext, ToolError
from controlplane.analytics import single_sales
from controlplane.analytics.query import ResolvedQuery
from controlplane.analytics.reading import Part, SumsByColumns
from controlplane.figures.buckets import buckets
from controlplane.figures.financial import figures, totals
from controlplane.figures.items import RankedArticle, item, rank
from controlplane.figures.local_time import date_of
from controlplane.figures.money import ratio
from controlplane.figures.records import Figures
from controlplane.figures.sums import DaySums, ItemSums, add_part
from controlplane.storage.merchant.catalog_tables import Category
from controlplane.storage.merchant.merchant_tables import Employee, Location

GroupBy = Literal[
    "month", "day", "hour", "weekday", "location", "paymentType", "item", "category", "employee"
]
GROUPINGS: Final[Mapping[GroupBy, str]] = {
    "month": "a local month, YYYY-MM",
    "day": "a local date, YYYY-MM-DD",
    "hour": "the local hour of the day, 0 to 23",
    "weekday": "1 (Monday) to 7 (Sunday)",
    "location": "the id of a location",
    "paymentType": "cash, card, wallet, mixed or other",
    "item": "the id of a variation, or the name of an article that is not in the catalog",
    "category": "the id of a category",
    "employee": "the id of an employee",
}
Metric = Literal[
    "netCents", "saleCents", "grossCents", "discountCents", "refundCents", "saleCount",
    "refundCount", "averageSaleCents", "averageItemsPerSale", "refundAmountCents",
    "municipalityFeeCents", "refundedFeeCents", "refundTipCents", "knownVatCents", "vatCents",
    "netWithoutVatCents", "tradingRevenueCents", "quantityMilli", "refundedQuantityMilli",
    "lineCount",
]  # fmt: skip
FIGURE_METRICS: Final[Mapping[Metric, str]] = {
    "netCents": "sales less refunds",
    "saleCents": "gross less discounts, tax included",
    "grossCents": "list price × quantity, tax included",
    "discountCents": "discounts of lines and of whole sales",
    "refundCents": "value of returned goods, at the time of the refund",
    "saleCount": "completed sales",
    "refundCount": "refunds",
    "averageSaleCents": "saleCents ÷ saleCount",
    "averageItemsPerSale": "pieces ÷ saleCount",
    "refundAmountCents": "refunded money: goods, fee and tip",
    "municipalityFeeCents": "municipality fee, in addition to saleCents",
    "refundedFeeCents": "refunded municipality fee",
    "refundTipCents": "refunded tips",
    "knownVatCents": "known tax of lines less known tax of refunds",
    "vatCents": "knownVatCents if the tax of every line and refund is known, or else null",
    "netWithoutVatCents": "netCents less vatCents",
}
"""The metrics that `figures` returns."""
METRICS: Final[Mapping[Metric, str]] = {
    **FIGURE_METRICS,
    "tradingRevenueCents": "sales less their refunds, at the hour of the sale",
    "quantityMilli": "quantity sold, in thousandths of the unit",
    "refundedQuantityMilli": "returned quantity, in thousandths of the unit",
    "lineCount": "lines of sales",
}
BY_TIME: Final = ("month", "day", "weekday", "hour")
BY_ARTICLE: Final = ("item", "category")
_SUMMED: Final = (
    "grossCents", "discountCents", "refundCents", "netCents", "tradingRevenueCents", "saleCount",
    "refundCount",
)  # fmt: skip
"""The fields of a bucket that are added up for a group."""


@dataclass(frozen=True, slots=True)
class SupportedMetrics:
    """The metrics that a kind of grouping supports, and the metrics that it returns by default."""

    metrics: tuple[Metric, ...]
    default: tuple[Metric, ...]


_DAYS: Final = SupportedMetrics(
    tuple(FIGURE_METRICS), ("netCents", "saleCents", "saleCount", "averageSaleCents")
)
_HOURS: Final = SupportedMetrics(
    ("netCents", "saleCents", "grossCents", "discountCents", "refundCents", "saleCount",
     "refundCount", "averageSaleCents", "tradingRevenueCents"),
    ("netCents", "saleCents", "saleCount", "averageSaleCents"),
)  # fmt: skip
_ARTICLES: Final = SupportedMetrics(
    ("netCents", "saleCents", "grossCents", "discountCents", "refundCents", "quantityMilli",
     "refundedQuantityMilli", "lineCount"),
    ("netCents", "quantityMilli", "lineCount"),
)  # fmt: skip


@dataclass(slots=True)
class Group:
    """A group of sales and refunds, which is one row of the result.

    ``key`` has the value of each grouping. ``label`` has the names of these values, if any.
    ``net`` is for sorting. ``metrics`` returns the metrics by name.
    """

    currency: str
    key: Mapping[str, Any]
    net: int
    metrics: Callable[[], Mapping[str, Any]]
    label: str | None = None


Hours = Collection[int] | None
"""The local hours of the day whose sales and refunds are included; None means all."""
SumSales = Callable[[Any, Sequence[str]], Iterator[SumsByColumns[Any]]] | None
"""A function that sums single sales. It takes a class of sums (`DaySums` or `ItemSums`) and the
names of columns. It yields the sums for each combination of values of these columns. None means
that rollups are read instead."""


def supported_metrics(groups: Sequence[GroupBy], hours: Hours = None) -> SupportedMetrics:
    """Return the metrics that a combination of groupings supports."""
    if any(group in BY_ARTICLE for group in groups):
        return _ARTICLES
    return _HOURS if "hour" in groups and not reads_sales(groups, hours) else _DAYS


def reads_sales(groups: Sequence[GroupBy], hours: Hours) -> bool:
    """Return whether single sales must be read, because no rollup has these groupings and hours."""
    without_hours = ("paymentType", "employee", *BY_ARTICLE)  # no rollup has them by hour
    lacks_rollup = "hour" in groups and any(group in without_hours for group in groups)
    return hours is not None or "employee" in groups or lacks_rollup


def groups_of(
    query: ResolvedQuery, context: ToolContext, groups: Sequence[GroupBy], hours: Hours = None
) -> list[Group]:
    """Return the groups that have sales or refunds. They are not sorted."""
    sum_sales = None
    if reads_sales(groups, hours):
        _require_short_period(query, groups, hours)
        sum_sales = partial(_single_sales, query, context, hours)
    ids = {location.position: location.location_id for location in query.locations}
    supported = supported_metrics(groups, hours)
    if supported is _HOURS:
        rows = _by_hour(query, groups)
    elif supported is _ARTICLES:
        rows = _by_article(query, groups, ids, sum_sales)
    else:
        rows = _by_day(query, groups, ids, sum_sales)
    names = _names(context, groups)
    for group in rows:
        group.label = group.label or _label(names, group.key)
    return rows


def figures_of_days(query: ResolvedQuery) -> dict[str, Figures]:
    """Return the figures of the days, by currency."""
    rows = query.reader.sums_by(DaySums, query.day_ranges, ("location",))
    sums = {(values["location"], currency): part for currency, values, part in rows}
    return totals(query.locations, sums)


def figures_of_hours(
    query: ResolvedQuery, context: ToolContext, hours: Collection[int]
) -> dict[str, Figures]:
    """Return the figures of these local hours of the day, by currency."""
    sums: dict[str, DaySums] = {}
    for currency, _, part in _single_sales(query, context, hours, DaySums, ()):
        add_part(sums, currency, part)
    fallbacks = sum(location.clock.fell_back for location in query.locations)
    return {currency: figures(part, {}, fallbacks) for currency, part in sorted(sums.items())}


def _single_sales(
    query: ResolvedQuery,
    context: ToolContext,
    hours: Hours,
    sum_type: type[Part],
    columns: Sequence[str],
) -> Iterator[SumsByColumns[Part]]:
    """Yield sums of single sales in ``hours``, by currency and ``columns``.

    If ``hours`` is not None, the hour is one of the columns, even if ``columns`` does not name it.
    """
    if hours is not None:
        columns = tuple(dict.fromkeys((*columns, "hour")))
    organization_id = context.caller.organization_id
    rows = single_sales.sums_of_sales(
        context.session, organization_id, sum_type, query.day_ranges, columns
    )
    return (row for row in rows if hours is None or row[1]["hour"] in hours)


def _require_short_period(query: ResolvedQuery, groups: Sequence[GroupBy], hours: Hours) -> None:
    reason = " and ".join(groups) if hours is None else "hours"
    days_max = single_sales.DAYS_MAX
    if any(days.count > days_max for days in query.days.values()):
        raise ToolError(
            f"A query by {reason} covers at most {days_max} days, because it reads single sales."
            " Make a call for each part of the period."
        )


# ---------------------------------------------------------------------------- days, employees


def _by_day(
    query: ResolvedQuery, groups: Sequence[GroupBy], ids: Mapping[int, str], sum_sales: SumSales
) -> list[Group]:
    columns = _columns(groups)
    if sum_sales is not None:
        rows = sum_sales(DaySums, columns)
    else:
        rows = query.reader.sums_by(DaySums, query.day_ranges, columns)
    sums: dict[tuple[Any, ...], DaySums] = {}
    for currency, values, part in rows:
        key = (currency, *_key(groups, values, ids))
        add_part(sums, key, part)
    return [
        Group(key[0], dict(zip(groups, key[1:], strict=True)), part.net, partial(_figures, part))
        for key, part in sums.items()
    ]


def _figures(sums: DaySums) -> Mapping[str, Any]:
    return to_plain(figures(sums, {}, 0))


def _columns(groups: Iterable[GroupBy]) -> tuple[str, ...]:
    """Return the columns of the rollups, or of single sales, that the groupings need."""
    names = {"month": "day", "day": "day", "weekday": "day", "hour": "hour", "location": "location",
             "paymentType": "payment_type", "employee": "employee"}  # fmt: skip
    return tuple(dict.fromkeys(names[group] for group in groups if group in names))


def _key(
    groups: Iterable[GroupBy], values: Mapping[str, Any], ids: Mapping[int, str]
) -> tuple[Any, ...]:
    return tuple(_value(group, values, ids) for group in groups if group not in BY_ARTICLE)


def _value(group: GroupBy, values: Mapping[str, Any], ids: Mapping[int, str]) -> Any:
    if group in BY_TIME and group != "hour":
        return _value_of_date(group, date_of(values["day"]))
    if group == "location":
        return ids[values["location"]]
    return values["payment_type" if group == "paymentType" else group]


def _value_of_date(group: GroupBy, local_date: date) -> Any:
    """Return the month, the day or the weekday of a date."""
    if group == "weekday":
        return local_date.isoweekday()
    text = local_date.isoformat()
    return text[:7] if group == "month" else text


# ---------------------------------------------------------------------------- hours


def _by_hour(query: ResolvedQuery, groups: Sequence[GroupBy]) -> list[Group]:
    sums: defaultdict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    buckets_by_currency = buckets(query.locations, query.hours())
    for currency, of_currency in buckets_by_currency.items():
        for bucket in of_currency:
            values = (_value_of_bucket(group, bucket) for group in groups)
            sums[currency, *values].update({name: bucket[name] for name in _SUMMED})
    return [
        Group(
            key[0],
            dict(zip(groups, key[1:], strict=True)),
            part["netCents"],
            partial(_hour_metrics, part),
        )
        for key, part in sums.items()
    ]


def _hour_metrics(sums: Counter[str]) -> Mapping[str, Any]:
    sale = sums["grossCents"] - sums["discountCents"]
    return {**sums, "saleCents": sale, "averageSaleCents": ratio(sale, sums["saleCount"])}


def _value_of_bucket(group: GroupBy, bucket: Any) -> Any:
    if group == "hour":
        return bucket["localHour"]
    if group == "location":
        return bucket["locationId"]
    return _value_of_date(group, date.fromisoformat(bucket["localDate"]))


# ---------------------------------------------------------------------------- articles


def _by_article(
    query: ResolvedQuery, groups: Sequence[GroupBy], ids: Mapping[int, str], sum_sales: SumSales
) -> list[Group]:
    columns = _columns(groups)
    sums: defaultdict[tuple[Any, ...], dict[int, ItemSums]] = defaultdict(dict)
    if sum_sales is not None:
        rows_by_columns = sum_sales(ItemSums, ("snapshot", *columns))
    elif columns:
        rows_by_columns = query.reader.sums_by(ItemSums, query.day_ranges, ("snapshot", *columns))
    else:
        rows_by_columns = (
            (currency, {"snapshot": snapshot}, item_sums)
            for currency, by_snapshot in query.reader.items(query.day_ranges).items()
            for snapshot, item_sums in by_snapshot.items()
        )
    for currency, values, item_sums in rows_by_columns:
        group_sums = sums[currency, *_key(groups, values, ids)]
        add_part(group_sums, values["snapshot"], item_sums)
    snapshots = {snapshot for by_snapshot in sums.values() for snapshot in by_snapshot}
    categories = query.reader.categories(snapshots) if "category" in groups else {}
    articles = query.reader.articles(snapshots) if "item" in groups else {}
    rows = list[Group]()
    other_groups = [group for group in groups if group not in BY_ARTICLE]
    for (currency, *group_values), by_snapshot in sums.items():
        for category, in_category in _split(by_snapshot, categories):
            for ranking in rank(in_category.items(), articles):
                article = ranking.article
                key = dict(zip(other_groups, group_values, strict=True))
                key |= {"category": category, "item": article.variation_id or article.name}
                label = article.name if "item" in groups else None
                rows.append(Group(currency, key, ranking.net, partial(_item, ranking), label))
    return rows


def _item(ranking: RankedArticle) -> Mapping[str, Any]:
    return item(ranking, ranking.net)


def _split(
    by_snapshot: Mapping[int, ItemSums], categories: Mapping[int, str | None]
) -> Iterable[tuple[str | None, Mapping[int, ItemSums]]]:
    """Return the sums of the article snapshots of each category.

    The category of snapshots that are not in ``categories`` is None.
    """
    results: defaultdict[str | None, dict[int, ItemSums]] = defaultdict(dict)
    for snapshot, sums in by_snapshot.items():
        results[categories.get(snapshot)][snapshot] = sums
    return results.items()


# ---------------------------------------------------------------------------- names


def _label(names: Mapping[str, Mapping[Any, str]], key: Mapping[str, Any]) -> str | None:
    labels = [names[group][value] for group, value in key.items() if value in names.get(group, {})]
    return ", ".join(labels) or None


def _names(context: ToolContext, groups: Sequence[GroupBy]) -> dict[str, dict[Any, str]]:
    """Return the names by id for each grouping by location, category or employee."""
    tables: dict[str, Any] = {"location": Location, "category": Category, "employee": Employee}
    names: dict[str, dict[Any, str]] = {}
    for group in groups:
        if group in tables:
            table = tables[group]
            query = select(table.id, table.name).where(
                table.organization_id == context.caller.organization_id
            )
            names[group] = {
                str(key) if isinstance(key, UUID) else key: name
                for key, name in context.session.execute(query)
            }
    return names
