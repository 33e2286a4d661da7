"""What the calls about wishes take and answer. They are the service's own, not the contract's."""

from typing import Annotated, Literal

from agent.wire.base import Absent, Array, Exact, MaxItems, Timestamp, Tolerant, Uuid
from agent.wire.vocabulary import Kind
from controlplane.devices.overview.records import FilterText

DEVICES_MAX = 500


class CreatePendingRequest(Exact):
    """Exactly one of ``instance_ids``, ``location`` and ``all`` says of whom."""

    kind: Kind
    until: Timestamp
    instance_ids: Absent[Annotated[tuple[Uuid, ...], MaxItems(DEVICES_MAX)]] = None
    location: Absent[FilterText] = None
    all: Absent[Literal[True]] = None


class CreatePendingReply(Tolerant):
    """``waiting`` counts the devices that a wish waits for from now on, ``known`` those for which
    one of this kind did already, ``refused`` those that are revoked or make no such report."""

    wishes: Array[Uuid]
    waiting: int
    known: int
    refused: int
    until: Timestamp


class CancelPendingRequest(Exact):
    wish_id: Uuid


class CancelPendingReply(Tolerant):
    """``state`` is how the wish had ended, where it had."""

    cancelled: bool
    state: str
