"""Creates two organizations with objects at three locations, for the permission tests."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from agent.wire import codec
from agent.wire.device_operations import EnrollRequest
from agent.wire.operator_operations import CreateRequestRequest
from agent.wire.payloads.history import History, Incident
from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION, create_key
from controlplane.devices.requests.requests import create_request
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.pending_requests.creation import create
from controlplane.pending_requests.records import CreatePendingRequest
from controlplane.remote_control.enrollment import DescribedDevice, challenge, enroll
from controlplane.remote_control.submission import parse_submission, submit_result
from controlplane.retail.limits import CURRENCY
from controlplane.sandbox.loading import load
from controlplane.sandbox.plan import Plan
from controlplane.settings import Settings
from controlplane.storage.merchant.catalog_tables import Category, Good
from controlplane.storage.merchant.merchant_tables import (
    FeeItem,
    Location,
    PaymentMethod,
    UnitOfMeasure,
)
from controlplane.storage.merchant.sales_tables import Sale
from controlplane.storage.monitoring_tables import Alert, AlertSilence
from controlplane.storage.support_tables import SupportLink
from controlplane.storage.tables import Challenge
from controlplane.support.links import make_link
from tests.fixtures.payloads import application_snapshot, small_venue, with_record
from tests.unit.controlplane.permissions.permission_tables import TARGETS, Target

FOREIGN_ORGANIZATION: Final = "org-0002"
ORGANIZATION_AT: Final[Mapping[Target, str]] = {
    "own": DEFAULT_ORGANIZATION,
    "other": DEFAULT_ORGANIZATION,
    "foreign": FOREIGN_ORGANIZATION,
}
CATALOG: Final = (Good, Category, FeeItem, PaymentMethod, UnitOfMeasure)


@dataclass(frozen=True, slots=True)
class EnrolledDevice:
    """The ids of an enrolled device, of its binding, and of a request for it."""

    instance_id: UUID
    binding_id: UUID
    request_id: UUID


@dataclass(frozen=True, slots=True)
class LocationObjects:
    """The objects of a location, and catalog objects of its organization.

    ``link_token`` is the token of a support link of the organization. ``catalog`` maps the name of
    each table in `CATALOG` to the id of one row.
    """

    location_id: str
    organization_id: str
    device: EnrolledDevice
    device_to_revoke: EnrolledDevice
    report_id: UUID
    pending_request_id: UUID
    alert_id: UUID
    silence_id: UUID
    silence_to_end_id: UUID
    sale_id: UUID
    link_token: str
    catalog: Mapping[str, UUID]


@dataclass(frozen=True, slots=True)
class Enroller:
    """Enrols devices as a caller with the write grant for all locations."""

    session: Session
    settings: Settings
    now: datetime

    def context(self, key_id: UUID, organization_id: str) -> RequestContext:
        caller = Caller(key_id, organization_id, can_write=True)
        return RequestContext(self.session, caller, self.now, self.settings, b"k" * 32)

    def enroll_device(self, key_id: UUID, organization_id: str, location_id: str) -> EnrolledDevice:
        """Enrol a device, and create a request for it."""
        context = self.context(key_id, organization_id)
        device = new_device(location_id)
        private = Ed25519PrivateKey.generate()
        reply = challenge(context, codec.validate(device | _public(private), DescribedDevice))
        signature = private.sign(reply.nonce.encode()).hex()
        answer = EnrollRequest(challenge_id=reply.challenge_id, signature=signature)
        binding_id = enroll(context, answer).binding_id
        instance_id = UUID(device["instanceId"])
        body = CreateRequestRequest(instance_id=instance_id, kind="network")
        request_id = create_request(context, body).request_id
        return EnrolledDevice(instance_id, binding_id, request_id)

    def answer_to_challenge(
        self, key_id: UUID, organization_id: str, location_id: str
    ) -> dict[str, Any]:
        """Create a challenge for a new device, as the caller with the API key ``key_id``.

        Return the body of the `enroll` call that answers this challenge.
        """
        private = Ed25519PrivateKey.generate()
        described = codec.validate(new_device(location_id) | _public(private), DescribedDevice)
        reply = challenge(self.context(key_id, organization_id), described)
        self.session.flush()
        row = self.session.get_one(Challenge, reply.challenge_id)
        return {"challengeId": str(row.id), "signature": private.sign(row.nonce.encode()).hex()}


def new_device(location_id: str) -> dict[str, Any]:
    """Return the body of a `challenge` call for a new device with a new key pair."""
    return {
        "instanceId": str(uuid.uuid4()),
        "platform": "linux",
        "locationId": location_id,
        "legacyInstallId": "till-01",
        "appVersion": "0.1.0",
        "capabilities": ["network", "application"],
    } | _public(Ed25519PrivateKey.generate())


def submission(binding_id: UUID, report_id: UUID | None = None) -> dict[str, Any]:
    return {
        "bindingId": str(binding_id),
        "reportId": str(report_id or uuid.uuid4()),
        "kind": "network",
        "outcome": "completed",
        "report": codec.to_plain(small_venue()),
    }


def submission_with_incident(binding_id: UUID, now: datetime) -> dict[str, Any]:
    began_at = now + timedelta(seconds=1)
    record = History(now, (Incident("gateway-silent", began_at, None, 0, "no answer"),))
    return {
        "bindingId": str(binding_id),
        "reportId": str(uuid.uuid4()),
        "kind": "application",
        "outcome": "completed",
        "report": codec.to_plain(with_record(application_snapshot(), record, now)),
    }


def new_link(session: Session, now: datetime, organization_id: str | None = None) -> str:
    """Create a support link. Return its token.

    The link is confirmed for ``organization_id``, unless this argument is None.
    """
    link = make_link(session, channel="chat", requested_by="support", now=now)
    session.flush()
    if organization_id is not None:
        row = session.get_one(SupportLink, link.id)
        row.organization_id, row.confirmed_at, row.confirmed_by = organization_id, now, "test"
    return link.token


def make_organizations(
    session: Session, settings: Settings, now: datetime
) -> dict[Target, LocationObjects]:
    for organization_id, locations in ((DEFAULT_ORGANIZATION, 2), (FOREIGN_ORGANIZATION, 1)):
        plan = Plan(
            locations=locations, days=3, sales_per_day=8, goods=4,
            until=now.date(), organization_id=organization_id,
        )  # fmt: skip
        load(session, plan, now)
    # A sandbox gives its first location the same id in every organization, but the tests require
    # different ids.
    session.execute(
        update(Location)
        .where(Location.organization_id == FOREIGN_ORGANIZATION)
        .values(id="loc-foreign")
    )
    # The retail API lists only sales in this currency.
    session.execute(update(Sale).values(currency=CURRENCY))
    locations = {
        organization_id: list(
            session.scalars(
                select(Location)
                .where(Location.organization_id == organization_id)
                .order_by(Location.position)
            )
        )
        for organization_id in (DEFAULT_ORGANIZATION, FOREIGN_ORGANIZATION)
    }
    objects_by_target: dict[Target, LocationObjects] = {}
    for target in TARGETS:
        location = locations[ORGANIZATION_AT[target]].pop(0)
        objects_by_target[target] = _objects_of_location(Enroller(session, settings, now), location)
    return objects_by_target


def _objects_of_location(enroller: Enroller, location: Location) -> LocationObjects:
    session, organization_id = enroller.session, location.organization_id
    key_id, _ = create_key(
        session,
        name="installer",
        can_write=True,
        locations=(),
        organization_id=organization_id,
        now=enroller.now,
    )
    device, device_to_revoke = (
        enroller.enroll_device(key_id, organization_id, location.id) for _ in range(2)
    )
    context = enroller.context(key_id, organization_id)
    body = json.dumps(submission(device.binding_id)).encode()
    report = submit_result(context, parse_submission(body))
    incident_report = json.dumps(submission_with_incident(device.binding_id, enroller.now)).encode()
    submit_result(context, parse_submission(incident_report))
    pending_request = CreatePendingRequest(
        kind="network", until=enroller.now + timedelta(days=1), instance_ids=(device.instance_id,)
    )
    (pending_request_id,) = create(context, pending_request).pending_requests
    sales = select(Sale.id).where(Sale.location == location.position, Sale.status == "completed")
    return LocationObjects(
        location_id=location.id,
        organization_id=organization_id,
        device=device,
        device_to_revoke=device_to_revoke,
        report_id=report.report_id,
        pending_request_id=pending_request_id,
        alert_id=_new_alert(session, organization_id, location.id, enroller.now),
        silence_id=_new_silence(session, organization_id, location.id, enroller.now),
        silence_to_end_id=_new_silence(session, organization_id, location.id, enroller.now),
        sale_id=session.scalars(sales.order_by(Sale.initiated_at.desc()).limit(1)).one(),
        link_token=new_link(session, enroller.now, organization_id),
        catalog={
            table.__name__: session.scalars(
                select(table.id).where(table.organization_id == organization_id).limit(1)
            ).one()
            for table in CATALOG
        },
    )


def _new_alert(session: Session, organization_id: str, location_id: str, now: datetime) -> UUID:
    alert = Alert(
        id=uuid.uuid4(), organization_id=organization_id, location_id=location_id, instance="",
        condition="site_outage", is_flapping=False, started_at=now, fired_at=now, detail="",
        severity="critical", is_muted=False,
    )  # fmt: skip
    session.add(alert)
    return alert.id


def _new_silence(session: Session, organization_id: str, location_id: str, now: datetime) -> UUID:
    silence = AlertSilence(
        id=uuid.uuid4(), organization_id=organization_id, location_id=location_id, instance="",
        rule="", since=now, until=now + timedelta(days=1), reason="", created_by="",
    )  # fmt: skip
    session.add(silence)
    return silence.id


def _public(private: Ed25519PrivateKey) -> dict[str, str]:
    public = private.public_key()
    return {"publicKey": public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo).hex()}
