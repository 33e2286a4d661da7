"""The parts of a report that are not facts: identity, time and environment."""

from dataclasses import dataclass
from typing import Final

from agent.rules.reports.fit import clip_id
from agent.wire.payloads.common import Environment, Identity

UNENROLLED: Final = "unenrolled"
PROTOCOL_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class ReportContext:
    """``finished_at`` is ISO 8601 in UTC."""

    report_id: str
    finished_at: str
    identity: Identity
    environment: Environment


def environment_of(
    *,
    agent_version: str,
    system: str,
    release: str,
    arch: str,
    os_platform: str,
    capabilities: tuple[str, ...],
) -> Environment:
    """Describe this build on this machine; ``os_platform`` is as in ``sys.platform``."""
    return Environment(
        platform="native",
        user_agent=f"venue-agent/{agent_version} ({system} {release}; {arch})",
        os_platform=os_platform,
        native_app_version=agent_version,
        native_protocol_version=PROTOCOL_VERSION,
        native_capabilities=capabilities,
        web_release=None,
    )


def identity_of(
    *, organization_id: str | None, location_id: str | None, install_id: str | None
) -> Identity:
    """Return the machine's identity, as far as it is known.

    Texts are clipped: the contract allows longer texts in an enrollment record than in a report.
    """
    return Identity(
        organization_id=clip_id(organization_id or "", UNENROLLED),
        location_id=clip_id(location_id or "", UNENROLLED),
        install_id=clip_id(install_id or "", UNENROLLED),
    )
