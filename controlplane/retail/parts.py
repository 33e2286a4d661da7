"""The refusals and the parts of replies that goods and sales share."""

from http import HTTPStatus
from typing import Any, Final, cast
from uuid import UUID

from agent.wire.codec import to_plain
from controlplane.operation.errors import Refusal
from controlplane.retail import models as wire
from controlplane.retail.limits import CURRENCY

MILLI = 1000
DUPLICATE_EXTERNAL_ID: Final = "duplicate_external_data_id"


def not_found() -> Refusal:
    return Refusal(HTTPStatus.NOT_FOUND, "not_found", "there is no record with this id")


def existing_external_id(external_id: str) -> Refusal:
    return Refusal(
        HTTPStatus.CONFLICT,
        "existing_entity_conflict",
        f"another category, good or variation has the external_data.id {external_id}",
        reason=DUPLICATE_EXTERNAL_ID,
    )


def external_data_of(stored: dict[str, Any] | None) -> wire.ExternalData | None:
    return None if stored is None else wire.ExternalData(**stored)


def plain_external_data(given: wire.ExternalData | None) -> dict[str, Any] | None:
    return None if given is None else to_plain(given)


def money(value: int) -> wire.Money:
    return wire.Money(value=value, currency_code=CURRENCY)


def percentage(milli: int | None) -> float | None:
    """Return a percentage from thousandths of a percent."""
    return None if milli is None else milli / MILLI


def vat_of(fee_item_id: UUID, name: str, percentage_milli: int | None) -> wire.Vat:
    return wire.Vat(
        fee_item_id=fee_item_id,
        fee_item_name=name,
        fee_item_percentage=percentage(percentage_milli),
    )


def code_of(kind: str, value: str) -> wire.Code:
    return wire.Code(type=cast("wire.CodeType", kind), value=value)
