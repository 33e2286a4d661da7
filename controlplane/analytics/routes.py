"""Paths of the operations for figures, below the service's base address."""

from typing import Final

PREFIX: Final = "/api/public/v1/"

DASHBOARD: Final = PREFIX + "analytics/dashboard"
CHART: Final = PREFIX + "analytics/chart"
SALES: Final = PREFIX + "analytics/sales"
ITEMS: Final = PREFIX + "analytics/items"
RECONCILIATION: Final = PREFIX + "analytics/reconciliation"
TREND: Final = PREFIX + "analytics/trend"
VENUES: Final = PREFIX + "analytics/venues"
VENUE_FINANCIAL_PULSE: Final = PREFIX + "analytics/venueFinancialPulse"
VENUE_PULSE: Final = PREFIX + "analytics/venuePulse"
FINANCIAL_SUMMARY: Final = PREFIX + "reports/financialSummary"
