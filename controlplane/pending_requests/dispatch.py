"""Dispatches pending requests: each becomes one request when its device is online again.

```
waiting ──device online──▶ dispatched ──the request ended──▶ done
   │  ▲──the request expired before the device received it──┘
   └──▶ expired (``until`` has passed) | cancelled | revoked (the device or the requester)
```

A device can still answer a request that it received before the request expired. Such a request is
not sent again, because a second report would follow. If a request of the same kind is already open,
its report answers the pending request. The id of a request is derived from the pending request and
the number of previous attempts, so that two processes cannot create the request twice.
"""

import uuid
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import Select, and_, exists, or_, select
from sqlalchemy.orm import Session

from controlplane.devices.requests import lifecycle
from controlplane.devices.requests.requests import add_request, is_open
from controlplane.operation.audit_entries import Credential, Event, actor_of, device_subject, note
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal
from controlplane.operation.permissions import caller_of_requester
from controlplane.settings import Settings
from controlplane.storage.account_tables import Membership
from controlplane.storage.monitoring_tables import OPEN_PENDING, PendingRequest
from controlplane.storage.tables import ApiKey, Device, Request

DISPATCHED_AT_ONCE: Final = 200
"""Maximum number of pending requests in a batch of `dispatch_due`."""


@dataclass(slots=True)
class DispatchResult:
    """What a dispatch changed.

    Attributes:
        keys_to_notify: API keys whose command streams must be notified.
        changed: row keys (``Device.position``) of devices, by organization id.
    """

    keys_to_notify: set[UUID] = field(default_factory=set)
    changed: dict[str, set[int]] = field(default_factory=dict)


def has_due(session: Session, now: datetime, settings: Settings) -> bool:
    """Return whether any pending request is due for `dispatch_due`.

    It is called every few seconds. The query is cheap, because its index is small.
    """
    return session.execute(_select_due(now, settings).limit(1)).first() is not None


def dispatch_due(session: Session, now: datetime, settings: Settings) -> DispatchResult:
    """Dispatch, expire or close a batch of pending requests that are due."""
    query = (
        _select_due(now, settings)
        .order_by(PendingRequest.updated_at, PendingRequest.position)
        .limit(DISPATCHED_AT_ONCE)
    )
    result = DispatchResult()
    for pending, position in session.execute(
        query.with_for_update(of=PendingRequest, skip_locked=True)
    ).all():
        device = session.get(Device, position, with_for_update=True)
        if device is not None:
            _advance(session, pending, device, now, settings)
            if pending.state == "dispatched":
                result.keys_to_notify.add(device.key_id)
            result.changed.setdefault(device.organization_id, set()).add(position)
        pending.updated_at = now
    return result


def _select_due(now: datetime, settings: Settings) -> Select[PendingRequest, int]:
    is_member = exists().where(
        Membership.user_id == PendingRequest.requester_id,
        Membership.organization_id == PendingRequest.organization_id,
    )
    is_over = or_(
        PendingRequest.until <= now,
        Device.revoked_at.is_not(None),
        and_(or_(ApiKey.id.is_(None), ApiKey.revoked_at.is_not(None)), ~is_member),
    )
    is_online = Device.last_seen_at >= now - settings.online_window
    has_open_request = exists().where(
        Request.binding_id == Device.binding_id,
        Request.kind == PendingRequest.kind,
        is_open(now),
    )
    is_request_open = exists().where(Request.id == PendingRequest.request_id, is_open(now))
    return (
        select(PendingRequest, Device.position)
        .join(
            Device,
            and_(
                Device.organization_id == PendingRequest.organization_id,
                Device.instance_id == PendingRequest.instance_id,
            ),
        )
        .outerjoin(ApiKey, ApiKey.id == PendingRequest.requester_id)
        .where(
            PendingRequest.state.in_(OPEN_PENDING),
            or_(
                and_(
                    PendingRequest.state == "waiting",
                    or_(is_over, and_(is_online, ~has_open_request)),
                ),
                and_(PendingRequest.state == "dispatched", ~is_request_open),
            ),
        )
    )


def _advance(
    session: Session, pending: PendingRequest, device: Device, now: datetime, settings: Settings
) -> None:
    """Move a pending request that is due to its next state."""
    if pending.state == "dispatched":
        _close(session, pending, now)
        return
    requester = caller_of_requester(session, pending.requester_id, pending.organization_id, now)
    if (
        device.revoked_at is not None
        or requester is None
        or not requester.can_write
        or not requester.has_access_to(device.location_id)
    ):
        pending.state = "revoked"
    elif pending.until <= now:
        pending.state = "expired"
    elif (request_id := _find_answering_id(session, pending, device)) is not None:
        pending.state, pending.request_id = "done", request_id
    else:
        _dispatch(RequestContext(session, requester, now, settings), pending, device)


def _close(session: Session, pending: PendingRequest, now: datetime) -> None:
    """Close a pending request whose request has ended, or set it to ``waiting`` again."""
    query = select(Request).where(Request.id == pending.request_id)
    request = session.scalars(query).first()
    if request is None or request.received_at is not None or request.status in lifecycle.FINISHED:
        pending.state = "done"
    elif pending.until <= now:
        pending.state = "expired"
    else:
        pending.state, pending.request_id = "waiting", None


def _find_answering_id(session: Session, pending: PendingRequest, device: Device) -> UUID | None:
    """Return the id of a request that answers ``pending``, or None.

    It is a request of the same kind that finished after ``pending`` was created.
    """
    query = select(Request.id).where(
        Request.binding_id == device.binding_id,
        Request.kind == pending.kind,
        Request.status.in_(lifecycle.FINISHED),
        Request.finished_at > pending.created_at,
    )
    return session.scalars(query.limit(1)).first()


def _dispatch(context: RequestContext, pending: PendingRequest, device: Device) -> None:
    request_id = uuid.uuid5(pending.id, str(pending.attempts))
    try:
        add_request(context, device, pending.kind, request_id)
    except Refusal:
        return  # too many requests are open: the next dispatch tries again
    requester = actor_of(context.session, context.caller)
    note(
        context.session,
        replace(requester, credential=Credential("pending_request", pending.id)),
        Event("request.create", device_subject(device), pending.kind),
        organization_id=device.organization_id,
        now=context.now,
    )
    pending.state, pending.request_id = "dispatched", request_id
    pending.attempts += 1
