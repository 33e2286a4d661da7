"""The registry of operations for figures: three current and seven deprecated operations."""

from functools import partial
from typing import Final

from controlplane.analytics import operations, routes
from controlplane.operation.operation import Area, Procedure, procedure

_operation = partial(procedure, refusals={"location_not_found", "foreign_location"}, is_long=True)
_deprecated = partial(_operation, successor=routes.DASHBOARD)

ANALYTICS: Final = Area(
    "analytics",
    "Figures of venues: sales, refunds and payments by local days and hours.",
    (
        _operation(routes.DASHBOARD, operations.dashboard),
        _operation(routes.VENUE_FINANCIAL_PULSE, operations.venue_financial_pulse),
        _deprecated(routes.CHART, operations.chart),
        _deprecated(routes.SALES, operations.sales),
        _deprecated(routes.ITEMS, operations.items),
        _deprecated(routes.RECONCILIATION, operations.reconciliation),
        _deprecated(routes.TREND, operations.trend),
        _deprecated(routes.VENUES, operations.venues),
        _operation(
            routes.VENUE_PULSE, operations.venue_pulse, successor=routes.VENUE_FINANCIAL_PULSE
        ),
    ),
)
REPORTS: Final = Area(
    "reports",
    "The figures of a period and of the period before, as one report.",
    (_operation(routes.FINANCIAL_SUMMARY, operations.financial_summary),),
)
OPERATIONS: Final[dict[str, Procedure]] = {
    operation.path: operation
    for operation in (*ANALYTICS.operations, *REPORTS.operations)
    if isinstance(operation, Procedure)
}
