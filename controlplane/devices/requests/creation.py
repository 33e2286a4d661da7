"""Creates requests for devices. The limits are the same for all callers."""

import uuid
from typing import Final, get_args
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from agent.wire.operator_operations import CreateRequestReply, CreateRequestRequest
from agent.wire.vocabulary import Kind
from controlplane.devices.records import PROTOCOL_VERSION
from controlplane.devices.requests import lifecycle
from controlplane.devices.requests.expiry import expire_due
from controlplane.operation.audit_entries import Event, device_subject
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import conflict
from controlplane.operation.records import record_of
from controlplane.storage.tables import Device, Request

KINDS: Final = frozenset(get_args(Kind))
"""The kinds of reports. A device that declares none of them as a capability might use different
names for its capabilities. Therefore every kind can be requested from it."""


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
    refuse_impossible_request(device, kind)
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


def refuse_impossible_request(device: Device, kind: Kind) -> None:
    """Refuse a request that the device cannot fulfil."""
    if device.revoked_at is not None:
        raise conflict("device_revoked", "the device is revoked and receives no requests")
    declared_kinds = KINDS.intersection(device.capabilities)
    if declared_kinds and kind not in declared_kinds:
        raise conflict("kind_unsupported", f"the device does not support reports of kind {kind}")


def _refuse_too_many(session: Session, device: Device, limit: int) -> None:
    query = (
        select(func.count())
        .select_from(Request)
        .where(Request.binding_id == device.binding_id, Request.status.in_(lifecycle.OPEN))
    )
    if session.scalars(query).one() >= limit:
        raise conflict("too_many_open_requests", f"the device already has {limit} open requests")
