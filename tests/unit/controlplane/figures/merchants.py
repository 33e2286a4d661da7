"""Random merchants for hypothesis tests. Each has few sales, many of them near a clock change."""

import uuid
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from sqlalchemy import insert
from sqlalchemy.orm import Session

from controlplane.merchant.sales import (
    NewLine,
    NewPayment,
    NewRefund,
    NewRefundLine,
    NewSale,
    SoldArticle,
    line_rows,
)
from controlplane.merchant.writing import add_refund, add_sale
from controlplane.storage.merchant.catalog_tables import LineSnapshot
from controlplane.storage.merchant.merchant_tables import Location, PaymentMethod

ORGANIZATION = "org-0001"
ZONES = (
    "Pacific/Pago_Pago",  # UTC-11
    "Pacific/Kiritimati",  # UTC+14
    "Asia/Kathmandu",  # UTC+5:45
    "Europe/Berlin",  # has days of 23 and 25 hours
    "America/New_York",
    "America/St_Johns",  # changed its clocks at 00:01 until 2011
    "Australia/Lord_Howe",  # changes its clocks by half an hour
    "Pacific/Apia",  # skipped 30 December 2011
    "Asia/Dubai",
    "Mars/Olympus_Mons",  # is no time zone: the service uses UTC
    None,
)
CURRENT_TIMES = (
    datetime(2026, 3, 29, 9, tzinfo=UTC),
    datetime(2026, 10, 25, 22, tzinfo=UTC),
    datetime(2026, 11, 1, 5, 30, tzinfo=UTC),
    datetime(2026, 3, 8, 12, tzinfo=UTC),
    datetime(2026, 4, 5, 3, tzinfo=UTC),
    datetime(2027, 1, 1, 0, 15, tzinfo=UTC),
    datetime(2028, 3, 1, 0, 0, tzinfo=UTC),
    datetime(2011, 12, 31, 11, tzinfo=UTC),
    datetime(2010, 11, 7, 12, tzinfo=UTC),
)
"""Times on or soon after special days: a day with a clock change in some zone, a new year, a leap
day, and a day that a zone skipped.
"""
VARIATION = uuid.UUID("0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10")
ARTICLES: tuple[dict[str, Any], ...] = (
    {"name": "Tea", "uom_symbol": "pcs", "exponent": 0, "percentage_milli": 5_000,
     "variation_id": VARIATION, "good_id": VARIATION},
    {"name": "Tea, renamed", "uom_symbol": "pcs", "exponent": 0, "percentage_milli": 5_000,
     "variation_id": VARIATION, "good_id": VARIATION},
    {"name": "Olives", "uom_symbol": "kg", "exponent": 3, "percentage_milli": 19_000},
    {"name": "Bread", "uom_symbol": "pcs", "exponent": 0, "percentage_milli": None},  # exempt
    {"name": "Import", "uom_symbol": "pcs", "exponent": 0, "percentage_milli": None,
     "fee_item_id": None},  # its tax is unknown
    {"name": "Open amount", "uom_symbol": None, "exponent": 0, "percentage_milli": 5_000},
    {"name": "Juice", "uom_symbol": "l", "exponent": 2, "percentage_milli": 5_000},
)  # fmt: skip
PAYMENT_METHODS = (("cash", "Cash"), ("card", "Visa"), ("card", "Mastercard"), ("wallet", "Pay"),
        ("other", "Voucher"))  # fmt: skip
"""Type and name of each payment method."""


@dataclass(frozen=True)
class RefundPlan:
    """A refund to write. ``method`` is an index in ``PAYMENT_METHODS``."""

    time_after_sale: timedelta | None
    """The time from the sale to the refund; None for a refund without a date."""
    lines: tuple[int, ...] | None
    """Indexes of the refunded lines.

    None if it is not known which lines were refunded, and how the amount divides into goods, fee
    and tip.
    """
    amount_percent: int
    """The refunded percentage of the amounts of ``lines``.

    If there are no lines, it is a percentage of the goods that are not refunded yet.
    """
    method: int


@dataclass(frozen=True)
class SalePlan:
    """A sale to write.

    Amounts are in minor units of ``currency``. The index of the location in ``Merchant.zones`` is
    ``location`` modulo the number of locations. If ``is_resolved`` is False, the sale is an
    imported order that could not be resolved, and has no lines. ``total`` is used only for a sale
    without lines.

    ``methods`` contains an index in ``PAYMENT_METHODS`` for each payment, or None for a payment
    without a method.
    """

    location: int
    time_before_now: timedelta
    """The time from the sale to ``Merchant.now``; negative for a sale after ``now``."""
    currency: str
    is_resolved: bool
    lines: tuple[tuple[int, int, int, int], ...] | None
    """For each line: index in ``ARTICLES``, quantity, unit price, discount in percent.

    None means that the service stores no lines of the sale.
    """
    total: int
    discount_percent: int
    fee: int
    tip: int
    methods: tuple[int | None, ...]
    refunds: tuple[RefundPlan, ...]


@dataclass(frozen=True)
class Merchant:
    """A merchant to write. ``zones`` has one item for each location.

    Item n of ``currencies`` is the currency of location n. Further items are not used.
    """

    now: datetime
    zones: tuple[str | None, ...]
    currencies: tuple[str, ...]
    sales: tuple[SalePlan, ...]


@dataclass(frozen=True)
class Query:
    """A query of figures.

    ``location`` is an index in ``Merchant.zones``. ``types`` are the payment types to count; None
    means all.
    """

    location: int
    period: str
    first: date | None
    last: date | None
    is_for_all_locations: bool
    types: tuple[str, ...] | None

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "locationId": location_id(self.location),
            "period": self.period,
            "locationMode": "all" if self.is_for_all_locations else "single",
        }
        if self.first is not None and self.last is not None:
            body |= {"from": self.first.isoformat(), "to": self.last.isoformat()}
        return body


def location_id(number: int) -> str:
    return f"loc-{number:04}"


time_spans = st.one_of(
    st.integers(-24, 24 * 3).map(lambda half: timedelta(minutes=30 * half)),
    st.integers(0, 60 * 24 * 9).map(lambda minutes: timedelta(minutes=minutes)),
    st.integers(0, 200).map(lambda days: timedelta(days=days, seconds=1)),
)
refund_plans = st.builds(
    RefundPlan,
    time_after_sale=st.none() | time_spans.map(abs),
    lines=st.none() | st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True).map(tuple),
    amount_percent=st.integers(1, 100),
    method=st.integers(0, len(PAYMENT_METHODS) - 1),
)
sale_plans = st.builds(
    SalePlan,
    location=st.integers(0, 2),
    time_before_now=time_spans,
    currency=st.sampled_from(("AED", "AED", "AED", "EUR", "KWD")),
    is_resolved=st.integers(0, 9).map(bool),  # False for one sale in ten
    lines=st.none()
    | st.lists(
        st.tuples(
            st.integers(0, len(ARTICLES) - 1),
            st.integers(1, 4000),
            st.integers(0, 9999),
            st.sampled_from((0, 0, 0, 10, 33, 100)),
        ),
        min_size=1,
        max_size=4,
    ).map(tuple),
    total=st.integers(0, 50_000),
    discount_percent=st.sampled_from((0, 0, 0, 7, 50, 100)),
    fee=st.integers(0, 500),
    tip=st.sampled_from((0, 0, 250)),
    methods=st.lists(
        st.none() | st.integers(0, len(PAYMENT_METHODS) - 1), min_size=1, max_size=3
    ).map(tuple),
    refunds=st.lists(refund_plans, max_size=2).map(tuple),
)
merchants = st.builds(
    Merchant,
    now=st.sampled_from(CURRENT_TIMES),
    zones=st.lists(st.sampled_from(ZONES), min_size=1, max_size=3).map(tuple),
    currencies=st.lists(st.sampled_from(("AED", "EUR")), min_size=3, max_size=3).map(tuple),
    sales=st.lists(sale_plans, max_size=9).map(tuple),
)


@st.composite
def queries(draw: st.DrawFn, merchant: Merchant) -> Query:
    period = draw(st.sampled_from(("today", "yesterday", "last7", "thisMonth", "custom")))
    first = last = None
    if period == "custom":
        last = merchant.now.date() + timedelta(days=draw(st.integers(-10, 2)))
        first = last - timedelta(days=draw(st.integers(0, 91)))
    types = draw(
        st.none()
        | st.lists(
            st.sampled_from(("cash", "card", "wallet", "mixed", "other")), min_size=1, max_size=3
        ).map(tuple)
    )
    return Query(
        draw(st.integers(0, len(merchant.zones) - 1)), period, first, last, draw(st.booleans()),
        types,
    )  # fmt: skip


def write(session: Session, merchant: Merchant) -> None:
    """Write a merchant to the database. Functions of the service write the sales and refunds."""
    locations = [
        session.execute(
            insert(Location)
            .values(id=location_id(number), organization_id=ORGANIZATION, name="", zone=zone,
                    currency=merchant.currencies[number], created_at=merchant.now)
            .returning(Location.position)
        ).scalar_one()
        for number, zone in enumerate(merchant.zones)
    ]  # fmt: skip
    methods = [
        session.execute(
            insert(PaymentMethod)
            .values(id=uuid.uuid4(), organization_id=ORGANIZATION, type=kind, name=name)
            .returning(PaymentMethod.position)
        ).scalar_one()
        for kind, name in PAYMENT_METHODS
    ]
    articles = [_article(session, values) for values in ARTICLES]
    for number, plan in enumerate(merchant.sales):
        _write_sale(session, merchant, plan, number, (locations, methods, articles))


def _article(session: Session, values: dict[str, Any]) -> SoldArticle:
    row = {
        "organization_id": ORGANIZATION, "content_hash": values["name"], "source": "catalog",
        "codes": [], "unit_milli": 10 ** (3 - values["exponent"]), "fee_item_id": uuid.uuid4(),
        **values,
    }  # fmt: skip
    position = session.execute(
        insert(LineSnapshot).values(row).returning(LineSnapshot.position)
    ).scalar_one()
    return SoldArticle(position, row["uom_symbol"], row["exponent"], row["percentage_milli"],
                       has_known_tax=row["fee_item_id"] is not None)  # fmt: skip


def _write_sale(
    session: Session,
    merchant: Merchant,
    plan: SalePlan,
    number: int,
    rows_of_merchant: tuple[list[int], list[int], list[SoldArticle]],
) -> None:
    locations, methods, articles = rows_of_merchant
    at = merchant.now - plan.time_before_now
    lines = None if plan.lines is None or not plan.is_resolved else [
        _line(articles[article], quantity, price, percent)
        for article, quantity, price, percent in plan.lines
    ]  # fmt: skip
    sale = NewSale(
        id=uuid.uuid4(), organization_id=ORGANIZATION,
        location=locations[plan.location % len(locations)], point_of_sale=1, employee=None,
        number=str(number), ticket_number=str(number),
        status="completed" if plan.is_resolved else "unknown", initiated_at=at,
        currency=plan.currency, lines=lines, payments=(), municipality_fee=plan.fee, tip=plan.tip,
        total=plan.total if lines is None else None,
    )  # fmt: skip
    goods = plan.total if lines is None else sum(row.total for row in line_rows(sale))
    discount = goods * plan.discount_percent // 100
    total = goods if lines is None else goods - discount
    payments = _payments(plan, methods, total + plan.fee + plan.tip)
    sale = replace(sale, discount=discount, payments=payments)
    position = add_sale(session, sale, at)
    remaining = [total, plan.fee, plan.tip]
    for refund in plan.refunds if plan.is_resolved else ():
        _write_refund(session, sale, position, refund, (methods, remaining))


def _line(article: SoldArticle, quantity: int, price: int, percent: int) -> NewLine:
    line = NewLine(article, quantity if article.exponent else quantity % 5 + 1, price)
    gross = (2 * price * line.quantity + 10**article.exponent) // (2 * 10**article.exponent)
    return replace(line, discount=gross * percent // 100)


def _payments(plan: SalePlan, methods: list[int], due: int) -> tuple[NewPayment, ...]:
    parts = [due // len(plan.methods)] * len(plan.methods)
    parts[0] += due - sum(parts)
    return tuple(
        NewPayment(None, "other", part) if method is None
        else NewPayment(methods[method], PAYMENT_METHODS[method][0], part)  # type: ignore[arg-type]
        for method, part in zip(plan.methods, parts, strict=True)
    )  # fmt: skip


def _write_refund(
    session: Session,
    sale: NewSale,
    position: int,
    plan: RefundPlan,
    methods_and_remaining: tuple[list[int], list[int]],
) -> None:
    """Write a refund of a part of the goods, fee and tip that are not refunded yet."""
    methods, remaining = methods_and_remaining
    rows = line_rows(sale)
    lines: list[NewRefundLine] = []
    has_components = plan.lines is not None
    if has_components and rows:
        chosen = [row for row in rows if row.number - 1 in (plan.lines or ())]
        lines = [
            NewRefundLine(row.number, row.quantity,
                          (row.total - row.share) * plan.amount_percent // 100)
            for row in chosen
        ]  # fmt: skip
    goods = sum(line.amount for line in lines) or remaining[0] * plan.amount_percent // 100
    if sum(line.amount for line in lines) != goods:
        lines = []
    if goods > remaining[0]:
        return
    fee, tip = (
        (remaining[1], remaining[2]) if has_components and plan.amount_percent == 100 else (0, 0)
    )
    for index, amount in enumerate((goods, fee, tip)):
        remaining[index] -= amount
    timestamp = None if plan.time_after_sale is None else sale.initiated_at + plan.time_after_sale
    kind: Any = PAYMENT_METHODS[plan.method][0]
    refund = NewRefund(
        id=uuid.uuid4(), sale=position, refunded_at=timestamp, goods=goods, fee=fee, tip=tip,
        has_components=has_components, payment=NewPayment(methods[plan.method], kind, 0),
        lines=tuple(lines),
    )  # fmt: skip
    add_refund(session, refund, sale.initiated_at)
