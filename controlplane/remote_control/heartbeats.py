"""Heartbeats of devices. Heartbeats that arrive at the same time are stored in one transaction.

A heartbeat with a new API key can move the device to this key. Without this move, the commands of
the device would be sent to a key that it no longer uses. The device is moved only if its current
key is no longer valid or if the device was offline. Otherwise, a heartbeat with a new key is
answered but changes nothing, so that a second key cannot take over an online device.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sqlalchemy import Row, select, update
from sqlalchemy.orm import Session

from agent.wire.device_operations import HeartbeatReply, HeartbeatRequest
from controlplane.devices.liveness import end_offline_intervals
from controlplane.devices.priority import NOT_ONLINE, mark_online
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal
from controlplane.operation.permissions import callers
from controlplane.settings import Settings
from controlplane.storage.statements import change_rows
from controlplane.storage.tables import Device

DeviceRow = Row[int, UUID, UUID, str, str, datetime, int]
"""The columns of `_devices`: row key, ids of binding, API key, organization and location, last-seen
time, and priority."""


@dataclass(frozen=True, slots=True)
class DeviceHeartbeat:
    caller: Caller
    body: HeartbeatRequest


@dataclass(slots=True)
class HeartbeatBatchResult:
    """The result of a batch.

    Attributes:
        replies: one for each heartbeat, in the same order.
        keys_to_notify: API keys to which a device was moved.
        seen: row keys (``Device.position``) of the devices whose last-seen time was stored, by
            organization id.
        back_online: ids of the organizations with a device that is online again.
    """

    replies: list[HeartbeatReply | Refusal] = field(default_factory=list)
    keys_to_notify: set[UUID] = field(default_factory=set)
    seen: dict[str, set[int]] = field(default_factory=dict)
    back_online: set[str] = field(default_factory=set)


def store_heartbeats(
    session: Session, heartbeats: Sequence[DeviceHeartbeat], now: datetime, settings: Settings
) -> HeartbeatBatchResult:
    """Store a batch of heartbeats."""
    devices = _devices(session, {heartbeat.body.binding_id for heartbeat in heartbeats})
    result = HeartbeatBatchResult()
    positions_by_foreground: dict[bool, list[int]] = {True: [], False: []}
    back_online_positions: list[int] = []
    for heartbeat in heartbeats:
        device = devices.get(heartbeat.body.binding_id)
        if device is None or not heartbeat.caller.may_see(
            device.organization_id, device.location_id
        ):
            result.replies.append(_refusal(session, heartbeat, now, settings))
            continue
        if device.key_id != heartbeat.caller.key_id:
            was_offline = now - device.last_seen_at > settings.online_window
            if not was_offline and _is_valid(session, device.key_id, now):
                result.replies.append(HeartbeatReply(last_seen_at=device.last_seen_at))
                continue
            statement = update(Device).where(Device.position == device.position)
            change_rows(session, statement.values(key_id=heartbeat.caller.key_id))
            result.keys_to_notify.add(heartbeat.caller.key_id)
        if device.last_seen_at < now:
            positions_by_foreground[heartbeat.body.foreground].append(device.position)
            result.seen.setdefault(device.organization_id, set()).add(device.position)
        if device.priority in NOT_ONLINE:
            back_online_positions.append(device.position)
            result.back_online.add(device.organization_id)
        result.replies.append(HeartbeatReply(last_seen_at=max(now, device.last_seen_at)))
    for foreground, positions in positions_by_foreground.items():
        if positions:
            statement = update(Device).where(Device.position.in_(positions))
            change_rows(session, statement.values(last_seen_at=now, foreground=foreground))
    if back_online_positions:
        mark_online(session, back_online_positions)
        end_offline_intervals(session, back_online_positions, now)
    return result


def _devices(session: Session, binding_ids: set[UUID]) -> dict[UUID, DeviceRow]:
    # The rows are locked, so that `update_liveness` does not change a priority after it was read.
    query = select(
        Device.position,
        Device.binding_id,
        Device.key_id,
        Device.organization_id,
        Device.location_id,
        Device.last_seen_at,
        Device.priority,
    ).where(Device.binding_id.in_(binding_ids), Device.revoked_at.is_(None))
    query = query.order_by(Device.position).with_for_update()
    return {row.binding_id: row for row in session.execute(query)}


def _refusal(
    session: Session, heartbeat: DeviceHeartbeat, now: datetime, settings: Settings
) -> Refusal:
    """Return the refusal that any other call with this binding gets."""
    try:
        RequestContext(session, heartbeat.caller, now, settings).bound_device(
            heartbeat.body.binding_id
        )
    except Refusal as refusal:
        return refusal
    raise AssertionError("a device that the caller has access to was refused")


def _is_valid(session: Session, key_id: UUID, now: datetime) -> bool:
    """Return whether the key is valid and has write access."""
    caller = callers(session, (key_id,), now).get(key_id)
    return caller is not None and caller.can_write
