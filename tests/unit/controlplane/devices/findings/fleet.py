"""A simulated fleet whose devices report, change, move, are revoked and stop reporting."""

import json
import random
import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from sqlalchemy.orm import Session

from agent.wire.codec import encode
from agent.wire.device_operations import EnrollRequest
from agent.wire.operator_operations import RevokeRequest
from agent.wire.vocabulary import Kind
from controlplane.devices.findings.judging import stop_counting_old_reports
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.remote_control.enrollment import DescribedDevice, challenge, enroll, revoke
from controlplane.remote_control.submission import Submission, parse_submission, submit_result
from controlplane.settings import Settings
from tests.fixtures.payloads import application_snapshot, small_venue

ORGANIZATION: Final = "org-0001"
BEGIN: Final = datetime(2026, 10, 20, tzinfo=UTC)
DAYS: Final = 35
VENUE: Final = json.loads(encode(small_venue()))
SNAPSHOT: Final = json.loads(encode(application_snapshot()))
Payload = dict[str, Any]
ABSENT: Final = 'Watched scale "Deli": no answer from 192.168.1.90'
"""The limitation of a network report with the fault "scale on the network"."""
FAULTS: Final[dict[str, tuple[Kind, dict[str, Any]]]] = {
    "till stopped": ("application", {"process.pos-till.running": False}),
    "reports wait": ("application", {"agent.outboxReports": 99}),
    "restart": ("application", {"os.pendingReboot": True}),
    "full disk": ("application", {"disk./.freeBytes": 1, "disk./.usedFraction": 0.9999}),
    "service": ("application", {"network.service.reachable": False}),
    "scale": ("application", {"device.Deli.present": False, "device.Deli.kind": "scale"}),
    "kitchen": ("network", {}),
    "paper": ("network", {}),
    "scale on the network": ("network", {}),
}
"""Faults by name: the kind of report that has the fault, and the changed fields of a snapshot.

`_venue` adds the faults of network reports.
"""
HEALTHY: Final = {
    "os.pendingReboot": False, "disk./.freeBytes": 40_000_000_000, "disk./.usedFraction": 0.3,
    "printqueue.kitchen.stuckJobs": 0, "printqueue.kitchen.state": "idle",
    "printqueue.kitchen.reasons": [],
}  # fmt: skip
"""Values of fields in a snapshot without faults. They replace the values of `SNAPSHOT`."""


def payload(kind: Kind, faults: frozenset[str]) -> Payload:
    """Return a report with these faults."""
    return _snapshot(faults) if kind == "application" else _venue(faults)


def _snapshot(faults: frozenset[str]) -> Payload:
    report: Payload = json.loads(json.dumps(SNAPSHOT))
    values = dict(HEALTHY)
    for name in faults:
        values |= FAULTS[name][1] if FAULTS[name][0] == "application" else {}
    fields = {each["key"]: each for each in report["snapshot"]["fields"]}
    for key, value in values.items():
        fields[key] = {"key": key, "source": "test", "status": "available", "value": value}
    report["snapshot"]["fields"] = list(fields.values())
    return report


def _venue(faults: frozenset[str]) -> Payload:
    report: Payload = json.loads(json.dumps(VENUE))
    for printer in report["printers"]:
        is_broken = printer["id"] == "kitchen" and "kitchen" in faults
        if not is_broken:
            reason = "The printer reports: out of paper." if "paper" in faults else ""
            printer |= {"status": "reachable", "matchedEndpoint": None, "reason": reason}
    if "scale on the network" in faults:
        report["limitations"].append(ABSENT)
    return report


@cache
def submission(kind: Kind, faults: frozenset[str], *, is_empty: bool = False) -> Submission:
    """Return a parsed submission, whose ids the caller replaces."""
    body = {
        "bindingId": str(uuid.UUID(int=1)),
        "reportId": str(uuid.UUID(int=1)),
        "kind": kind,
        "outcome": "failed" if is_empty else "completed",
        "report": None if is_empty else payload(kind, faults),
    }
    return parse_submission(json.dumps(body).encode())


@dataclass
class FleetDevice:
    """A device of the fleet. ``kinds`` are the kinds of reports that it sends."""

    name: str
    location: str
    platform: str
    version: str
    kinds: tuple[Kind, ...]
    instance_id: uuid.UUID = field(default_factory=uuid.uuid4)
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    binding_id: uuid.UUID | None = None
    faults: set[str] = field(default_factory=set)
    has_stopped_reporting: bool = False


class Fleet:
    """Calls the service's functions for all devices. Every choice comes from the seed."""

    def __init__(self, seed: int, count: int, locations: int) -> None:
        self.random = random.Random(seed)
        self.now = BEGIN
        self.locations = [f"loc-{number:04}" for number in range(locations)]
        self.devices = [self._device(number) for number in range(count)]

    def _device(self, number: int) -> FleetDevice:
        choose = self.random.choice
        kinds: tuple[Kind, ...] = ("network", "application")
        return FleetDevice(
            f"till-{number:04}",
            choose(self.locations),
            choose(("linux", "windows")),
            choose(("0.1.0", "0.2.0")),
            kinds if number % 7 else choose((("network",), ("application",), ())),
        )

    def context(self, session: Session) -> RequestContext:
        caller = Caller(uuid.UUID(int=7), ORGANIZATION, can_write=True)
        return RequestContext(session, caller, self.now, Settings(), b"k" * 32)

    def enroll(self, session: Session, device: FleetDevice) -> None:
        context = self.context(session)
        public = device.key.public_key().public_bytes(
            Encoding.DER, PublicFormat.SubjectPublicKeyInfo
        )
        body = DescribedDevice(
            instance_id=device.instance_id,
            public_key=public.hex(),
            platform=device.platform,  # type: ignore[arg-type]
            location_id=device.location,
            legacy_install_id=device.name,
            app_version=device.version,
            capabilities=("network", "application"),
        )
        issued = challenge(context, body)
        session.flush()
        signature = device.key.sign(issued.nonce.encode()).hex()
        reply = enroll(
            context, EnrollRequest(challenge_id=issued.challenge_id, signature=signature)
        )
        device.binding_id = reply.binding_id

    def revoke(self, session: Session, device: FleetDevice) -> None:
        revoke(self.context(session), RevokeRequest(instance_id=device.instance_id))
        device.binding_id = None

    def report(self, session: Session, device: FleetDevice, kind: Kind) -> None:
        is_empty = self.random.random() < 0.05
        faults = frozenset(each for each in device.faults if FAULTS[each][0] == kind)
        parsed = submission(kind, faults, is_empty=is_empty)
        ids = {
            "binding_id": device.binding_id,
            "report_id": uuid.UUID(int=self.random.getrandbits(128)),
        }
        parsed = replace(parsed, body=parsed.body.model_copy(update=ids))
        submit_result(self.context(session), parsed)
        session.flush()

    def simulate(self, session: Session, days: int) -> None:
        """Simulate ``days`` days.

        At the end of each day, the service stops counting the findings of old reports.
        """
        for _ in range(days):
            end = self.now + timedelta(days=1)
            self.now += timedelta(hours=10)
            for device in self.devices:
                self._simulate_day(session, device)
            self.now = end - timedelta(seconds=1)
            while stop_counting_old_reports(session, self.now):
                pass
            self.now = end
            session.flush()
            session.expunge_all()

    def _simulate_day(self, session: Session, device: FleetDevice) -> None:
        chance = self.random.random
        if device.binding_id is None:
            if chance() < 0.3:
                self.enroll(session, device)
        elif chance() < 0.01:
            self.revoke(session, device)
        else:
            self._change(session, device)
            self._report_at_random(session, device)

    def _change(self, session: Session, device: FleetDevice) -> None:
        """Change a device at random: its location, version or faults, or whether it reports."""
        chance = self.random.random
        if chance() < 0.02:
            device.location = self.random.choice(self.locations)
            self.enroll(session, device)
        if chance() < 0.03:
            device.version = self.random.choice(("0.2.0", "0.3.0"))
            self.enroll(session, device)
        if chance() < 0.06:
            device.has_stopped_reporting = not device.has_stopped_reporting
        for name in FAULTS:
            if chance() < 0.05:
                device.faults ^= {name}

    def _report_at_random(self, session: Session, device: FleetDevice) -> None:
        for kind in device.kinds:
            if not device.has_stopped_reporting and self.random.random() < 0.25:
                self.now += timedelta(seconds=1)
                self.report(session, device, kind)
