"""Messages of the operations for figures (contract: analytics and reports).

The contract defines the bodies, the financial summary and the financial pulse. docs/figures.md
describes the other replies.
"""

import re
from datetime import date
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from agent.wire.base import Absent, Array, Count, Exact, Number, Tolerant
from agent.wire.text import NonEmptyText
from controlplane.figures import records
from controlplane.figures.records import PaymentType
from controlplane.figures.windows import Period
from controlplane.operation.storable_text import STORABLE

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def _read_date(value: Any) -> Any:
    """Read an RFC 3339 full-date."""
    if not isinstance(value, str):
        return value  # a date, or a value that pydantic refuses
    try:
        if _DATE.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise PydanticCustomError("date", "must be a date such as 2026-11-20")


FullDate = Annotated[date, BeforeValidator(_read_date)]


def _require_item(value: tuple[PaymentType, ...]) -> tuple[PaymentType, ...]:
    # With `min_length`, pydantic would also report a list of invalid items as too short.
    if not value:
        raise PydanticCustomError("too_short", "must have at least 1 item")
    return value


PaymentTypes = Annotated[
    Array[PaymentType], AfterValidator(_require_item), Field(json_schema_extra={"minItems": 1})
]

# ---------------------------------------------------------------------------- bodies


class LocationQuery(Exact):
    location_id: Annotated[NonEmptyText, *STORABLE]


class FiguresQuery(LocationQuery):
    """``from`` and ``to`` are the first and last local date of the period ``custom``.

    The ``locationMode`` ``all`` selects every location that the caller may see. ``locationId`` must
    be one of them.
    """

    period: Period = "today"
    first: Absent[FullDate] = Field(default=None, alias="from")
    last: Absent[FullDate] = Field(default=None, alias="to")
    location_mode: Literal["single", "all"] = "single"


class NarrowedQuery(FiguresQuery):
    """``paymentTypes`` limits the figures to payments and refunds of these types."""

    payment_types: Absent[PaymentTypes] = None


# ---------------------------------------------------------------------------- replies


class CurrencyPart(Tolerant):
    """A part of a reply for one currency."""

    currency: str


class WindowsReply(Tolerant):
    """A reply with ``windows``: the local days of each location that the figures are about."""

    windows: Array[records.Window]


class SummaryPeriod(WindowsReply):
    currencies: Array[records.CurrencySummary]


class FinancialSummary(Tolerant):
    current: SummaryPeriod
    previous: SummaryPeriod


class FiguresPeriod(WindowsReply):
    currencies: Array[records.CurrencyFigures]


class Financial(Tolerant):
    current: FiguresPeriod
    previous: FiguresPeriod


class CurrencyItems(CurrencyPart):
    """The items with the highest net. ``omittedNetCents`` is the net of all other items."""

    items: Array[records.Item]
    omitted_count: Count
    omitted_net_cents: records.Cents


class CurrencyTrading(CurrencyPart):
    trading_revenue_cents: records.Cents
    days: Array[records.TradingDay]


class CurrencyBuckets(CurrencyPart):
    buckets: Array[records.Bucket]


class CurrencyCoverage(CurrencyPart):
    coverage: records.Coverage


class Dashboard(Tolerant):
    financial: Financial
    financial_items: Array[CurrencyItems]
    financial_trading: Array[CurrencyTrading]
    buckets: Array[CurrencyBuckets]
    windows: Array[records.Window]
    coverage: Array[CurrencyCoverage]


class Chart(WindowsReply):
    currencies: Array[CurrencyBuckets]


class CurrencySales(CurrencyPart):
    figures: records.Figures
    previous_net_cents: records.Cents
    delta_percent: Number | None


class Sales(WindowsReply):
    currencies: Array[CurrencySales]


class Items(WindowsReply):
    currencies: Array[CurrencyItems]


class CurrencyReconciliation(CurrencyPart):
    methods: Array[records.Method]
    coverage: records.Coverage


class Reconciliation(WindowsReply):
    currencies: Array[CurrencyReconciliation]


class Trend(WindowsReply):
    currencies: Array[CurrencyTrading]


class CurrencyVenues(CurrencyPart):
    locations: Array[records.LocationFigures]


class Venues(WindowsReply):
    currencies: Array[CurrencyVenues]


class FinancialPulse(Tolerant):
    venues: Array[records.VenuePulse]


class VenueActivity(Tolerant):
    location_id: str
    activity_complete: bool
    activity: Array[records.Activity]


class Pulse(Tolerant):
    venues: Array[VenueActivity]
