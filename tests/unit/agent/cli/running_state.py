"""Creates the state directory of a running daemon, for tests of commands that only read it."""

import contextlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent import __version__
from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.status_file import (
    BindingStatus,
    DaemonStatus,
    StatusFile,
)
from agent.rules.health import Problem

BINDING = BindingStatus(
    instance_id="0b7a2f6e-0000-4000-8000-000000000001",
    binding_id="0b7a2f6e-0000-4000-8000-000000000002",
    organization_id="org-0001",
    location_id="loc-0001",
    base_url="https://ops.venue.test",
)
PROBLEM = Problem(
    code="connection-refused",
    severity="error",
    title="the service's address refuses connections",
    detail="127.0.0.1:9",
    fix="check service.base_url and that no firewall rejects the connection",
    since=(datetime.now(UTC) - timedelta(hours=3, minutes=1)).isoformat(),
)


def write_config(directory: Path) -> Path:
    """Write a valid configuration and an API key to ``directory``.

    Return the path of the configuration.
    """
    config = directory / "config.toml"
    config.write_text(
        '[service]\nbase_url = "https://ops.venue.test"\nlocation_id = "loc-0001"\n'
        f'api_key_file = "{directory / "api-key"}"\n[device]\nstate_dir = "{directory / "state"}"\n'
    )
    (directory / "api-key").write_text("a-key\n")
    (directory / "api-key").chmod(0o600)
    return config


def status_of(directory: Path, **values: Any) -> DaemonStatus:
    """Return the status of a healthy daemon. ``values`` replace single fields."""
    now = datetime.now(UTC)
    defaults: dict[str, Any] = {
        "version": __version__,
        "pid": os.getpid(),
        "phase": "running",
        "started_at": (now - timedelta(hours=3)).isoformat(),
        "written_at": now.isoformat(),
        "config_path": str(directory / "config.toml"),
        "binding": BINDING,
        "last_heartbeat_at": (now - timedelta(seconds=12)).isoformat(),
        "last_contact_at": (now - timedelta(seconds=3)).isoformat(),
        "delivery": "stream",
        "counters": {"commands_received": 14},
    }
    return DaemonStatus(**{**defaults, **values})


@contextlib.contextmanager
def running_daemon(directory: Path, **values: Any) -> Iterator[StateDirectory]:
    """Write the status file, and lock the state directory as a daemon does."""
    state = StateDirectory(directory / "state")
    state.prepare()
    with state.lock():
        StatusFile(state).write(status_of(directory, **values))
        yield state
