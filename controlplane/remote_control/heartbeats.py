"""The device says that it lives. Those of a moment are written in one transaction.

A heartbeat under another API key moves the device to that key, because its commands would
otherwise wait at one that it no longer asks with; but only where the present key is revoked or the
device has been silent. While it lives, a second key cannot take it: the heartbeat is answered and
changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sqlalchemy import Row, select, update
from sqlalchemy.orm import Session

from agent.wire.device_operations import HeartbeatReply, HeartbeatRequest
from controlplane.devices.liveness import note_heard
from controlplane.devices.priority import UNHEARD, note_return
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal
from controlplane.operation.permissions import callers
from controlplane.settings import Settings
from controlplane.storage.tables import Device

Known = Row[int, UUID, UUID, str, str, datetime, int]
"""Position, binding, key, organization, location, when it was last seen, and its priority."""


@dataclass(frozen=True, slots=True)
class Beat:
    caller: Caller
    body: HeartbeatRequest


@dataclass(slots=True)
class Beaten:
    """``answers`` are in the order of the heartbeats; ``woken`` are keys that have a new device.

    ``heard`` are the positions of the devices by organization, ``returned`` the organizations that
    had missed one of them.
    """

    answers: list[HeartbeatReply | Refusal] = field(default_factory=list)
    woken: set[UUID] = field(default_factory=set)
    heard: dict[str, set[int]] = field(default_factory=dict)
    returned: set[str] = field(default_factory=set)


def note_heartbeats(
    session: Session, beats: Sequence[Beat], now: datetime, settings: Settings
) -> Beaten:
    """Note that these devices live, and answer each."""
    devices = _devices(session, {beat.body.binding_id for beat in beats})
    beaten = Beaten()
    seen: dict[bool, list[int]] = {True: [], False: []}
    back: list[int] = []
    for beat in beats:
        device = devices.get(beat.body.binding_id)
        if device is None or not _is_its_own(device, beat.caller):
            beaten.answers.append(_refusal(session, beat, now, settings))
            continue
        if device.key_id != beat.caller.key_id:
            is_silent = now - device.last_seen_at > settings.online_window
            if not is_silent and _is_live(session, device.key_id, now):
                beaten.answers.append(HeartbeatReply(last_seen_at=device.last_seen_at))
                continue
            _move(session, device, beat.caller)
            beaten.woken.add(beat.caller.key_id)
        if device.last_seen_at < now:
            seen[beat.body.foreground].append(device.position)
            beaten.heard.setdefault(device.organization_id, set()).add(device.position)
        if device.priority in UNHEARD:
            back.append(device.position)
            beaten.returned.add(device.organization_id)
        beaten.answers.append(HeartbeatReply(last_seen_at=max(now, device.last_seen_at)))
    for foreground, positions in seen.items():
        if positions:
            _see(session, positions, now, foreground=foreground)
    if back:
        note_return(session, back)
        note_heard(session, back, now)
    return beaten


def _devices(session: Session, binding_ids: set[UUID]) -> dict[UUID, Known]:
    query = select(
        Device.position,
        Device.binding_id,
        Device.key_id,
        Device.organization_id,
        Device.location_id,
        Device.last_seen_at,
        Device.priority,
    ).where(Device.binding_id.in_(binding_ids), Device.revoked_at.is_(None))
    return {row.binding_id: row for row in session.execute(query)}


def _is_its_own(device: Known, caller: Caller) -> bool:
    return device.organization_id == caller.organization_id and caller.may_visit(device.location_id)


def _refusal(session: Session, beat: Beat, now: datetime, settings: Settings) -> Refusal:
    """Say why: the same words as for any other call with such a binding."""
    try:
        RequestContext(session, beat.caller, now, settings).bound_device(beat.body.binding_id)
    except Refusal as refusal:
        return refusal
    raise AssertionError("a device that may be seen was refused")


def _is_live(session: Session, key_id: UUID, now: datetime) -> bool:
    caller = callers(session, (key_id,), now).get(key_id)
    return caller is not None and caller.can_write


def _move(session: Session, device: Known, caller: Caller) -> None:
    session.execute(
        update(Device)
        .where(Device.position == device.position)
        .values(key_id=caller.key_id)
        .execution_options(synchronize_session=False)
    )


def _see(session: Session, positions: list[int], now: datetime, *, foreground: bool) -> None:
    session.execute(
        update(Device)
        .where(Device.position.in_(positions))
        .values(last_seen_at=now, foreground=foreground)
        .execution_options(synchronize_session=False)
    )
