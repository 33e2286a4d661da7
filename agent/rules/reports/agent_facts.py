"""What only the daemon knows of itself, for the application snapshot (`agent.*`)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """``last_heartbeat_at`` is ISO 8601 in UTC; None when there was none since the start."""

    uptime_s: int
    outbox_reports: int
    outbox_bytes: int
    last_heartbeat_at: str | None
    config_digest: str
    last_exit: str | None = None
    """How the run before this one ended, in words, where the service manager told it."""
