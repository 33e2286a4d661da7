"""New sales and refunds, and the amounts that are computed from them. All functions are pure.

Functions raise SaleError for inconsistent input. Integers that refer to rows of other tables, such
as ``location``, are the ``position`` of these rows. Amounts are in minor units of the sale's
currency.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from controlplane.figures.money import pieces, price_of, split, tax_within
from controlplane.figures.records import PaymentType

MIXED: Final = "mixed"
OTHER: Final = "other"
COMPLETED: Final = "completed"
UNKNOWN: Final = "unknown"


class SaleError(ValueError):
    """A sale or refund is inconsistent."""


@dataclass(frozen=True, slots=True)
class SoldArticle:
    """The article of a line: ``position`` of its snapshot, unit, exponent of quantities, and tax.

    ``percentage_milli`` is the tax rate in thousandths of a percent, or None if the article is
    exempt from tax. If ``has_known_tax`` is False, the tax is unknown.
    """

    snapshot: int
    unit: str | None
    exponent: int
    percentage_milli: int | None
    has_known_tax: bool = True


@dataclass(frozen=True, slots=True)
class NewLine:
    """A line of a sale.

    The quantity in units is ``quantity`` × 10^-``article.exponent``. ``unit_price`` is the price of
    one unit. ``discount`` applies to this line only.
    """

    article: SoldArticle
    quantity: int
    unit_price: int
    discount: int = 0


@dataclass(frozen=True, slots=True)
class NewPayment:
    """A payment. If ``method`` is None, the payment method is unknown."""

    method: int | None
    type: PaymentType
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSale:
    """A sale.

    Attributes:
        status: `COMPLETED`, or `UNKNOWN` for an imported order that may not have been completed.
            Figures count such an order only as missing data.
        lines: None if it is unknown what was sold. Then ``total`` is required.
        discount: discount of the whole sale, in addition to the discounts of its lines.
    """

    id: UUID
    organization_id: str
    location: int
    point_of_sale: int
    employee: int | None
    number: str
    ticket_number: str
    status: str = COMPLETED
    initiated_at: datetime
    currency: str
    lines: Sequence[NewLine] | None
    payments: Sequence[NewPayment]
    total: int | None = None
    discount: int = 0
    municipality_fee: int = 0
    tip: int = 0
    comment: str | None = None
    external_data: dict[str, object] | None = None


class LineRow(NamedTuple):
    """The columns of `SaleLine` except the sale. ``share`` is the share of the sale's discount."""

    number: int
    snapshot: int
    quantity: int
    unit_price: int
    gross: int
    discount: int
    share: int
    total: int
    tax: int | None


class SaleMoney(NamedTuple):
    """Sums over the lines of a sale. The fields have the names of the columns of `Sale`."""

    gross: int
    total: int
    taxable_amount: int
    tax: int
    pieces: int = 0
    unknown_tax_lines: int = 0


@dataclass(frozen=True, slots=True)
class NewRefundLine:
    """A refunded line. ``line`` is the number of the sale's line."""

    line: int
    quantity: int
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRefund:
    """A refund.

    Attributes:
        refunded_at: None if the date is unknown.
        goods, fee, tip: the refunded amounts of goods, municipality fee and tip.
        has_components: False if it is unknown how the money divides into goods, fee and tip. Then
            ``goods`` is the whole amount.
        lines: the refunded lines, if they are known. Their amounts add up to ``goods``.
    """

    id: UUID
    sale: int
    refunded_at: datetime | None
    goods: int
    fee: int = 0
    tip: int = 0
    has_components: bool = True
    payment: NewPayment
    employee: int | None = None
    lines: Sequence[NewRefundLine] = field(default=())


def line_rows(sale: NewSale) -> list[LineRow]:
    """Return the rows of a sale's lines, with price, share of the sale's discount, and tax."""
    lines = sale.lines or ()
    gross = [price_of(line.unit_price, line.quantity, line.article.exponent) for line in lines]
    totals = [cost - line.discount for cost, line in zip(gross, lines, strict=True)]
    if any(total < 0 for total in totals) or (lines and sum(totals) < sale.discount):
        raise SaleError("a discount is higher than the amount it applies to")
    shares = split(sale.discount, totals)
    return [
        LineRow(
            number,
            line.article.snapshot,
            line.quantity,
            line.unit_price,
            cost,
            line.discount,
            share,
            total,
            tax_of(line.article, total - share),
        )
        for number, (line, cost, share, total) in enumerate(
            zip(lines, gross, shares, totals, strict=True), 1
        )
    ]


def tax_of(article: SoldArticle, amount: int) -> int | None:
    """Return the tax that is included in ``amount``, or None if it is unknown."""
    if not article.has_known_tax:
        return None
    return 0 if article.percentage_milli is None else tax_within(amount, article.percentage_milli)


def money_of(sale: NewSale, lines: Sequence[LineRow]) -> SaleMoney:
    """Return the sums of a sale. The payments of a completed sale must equal the amount due."""
    if sale.lines is None:
        if sale.total is None:
            raise SaleError("a sale without lines needs its total")
        money = SaleMoney(
            gross=sale.total + sale.discount, total=sale.total, taxable_amount=sale.total, tax=0
        )
    else:
        total = sum(line.total for line in lines) - sale.discount
        tax = sum(line.tax or 0 for line in lines)
        if sale.total not in {None, total}:
            raise SaleError("the total differs from the sum of the lines")
        money = SaleMoney(
            gross=sum(line.gross for line in lines),
            total=total,
            taxable_amount=total - tax,
            tax=tax,
            pieces=sum(pieces(line.quantity, line.article.exponent) for line in sale.lines),
            unknown_tax_lines=sum(line.tax is None for line in lines),
        )
    due = money.total + sale.municipality_fee + sale.tip
    paid = sum(payment.amount for payment in sale.payments)
    if sale.status == COMPLETED and paid != due:
        raise SaleError(f"the payments add up to {paid}, but {due} is due")
    return money


def way_of_payment(payments: Sequence[NewPayment]) -> tuple[str, int | None]:
    """Return one payment type and one payment method for the whole sale.

    The type is mixed if the payments have different types. The method is None if the payments have
    different methods, or if it is unknown.
    """
    types = {payment.type for payment in payments}
    methods = {payment.method for payment in payments}
    kind = MIXED if len(types) > 1 else next(iter(types), OTHER)
    method = next(iter(methods)) if len(methods) == 1 else None
    return kind, method


def refund_tax(
    refund: NewRefund, sale_lines: Mapping[int, LineRow], articles: Mapping[int, SoldArticle]
) -> int | None:
    """Return the tax in the refunded goods, or None if the tax of any of these goods is unknown.

    Args:
        sale_lines: The lines of the sale, by number.
        articles: The articles of these lines, by the position of the snapshot.
    """
    if not refund.has_components or sum(line.amount for line in refund.lines) != refund.goods:
        return None
    taxes = [tax_of(articles[sale_lines[line.line].snapshot], line.amount) for line in refund.lines]
    known_taxes = [tax for tax in taxes if tax is not None]
    return sum(known_taxes) if len(known_taxes) == len(taxes) else None
