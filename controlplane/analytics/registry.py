"""The registry of operations for figures: three current and seven deprecated ones."""

from typing import Any, Final

from controlplane.analytics import deprecated, messages, operations, routes
from controlplane.analytics.messages import FiguresQuery, LocationQuery, NarrowedQuery
from controlplane.operation.operation import Area, Procedure, Run, procedure


def _row(
    path: str, body: type[LocationQuery], reply: Any, run: Run, successor: str | None = None
) -> Procedure:
    refusals = {"location_not_found", "foreign_location"}
    return procedure(path, body, reply, run, refusals=refusals, successor=successor)


ANALYTICS: Final = Area(
    "analytics",
    "Figures of venues: sales, refunds and payments by local days and hours.",
    (
        _row(routes.DASHBOARD, FiguresQuery, messages.Dashboard, operations.dashboard),
        _row(
            routes.VENUE_FINANCIAL_PULSE,
            LocationQuery,
            messages.FinancialPulse,
            operations.venue_financial_pulse,
        ),
        _row(routes.CHART, FiguresQuery, messages.Chart, deprecated.chart, routes.DASHBOARD),
        _row(routes.SALES, NarrowedQuery, messages.Sales, deprecated.sales, routes.DASHBOARD),
        _row(routes.ITEMS, NarrowedQuery, messages.Items, deprecated.items, routes.DASHBOARD),
        _row(
            routes.RECONCILIATION,
            NarrowedQuery,
            messages.Reconciliation,
            deprecated.reconciliation,
            routes.DASHBOARD,
        ),
        _row(routes.TREND, NarrowedQuery, messages.Trend, deprecated.trend, routes.DASHBOARD),
        _row(routes.VENUES, NarrowedQuery, messages.Venues, deprecated.venues, routes.DASHBOARD),
        _row(
            routes.VENUE_PULSE,
            LocationQuery,
            messages.Pulse,
            deprecated.venue_pulse,
            routes.VENUE_FINANCIAL_PULSE,
        ),
    ),
)
REPORTS: Final = Area(
    "reports",
    "The same figures as a report.",
    (
        _row(
            routes.FINANCIAL_SUMMARY,
            FiguresQuery,
            messages.FinancialSummary,
            operations.financial_summary,
        ),
    ),
)
OPERATIONS: Final[dict[str, Procedure]] = {
    each.path: each
    for each in (*ANALYTICS.operations, *REPORTS.operations)
    if isinstance(each, Procedure)
}
