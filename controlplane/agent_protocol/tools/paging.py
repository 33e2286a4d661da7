"""Pages of rows: a cursor is good for the tool, dataset and filters that it came from."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_

from agent.wire.base import Exact
from agent.wire.codec import to_plain
from controlplane.agent_protocol.tools.tool import ToolContext, ToolError
from controlplane.operation.cursors import read_cursor, write_cursor
from controlplane.storage.merchant.columns import microseconds, moment_at

DIGEST_BYTES = 7
"""So that it is a positive number of 64 bits."""


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
    digest = _digest(context, listing)
    cursor = getattr(listing, "cursor", None)
    if cursor is not None:
        given, value, position = read_cursor("agents", cursor)
        if given != digest:
            raise ToolError(
                "The cursor is of a call with other arguments. Repeat those that it came from, or"
                " leave cursor out to begin anew."
            )
        query = query.where(_after(order, value, position))
    columns = [each for each in (order.moment, order.position) if each is not None]
    query = query.order_by(*(each.desc() if order.is_newest_first else each for each in columns))
    rows: list[Any] = list(context.session.scalars(query.limit(limit + 1)))
    if len(rows) <= limit:
        return rows, None
    last = rows[limit - 1]
    value = 0 if order.moment is None else microseconds(getattr(last, order.moment.key))
    return rows[:limit], write_cursor("agents", digest, value, last.position)


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


def _digest(context: ToolContext, listing: Exact) -> int:
    told = to_plain(listing)
    told.pop("cursor", None)
    told.pop("limit", None)
    whole = json.dumps(
        [type(listing).__name__, context.caller.organization_id, told], sort_keys=True
    )
    return int.from_bytes(hashlib.sha256(whole.encode()).digest()[:DIGEST_BYTES])
