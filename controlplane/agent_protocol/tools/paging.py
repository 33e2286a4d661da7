"""Pages of rows: a cursor is good for the tool, dataset and filters that it came from."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_

from agent.wire.base import Exact
from agent.wire.codec import to_plain
from controlplane.agent_protocol.tools.tool import ToolContext, ToolError
from controlplane.operation.cursors import Place
from controlplane.operation.errors import Refusal
from controlplane.storage.merchant.columns import microseconds, moment_at


@dataclass(frozen=True, slots=True)
class Order:
    """By ``moment`` where there is one, then by ``position``; the greatest first where
    ``is_newest_first``."""

    position: Any
    moment: Any = None
    is_newest_first: bool = True


def page(
    context: ToolContext, query: Select[Any], order: Order, listing: Exact, limit: int
) -> tuple[Sequence[Any], str | None]:
    """Return the rows of a page, and the cursor of the next. ``listing`` are the arguments."""
    name = _name(context, listing)
    cursor = getattr(listing, "cursor", None)
    if cursor is not None:
        try:
            value, position = context.cursors.read(name, cursor)
        except Refusal:
            raise ToolError(
                "The cursor belongs to a call with other arguments, or is older than 24 hours."
                " Leave cursor out to start from the beginning."
            ) from None
        query = query.where(_after(order, value, position))
    columns = [each for each in (order.moment, order.position) if each is not None]
    query = query.order_by(*(each.desc() if order.is_newest_first else each for each in columns))
    rows: list[Any] = list(context.session.scalars(query.limit(limit + 1)))
    if len(rows) <= limit:
        return rows, None
    last = rows[limit - 1]
    value = 0 if order.moment is None else microseconds(getattr(last, order.moment.key))
    return rows[:limit], context.cursors.write(name, Place(value, last.position))


def _after(order: Order, value: int, position: int) -> ColumnElement[bool]:
    def later(column: Any, than: Any) -> ColumnElement[bool]:
        return column < than if order.is_newest_first else column > than  # type: ignore[no-any-return]

    if order.moment is None:
        return later(order.position, position)
    moment = moment_at(value)
    same = and_(order.moment == moment, later(order.position, position))
    # The bound alone, too: it lets the index begin there.
    bound = order.moment <= moment if order.is_newest_first else order.moment >= moment
    return and_(bound, or_(later(order.moment, moment), same))


def _name(context: ToolContext, listing: Exact) -> tuple[str, ...]:
    """Return what a cursor depends on: organization, tool and all arguments except the page's."""
    arguments = to_plain(listing)
    arguments.pop("cursor", None)
    arguments.pop("limit", None)
    return (
        context.caller.organization_id,
        type(listing).__name__,
        json.dumps(arguments, sort_keys=True),
    )
