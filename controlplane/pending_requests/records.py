"""Messages of the operations for pending requests. The contract does not define them."""

from typing import Annotated

from agent.wire.base import Absent, Array, Exact, LiteralTrue, MaxItems, Timestamp, Tolerant, Uuid
from agent.wire.vocabulary import Kind
from controlplane.devices.overview.records import FilterText

DEVICES_MAX = 500


class CreatePendingRequest(Exact):
    """Exactly one of ``instance_ids``, ``location`` and ``all`` selects the devices."""

    kind: Kind
    until: Timestamp
    instance_ids: Absent[Annotated[tuple[Uuid, ...], MaxItems(DEVICES_MAX)]] = None
    location: Absent[FilterText] = None
    all: Absent[LiteralTrue] = None


class CreatePendingReply(Tolerant):
    """The pending requests of the selected devices, and counts of these devices.

    Attributes:
        pending_requests: ids of the created and the existing pending requests.
        created: number of devices with a new pending request.
        existing: number of devices that already had a pending request of this kind. This request
            now lasts at least until ``until``.
        refused: number of devices that are revoked or do not support the kind.
    """

    pending_requests: Array[Uuid]
    created: int
    existing: int
    refused: int
    until: Timestamp


class CancelPendingRequest(Exact):
    pending_request_id: Uuid


class CancelPendingReply(Tolerant):
    """``state`` is the state after the call. A pending request that had already ended keeps its
    state.
    """

    cancelled: bool
    state: str
