"""From columns to the parts that goods and sales share."""

from typing import Any, cast
from uuid import UUID

from agent.wire.codec import to_plain
from controlplane.retail import models as wire
from controlplane.retail.limits import CURRENCY

MILLI = 1000


def external(stored: dict[str, Any] | None) -> wire.ExternalData | None:
    return None if stored is None else wire.ExternalData(**stored)


def plain_external(given: wire.ExternalData | None) -> dict[str, Any] | None:
    return None if given is None else to_plain(given)


def money(value: int) -> wire.Money:
    return wire.Money(value=value, currency_code=CURRENCY)


def percentage(milli: int | None) -> float | None:
    """Return percent, of thousandths of one."""
    return None if milli is None else milli / MILLI


def vat_of(fee_item_id: UUID, name: str, percentage_milli: int | None) -> wire.Vat:
    return wire.Vat(
        fee_item_id=fee_item_id,
        fee_item_name=name,
        fee_item_percentage=percentage(percentage_milli),
    )


def code_of(kind: str, value: str) -> wire.Code:
    return wire.Code(type=cast("wire.CodeType", kind), value=value)
