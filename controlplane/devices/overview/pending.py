"""The pending requests of devices, as the console shows them."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.devices.overview.records import PendingRequestRecord
from controlplane.operation.records import record_of
from controlplane.storage.monitoring_tables import PendingRequest
from controlplane.storage.tables import ApiKey, Device

OPEN: Final = ("waiting", "dispatched")


def pending_requests_of(
    session: Session, devices: Sequence[Device]
) -> dict[tuple[str, UUID], tuple[PendingRequestRecord, ...]]:
    """Return the waiting pending requests, by organization and instance.

    A dispatched one is shown as its request.
    """
    query = (
        select(PendingRequest, ApiKey.name)
        .outerjoin(ApiKey, ApiKey.id == PendingRequest.requester_id)
        .where(
            PendingRequest.instance_id.in_([each.instance_id for each in devices]),
            PendingRequest.state == "waiting",
        )
        .order_by(PendingRequest.position)
    )
    by_device: dict[tuple[str, UUID], tuple[PendingRequestRecord, ...]] = {}
    for row, name in session.execute(query):
        record = record_of(PendingRequestRecord, row, requested_by=name)
        key = (row.organization_id, row.instance_id)
        by_device[key] = (*by_device.get(key, ()), record)
    return by_device
