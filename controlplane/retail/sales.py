"""Completed sales of a company, with their positions."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast
from uuid import UUID

from sqlalchemy import select

from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import SortKey, invalid_cursor
from controlplane.operation.errors import validation_error
from controlplane.operation.paging import Order, listing_of, page
from controlplane.operation.records import record_of
from controlplane.retail import models as wire
from controlplane.retail.limits import CURRENCY, PAGE_SIZE
from controlplane.retail.parts import code_of, external, money, not_found, percentage, vat_of
from controlplane.storage.merchant.catalog_tables import LineSnapshot
from controlplane.storage.merchant.merchant_tables import Employee, PointOfSale
from controlplane.storage.merchant.sales_tables import Sale, SaleLine

COMPLETED: Final = "completed"


def sale(context: RequestContext, parameters: wire.SaleQuery) -> wire.Sale:
    """Return one completed sale. A sale in a currency other than AED is refused with 404, because
    the list of sales omits it.
    """
    try:
        sale_id = UUID(parameters.sale_id)
    except ValueError:
        raise not_found() from None
    query = select(Sale).where(
        Sale.id == sale_id,
        Sale.organization_id == context.organization_id,
        Sale.status == COMPLETED,
        Sale.currency == CURRENCY,
    )
    row = context.session.scalars(query).first()
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
    query = select(Sale).where(
        Sale.organization_id == context.organization_id,
        Sale.status == COMPLETED,
        Sale.currency == CURRENCY,
    )
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


def _replies(context: RequestContext, rows: Sequence[Sale]) -> Iterator[wire.Sale]:
    """Yield the replies for these sales. Each kind of part is read with one query."""
    session = context.session
    lines: defaultdict[int, list[tuple[SaleLine, LineSnapshot]]] = defaultdict(list)
    of_sales = (
        select(SaleLine, LineSnapshot)
        .join(LineSnapshot, LineSnapshot.position == SaleLine.snapshot)
        .where(SaleLine.sale.in_([row.position for row in rows]))
        .order_by(SaleLine.sale, SaleLine.number)
    )
    for line, snapshot in session.execute(of_sales):
        lines[line.sale].append((line, snapshot))
    terminals = _names(context, PointOfSale, {row.point_of_sale for row in rows})
    employees = _names(context, Employee, {row.employee for row in rows if row.employee})
    for row in rows:
        yield record_of(
            wire.Sale,
            row,
            id=str(row.id),
            point_of_sale_id=terminals[row.point_of_sale],
            initiated_by_id=employees.get(row.employee) if row.employee else None,
            external_data=external(row.external_data),
            positions=_positions(row, lines[row.position]),
            totals=_totals(row),
        )


def _names(
    context: RequestContext, table: type[PointOfSale] | type[Employee], positions: set[int]
) -> dict[int, str]:
    query = select(table.position, table.id).where(table.position.in_(positions))
    return {row.position: row.id for row in context.session.execute(query)}


def _totals(row: Sale) -> wire.Totals:
    return wire.Totals(
        discount=money(row.discount) if row.discount else None,
        taxable_amount=money(row.taxable_amount),
        tax=money(row.tax),
        total=money(row.total),
    )


def _positions(
    sale: Sale, lines: Sequence[tuple[SaleLine, LineSnapshot]]
) -> tuple[wire.Position, ...] | None:
    """Return the positions of a sale, or None if they are unknown or incomplete. Imported lines
    can be incomplete: they can lack the unit or the tax.
    """
    if not sale.has_lines:
        return None
    positions = [_position(sale, line, snapshot) for line, snapshot in lines]
    known = tuple(each for each in positions if each is not None)
    return known if len(known) == len(positions) else None


def _position(sale: Sale, line: SaleLine, snapshot: LineSnapshot) -> wire.Position | None:
    if snapshot.uom_id is None or snapshot.uom_name is None or snapshot.uom_symbol is None:
        return None
    if snapshot.fee_item_id is None or snapshot.fee_name is None:
        return None

    return wire.Position(
        id=f"{sale.id}-{line.number}",
        name=snapshot.name,
        quantity=wire.Quantity(
            value=line.quantity,
            exponent=snapshot.exponent,
            uom_id=str(snapshot.uom_id),
            uom_name=snapshot.uom_name,
            uom_symbol=snapshot.uom_symbol,
        ),
        codes=tuple(code_of(kind, value) for kind, value in snapshot.codes),
        catalog_good_id=snapshot.good_id,
        catalog_good_variation_id=snapshot.variation_id,
        source=cast("wire.Source", snapshot.source),
        vat=vat_of(snapshot.fee_item_id, snapshot.fee_name, snapshot.percentage_milli),
        unit_price_including_tax=money(line.unit_price),
        total_price=money(line.total),
        discount_amount=money(line.discount) if line.discount else None,
        taxable_amount=money(line.total - (line.tax or 0)),
        tax_percentage=percentage(snapshot.percentage_milli),
    )
