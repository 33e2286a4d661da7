"""Pages of rows: in the order in which they came, or of few things by name."""

from collections.abc import Sequence
from typing import Any, TypeVar

from sqlalchemy import select

from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import Place
from controlplane.retail.limits import PAGE_SIZE
from controlplane.storage.tables import Base

Row = TypeVar("Row", bound=Base)


def page_of(
    context: RequestContext, table: type[Row], cursor: str | None
) -> tuple[Sequence[Row], str | None]:
    """Return a company's rows of ``table``, which has ``position`` and ``organization_id``, and
    the cursor of the next page; None where there is none."""
    keyed: Any = table
    listing = (context.organization_id, keyed.__tablename__)
    query: Any = select(table).where(keyed.organization_id == context.organization_id)
    if cursor is not None:
        query = query.where(keyed.position > context.cursors.read(listing, cursor).position)
    query = query.order_by(keyed.position).limit(PAGE_SIZE + 1)
    found: list[Any] = list(context.session.scalars(query))
    if len(found) <= PAGE_SIZE:
        return found, None
    shown = found[:PAGE_SIZE]
    return shown, context.cursors.write(listing, Place(0, shown[-1].position))


def page_by_name(
    context: RequestContext, table: type[Row], cursor: str | None
) -> tuple[Sequence[Row], str | None]:
    """The same of a table with ``name`` and ``id``, of which a company has few: the cursor counts
    what was shown."""
    keyed: Any = table
    listing = (context.organization_id, keyed.__tablename__)
    shown = 0 if cursor is None else context.cursors.read(listing, cursor).position
    query = select(table).where(keyed.organization_id == context.organization_id)
    query = query.order_by(keyed.name, keyed.id).offset(shown).limit(PAGE_SIZE + 1)
    found = list(context.session.scalars(query))
    if len(found) <= PAGE_SIZE:
        return found, None
    return found[:PAGE_SIZE], context.cursors.write(listing, Place(0, shown + PAGE_SIZE))
