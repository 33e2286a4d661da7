"""Enrollment: a device signs with its key and gets a binding. A revocation ends the binding.

A binding is kept if the same instance enrolls again with the same device key at the same location.
Otherwise (the device was revoked, moved, or has a new key) the old binding ends and a new one
begins.
"""

import secrets
import uuid
from typing import Annotated

from sqlalchemy import select

from agent.wire import limits
from agent.wire.base import Absent, MaxItems
from agent.wire.device_operations import (
    ChallengeReply,
    ChallengeRequest,
    EmptyRequest,
    EnrollmentRecord,
    EnrollRequest,
)
from agent.wire.operator_operations import RevokeReply, RevokeRequest
from agent.wire.text import AppVersion, Capability, LegacyInstallId, LocationId
from controlplane.devices.findings.counting import count_again
from controlplane.devices.liveness import end_offline_intervals
from controlplane.devices.overview.report_contents import (
    forget_contents,
    forget_printers_and_findings,
)
from controlplane.devices.priority import Priority, priority_of
from controlplane.devices.requests.requests import expire_binding
from controlplane.operation.audit_entries import Event, device_subject
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import (
    conflict,
    foreign_location,
    invalid_field,
    not_found,
)
from controlplane.operation.records import record_of
from controlplane.operation.storable_text import STORABLE
from controlplane.remote_control.signatures import PublicKey, is_signed
from controlplane.storage.tables import Binding, Challenge, Device

NONCE_BYTES = 32


class DescribedDevice(ChallengeRequest):
    """The body of `challenge`, with our own rules for the public key and for text."""

    public_key: PublicKey
    location_id: Annotated[LocationId, *STORABLE]
    legacy_install_id: Annotated[LegacyInstallId, *STORABLE]
    app_version: Absent[Annotated[AppVersion, *STORABLE]] = None
    capabilities: Annotated[
        tuple[Annotated[Capability, *STORABLE], ...], MaxItems(limits.CAPABILITIES_MAX)
    ]


def challenge(context: RequestContext, body: DescribedDevice) -> ChallengeReply:
    """Store the description of a device, and return a nonce to sign."""
    if not context.caller.has_access_to(body.location_id):
        raise foreign_location()
    row = Challenge(
        id=uuid.uuid4(),
        nonce=secrets.token_urlsafe(NONCE_BYTES),
        key_id=context.caller.key_id,
        organization_id=context.caller.organization_id,
        expires_at=context.now + context.settings.challenge_ttl,
        **dict(body),
    )
    context.session.add(row)
    return ChallengeReply(challenge_id=row.id, nonce=row.nonce)


def enroll(context: RequestContext, body: EnrollRequest) -> EnrollmentRecord:
    """Bind the device that signed the nonce of a challenge. A repeated call gets the same reply."""
    query = select(Challenge).where(Challenge.id == body.challenge_id).with_for_update()
    row = context.session.scalars(query).first()
    if row is None or row.key_id != context.caller.key_id:
        raise not_found("challenge")
    # After the challenge, the permissions of the key's owner may have changed, or the caller's
    # sign-in session may have switched to a different organization.
    context.require_access(row.organization_id, row.location_id, "challenge")
    if row.signature is not None:
        return _repeated_reply(context, row, body.signature)
    if context.now >= row.expires_at:
        raise conflict("challenge_expired", "the challenge has expired: request a new one")
    if not is_signed(row.public_key, row.nonce, body.signature):
        refusal = invalid_field("signature", "is not the device key's signature of the nonce")
        refusal.code = "invalid_signature"
        raise refusal
    device = _bind(context, row)
    count_again(context.session, (device,), context.now)
    row.signature = body.signature
    row.binding_id = device.binding_id
    return record_of(EnrollmentRecord, device)


def current(context: RequestContext, _body: EmptyRequest) -> EnrollmentRecord | None:
    """Return the newest enrollment that is not revoked, among the devices of the calling API key.
    Return null if there is none. The body is an empty object."""
    query = select(Device).where(
        context.visible(Device),
        Device.key_id == context.caller.key_id,
        Device.revoked_at.is_(None),
    )
    newest = query.order_by(Device.enrolled_at.desc(), Device.position.desc()).limit(1)
    device = context.session.scalars(newest).first()
    return None if device is None else record_of(EnrollmentRecord, device)


def revoke(context: RequestContext, body: RevokeRequest) -> RevokeReply:
    """End the binding of a device, and expire its open requests. A repeated call changes
    nothing."""
    device = context.device(body.instance_id, lock=True)
    if device.revoked_at is None:
        device.revoked_at = context.now
        device.priority = Priority.REVOKED
        context.is_reordered = True
        _end_binding(context, device)
        forget_printers_and_findings(context.session, device, context.now)
        end_offline_intervals(context.session, (device.position,), context.now)
        context.note(Event("device.revoke", device_subject(device)))
        context.keys_to_notify.add(device.key_id)
    return RevokeReply(revoked=True)


def _repeated_reply(context: RequestContext, row: Challenge, signature: str) -> EnrollmentRecord:
    """Return the reply for a challenge that was already answered with the same signature."""
    if row.signature != signature or row.binding_id is None:
        raise conflict("challenge_used", "the challenge was already answered: request a new one")
    return record_of(EnrollmentRecord, context.bound_device(row.binding_id))


def _bind(context: RequestContext, row: Challenge) -> Device:
    query = select(Device).where(
        Device.organization_id == row.organization_id, Device.instance_id == row.instance_id
    )
    device = context.session.scalars(query.with_for_update()).first()
    if device is None:
        device = Device(instance_id=row.instance_id, foreground=False, created_at=context.now)
        context.session.add(device)
        _begin_binding(context, device, row)
    else:
        _refuse_takeover(context, device, row)
        if _needs_new_binding(device, row):
            _end_binding(context, device)
            _begin_binding(context, device, row)
    _store_description(context, device, row)
    context.session.flush()
    end_offline_intervals(context.session, (device.position,), context.now)
    return device


def _needs_new_binding(device: Device, row: Challenge) -> bool:
    return (
        device.revoked_at is not None
        or device.location_id != row.location_id
        or device.public_key != row.public_key
    )


def _refuse_takeover(context: RequestContext, device: Device, row: Challenge) -> None:
    """Refuse a different device key, unless the caller has access to the device's location and the
    device is revoked.
    """
    if device.public_key == row.public_key:
        return
    if not context.caller.has_access_to(device.location_id):
        raise foreign_location()
    if device.revoked_at is None:
        raise conflict(
            "device_key_mismatch",
            "the instance is bound with another device key: revoke the device first",
        )


def _end_binding(context: RequestContext, device: Device) -> None:
    binding = context.session.get(Binding, device.binding_id)
    if binding is not None and binding.ended_at is None:
        binding.ended_at = context.now
        expire_binding(context.session, context.now, binding.id)


def _begin_binding(context: RequestContext, device: Device, row: Challenge) -> None:
    device.binding_id = uuid.uuid4()
    device.revoked_at = None
    context.session.add(
        Binding(
            id=device.binding_id,
            instance_id=row.instance_id,
            organization_id=row.organization_id,
            location_id=row.location_id,
            created_at=context.now,
        )
    )


def _store_description(context: RequestContext, device: Device, row: Challenge) -> None:
    device.key_id = context.caller.key_id
    device.user_id = context.caller.user_id
    device.organization_id = row.organization_id
    is_new = device.position is None  # until the first flush
    if not is_new and device.location_id != row.location_id:
        forget_contents(context.session, device, context.now)
        device.severity = device.network_report = device.application_report = None
    device.location_id = row.location_id
    device.legacy_install_id = row.legacy_install_id
    device.app_version = row.app_version
    device.capabilities = list(row.capabilities)
    device.platform = row.platform
    device.public_key = row.public_key
    device.enrolled_at = context.now
    device.last_seen_at = context.now
    device.priority = priority_of(device.severity)
    context.is_reordered = True
