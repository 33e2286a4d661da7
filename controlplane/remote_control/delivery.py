"""The device receives its commands and says how far it is."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from agent.wire.device_operations import AcknowledgeReply, AcknowledgeRequest, Command
from controlplane.accounts.api_keys import Caller
from controlplane.http.errors import Refusal, conflict, not_found
from controlplane.remote_control import lifecycle
from controlplane.remote_control.context import RequestContext
from controlplane.remote_control.expiry import expire_due
from controlplane.remote_control.records import command
from controlplane.storage.tables import Device, Request

COMMANDS_MAX = 256
"""Commands given at once, oldest first; the next look brings the others."""


def acknowledge(context: RequestContext, body: AcknowledgeRequest) -> AcknowledgeReply:
    """Move the request on. The reply says what was sent, also when it was said before."""
    device = context.bound_device(body.binding_id)
    expire_due(context.session, context.now, device.instance_id)
    request = request_of(context, body.request_id, body.binding_id)
    try:
        status = lifecycle.move(request.status, lifecycle.acknowledgement(body.status))
    except lifecycle.TransitionRefusedError as refused:
        raise refusal_of(refused) from None
    if status != request.status:
        request.status = status
        request.received_at = request.received_at or context.now
        request.started_at = context.now if status == "running" else None
        request.updated_at = context.now
    return AcknowledgeReply(accepted=True, status=body.status)


def request_of(context: RequestContext, request_id: UUID, binding_id: UUID) -> Request:
    """Return the request, locked, if it belongs to the binding."""
    query = select(Request).where(Request.id == request_id, Request.binding_id == binding_id)
    request = context.session.scalars(query.with_for_update()).first()
    if request is None:
        raise not_found("request")
    return request


def refusal_of(refused: lifecycle.TransitionRefusedError) -> Refusal:
    code = "request_expired" if refused.status == "expired" else "request_finished"
    return conflict(code, str(refused))


def waiting_commands(
    session: Session, caller: Caller, now: datetime, limit: int = COMMANDS_MAX
) -> tuple[Command, ...]:
    """Return what the devices of this API key have not begun, oldest first."""
    query = (
        select(Request)
        .join(Device, Device.binding_id == Request.binding_id)
        .where(
            Device.key_id == caller.key_id,
            Device.revoked_at.is_(None),
            Request.status.in_(lifecycle.DELIVERED),
            Request.expires_at > now,
        )
        .order_by(Request.position)
        .limit(limit)
    )
    if caller.locations:
        query = query.where(Device.location_id.in_(caller.locations))
    return tuple(command(request) for request in session.scalars(query))
