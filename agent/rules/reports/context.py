"""The parts of a report that are not facts: identity, time and environment."""

from dataclasses import dataclass
from typing import Final

from agent.rules.reports.fit import clip_id
from agent.wire.device_operations import EnrollmentRecord
from agent.wire.payloads.common import Environment, Identity

UNENROLLED: Final = "unenrolled"


@dataclass(frozen=True, slots=True)
class ReportContext:
    """The parts of one report that are not facts. ``finished_at`` is ISO 8601 in UTC."""

    report_id: str
    finished_at: str
    identity: Identity
    environment: Environment


def identity_of(binding: EnrollmentRecord | None, install_id: str | None) -> Identity:
    """Return the machine's identity. Parts that are unknown become "unenrolled".

    Texts are clipped: the contract allows longer texts in an enrollment record than in a report.
    """
    return Identity(
        organization_id=clip_id(binding.organization_id if binding else "", UNENROLLED),
        location_id=clip_id(binding.location_id if binding else "", UNENROLLED),
        install_id=clip_id(install_id or "", UNENROLLED),
    )
