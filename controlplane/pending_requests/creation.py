"""Create and cancel pending requests, which wait until an offline device is online."""

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import func, select

from agent.wire.vocabulary import Kind
from controlplane.devices.requests.requests import refusal_of_request
from controlplane.operation.audit_entries import Event, Subject, device_subject
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import (
    conflict,
    foreign_location,
    invalid_field,
    not_found,
)
from controlplane.pending_requests import records
from controlplane.storage.monitoring_tables import OPEN_PENDING, PendingRequest
from controlplane.storage.statements import in_steps
from controlplane.storage.tables import Device

UNTIL_MAX: Final = timedelta(days=92)
"""Longest time from now to the end of a pending request."""


def create(
    context: RequestContext, body: records.CreatePendingRequest
) -> records.CreatePendingReply:
    """Create a pending request for each device.

    A device has at most one pending request of each kind. An existing pending request that ends
    before ``until`` is extended.
    """
    if not context.now < body.until <= context.now + UNTIL_MAX:
        raise invalid_field(
            "until", f"must be in the future, at most {UNTIL_MAX.days} days from now"
        )
    devices = _devices(context, body)
    able_devices = [each for each in devices if refusal_of_request(each, body.kind) is None]
    existing = _existing_requests(context, able_devices, body.kind)
    new_devices = [device for device in able_devices if device.instance_id not in existing]
    # For a location or for all devices, `_devices` returns at most ``pending_requests_max`` + 1
    # devices. If it returns more than ``pending_requests_max`` devices, the call is refused.
    has_too_many_devices = (
        body.instance_ids is None and len(devices) > context.settings.pending_requests_max
    )
    _refuse_too_many(context, len(devices) if has_too_many_devices else len(new_devices))
    rows = [_new_row(context, device, body) for device in new_devices]
    context.session.add_all(rows)
    for row in existing.values():
        row.until = max(row.until, body.until)
    context.changed |= {device.position for device in able_devices}
    if able_devices:
        context.note(_event(able_devices, body))
    return records.CreatePendingReply(
        pending_requests=tuple(pending.id for pending in (*existing.values(), *rows)),
        created=len(rows),
        existing=len(existing),
        refused=len(devices) - len(able_devices),
        until=body.until,
    )


def cancel(
    context: RequestContext, body: records.CancelPendingRequest
) -> records.CancelPendingReply:
    """Cancel a pending request.

    If the pending request was already dispatched, its request is not cancelled: the contract has no
    way to cancel a request.
    """
    query = (
        select(PendingRequest).where(PendingRequest.id == body.pending_request_id).with_for_update()
    )
    row = context.session.scalars(query).first()
    if row is None or row.organization_id != context.caller.organization_id:
        raise not_found("pending_request")
    device = context.device(row.instance_id)
    context.changed.add(device.position)
    if row.state in OPEN_PENDING:
        row.state, row.updated_at = "cancelled", context.now
        context.note(Event("pending_request.cancel", device_subject(device), row.kind))
    return records.CancelPendingReply(cancelled=row.state == "cancelled", state=row.state)


def _devices(context: RequestContext, body: records.CreatePendingRequest) -> Sequence[Device]:
    choices = (body.instance_ids, body.location, body.all)
    if sum(choice is not None for choice in choices) != 1:
        raise invalid_field("instanceIds", "give exactly one of instanceIds, location and all")
    if body.instance_ids is not None:
        # Each device is loaded separately, so that a device to which the caller has no access is
        # refused as in any other call.
        return [context.device(instance_id) for instance_id in dict.fromkeys(body.instance_ids)]
    if body.location is not None and not context.caller.has_access_to(body.location):
        raise foreign_location()
    query = select(Device).where(context.visible(Device), Device.revoked_at.is_(None))
    if body.location is not None:
        query = query.where(Device.location_id == body.location)
    limit = context.settings.pending_requests_max
    return context.session.scalars(query.order_by(Device.position).limit(limit + 1)).all()


def _event(devices: Sequence[Device], body: records.CreatePendingRequest) -> Event:
    detail = f"{body.kind}, until {body.until:%Y-%m-%d %H:%M} UTC"
    kind = "location" if body.location else "devices"
    subject = Subject(kind, body.location or "", f"{len(devices)} devices")
    if len(devices) == 1:
        subject = device_subject(devices[0])
    return Event("pending_request.create", subject, detail)


def _existing_requests(
    context: RequestContext, devices: Sequence[Device], kind: Kind
) -> dict[UUID, PendingRequest]:
    """Return the organization's open pending requests for reports of ``kind``, by instance id."""
    results: dict[UUID, PendingRequest] = {}
    for step in in_steps(devices):
        query = select(PendingRequest).where(
            PendingRequest.organization_id == context.organization_id,
            PendingRequest.instance_id.in_([device.instance_id for device in step]),
            PendingRequest.kind == kind,
            PendingRequest.state.in_(OPEN_PENDING),
        )
        results |= {row.instance_id: row for row in context.session.scalars(query)}
    return results


def _refuse_too_many(context: RequestContext, new_count: int) -> None:
    query = select(func.count()).where(
        PendingRequest.organization_id == context.caller.organization_id,
        PendingRequest.state.in_(OPEN_PENDING),
    )
    limit = context.settings.pending_requests_max
    if context.session.scalars(query).one() + new_count > limit:
        raise conflict(
            "too_many_pending_requests",
            f"an organization can have at most {limit} pending requests. Cancel some first",
        )


def _new_row(
    context: RequestContext, device: Device, body: records.CreatePendingRequest
) -> PendingRequest:
    return PendingRequest(
        id=uuid.uuid4(),
        organization_id=device.organization_id,
        instance_id=device.instance_id,
        kind=body.kind,
        requester_id=context.caller.requester_id,
        state="waiting",
        attempts=0,
        until=body.until,
        created_at=context.now,
        updated_at=context.now,
    )
