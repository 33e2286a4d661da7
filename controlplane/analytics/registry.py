"""The ten operations over figures: three that are current, seven that are deprecated."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from controlplane.analytics import deprecated, operations, routes
from controlplane.analytics.messages import FiguresQuery, LocationQuery, NarrowedQuery
from controlplane.remote_control.registry import Operation, read

OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        routes.DASHBOARD: read(FiguresQuery, operations.dashboard),
        routes.FINANCIAL_SUMMARY: read(FiguresQuery, operations.financial_summary),
        routes.VENUE_FINANCIAL_PULSE: read(LocationQuery, operations.venue_financial_pulse),
        routes.CHART: read(FiguresQuery, deprecated.chart, successor=routes.DASHBOARD),
        routes.SALES: read(NarrowedQuery, deprecated.sales, successor=routes.DASHBOARD),
        routes.ITEMS: read(NarrowedQuery, deprecated.items, successor=routes.DASHBOARD),
        routes.RECONCILIATION: read(
            NarrowedQuery, deprecated.reconciliation, successor=routes.DASHBOARD
        ),
        routes.TREND: read(NarrowedQuery, deprecated.trend, successor=routes.DASHBOARD),
        routes.VENUES: read(NarrowedQuery, deprecated.venues, successor=routes.DASHBOARD),
        routes.VENUE_PULSE: read(
            LocationQuery, deprecated.venue_pulse, successor=routes.VENUE_FINANCIAL_PULSE
        ),
    }
)
