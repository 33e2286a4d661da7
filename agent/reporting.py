"""Facts about the agent itself for reports. The daemon imports this module at its first report."""

import platform
import sys
from collections.abc import Iterator

from agent import __version__
from agent.adapters.storage.outbox import OutboxDepth
from agent.config.model import LocalConfig
from agent.wire.payloads.common import Environment
from collectors.contract import Field

SOURCE = "agent"
PROTOCOL_VERSION = 1
"""The value of ``environment.nativeProtocolVersion`` (docs/adr/0008)."""


def describe_environment(config: LocalConfig) -> Environment:
    """Return the description of this program and machine for a report."""
    system, release, machine = platform.system(), platform.release(), platform.machine()
    return Environment(
        platform="native",
        user_agent=f"venue-agent/{__version__} ({system} {release}; {machine})",
        os_platform=sys.platform,
        native_app_version=__version__,
        native_protocol_version=PROTOCOL_VERSION,
        native_capabilities=config.capabilities,
        web_release=None,
    )


def agent_fields(
    *,
    uptime_s: int,
    outbox: OutboxDepth,
    config_digest: str,
    last_exit: str | None,
    last_heartbeat_at: str | None,
) -> Iterator[Field]:
    """Yield the daemon's facts about itself as snapshot fields (docs/application-fields.md).

    Args:
        config_digest: a fingerprint of the configuration.
        last_exit: describes how the previous run ended; None if the service manager did not
            report it.
        last_heartbeat_at: ISO 8601 in UTC; None if no heartbeat was accepted since the start.
    """
    yield Field("agent.version", SOURCE, "available", __version__)
    yield Field("agent.uptimeSeconds", SOURCE, "available", uptime_s)
    yield Field("agent.outboxReports", SOURCE, "available", outbox.reports)
    yield Field("agent.outboxBytes", SOURCE, "available", outbox.size_bytes)
    yield Field("agent.configDigest", SOURCE, "available", config_digest)
    reason = "the service manager did not report how the previous run ended"
    yield _optional("agent.lastExit", "systemd", last_exit, reason)
    reason = "no heartbeat was accepted since the agent's start"
    yield _optional("agent.lastHeartbeatAt", SOURCE, last_heartbeat_at, reason)


def _optional(key: str, source: str, value: str | None, reason: str) -> Field:
    if value is None:
        return Field(key, SOURCE, "not-applicable", None, reason)
    return Field(key, source, "available", value)
