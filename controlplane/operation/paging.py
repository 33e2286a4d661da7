"""Reads pages of rows. The cursor of a page names the last row of the page before."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_

from agent.wire.base import Model
from agent.wire.codec import to_plain
from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import SortKey, invalid_cursor
from controlplane.storage.merchant.columns import from_microseconds, microseconds


@dataclass(frozen=True, slots=True)
class Order:
    """The order of a listing: by ``column`` if there is one, then by ``position``.

    Attributes:
        value_at: returns the value of ``column`` in the row that a cursor names. By default, the
            value is a time, and the cursor contains it in microseconds.
    """

    position: Any
    column: Any = None
    is_descending: bool = False
    value_at: Callable[[SortKey], Any] = lambda sort_key: from_microseconds(sort_key.value)

    def after(self, sort_key: SortKey) -> ColumnElement[bool]:
        """Return the condition for the rows after ``sort_key``. Raises ``invalid_cursor``."""
        if self.column is None:
            return self._beyond(self.position, sort_key.position)
        try:
            value = self.value_at(sort_key)
        except OverflowError:  # the time in the cursor is out of range
            raise invalid_cursor() from None
        is_same = and_(self.column == value, self._beyond(self.position, sort_key.position))
        # The condition in `or_` implies the bound, so the bound does not change the result. The
        # bound lets the database start at the right position of the index.
        bound = self.column <= value if self.is_descending else self.column >= value
        return and_(bound, or_(self._beyond(self.column, value), is_same))

    def sort_key_of(self, row: Any) -> SortKey:
        value = None if self.column is None else getattr(row, self.column.key)
        return SortKey(microseconds(value) if isinstance(value, datetime) else 0, row.position)

    def _beyond(self, column: Any, value: Any) -> ColumnElement[bool]:
        return column < value if self.is_descending else column > value  # type: ignore[no-any-return]


def listing_of(context: RequestContext, name: str, arguments: Model) -> tuple[str, ...]:
    """Return what must be the same on each page: the organization, the name, and the arguments.

    The cursor and the page size (``limit`` or ``size``) are left out, because they can differ from
    page to page.
    """
    plain = to_plain(arguments)
    for left_out in ("cursor", "limit", "size"):
        plain.pop(left_out, None)
    return (context.caller.organization_id, name, json.dumps(plain, sort_keys=True))


def page(
    context: RequestContext,
    query: Select[Any],
    order: Order,
    listing: tuple[str, ...],
    *,
    cursor: str | None,
    limit: int,
) -> tuple[Sequence[Any], str | None]:
    """Return the rows of a page, and the cursor of the next page or None.

    Args:
        query: selects one ORM class, or columns. The columns must include those of ``order``.
        listing: the values that must be the same on each page. The first value is the organization.
    """
    first_page = page_statement(query, order, limit)
    return page_after(context, first_page, order, listing, cursor=cursor, limit=limit)


def page_statement(query: Select[Any], order: Order, limit: int) -> Select[Any]:
    """Return the statement for pages in this order, without the condition of a cursor.

    It selects one row more than a page has, which shows whether there is a next page.
    """
    columns = [column for column in (order.column, order.position) if column is not None]
    query = query.order_by(
        *(column.desc() if order.is_descending else column for column in columns)
    )
    return query.limit(limit + 1)


def page_after(
    context: RequestContext,
    statement: Select[Any],
    order: Order,
    listing: tuple[str, ...],
    *,
    cursor: str | None,
    limit: int,
    parameters: Mapping[str, Any] | None = None,
) -> tuple[Sequence[Any], str | None]:
    """Return what `page` returns: the page after ``cursor``, or the first page without a cursor.

    Args:
        statement: a result of `page_statement`, which can be built once for many calls.
        parameters: the values of the bound parameters of ``statement``.
    """
    if cursor is not None:
        statement = statement.where(order.after(context.cursors.read(listing, cursor)))
    result = context.session.execute(statement, parameters)
    rows: Sequence[Any] = result.scalars().all() if len(result.keys()) == 1 else result.all()
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], context.cursors.write(listing, order.sort_key_of(rows[limit - 1]))
