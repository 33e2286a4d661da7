"""What operations of the retail API share: pages of rows, one refusal, and percentages."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, TypeVar

from sqlalchemy import select

from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import SortKey
from controlplane.operation.errors import Refusal
from controlplane.operation.paging import Order, page
from controlplane.retail.limits import PAGE_SIZE
from controlplane.storage.tables import Base

Row = TypeVar("Row", bound=Base)
MILLI = 1000


def page_of(
    context: RequestContext, table: type[Row], cursor: str | None
) -> tuple[Sequence[Row], str | None]:
    """Return a page of the rows of a company, and the cursor of the next page or None.

    ``table`` has ``position`` and ``organization_id``.
    """
    columns: Any = table
    query = select(table).where(columns.organization_id == context.organization_id)
    listing = (context.organization_id, columns.__tablename__)
    return page(context, query, Order(columns.position), listing, cursor=cursor, limit=PAGE_SIZE)


def page_by_name(
    context: RequestContext, table: type[Row], cursor: str | None
) -> tuple[Sequence[Row], str | None]:
    """Return a page of the rows of a company, ordered by name, and the cursor of the next page.

    ``table`` has ``name`` and ``id``, and few rows per company. The cursor contains the number of
    rows before its page. On the last page, the returned cursor is None.
    """
    columns: Any = table
    listing = (context.organization_id, columns.__tablename__)
    offset = 0 if cursor is None else context.cursors.read(listing, cursor).position
    query = select(table).where(columns.organization_id == context.organization_id)
    query = query.order_by(columns.name, columns.id).offset(offset).limit(PAGE_SIZE + 1)
    rows = list(context.session.scalars(query))
    if len(rows) <= PAGE_SIZE:
        return rows, None
    return rows[:PAGE_SIZE], context.cursors.write(listing, SortKey(0, offset + PAGE_SIZE))


def not_found() -> Refusal:
    return Refusal(HTTPStatus.NOT_FOUND, "not_found", "there is no record with this id")


def percentage(milli: int | None) -> float | None:
    """Return a percentage from thousandths of a percent."""
    return None if milli is None else milli / MILLI
