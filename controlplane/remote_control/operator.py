"""Request reports from devices and revoke devices."""

import uuid

from agent.wire.operator_operations import (
    CreateRequestReply,
    CreateRequestRequest,
    RevokeReply,
    RevokeRequest,
)
from controlplane.devices.liveness import end_offline_intervals
from controlplane.devices.overview.report_contents import forget_printers_and_findings
from controlplane.devices.priority import Priority
from controlplane.devices.records import PROTOCOL_VERSION
from controlplane.devices.requests.creation import add_request
from controlplane.devices.requests.expiry import expire_binding
from controlplane.operation.audit_entries import Event, device_subject
from controlplane.operation.context import RequestContext
from controlplane.operation.records import record_of
from controlplane.storage.tables import Binding


def create_request(context: RequestContext, body: CreateRequestRequest) -> CreateRequestReply:
    """Request a report from a device. The request is queued until the device acknowledges it."""
    device = context.device(body.instance_id, lock=True)
    request = add_request(context, device, body.kind, uuid.uuid4())
    context.note(Event("request.create", device_subject(device), body.kind))
    context.keys_to_notify.add(device.key_id)
    return record_of(CreateRequestReply, request, version=PROTOCOL_VERSION, request_id=request.id)


def revoke(context: RequestContext, body: RevokeRequest) -> RevokeReply:
    """End the binding of a device and its open requests. A repeated call changes nothing."""
    device = context.device(body.instance_id, lock=True)
    if device.revoked_at is None:
        device.revoked_at = context.now
        device.priority = Priority.REVOKED
        context.is_reordered = True
        binding = context.session.get(Binding, device.binding_id)
        if binding is not None:
            binding.ended_at = context.now
        expire_binding(context.session, context.now, device.binding_id)
        forget_printers_and_findings(context.session, device, context.now)
        end_offline_intervals(context.session, (device.position,), context.now)
        context.note(Event("device.revoke", device_subject(device)))
        context.keys_to_notify.add(device.key_id)
    return RevokeReply(revoked=True)
