"""query_sales: grouped figures of a period, computed from the same sums as the dashboard."""

from functools import partial
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from agent.wire.base import Absent, Array, Count, Exact, MaxItems, Number, Tolerant
from agent.wire.codec import to_plain
from agent.wire.text import NonEmptyText
from controlplane.agent_protocol.tools import sales_groups
from controlplane.agent_protocol.tools.sales_groups import (
    BY_TIME,
    METRICS,
    Group,
    GroupBy,
    Metric,
    base_of,
)
from controlplane.agent_protocol.tools.tool import (
    LOCATIONS_MAX,
    ToolContext,
    ToolError,
    named_locations,
    tool,
)
from controlplane.analytics.messages import FullDate
from controlplane.analytics.parts import figures_part
from controlplane.analytics.question import Question, days_of
from controlplane.analytics.reading import Reader
from controlplane.figures.records import Coverage, Window
from controlplane.figures.windows import Period
from controlplane.figures.windows import Question as PeriodQuery

ROWS_MAX: Final = 500
ROWS_USUAL: Final = 100
GROUPS_MAX: Final = 2
GroupValue = str | int | None


class QuerySalesArguments(Exact):
    locations: Absent[Annotated[tuple[NonEmptyText, ...], MaxItems(LOCATIONS_MAX)]] = Field(
        default=None, description="ids of locations; default: all that you have access to"
    )
    period: Absent[Literal["today", "yesterday", "last7", "thisMonth"]] = Field(
        default=None, description="local days; today if period, from and to are left out"
    )
    first: Absent[FullDate] = Field(
        default=None, alias="from", description="first local day, YYYY-MM-DD; needs `to`"
    )
    last: Absent[FullDate] = Field(
        default=None, alias="to", description="last local day, inclusive; at most 92 days"
    )
    group_by: Absent[Annotated[tuple[GroupBy, ...], MaxItems(GROUPS_MAX)]] = Field(
        default=None, description="at most two; default: one row for each currency"
    )
    metrics: Absent[Annotated[tuple[Metric, ...], MaxItems(len(METRICS))]] = Field(
        default=None, description="default: a selection that depends on groupBy"
    )
    limit: Annotated[int, Field(ge=1, le=ROWS_MAX)] = ROWS_USUAL


class SalesRow(Tolerant):
    currency: str
    group: dict[str, GroupValue] = Field(
        description="by groupBy: a local date, hour 0-23, weekday 1-7 (1 Monday) or an id;"
        " null: not known"
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
    """Rows are sorted by time if they are grouped by time, then by net sales, greatest first."""

    rows: Array[SalesRow]
    omitted_count: Count = Field(description="number of rows beyond the limit")
    totals: Array[SalesTotal] = Field(description="totals of the whole period, by currency")
    windows: Array[Window]


def query_sales(context: ToolContext, arguments: QuerySalesArguments) -> tuple[str, SalesAnswer]:
    groups = tuple(dict.fromkeys(arguments.group_by or ()))
    metrics = _metrics(groups, arguments.metrics)
    question = _question(context, arguments)
    result = sales_groups.groups_of(question, context, groups)
    rows = sorted(result, key=partial(_place, groups))
    listed = [_row(each, groups, metrics) for each in rows[: arguments.limit]]
    answer = SalesAnswer(
        rows=tuple(listed),
        omitted_count=len(rows) - len(listed),
        totals=_totals(question, metrics),
        windows=question.windows,
    )
    return _summary(answer), answer


def _question(context: ToolContext, arguments: QuerySalesArguments) -> Question:
    if arguments.period is not None and (arguments.first or arguments.last) is not None:
        raise ToolError("Give either period or from and to, not both.")
    period: Period = arguments.period or "today"
    if (arguments.first or arguments.last) is not None:
        period = "custom"
    locations = named_locations(context, arguments.locations)
    days = days_of(context, locations, PeriodQuery(period, arguments.first, arguments.last))
    return Question(days, Reader(context.session, context.caller.organization_id))


def _metrics(groups: tuple[GroupBy, ...], wanted: tuple[Metric, ...] | None) -> tuple[Metric, ...]:
    base = base_of(groups)
    if wanted is None:
        return base.default
    if strange := [each for each in wanted if each not in base.metrics]:
        raise ToolError(
            f"These metrics are not available with groupBy {' and '.join(groups) or '[]'}:"
            f" {', '.join(strange)}."
            f" Supported metrics: {', '.join(base.metrics)}."
        )
    return tuple(dict.fromkeys(wanted))


def _totals(question: Question, metrics: tuple[Metric, ...]) -> tuple[SalesTotal, ...]:
    return tuple(
        SalesTotal(
            currency=each.currency,
            metrics={
                name: value for name, value in to_plain(each.figures).items() if name in metrics
            },
            coverage=each.figures.coverage,
        )
        for each in figures_part(question)
    )


def _place(groups: tuple[GroupBy, ...], group: Group) -> tuple[Any, ...]:
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
    warning = f" Data of {', '.join(incomplete)} is incomplete: see coverage." * bool(incomplete)
    total = f" Total: {'; '.join(net)}." if net else ""
    return f"Rows: {len(answer.rows)}{more}.{total}{warning}"


QUERY_SALES = tool(
    query_sales,
    "Sales figures",
    "Figures of completed sales and refunds over local days, grouped by up to two of day, hour,"
    " weekday, location, paymentType, item, category, employee. They equal the figures of"
    " the dashboard. In the result, coverage counts incomplete data. describe_business_data"
    " describes the metrics.",
    is_long=True,
)
