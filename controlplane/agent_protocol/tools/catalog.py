"""read_catalog and set_catalog_availability: the goods of a merchant and their availability."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import Field
from sqlalchemy import or_, select

from agent.wire.base import Absent, Array, Exact, Tolerant, Uuid
from agent.wire.text import Utf16Length
from controlplane.agent_protocol.tools.tool import NextCursor, ToolContext, ToolError, tool
from controlplane.operation.errors import not_found
from controlplane.operation.paging import Order, listing_of, page
from controlplane.operation.records import PRICE_MAX, record_of
from controlplane.storage.merchant.catalog_tables import Category, Good, GoodCode, GoodVariation
from controlplane.storage.merchant.merchant_tables import UnitOfMeasure

GOODS_MAX: Final = 100
LIMIT_DEFAULT: Final = 20
NAMED_MAX: Final = 20
"""Maximum number of categories that an error message lists."""
SearchText = Annotated[str, Utf16Length(128, 1)]
Availability = Literal["active", "inactive"]


class ReadCatalogArguments(Exact):
    search: Absent[SearchText] = Field(
        default=None, description="part of a good's or variation's name, or a whole code"
    )
    category: Absent[SearchText] = Field(default=None, description="a category's id or name")
    status: Absent[Literal["active", "inactive", "unknown"]] = None
    cursor: NextCursor = None
    limit: Annotated[int, Field(ge=1, le=GOODS_MAX)] = LIMIT_DEFAULT


class CodeRow(Tolerant):
    type: str
    value: str


class VariationRow(Tolerant):
    variation_id: Uuid
    name: str | None
    status: str
    price_cents: Annotated[int, Field(ge=0, le=PRICE_MAX)] | None = Field(
        description="null: the price is entered at the sale"
    )
    currency: str | None
    codes: Array[CodeRow]


class GoodRow(Tolerant):
    good_id: Uuid
    name: str
    description: str | None
    status: str
    category_id: Uuid | None
    category_name: str | None
    quantity_unit: str | None
    variations: Array[VariationRow]


class Catalog(Tolerant):
    rows: Array[GoodRow]
    next_cursor: str | None


def read_catalog(context: ToolContext, arguments: ReadCatalogArguments) -> tuple[str, Catalog]:
    query = select(Good).where(Good.organization_id == context.caller.organization_id)
    if arguments.status is not None:
        query = query.where(Good.status == arguments.status)
    if arguments.category is not None:
        query = query.where(Good.category_id.in_(_category_ids(context, arguments.category)))
    if arguments.search is not None:
        query = query.where(_matches_search(arguments.search))
    listing = listing_of(context, type(arguments).__name__, arguments)
    order, limit = Order(Good.position), arguments.limit
    rows, cursor = page(context, query, order, listing, cursor=arguments.cursor, limit=limit)
    answer = Catalog(rows=tuple(_rows_of(context, rows)), next_cursor=cursor)
    more = "; more with nextCursor" if cursor else ""
    return f"Goods: {len(answer.rows)}{more}.", answer


def _matches_search(search: str) -> Any:
    good_ids = (
        select(GoodVariation.good_id)
        .outerjoin(GoodCode, GoodCode.variation_id == GoodVariation.id)
        .where(GoodVariation.name.icontains(search, autoescape=True) | (GoodCode.value == search))
    )
    return or_(Good.name.icontains(search, autoescape=True), Good.id.in_(good_ids))


def _category_ids(context: ToolContext, id_or_name: str) -> list[UUID]:
    """Return the ids of the categories with this id or name.

    If there are none, raise ToolError with the names of the existing categories.
    """
    query = select(Category.id, Category.name).where(
        Category.organization_id == context.caller.organization_id
    )
    names: Mapping[UUID, str] = _texts_by_id(context.session, query.order_by(Category.name))
    results = [
        key
        for key, name in names.items()
        if str(key) == id_or_name.lower() or name.casefold() == id_or_name.casefold()
    ]
    if not results:
        known = ", ".join(list(names.values())[:NAMED_MAX])
        raise ToolError(f"There is no category {id_or_name!r}. Categories: {known or 'none'}.")
    return results


def _rows_of(context: ToolContext, rows: Sequence[Good]) -> Iterator[GoodRow]:
    """Yield the goods with their variations, codes, categories and units.

    Each of these four is loaded with one query for all goods.
    """
    session = context.session
    variations = _variations(context, [row.id for row in rows])
    category_ids = {row.category_id for row in rows if row.category_id}
    category_names = _texts_by_id(
        session, select(Category.id, Category.name).where(Category.id.in_(category_ids))
    )
    units = {row.uom_id for row in rows}
    symbols = _texts_by_id(
        session, select(UnitOfMeasure.id, UnitOfMeasure.symbol).where(UnitOfMeasure.id.in_(units))
    )
    for row in rows:
        yield record_of(
            GoodRow,
            row,
            good_id=row.id,
            category_name=category_names.get(row.category_id),
            quantity_unit=symbols.get(row.uom_id),
            variations=tuple(variations[row.id]),
        )


def _texts_by_id(session: Any, query: Any) -> Mapping[Any, str]:
    return {row[0]: row[1] for row in session.execute(query)}


def _variations(context: ToolContext, goods: Sequence[UUID]) -> Mapping[UUID, list[VariationRow]]:
    query = select(GoodVariation).where(GoodVariation.good_id.in_(goods))
    variations = list(context.session.scalars(query.order_by(GoodVariation.number)))
    codes: defaultdict[UUID, list[CodeRow]] = defaultdict(list)
    code_query = select(GoodCode).where(
        GoodCode.variation_id.in_([variation.id for variation in variations])
    )
    for code in context.session.scalars(code_query.order_by(GoodCode.number)):
        codes[code.variation_id].append(record_of(CodeRow, code))
    rows: defaultdict[UUID, list[VariationRow]] = defaultdict(list)
    for variation in variations:
        rows[variation.good_id].append(
            record_of(
                VariationRow,
                variation,
                variation_id=variation.id,
                price_cents=variation.price,
                codes=tuple(codes[variation.id]),
            )
        )
    return rows


# ---------------------------------------------------------------------------- availability


class SetCatalogAvailabilityArguments(Exact):
    good_id: Uuid
    variation_id: Absent[Uuid] = Field(
        default=None, description="one variation of the good; default: the good itself"
    )
    status: Availability


class StatusSnapshot(Tolerant):
    good_status: str
    variation_status: str | None = Field(description="null: variationId was not given")


class AvailabilityChange(Tolerant):
    good_id: Uuid
    variation_id: Uuid | None
    name: str
    changed: bool = Field(description="false: the status was already set")
    before: StatusSnapshot
    after: StatusSnapshot


def set_catalog_availability(
    context: ToolContext, arguments: SetCatalogAvailabilityArguments
) -> tuple[str, AvailabilityChange]:
    if context.caller.locations:
        raise ToolError(
            "The catalog belongs to all locations, and this API key is restricted to some of them."
            " Use an API key for all locations."
        )
    good = _lock_row(
        context,
        select(Good).where(
            Good.id == arguments.good_id, Good.organization_id == context.caller.organization_id
        ),
    )
    variation: GoodVariation | None = None
    if arguments.variation_id is not None:
        variation = _lock_row(
            context,
            select(GoodVariation).where(
                GoodVariation.id == arguments.variation_id, GoodVariation.good_id == good.id
            ),
        )
    target = variation or good
    before = _statuses(good, variation)
    is_changed = target.status != arguments.status
    if is_changed:
        target.status = arguments.status
        good.updated_at = context.now
    answer = AvailabilityChange(
        good_id=good.id,
        variation_id=arguments.variation_id,
        name=good.name,
        changed=is_changed,
        before=before,
        after=_statuses(good, variation),
    )
    return f"{good.name} {'is now' if is_changed else 'was already'} {arguments.status}.", answer


def _lock_row(context: ToolContext, query: Any) -> Any:
    row = context.session.scalars(query.with_for_update()).first()
    if row is None:
        raise not_found("good")
    return row


def _statuses(good: Good, variation: GoodVariation | None) -> StatusSnapshot:
    return StatusSnapshot(
        good_status=good.status, variation_status=variation.status if variation else None
    )


READ_CATALOG = tool(
    read_catalog,
    "Catalog",
    "Pages of goods with their variations, prices, codes and availability; filtered by name or"
    " code, by category and by status.",
)
SET_CATALOG_AVAILABILITY = tool(
    set_catalog_availability,
    "Set availability",
    "Sets the status of a good, or of one of its variations, to active or inactive. Returns the"
    " status before and after. A repeated call changes nothing. Needs an API key with a write"
    " grant for all locations.",
    writes=True,
)
