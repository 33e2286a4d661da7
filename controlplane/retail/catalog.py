"""Goods, categories, units of measure and fees of a company."""

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

from sqlalchemy import select

from agent.wire.codec import to_plain
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal, validation_error
from controlplane.operation.records import record_of
from controlplane.retail import models as wire
from controlplane.retail.barcodes import mistake_in
from controlplane.retail.limits import CURRENCY
from controlplane.retail.listing import not_found, page_by_name, page_of, percentage
from controlplane.storage.merchant.catalog_tables import (
    CatalogExternalId,
    Category,
    Good,
    GoodCode,
    GoodVariation,
)
from controlplane.storage.merchant.merchant_tables import FeeItem, UnitOfMeasure

log = logging.getLogger(__name__)
VAT: Final = "vat"
DUPLICATE_EXTERNAL_ID: Final = "duplicate_external_data_id"


def good(context: RequestContext, parameters: wire.GoodQuery) -> wire.Good:
    """Return one good with its variations. A price in a currency other than AED is left out."""
    query = select(Good).where(
        Good.id == parameters.good_id, Good.organization_id == context.organization_id
    )
    row = context.session.scalars(query).first()
    if row is None:
        raise not_found()
    return next(_replies(context, [row]))


def goods(context: RequestContext, parameters: wire.PageQuery) -> wire.GoodPage:
    """Return a page of goods, in the order of their creation. A price in a currency other than AED
    is left out.
    """
    rows, cursor = page_of(context, Good, parameters.cursor)
    return wire.GoodPage(cursor=cursor, items=tuple(_replies(context, rows)))


def categories(context: RequestContext, parameters: wire.PageQuery) -> wire.CategoryPage:
    """Return a page of categories, in the order of their creation."""
    rows, cursor = page_of(context, Category, parameters.cursor)
    items = (
        record_of(wire.Category, row, external_data=_external_data(row.external_data))
        for row in rows
    )
    return wire.CategoryPage(cursor=cursor, items=tuple(items))


def uoms(context: RequestContext, parameters: wire.PageQuery) -> wire.UomPage:
    """Return a page of units of measure, ordered by name."""
    rows, cursor = page_by_name(context, UnitOfMeasure, parameters.cursor)
    return wire.UomPage(cursor=cursor, items=tuple(record_of(wire.Uom, row) for row in rows))


def fees(context: RequestContext, parameters: wire.PageQuery) -> wire.FeePage:
    """Return a page of fees, ordered by name. VAT counts as a fee."""
    rows, cursor = page_by_name(context, FeeItem, parameters.cursor)
    items = (
        record_of(wire.FeeItem, row, percentage=percentage(row.percentage_milli)) for row in rows
    )
    return wire.FeePage(cursor=cursor, fee_items=tuple(items))


def create_good(context: RequestContext, given: wire.GivenGood) -> wire.Good:
    """Create a good with its variations. Ids of external data are unique in the company. The
    service accepts a fee that is not VAT, and a code with a wrong check digit, but logs a warning.
    """
    _require_valid(context, given)
    row = Good(
        id=uuid.uuid4(),
        organization_id=context.organization_id,
        name=given.name,
        description=given.description,
        status="active",
        category_id=given.category_id,
        uom_id=given.uom_id,
        fee_item_id=given.vat.fee_item_id,
        external_data=_plain_external_data(given.external_data),
        created_at=context.now,
        updated_at=context.now,
    )
    context.session.add(row)
    external_ids = [(given.external_data, "good", row.id)]
    for number, each in enumerate(given.variations, start=1):
        variation = _variation_row(row.id, number, each)
        context.session.add(variation)
        context.session.add_all(
            GoodCode(variation_id=variation.id, number=index, type=code.type, value=code.value)
            for index, code in enumerate(each.codes, start=1)
        )
        external_ids.append((each.external_data, "variation", variation.id))
    _store_external_ids(context, external_ids)
    context.session.flush()
    for doubt in _doubts_about(context, given):
        log.warning("good %s: %s", row.id, doubt)
    return next(_replies(context, [row]))


# ---------------------------------------------------------------------------- creating


def _require_valid(context: RequestContext, given: wire.GivenGood) -> None:
    """Raise a refusal with all mistakes that the validation of the models does not find."""
    errors: dict[str, tuple[str, ...]] = {}
    for name, table, row_id in (
        ("category_id", Category, given.category_id),
        ("uom_id", UnitOfMeasure, given.uom_id),
        ("vat.fee_item_id", FeeItem, given.vat.fee_item_id),
    ):
        if row_id is not None and not _exists(context, table, row_id):
            errors[name] = ("there is no record with this id",)
    errors.update(_mistakes_in_variations(given.variations))
    if errors:
        raise validation_error(errors)


def _exists(context: RequestContext, table: Any, row_id: UUID) -> bool:
    query = select(table.id).where(
        table.id == row_id, table.organization_id == context.organization_id
    )
    return context.session.execute(query.limit(1)).first() is not None


def _mistakes_in_variations(
    variations: Sequence[wire.GivenVariation],
) -> Iterator[tuple[str, tuple[str, ...]]]:
    for index, variation in enumerate(variations):
        field = f"variations.{index}"
        if len(variations) > 1 and variation.name is None:
            yield f"{field}.name", ("is required if a good has several variations",)
        if len(variations) == 1 and variation.name is not None:
            yield f"{field}.name", ("must be left out if a good has one variation",)


def _doubts_about(context: RequestContext, given: wire.GivenGood) -> Iterator[str]:
    """Yield sentences about values that the contract permits, but that are probably wrong."""
    if not given.name.strip():
        yield "name is blank"
    fee = context.session.get(FeeItem, given.vat.fee_item_id)
    if fee is not None and fee.kind != VAT:
        yield "vat.fee_item_id is the id of a fee that is not VAT"
    for index, variation in enumerate(given.variations):
        field = f"variations[{index}]"
        if variation.name is not None and not variation.name.strip():
            yield f"{field}.name is blank"
        for code_index, code in enumerate(variation.codes):
            if mistake := mistake_in(code.type, code.value):
                yield f"{field}.codes[{code_index}].value {mistake}"


def _variation_row(good_id: UUID, number: int, given: wire.GivenVariation) -> GoodVariation:
    price = given.default_price
    return GoodVariation(
        id=uuid.uuid4(),
        good_id=good_id,
        number=number,
        name=given.name,
        description=given.description,
        status=given.status,
        price=price.value if price else None,
        currency=price.currency_code if price else None,
        image_url=None,
        external_data=_plain_external_data(given.external_data),
    )


def _store_external_ids(
    context: RequestContext, external_ids: Iterable[tuple[wire.ExternalData | None, str, UUID]]
) -> None:
    """Store the external ids. Refuse an id that this body repeats or that is already in use."""
    rows: dict[str, CatalogExternalId] = {}
    for external_data, kind, entity_id in external_ids:
        if external_data is None:
            continue
        if external_data.id in rows:
            raise _existing_external_id(external_data.id)
        rows[external_data.id] = CatalogExternalId(
            organization_id=context.organization_id,
            external_id=external_data.id,
            kind=kind,
            entity_id=entity_id,
        )
    query = select(CatalogExternalId.external_id).where(
        CatalogExternalId.organization_id == context.organization_id,
        CatalogExternalId.external_id.in_(rows),
    )
    if (used_id := context.session.scalars(query).first()) is not None:
        raise _existing_external_id(used_id)
    context.session.add_all(rows.values())


def _existing_external_id(external_id: str) -> Refusal:
    return Refusal(
        HTTPStatus.CONFLICT,
        "existing_entity_conflict",
        f"another category, good or variation has the external_data.id {external_id}",
        reason=DUPLICATE_EXTERNAL_ID,
    )


def _plain_external_data(given: wire.ExternalData | None) -> dict[str, Any] | None:
    return None if given is None else to_plain(given)


# ---------------------------------------------------------------------------- replies


def _replies(context: RequestContext, rows: Sequence[Good]) -> Iterator[wire.Good]:
    """Yield the replies for these goods.

    Their variations, codes, units and fees are read with one query each.
    """
    session = context.session
    variations: defaultdict[UUID, list[GoodVariation]] = defaultdict(list)
    variation_query = select(GoodVariation).where(
        GoodVariation.good_id.in_([row.id for row in rows])
    )
    for variation in session.scalars(variation_query.order_by(GoodVariation.number)):
        variations[variation.good_id].append(variation)
    ids = [each.id for group in variations.values() for each in group]
    codes: defaultdict[UUID, list[GoodCode]] = defaultdict(list)
    code_query = select(GoodCode).where(GoodCode.variation_id.in_(ids))
    for code in session.scalars(code_query.order_by(GoodCode.number)):
        codes[code.variation_id].append(code)
    unit_query = select(UnitOfMeasure).where(UnitOfMeasure.id.in_({row.uom_id for row in rows}))
    uoms = {uom.id: uom for uom in session.scalars(unit_query)}
    fee_query = select(FeeItem).where(FeeItem.id.in_({row.fee_item_id for row in rows}))
    fees = {fee.id: fee for fee in session.scalars(fee_query)}
    for row in rows:
        fee = fees[row.fee_item_id]
        yield record_of(
            wire.Good,
            row,
            external_data=_external_data(row.external_data),
            business_type="regular",
            uom=record_of(wire.Uom, uoms[row.uom_id]),
            vat=wire.Vat(
                fee_item_id=fee.id,
                fee_item_name=fee.name,
                fee_item_percentage=percentage(fee.percentage_milli),
            ),
            variations=tuple(_variation(each, codes[each.id]) for each in variations[row.id]),
        )


def _variation(row: GoodVariation, codes: Sequence[GoodCode]) -> wire.Variation:
    price = row.price if row.currency == CURRENCY else None
    return record_of(
        wire.Variation,
        row,
        external_data=_external_data(row.external_data),
        default_price=None if price is None else wire.Money(value=price, currency_code=CURRENCY),
        codes=tuple(record_of(wire.Code, code) for code in codes),
    )


def _external_data(stored: dict[str, Any] | None) -> wire.ExternalData | None:
    return None if stored is None else wire.ExternalData(**stored)
