"""Delivery of commands to devices, and their acknowledgements."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Row, Select, select
from sqlalchemy.orm import Session

from agent.wire.device_operations import AcknowledgeReply, AcknowledgeRequest, Command
from controlplane.devices.records import command
from controlplane.devices.requests import lifecycle
from controlplane.devices.requests.expiry import expire_due
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal, conflict, not_found
from controlplane.operation.permissions import callers
from controlplane.storage.tables import Device, Request

COMMANDS_MAX = 256
"""Maximum number of commands of an API key in one poll, oldest first. After devices have started
some of these commands, later polls return further ones."""


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
    """Return the keys of devices with requests that were created after ``since``.

    Requests that a device has already acknowledged are left out.
    """
    query = (
        select(Device.key_id)
        .join(Request, Device.binding_id == Request.binding_id)
        .where(Request.status == lifecycle.INITIAL, Request.created_at > since)
        .distinct()
    )
    return tuple(session.scalars(query))
