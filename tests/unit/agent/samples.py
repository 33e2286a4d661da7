"""Creates records, requests and reports that several tests of the agent use."""

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

from agent import __version__
from agent.config.model import Config
from agent.rules.reports.sealed_report import SealedReport
from agent.rules.reports.sealing import seal
from agent.wire.codec import decode
from agent.wire.device_operations import Command, EnrollmentRecord, SubmitResultRequest
from agent.wire.vocabulary import Kind

NOW = datetime(2026, 11, 20, 19, 0, tzinfo=UTC)
INSTANCE = UUID(int=0x11)
BINDING = UUID(int=0xB1)
OTHER_BINDING = UUID(int=0xB2)
BASE_URL = "http://127.0.0.1:9"


def record(
    instance_id: UUID = INSTANCE, binding_id: UUID = BINDING, location_id: str = "loc-0001"
) -> EnrollmentRecord:
    return EnrollmentRecord(
        instance_id=instance_id,
        location_id=location_id,
        legacy_install_id="install-1",
        app_version=__version__,
        capabilities=("network",),
        binding_id=binding_id,
        organization_id="org-0001",
    )


def command(
    number: int = 1,
    kind: Kind = "network",
    binding_id: UUID = BINDING,
    expires_at: datetime = NOW + timedelta(minutes=10),
) -> Command:
    return Command(
        version=1,
        request_id=UUID(int=number),
        binding_id=binding_id,
        kind=kind,
        expires_at=expires_at,
    )


def report(
    number: int = 1, request_id: UUID | None = None, binding_id: UUID = BINDING
) -> SealedReport:
    """Return the sealed report of a failed collection."""
    request = SubmitResultRequest(
        report_id=UUID(int=0x4E0000 + number),
        binding_id=binding_id,
        kind="network",
        outcome="failed",
        request_id=request_id,
        failure_reason="collection-failed",
    )
    return seal(request, max_bytes=10**6)


def config(base_url: str = BASE_URL, location_id: str = "loc-0001", **sections: object) -> Config:
    service = {
        "base_url": base_url,
        "location_id": location_id,
        "request_timeout_seconds": 1.0,
    }
    return decode(json.dumps({**sections, "service": service}), Config)
