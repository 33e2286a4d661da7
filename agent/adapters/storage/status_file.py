"""`status.json`: the daemon's status, which `venue-agent status` reads."""

from typing import Literal

from pydantic import Field

from agent.adapters.storage.atomic_file import write_atomically
from agent.adapters.storage.state import StateDirectory
from agent.rules.health import Problem
from agent.wire.base import Array, Model
from agent.wire.codec import decode, encode_indented
from agent.wire.validation import ValidationError

NAME = "status.json"
WORLD_READABLE = 0o644
MAX_BYTES = 4_000_000


class BindingStatus(Model):
    instance_id: str
    binding_id: str
    organization_id: str
    location_id: str
    base_url: str


class DaemonStatus(Model):
    """The content of `status.json`. Timestamps are ISO 8601 in UTC.

    ``last_contact_at`` is the time of the last successful call to the service. ``delivery`` states
    whether the last call for commands was a stream or a poll. It is None before the first call, if
    the last call failed, and if the binding was lost. ``activity`` is a short text, such as
    ``collecting network``. ``counters`` has numbers by name, such as ``commands_received``,
    ``requests_expired`` and ``reports_dropped``.
    """

    version: str
    pid: int
    phase: Literal["starting", "running", "stopping", "stopped"]
    started_at: str
    written_at: str
    config_path: str | None
    binding: BindingStatus | None = None
    is_revoked: bool = False
    last_heartbeat_at: str | None = None
    last_contact_at: str | None = None
    delivery: Literal["stream", "poll"] | None = None
    activity: str = "idle"
    outbox_reports: int = 0
    outbox_bytes: int = 0
    outbox_oldest_at: str | None = None
    counters: dict[str, int] = Field(default_factory=dict)
    problems: Array[Problem] = ()


class StatusFile:
    """Reads and writes the daemon's status."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self._path = state.path / NAME

    def write(self, status: DaemonStatus) -> None:
        """Replace the file without syncing it to the disk. Raises OSError."""
        content = encode_indented(status).encode()
        write_atomically(self._path, content, WORLD_READABLE, durably=False)

    def read(self) -> DaemonStatus | None:
        """Return the last status, or None if it cannot be read.

        Raises StateError if the file is not the agent's own.
        """
        try:
            return decode(self._state.read(NAME, MAX_BYTES), DaemonStatus)
        except (OSError, ValidationError):
            return None
