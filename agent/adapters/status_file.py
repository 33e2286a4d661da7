"""`status.json`: what the daemon is doing, for `venue-agent status` in another process."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.adapters.atomic_file import write_atomically
from agent.adapters.state import StateDirectory

NAME = "status.json"
WORLD_READABLE = 0o644


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ProblemStatus(Model):
    """An unhealthy condition and its fix (rules.health)."""

    code: str
    severity: Literal["warning", "error"]
    title: str
    detail: str
    fix: str
    since: str


class BindingStatus(Model):
    instance_id: str
    binding_id: str
    organization_id: str
    location_id: str
    base_url: str


class DaemonStatus(Model):
    """Moments are ISO 8601 in UTC. ``phase`` is the life of the daemon itself."""

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
    counters: dict[str, int] = {}
    problems: tuple[ProblemStatus, ...] = ()


class StatusFile:
    def __init__(self, state: StateDirectory) -> None:
        self._path = state.path / NAME

    def write(self, status: DaemonStatus) -> None:
        """Replace the file. Raises OSError."""
        write_atomically(self._path, status.model_dump_json(indent=2).encode(), WORLD_READABLE)

    def read(self) -> DaemonStatus | None:
        """Return what the daemon last wrote, or None."""
        try:
            return DaemonStatus.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return None
