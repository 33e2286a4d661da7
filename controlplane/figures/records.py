"""The records of financial figures, under the contract's names (contract: Financial figures).

docs/figures.md describes all records, including records that the contract does not define.
"""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from agent.wire import limits
from agent.wire.base import Absent, Array, Count, Number, Tolerant

_Integer = Annotated[int, Field(ge=limits.INTEGER_MIN, le=limits.INTEGER_MAX)]
Cents = _Integer
"""An amount in minor units of its currency."""
Milli = _Integer
"""A quantity in thousandths of its unit."""
LocalHour = Annotated[int, Field(ge=0, le=23)]
PaymentType = Literal["cash", "card", "wallet", "mixed", "other"]
"""How a sale is paid: by one type of payment method, or by several ("mixed")."""


class Quantity(Tolerant):
    quantity_unit: str | None
    quantity_milli: Milli
    line_count: Count


class Coverage(Tolerant):
    """Counts and amounts of missing data. The three flags are derived from the counts."""

    missing_sale_snapshot_count: Count
    missing_sale_snapshot_cents: Cents
    unresolved_imported_order_count: Count
    unresolved_imported_order_cents: Cents
    undated_refund_cents: Cents
    undated_refund_payment_count: Count
    sales_complete: bool
    refunds_complete: bool
    vat_complete: bool
    sale_unknown_tax_line_count: Count
    refund_unknown_tax_count: Count
    refund_unknown_components_count: Count
    timezone_fallback_count: Count


class Figures(Tolerant):
    """Sums of sales and refunds.

    ``refundCents`` is the amount of refunded goods. ``refundAmountCents`` also includes refunded
    fees and tips.
    """

    gross_cents: Cents
    discount_cents: Cents
    sale_cents: Cents
    refund_cents: Cents
    net_cents: Cents
    sale_count: Count
    refund_count: Count
    refund_amount_cents: Cents
    municipality_fee_cents: Cents
    refunded_fee_cents: Cents
    refund_tip_cents: Cents
    known_vat_cents: Cents
    vat_cents: Cents | None
    net_without_vat_cents: Cents | None
    average_sale_cents: Number | None
    average_items_per_sale: Number | None
    quantities: Array[Quantity]
    coverage: Coverage


class Interval(Tolerant):
    start_utc: str
    end_utc: str


class Window(Tolerant):
    """Local days. ``intervals`` are the times of these days in UTC.

    A day that the time zone skipped has no interval.
    """

    location_id: str
    from_date: str
    to_date: str
    time_zone: str
    fell_back_to_utc: bool
    intervals: Absent[Array[Interval]] = None


class Method(Tolerant):
    payment_type: str
    payment_method_name: str | None
    sale_cents: Cents
    refunded_cents: Cents
    net_cents: Cents
    refund_amount_cents: Cents
    unknown_refund_count: Count
    share_percent: Number | None


class LocationFigures(Tolerant):
    location_id: str
    figures: Figures
    share_percent: Number | None


class Bucket(TypedDict):
    """Sums of one local hour at one location."""

    # It is a dictionary with the field names of the API, because a reply can contain tens of
    # thousands of buckets. A model would take fifteen times as long to create.

    locationId: str
    localDate: str
    localHour: LocalHour
    grossCents: Cents
    discountCents: Cents
    refundCents: Cents
    netCents: Cents
    tradingRevenueCents: Cents
    saleCount: Count
    refundCount: Count


class CurrencyFigures(Tolerant):
    currency: str
    figures: Figures
    methods: Array[Method]
    locations: Array[LocationFigures]


class CurrencySummary(CurrencyFigures):
    buckets: Array[Bucket]


class Item(TypedDict):
    """Sums of one article. The contract does not define this record.

    If all fields except the sums are null, it is unknown what was sold.
    """

    # Like a bucket, it is a dictionary: a reply can contain 500 items for each currency.

    goodId: str | None
    variationId: str | None
    name: str | None
    quantityUnit: str | None
    quantityMilli: Milli
    lineCount: Count
    grossCents: Cents
    discountCents: Cents
    saleCents: Cents
    refundedQuantityMilli: Milli
    refundCents: Cents
    netCents: Cents
    sharePercent: Number | None


class TradingDay(Tolerant):
    """Sales of a day at all locations, minus all refunds of these sales.

    The contract does not define this record.
    """

    local_date: str
    trading_revenue_cents: Cents
    sale_count: Count


class Point(Tolerant):
    """The net sales of one hour of a day."""

    cents: Cents


class PulseCurrency(Tolerant):
    """The pulse of a location in one currency.

    ``points`` are the hours of today until now. ``peakPoints`` are the hours of the best day among
    the last four days with today's weekday.
    """

    currency: str
    today_cents: Cents
    yesterday_cents: Cents
    complete: bool
    comparison_complete: bool
    delta_percent: Number | None
    points: Array[Point]
    peak_points: Array[Point]


class Activity(Tolerant):
    weekday: Annotated[int, Field(ge=1, le=7)]
    hour: LocalHour
    order_count: Count


class VenuePulse(Tolerant):
    location_id: str
    activity_complete: bool
    currencies: Array[PulseCurrency]
    activity: Array[Activity]
