"""The wishes that wait, as the console shows them."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.devices.overview.records import PendingRequestRecord
from controlplane.storage.tables import ApiKey, Device
from controlplane.storage.watch_tables import PendingRequest

OPEN: Final = ("waiting", "asked")


def pending_requests_of(
    session: Session, devices: Sequence[Device]
) -> dict[tuple[str, UUID], tuple[PendingRequestRecord, ...]]:
    """Return what waits for each of these devices, by organization and instance.

    One whose request is under way is shown as that request.
    """
    query = (
        select(PendingRequest, ApiKey.name)
        .outerjoin(ApiKey, ApiKey.id == PendingRequest.key_id)
        .where(
            PendingRequest.instance_id.in_([each.instance_id for each in devices]),
            PendingRequest.state == "waiting",
        )
        .order_by(PendingRequest.position)
    )
    found: dict[tuple[str, UUID], tuple[PendingRequestRecord, ...]] = {}
    for wish, name in session.execute(query):
        record = PendingRequestRecord(
            id=wish.id,
            kind=wish.kind,
            until=wish.until,
            created_at=wish.created_at,
            asked_by=name,
        )
        whose = (wish.organization_id, wish.instance_id)
        found[whose] = (*found.get(whose, ()), record)
    return found
