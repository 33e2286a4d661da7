"""The environment and the daemon's own facts for reports. Imported for the first report."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from agent import __version__
from agent.adapters import machine
from agent.config.model import LocalConfig
from agent.wire.payloads.common import Environment
from collectors.contract import Field

SOURCE = "agent"
PROTOCOL_VERSION = 1


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """Facts that only the daemon has, for the application snapshot (``agent.*``).

    ``last_heartbeat_at`` is ISO 8601 in UTC; None if there was none since the start. ``last_exit``
    describes how the previous run ended; None if the service manager did not report it.
    """

    uptime_s: int
    outbox_reports: int
    outbox_bytes: int
    last_heartbeat_at: str | None
    config_digest: str
    last_exit: str | None = None


def environment_here(config: LocalConfig) -> Environment:
    """Describe this build on this machine."""
    system, release, arch = machine.system_release_arch()
    return Environment(
        platform="native",
        user_agent=f"venue-agent/{__version__} ({system} {release}; {arch})",
        os_platform=sys.platform,
        native_app_version=__version__,
        native_protocol_version=PROTOCOL_VERSION,
        native_capabilities=config.capabilities,
        web_release=None,
    )


def agent_fields(facts: AgentFacts) -> Iterator[Field]:
    """Yield the daemon's facts as snapshot fields (docs/application-fields.md)."""
    yield Field("agent.version", SOURCE, "available", __version__)
    yield Field("agent.uptimeSeconds", SOURCE, "available", facts.uptime_s)
    yield Field("agent.outboxReports", SOURCE, "available", facts.outbox_reports)
    yield Field("agent.outboxBytes", SOURCE, "available", facts.outbox_bytes)
    yield Field("agent.configDigest", SOURCE, "available", facts.config_digest)
    reason = "the service manager did not report how the previous run ended"
    yield _optional("agent.lastExit", "systemd", facts.last_exit, reason)
    reason = "none since the agent's start"
    yield _optional("agent.lastHeartbeatAt", SOURCE, facts.last_heartbeat_at, reason)


def _optional(key: str, source: str, value: str | None, reason: str) -> Field:
    if value is None:
        return Field(key, SOURCE, "not-applicable", None, reason)
    return Field(key, source, "available", value)
