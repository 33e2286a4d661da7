"""Completed sales of a company, with their positions."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Row, bindparam, select

from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import SortKey, invalid_cursor
from controlplane.operation.errors import validation_error
from controlplane.operation.paging import Order, listing_of, page
from controlplane.operation.records import record_of
from controlplane.retail import models as wire
from controlplane.retail.limits import CURRENCY, PAGE_SIZE
from controlplane.retail.parts import external, not_found, percentage
from controlplane.storage.merchant.catalog_tables import LineSnapshot
from controlplane.storage.merchant.merchant_tables import Employee, PointOfSale
from controlplane.storage.merchant.sales_tables import Sale, SaleLine

Json = dict[str, Any]
COMPLETED: Final = "completed"
Columns = Row[*tuple[Any, ...]]
"""The selected columns of a sale, or of a line with its snapshot."""

# Statements are built once: to build one takes longer than to execute it. They select columns,
# because rows with columns are made faster than objects.
_SALES: Final = (
    select(
        Sale.position,
        Sale.id,
        Sale.number,
        Sale.ticket_number,
        Sale.status,
        Sale.initiated_at,
        Sale.created_at,
        Sale.updated_at,
        Sale.comment,
        Sale.external_data,
        Sale.discount,
        Sale.taxable_amount,
        Sale.tax,
        Sale.total,
        Sale.has_lines,
        PointOfSale.id.label("point_of_sale_id"),
        Employee.id.label("initiated_by_id"),
    )
    .outerjoin(PointOfSale, PointOfSale.position == Sale.point_of_sale)
    .outerjoin(Employee, Employee.position == Sale.employee)
    .where(Sale.status == COMPLETED, Sale.currency == CURRENCY)
)
_LINES: Final = (
    select(
        SaleLine.sale,
        SaleLine.number,
        SaleLine.quantity,
        SaleLine.unit_price,
        SaleLine.discount,
        SaleLine.total,
        SaleLine.tax,
        LineSnapshot.name,
        LineSnapshot.source,
        LineSnapshot.good_id,
        LineSnapshot.variation_id,
        LineSnapshot.codes,
        LineSnapshot.uom_id,
        LineSnapshot.uom_name,
        LineSnapshot.uom_symbol,
        LineSnapshot.exponent,
        LineSnapshot.fee_item_id,
        LineSnapshot.fee_name,
        LineSnapshot.percentage_milli,
    )
    .join(LineSnapshot, LineSnapshot.position == SaleLine.snapshot)
    .where(SaleLine.sale.in_(bindparam("sales", expanding=True)))
    .order_by(SaleLine.sale, SaleLine.number)
)


def sale(context: RequestContext, parameters: wire.SaleQuery) -> wire.Sale:
    """Return one completed sale. A sale in a currency other than AED is refused with 404, because
    the list of sales omits it.
    """
    try:
        sale_id = UUID(parameters.sale_id)
    except ValueError:
        raise not_found() from None
    query = _SALES.where(
        Sale.id == sale_id,
        Sale.organization_id == context.organization_id,
    )
    row = context.session.execute(query).first()
    if row is None:
        raise not_found()
    return next(_replies(context, [row]))


def sales(context: RequestContext, parameters: wire.SalesQuery) -> wire.SalePage:
    """Return a page of completed sales in AED, the only currency of this API. Sales in other
    currencies are not listed; the figures of the facade and of the agent protocol contain them, by
    currency. Sales with the same sort value are in the order of their creation. The next page
    begins after the last sale of this page, even if that sale has changed.
    """
    name, _, direction = parameters.sort.rpartition("_")
    order = Order(Sale.position, _COLUMNS[name], is_descending=direction == "desc")
    if name == "number":
        order = replace(order, value_at=partial(_number_at, context))
    listing = listing_of(context, "sales", parameters)
    rows, cursor = page(
        context,
        _matching(context, parameters),
        order,
        listing,
        cursor=parameters.cursor,
        limit=PAGE_SIZE,
    )
    return wire.SalePage(cursor=cursor, items=tuple(_replies(context, rows)))


_COLUMNS: Final[dict[str, Any]] = {
    "initiated_at": Sale.initiated_at,
    "created_at": Sale.created_at,
    "updated_at": Sale.updated_at,
    "number": Sale.number,
}


def _matching(context: RequestContext, parameters: wire.SalesQuery) -> Any:
    first, last = parameters.initiated_at_from, parameters.initiated_at_to
    if first is not None and last is not None and last < first:
        raise validation_error({"initiated_at_to": ("must not be before initiated_at_from",)})
    query = _SALES.where(Sale.organization_id == context.organization_id)
    if first is not None:
        query = query.where(Sale.initiated_at >= first)
    if last is not None:
        query = query.where(Sale.initiated_at <= last)
    return query


def _number_at(context: RequestContext, sort_key: SortKey) -> str:
    """Return the number of the sale in a cursor. The cursor is too short to contain the number."""
    number = context.session.scalars(
        select(Sale.number).where(
            Sale.position == sort_key.position, Sale.organization_id == context.organization_id
        )
    ).first()
    if number is None:
        raise invalid_cursor()
    return number


# ---------------------------------------------------------------------------- replies


def _replies(context: RequestContext, rows: Sequence[Columns]) -> Iterator[wire.Sale]:
    """Yield the replies for these sales. Each kind of part is read with one query."""
    lines: defaultdict[int, list[Columns]] = defaultdict(list)
    for line in context.session.execute(_LINES, {"sales": [row.position for row in rows]}):
        lines[line.sale].append(line)
    for row in rows:
        yield record_of(
            wire.Sale,
            row,
            id=str(row.id),
            external_data=external(row.external_data),
            positions=_positions(row, lines[row.position]),
            totals=_totals(row),
        )


def _totals(row: Columns) -> Json:
    return {
        "discount": _money(row.discount) if row.discount else None,
        "taxable_amount": _money(row.taxable_amount),
        "tax": _money(row.tax),
        "total": _money(row.total),
    }


def _positions(sale: Columns, lines: Sequence[Columns]) -> list[Json] | None:
    """Return the positions of a sale, or None if they are unknown or incomplete. Imported lines
    can be incomplete: they can lack the unit or the tax.
    """
    if not sale.has_lines or not all(_is_complete(line) for line in lines):
        return None
    return [_position(str(sale.id), line) for line in lines]


def _is_complete(line: Columns) -> bool:
    unit = (line.uom_id, line.uom_name, line.uom_symbol)
    return None not in (*unit, line.fee_item_id, line.fee_name)


def _position(sale_id: str, line: Columns) -> Json:
    """Return a `wire.Position`."""
    tax = percentage(line.percentage_milli)
    return {
        "id": f"{sale_id}-{line.number}",
        "name": line.name,
        "quantity": {
            "value": line.quantity,
            "exponent": line.exponent,
            "uom_id": str(line.uom_id),
            "uom_name": line.uom_name,
            "uom_symbol": line.uom_symbol,
        },
        "codes": tuple({"type": kind, "value": value} for kind, value in line.codes),
        "catalog_good_id": line.good_id,
        "catalog_good_variation_id": line.variation_id,
        "source": line.source,
        "vat": {
            "fee_item_id": line.fee_item_id,
            "fee_item_name": line.fee_name,
            "fee_item_percentage": tax,
        },
        "unit_price_including_tax": _money(line.unit_price),
        "total_price": _money(line.total),
        "discount_amount": _money(line.discount) if line.discount else None,
        "taxable_amount": _money(line.total - (line.tax or 0)),
        "tax_percentage": tax,
    }


def _money(value: int) -> Json:
    return {"value": value, "currency_code": CURRENCY}
