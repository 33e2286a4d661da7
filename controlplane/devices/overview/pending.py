"""The wishes that wait, as the console shows them."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.devices.overview.records import WishRecord
from controlplane.storage.tables import ApiKey, Device
from controlplane.storage.watch_tables import Wish

OPEN: Final = ("waiting", "asked")


def wishes_of(
    session: Session, devices: Sequence[Device]
) -> dict[tuple[str, UUID], tuple[WishRecord, ...]]:
    """Return what waits for each of these devices, by organization and instance.

    One whose request is under way is shown as that request.
    """
    query = (
        select(Wish, ApiKey.name)
        .outerjoin(ApiKey, ApiKey.id == Wish.key_id)
        .where(
            Wish.instance_id.in_([each.instance_id for each in devices]), Wish.state == "waiting"
        )
        .order_by(Wish.position)
    )
    found: dict[tuple[str, UUID], tuple[WishRecord, ...]] = {}
    for wish, name in session.execute(query):
        record = WishRecord(
            id=wish.id,
            kind=wish.kind,
            until=wish.until,
            created_at=wish.created_at,
            asked_by=name,
        )
        whose = (wish.organization_id, wish.instance_id)
        found[whose] = (*found.get(whose, ()), record)
    return found
