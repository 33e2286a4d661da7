"""Creates requests for devices, delivers them as commands, and acknowledges and expires them.

The limits are the same for all callers. A request is due once its time of expiry has passed.
Operations that change requests expire the due requests first. A periodic task expires them, too.
Call `expire_due` and `expire_binding` before you load requests: these functions do not update
objects that the database session has already loaded.
"""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Final, get_args
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, Update, and_, case, func, select, update
from sqlalchemy.orm import Session

from agent.wire.device_operations import AcknowledgeReply, AcknowledgeRequest, Command
from agent.wire.operator_operations import CreateRequestReply, CreateRequestRequest
from agent.wire.vocabulary import Kind
from controlplane.devices.records import PROTOCOL_VERSION, command
from controlplane.devices.requests import lifecycle
from controlplane.operation.audit_entries import Event, device_subject
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal, conflict, not_found
from controlplane.operation.permissions import callers
from controlplane.operation.records import record_of
from controlplane.storage.statements import change_rows
from controlplane.storage.tables import Device, Request

KINDS: Final = frozenset(get_args(Kind))
"""The kinds of reports. A device that declares none of them as a capability might use different
names for its capabilities. Therefore every kind can be requested from it."""
COMMANDS_MAX = 256
"""Maximum number of commands of an API key in one poll, oldest first. After devices have started
some of these commands, later polls return further ones."""


def create_request(context: RequestContext, body: CreateRequestRequest) -> CreateRequestReply:
    """Request a report from a device. The request is queued until the device acknowledges it."""
    device = context.device(body.instance_id, lock=True)
    request = add_request(context, device, body.kind, uuid.uuid4())
    context.note(Event("request.create", device_subject(device), body.kind))
    context.keys_to_notify.add(device.key_id)
    return record_of(CreateRequestReply, request, version=PROTOCOL_VERSION, request_id=request.id)


def add_request(context: RequestContext, device: Device, kind: Kind, request_id: UUID) -> Request:
    """Add the caller's request for a device. Raises a refusal if the device cannot get the request.

    The row of the device must be locked.
    """
    refusal = refusal_of_request(device, kind)
    if refusal is not None:
        raise refusal
    expire_due(context.session, context.now, device.instance_id)
    _refuse_too_many(context.session, device, context.settings.open_requests_max)
    request = Request(
        id=request_id,
        instance_id=device.instance_id,
        binding_id=device.binding_id,
        organization_id=device.organization_id,
        location_id=device.location_id,
        requested_by_id=context.caller.user_id,
        kind=kind,
        status=lifecycle.INITIAL,
        expires_at=context.now + context.settings.request_ttl,
        created_at=context.now,
        updated_at=context.now,
    )
    context.session.add(request)
    return request


def refusal_of_request(device: Device, kind: Kind) -> Refusal | None:
    """Return the refusal of a request if the device cannot fulfil it; None if it can."""
    if device.revoked_at is not None:
        return conflict("device_revoked", "the device is revoked and receives no requests")
    declared_kinds = KINDS.intersection(device.capabilities)
    if declared_kinds and kind not in declared_kinds:
        return conflict("kind_unsupported", f"the device does not support reports of kind {kind}")
    return None


def _refuse_too_many(session: Session, device: Device, limit: int) -> None:
    query = (
        select(func.count())
        .select_from(Request)
        .where(Request.binding_id == device.binding_id, Request.status.in_(lifecycle.OPEN))
    )
    if session.scalars(query).one() >= limit:
        raise conflict("too_many_open_requests", f"the device already has {limit} open requests")


def acknowledge(context: RequestContext, body: AcknowledgeRequest) -> AcknowledgeReply:
    """Change the status of a request. A repeated acknowledgement gets the same reply."""
    device = context.bound_device(body.binding_id)
    expire_due(context.session, context.now, device.instance_id)
    request = lock_request(context, body.request_id, body.binding_id)
    try:
        status = lifecycle.move(request.status, lifecycle.acknowledgement_event(body.status))
    except lifecycle.TransitionRefusedError as refused:
        raise refusal_of(refused) from None
    if status != request.status:
        request.status = status
        request.received_at = request.received_at or context.now
        request.started_at = context.now if status == "running" else None
        request.updated_at = context.now
    return AcknowledgeReply(accepted=True, status=body.status)


def lock_request(context: RequestContext, request_id: UUID, binding_id: UUID) -> Request:
    """Lock and return a request of this binding. Raises a refusal if the request is unknown."""
    query = select(Request).where(Request.id == request_id, Request.binding_id == binding_id)
    request = context.session.scalars(query.with_for_update()).first()
    if request is None:
        raise not_found("request")
    return request


def refusal_of(error: lifecycle.TransitionRefusedError) -> Refusal:
    code = "request_expired" if error.status == "expired" else "request_finished"
    return conflict(code, str(error))


def waiting_commands(session: Session, key_id: UUID, now: datetime) -> tuple[Command, ...]:
    """Return the requests that devices of this API key have not started, oldest first."""
    return tuple(waiting_by_key(session, (key_id,), now).get(key_id, ()))


def waiting_by_key(
    session: Session, key_ids: Sequence[UUID], now: datetime
) -> dict[UUID, list[Command]]:
    """Return the waiting commands of each valid key with write access, oldest first.

    The current permissions of the keys apply.
    """
    valid_callers = {
        key_id: caller
        for key_id, caller in callers(session, key_ids, now).items()
        if caller.can_write
    }
    waiting: dict[UUID, list[Command]] = {key_id: [] for key_id in valid_callers}
    for request, key_id, location_id in _read_waiting(session, tuple(valid_callers.values()), now):
        commands, caller = waiting[key_id], valid_callers[key_id]
        # ``key_id`` can also be the id of a user's session. The session may have enrolled devices
        # and then switched to a different organization. It is still the key of these devices, but
        # no longer has access to them.
        is_visible = caller.may_see(request.organization_id, location_id)
        if len(commands) < COMMANDS_MAX and is_visible:
            commands.append(command(request))
    return waiting


def _read_waiting(
    session: Session, valid_callers: Sequence[Caller], now: datetime
) -> Sequence[Row[Request, UUID, str]]:
    limit = COMMANDS_MAX * len(valid_callers)
    query = _select_waiting([caller.key_id for caller in valid_callers], now)
    if len(valid_callers) == 1:
        # The query leaves out the commands that the key may not see, so they do not count towards
        # the limit of the key.
        return session.execute(query.where(valid_callers[0].visible(Device)).limit(limit)).all()
    rows = session.execute(query.limit(limit)).all()
    if len(rows) < limit:
        return rows
    # The limit was reached: one key with very many commands may have displaced the commands of
    # other keys. Therefore each key is queried separately.
    return [row for caller in valid_callers for row in _read_waiting(session, (caller,), now)]


def _select_waiting(key_ids: Sequence[UUID], now: datetime) -> Select[Request, UUID, str]:
    return (
        select(Request, Device.key_id, Device.location_id)
        .join(Device, Device.binding_id == Request.binding_id)
        .where(
            Device.key_id.in_(key_ids),
            Device.revoked_at.is_(None),
            Request.status.in_(lifecycle.NOT_STARTED),
            Request.expires_at > now,
        )
        .order_by(Request.position)
    )


def keys_with_new_requests(session: Session, since: datetime) -> tuple[UUID, ...]:
    """Return the ids of the API keys of devices with requests created after ``since``.

    Requests that a device has already acknowledged are left out.
    """
    query = (
        select(Device.key_id)
        .join(Request, Device.binding_id == Request.binding_id)
        .where(Request.status == lifecycle.INITIAL, Request.created_at > since)
        .distinct()
    )
    return tuple(session.scalars(query))


def is_open(now: datetime) -> ColumnElement[bool]:
    """Return the condition for requests that are open and not due."""
    return and_(Request.status.in_(lifecycle.OPEN), Request.expires_at > now)


def expire_due(session: Session, now: datetime, instance_id: UUID | None = None) -> int:
    """Expire the due requests of one instance, or of all. Return the number of expired requests."""
    statement = update(Request).where(Request.status.in_(lifecycle.OPEN), Request.expires_at <= now)
    if instance_id is not None:
        statement = statement.where(Request.instance_id == instance_id)
    return _expire(session, statement, now)


def expire_binding(session: Session, now: datetime, binding_id: UUID) -> int:
    """Expire the open requests of a binding that ends. Return the number of expired requests."""
    statement = update(Request).where(
        Request.status.in_(lifecycle.OPEN), Request.binding_id == binding_id
    )
    return _expire(session, statement, now)


def _expire(session: Session, statement: Update, now: datetime) -> int:
    target_state = lifecycle.move("queued", "expire")
    # Read operations already show a due request as finished at its expiry.
    finished_at = case((Request.expires_at < now, Request.expires_at), else_=now)
    return change_rows(
        session, statement.values(status=target_state, finished_at=finished_at, updated_at=now)
    )
