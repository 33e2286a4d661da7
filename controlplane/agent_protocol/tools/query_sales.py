"""query_sales: grouped figures of a period. They equal the figures of the dashboard."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby, islice
from operator import attrgetter
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from agent.wire.base import Absent, Array, Count, Exact, MaxItems, Number, Tolerant
from agent.wire.codec import to_plain
from controlplane.agent_protocol.tools import sales_groups
from controlplane.agent_protocol.tools.sales_groups import (
    BY_TIME,
    METRICS,
    Group,
    GroupBy,
    Hours,
    Metric,
    supported_metrics,
)
from controlplane.agent_protocol.tools.tool import (
    LocationIds,
    ToolContext,
    ToolError,
    named_locations,
    tool,
)
from controlplane.analytics.messages import FullDate
from controlplane.analytics.query import ResolvedQuery, days_of
from controlplane.analytics.reading import Reader
from controlplane.analytics.single_sales import DAYS_MAX as DAYS_MAX_OF_SALES
from controlplane.figures.local_time import DAY_HOURS
from controlplane.figures.records import Coverage, LocalHour, Window
from controlplane.figures.windows import DAYS_MAX, Period, PeriodQuery

ROWS_MAX: Final = 500
LIMIT_DEFAULT: Final = 100
GROUPS_MAX: Final = 2
GroupValue = str | int | None
_CODE: Final = re.compile("[A-Z]{3}")


def _check_currency(value: str) -> str:
    if not _CODE.fullmatch(value):
        raise PydanticCustomError("currency", "must be an ISO 4217 code such as AED")
    return value


Currency = Annotated[
    str, AfterValidator(_check_currency), Field(json_schema_extra={"pattern": "^[A-Z]{3}$"})
]


class QuerySalesArguments(Exact):
    locations: LocationIds = None
    period: Absent[Literal["today", "yesterday", "last7", "thisMonth"]] = Field(
        default=None, description="local days; default: today, if from and to are left out"
    )
    first: Absent[FullDate] = Field(
        default=None, alias="from", description="first local day, YYYY-MM-DD; needs `to`"
    )
    last: Absent[FullDate] = Field(
        default=None,
        alias="to",
        description=f"last local day, inclusive; at most {DAYS_MAX} days in one call",
    )
    hours: Absent[Annotated[tuple[LocalHour, ...], MaxItems(DAY_HOURS)]] = Field(
        default=None,
        description="count only these local hours of the day: 0 to 11 are the hours before noon;"
        f" default: all; a call with hours covers at most {DAYS_MAX_OF_SALES} days",
    )
    currency: Absent[Currency] = Field(
        default=None, description="ISO 4217 code: return only this currency; default: all"
    )
    group_by: Absent[Annotated[tuple[GroupBy, ...], MaxItems(GROUPS_MAX)]] = Field(
        default=None, description="at most two; default: one row for each currency"
    )
    metrics: Absent[Annotated[tuple[Metric, ...], MaxItems(len(METRICS))]] = Field(
        default=None, description="default: a selection that depends on groupBy"
    )
    limit: Annotated[int, Field(ge=1, le=ROWS_MAX)] = Field(
        default=LIMIT_DEFAULT,
        description="maximum number of rows for each currency; the first ones are returned",
    )


class SalesRow(Tolerant):
    currency: str
    group: dict[str, GroupValue] = Field(
        description="by groupBy: a local month YYYY-MM, date YYYY-MM-DD, hour 0-23, weekday 1-7"
        " (1 Monday), a payment type, an id or a name; null: not known"
    )
    label: str | None = Field(description="name of the group, if it has one")
    metrics: dict[str, Number | None] = Field(
        description="by metric; null: not known, or a division by zero"
    )


class SalesTotal(Tolerant):
    currency: str
    metrics: dict[str, Number | None]
    coverage: Coverage


class SalesAnswer(Tolerant):
    rows: Array[SalesRow] = Field(
        description="sorted by currency; within a currency by time if they are grouped by month,"
        " day, weekday or hour; then by netCents, highest first. Amounts of different currencies"
        " cannot be compared."
    )
    omitted_count: Count = Field(description="number of rows beyond the limit, of all currencies")
    totals: Array[SalesTotal] = Field(
        description="totals of the period and hours by currency, including omitted rows"
    )
    windows: Array[Window]


def query_sales(context: ToolContext, arguments: QuerySalesArguments) -> tuple[str, SalesAnswer]:
    groups = tuple(dict.fromkeys(arguments.group_by or ()))
    hours = None if arguments.hours is None else frozenset(arguments.hours)
    metrics = _metrics(groups, hours, arguments.metrics)
    query = _resolve_query(context, arguments)
    rows = [
        each
        for each in sales_groups.groups_of(query, context, groups, hours)
        if arguments.currency in {None, each.currency}
    ]
    rows.sort(key=partial(_sort_key, groups))
    first_rows = tuple(_row(each, groups, metrics) for each in _first(rows, arguments.limit))
    answer = SalesAnswer(
        rows=first_rows,
        omitted_count=len(rows) - len(first_rows),
        totals=tuple(
            each
            for each in _totals(query, context, metrics, hours)
            if arguments.currency in {None, each.currency}
        ),
        windows=query.windows,
    )
    return _summary(answer), answer


def _first(rows: Iterable[Group], limit: int) -> Iterator[Group]:
    """Yield the first ``limit`` rows of each currency. ``rows`` are sorted by currency."""
    for _, of_currency in groupby(rows, attrgetter("currency")):
        yield from islice(of_currency, limit)


def _resolve_query(context: ToolContext, arguments: QuerySalesArguments) -> ResolvedQuery:
    has_dates = arguments.first is not None or arguments.last is not None
    if arguments.period is not None and has_dates:
        raise ToolError("Give either period or from and to, not both.")
    period: Period = "custom" if has_dates else arguments.period or "today"
    locations = named_locations(context, arguments.locations)
    days = days_of(context, locations, PeriodQuery(period, arguments.first, arguments.last))
    return ResolvedQuery(days, Reader(context.session, context.caller.organization_id))


def _metrics(
    groups: tuple[GroupBy, ...], hours: Hours, chosen_metrics: tuple[Metric, ...] | None
) -> tuple[Metric, ...]:
    supported = supported_metrics(groups, hours)
    if chosen_metrics is None:
        return supported.default
    if unsupported_metrics := [each for each in chosen_metrics if each not in supported.metrics]:
        raise ToolError(
            f"These metrics are not available with groupBy {' and '.join(groups) or '[]'}:"
            f" {', '.join(unsupported_metrics)}."
            f" Supported metrics: {', '.join(supported.metrics)}."
        )
    return tuple(dict.fromkeys(chosen_metrics))


def _totals(
    query: ResolvedQuery, context: ToolContext, metrics: tuple[Metric, ...], hours: Hours
) -> tuple[SalesTotal, ...]:
    if hours is None:
        figures = sales_groups.figures_of_days(query)
    else:
        figures = sales_groups.figures_of_hours(query, context, hours)
    return tuple(
        SalesTotal(
            currency=currency,
            metrics={name: value for name, value in to_plain(each).items() if name in metrics},
            coverage=each.coverage,
        )
        for currency, each in figures.items()
    )


def _sort_key(groups: tuple[GroupBy, ...], group: Group) -> tuple[Any, ...]:
    """Return the sort key of a row: currency, time if rows are grouped by time, and net sales."""
    times = [group.key[name] for name in groups if name in BY_TIME]
    return group.currency, times, -group.net, repr(group.key)


def _row(group: Group, groups: tuple[GroupBy, ...], metrics: tuple[Metric, ...]) -> SalesRow:
    values = group.metrics()
    return SalesRow(
        currency=group.currency,
        group={name: group.key[name] for name in groups},
        label=group.label,
        metrics={name: values[name] for name in metrics},
    )


def _summary(answer: SalesAnswer) -> str:
    net = [
        f"{each.currency} {each.metrics['netCents']} net minor units"
        for each in answer.totals
        if "netCents" in each.metrics
    ]
    more = f", {answer.omitted_count} more omitted" if answer.omitted_count else ""
    incomplete = [
        each.currency
        for each in answer.totals
        if not (each.coverage.sales_complete and each.coverage.refunds_complete)
    ]
    total = f" Total: {'; '.join(net)}." if net else ""
    warning = ""
    if incomplete:
        warning = f" Data of {', '.join(incomplete)} is incomplete: see coverage."
    return f"Rows: {len(answer.rows)}{more}.{total}{warning}"


QUERY_SALES = tool(
    query_sales,
    "Sales figures",
    "Figures of completed sales and refunds over local days, grouped by up to two of month, day,"
    " hour, weekday, location, paymentType, item, category, employee. To compare two periods, call"
    " this tool once for each period. Each currency has its own rows, limit and totals. Within a"
    " currency, rows are sorted by time if they are grouped by month, day, weekday or hour; then by"
    " netCents, highest first. The figures equal those of the dashboard. In the result, coverage"
    " shows how much data is incomplete. describe_business_data describes the metrics.",
    is_long=True,
)
