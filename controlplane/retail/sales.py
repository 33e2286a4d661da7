"""Completed sales of a company, with their lines. The contract calls a line a position."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Row, Select, bindparam, select

from agent.wire import codec
from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import SortKey, invalid_cursor
from controlplane.operation.errors import validation_error
from controlplane.operation.paging import Order, listing_of, page_after, page_statement
from controlplane.retail import models as wire
from controlplane.retail.limits import CURRENCY, PAGE_SIZE
from controlplane.retail.listing import not_found, percentage
from controlplane.storage.merchant.catalog_tables import LineSnapshot
from controlplane.storage.merchant.columns import uuid_text
from controlplane.storage.merchant.merchant_tables import Employee, PointOfSale
from controlplane.storage.merchant.sales_tables import Sale, SaleLine

Json = dict[str, Any]
COMPLETED: Final = "completed"
Columns = Row[*tuple[Any, ...]]
"""The selected columns of a sale, or of a line with its snapshot."""

# Statements are built once, because building one takes longer than executing it. They select
# columns of tables, not of classes, because the ORM would take longer than the database.
_sales: Final = Sale.__table__.c
_lines: Final = SaleLine.__table__.c
_snapshots: Final = LineSnapshot.__table__.c
_points_of_sale: Final = PointOfSale.__table__.c
_employees: Final = Employee.__table__.c
_SALES: Final = (
    select(
        _sales.position,
        uuid_text(_sales.id),
        _sales.number,
        _sales.ticket_number,
        _sales.status,
        _sales.initiated_at,
        _sales.created_at,
        _sales.updated_at,
        _sales.comment,
        _sales.external_data,
        _sales.discount,
        _sales.taxable_amount,
        _sales.tax,
        _sales.total,
        _sales.has_lines,
        _points_of_sale.id.label("point_of_sale_id"),
        _employees.id.label("initiated_by_id"),
    )
    .outerjoin(PointOfSale.__table__, _points_of_sale.position == _sales.point_of_sale)
    .outerjoin(Employee.__table__, _employees.position == _sales.employee)
    .where(_sales.status == COMPLETED, _sales.currency == CURRENCY)
)
_LINES: Final = (
    select(
        _lines.sale,
        _lines.number,
        _lines.quantity,
        _lines.unit_price,
        _lines.discount,
        _lines.total,
        _lines.tax,
        _snapshots.name,
        _snapshots.source,
        uuid_text(_snapshots.good_id),
        uuid_text(_snapshots.variation_id),
        _snapshots.codes,
        uuid_text(_snapshots.uom_id),
        _snapshots.uom_name,
        _snapshots.uom_symbol,
        _snapshots.exponent,
        uuid_text(_snapshots.fee_item_id),
        _snapshots.fee_name,
        _snapshots.percentage_milli,
    )
    .join(LineSnapshot.__table__, _snapshots.position == _lines.snapshot)
    .where(_lines.sale.in_(bindparam("sales", expanding=True)))
    .order_by(_lines.sale, _lines.number)
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
        _sales.id == sale_id,
        _sales.organization_id == context.organization_id,
    )
    row = context.session.execute(query).first()
    if row is None:
        raise not_found()
    return codec.validate(next(_replies(context, [row])), wire.Sale)


def sales(context: RequestContext, parameters: wire.SalesQuery) -> wire.SalePage:
    """Return a page of completed sales in AED, the only currency of this API. Sales in other
    currencies are not listed; the figures of the facade and of the agent protocol contain them, by
    currency. Sales with the same sort value are sorted by their creation, in the same direction.
    The next page begins after the last sale of this page, even if that sale has changed.
    """
    statement, order = _statement(parameters.sort)
    if order.column is _sales.number:
        order = replace(order, value_at=partial(_number_of, context))
    rows, cursor = page_after(
        context,
        _narrow(statement, parameters),
        order,
        listing_of(context, "sales", parameters),
        cursor=parameters.cursor,
        limit=PAGE_SIZE,
        parameters={"organization_id": context.organization_id},
    )
    return wire.SalePage.model_construct(cursor=cursor, items=tuple(_replies(context, rows)))


@cache
def _statement(sort: wire.SaleOrder) -> tuple[Select[*tuple[Any, ...]], Order]:
    """Return the statement for pages of an organization's sales, and their order."""
    name, _, direction = sort.rpartition("_")
    order = Order(_sales.position, _sales[name], is_descending=direction == "desc")
    query = _SALES.where(_sales.organization_id == bindparam("organization_id"))
    return page_statement(query, order, PAGE_SIZE), order


def _narrow(statement: Select[Any], parameters: wire.SalesQuery) -> Select[Any]:
    """Return the statement, limited to the requested times."""
    first, last = parameters.initiated_at_from, parameters.initiated_at_to
    if first is not None and last is not None and last < first:
        raise validation_error({"initiated_at_to": ("must not be before initiated_at_from",)})
    if first is not None:
        statement = statement.where(_sales.initiated_at >= first)
    if last is not None:
        statement = statement.where(_sales.initiated_at <= last)
    return statement


def _number_of(context: RequestContext, sort_key: SortKey) -> str:
    """Return the number of the sale that a cursor names.

    The cursor does not contain the number, because its sort value has only 8 bytes.
    """
    number = context.session.scalars(
        select(Sale.number).where(
            Sale.position == sort_key.position, Sale.organization_id == context.organization_id
        )
    ).first()
    if number is None:
        raise invalid_cursor()
    return number


# ---------------------------------------------------------------------------- replies


def _replies(context: RequestContext, rows: Sequence[Columns]) -> Iterator[Json]:
    """Yield the fields of a `wire.Sale` for each sale. One query reads the lines of all sales.

    A reply is a dictionary, because building a model of each part would take longer than all the
    other work of the call.
    """
    lines: defaultdict[int, list[Columns]] = defaultdict(list)
    sales = {"sales": [row.position for row in rows]}
    for line in context.session.execute(_LINES, sales).all():
        lines[line.sale].append(line)
    for row in rows:
        yield _reply(row, lines[row.position])


def _reply(sale: Columns, lines: Sequence[Columns]) -> Json:
    """Return the fields of a `wire.Sale`."""
    comment = {} if sale.comment is None else {"comment": sale.comment}
    return {
        "id": sale.id,
        "number": sale.number,
        "ticket_number": sale.ticket_number,
        "status": sale.status,
        "initiated_at": sale.initiated_at,
        **comment,
        "point_of_sale_id": sale.point_of_sale_id,
        "initiated_by_id": sale.initiated_by_id,
        "external_data": _external(sale.external_data),
        "positions": _positions(sale, lines),
        "totals": {
            "discount": _money(sale.discount) if sale.discount else None,
            "taxable_amount": _money(sale.taxable_amount),
            "tax": _money(sale.tax),
            "total": _money(sale.total),
        },
        "created_at": sale.created_at,
        "updated_at": sale.updated_at,
    }


def _external(stored: Json | None) -> Json | None:
    """Return the fields of a `wire.ExternalData`, ``id`` first."""
    return None if stored is None else {"id": stored["id"], **stored}


def _positions(sale: Columns, lines: Sequence[Columns]) -> list[Json] | None:
    """Return the positions of a sale, or None if they are unknown or incomplete. Imported lines
    can be incomplete: they can lack the unit or the tax.
    """
    if not sale.has_lines or not all(_is_complete(line) for line in lines):
        return None
    return [_position(sale.id, line) for line in lines]


def _is_complete(line: Columns) -> bool:
    unit = (line.uom_id, line.uom_name, line.uom_symbol)
    return None not in (*unit, line.fee_item_id, line.fee_name)


def _position(sale_id: str, line: Columns) -> Json:
    """Return the fields of a `wire.Position`."""
    tax = percentage(line.percentage_milli)
    vat = {"fee_item_id": line.fee_item_id, "fee_item_name": line.fee_name}
    return {
        "id": f"{sale_id}-{line.number}",
        "name": line.name,
        "quantity": {
            "value": line.quantity,
            "exponent": line.exponent,
            "uom_id": line.uom_id,
            "uom_name": line.uom_name,
            "uom_symbol": line.uom_symbol,
        },
        "codes": [{"type": kind, "value": value} for kind, value in line.codes],
        "catalog_good_id": line.good_id,
        "catalog_good_variation_id": line.variation_id,
        "source": line.source,
        "vat": vat if tax is None else {**vat, "fee_item_percentage": tax},
        "unit_price_including_tax": _money(line.unit_price),
        "total_price": _money(line.total),
        "discount_amount": _money(line.discount) if line.discount else None,
        "taxable_amount": _money(line.total - (line.tax or 0)),
        "tax_percentage": tax,
    }


def _money(value: int) -> Json:
    return {"value": value, "currency_code": CURRENCY}
