"""The state of the agent's unit in the service manager."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agent.adapters.service_manager.commands import run_program
from agent.adapters.service_manager.contract import ServiceManagerError
from agent.adapters.service_manager.detect import detect_service_manager
from agent.errors import AgentError

UNIT: Final = "venue-agent.service"
PROPERTIES: Final = (
    "LoadState",
    "UnitFileState",
    "ActiveState",
    "SubState",
    "MainPID",
    "NRestarts",
)
ASK_WITHIN_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """``pid`` is that of the main process. ``state`` is the manager's own term."""

    manager: str
    is_installed: bool
    is_enabled: bool
    is_masked: bool = False
    is_running: bool = False
    pid: int | None = None
    state: str = ""
    restarts: int = 0


UnitReader = Callable[[], UnitFacts | None]


def read_unit() -> UnitFacts | None:
    """Return the unit's state; None without a supported service manager."""
    if sys.platform != "linux":
        return _from_service_manager()
    command = ("systemctl", "show", UNIT, "--property", ",".join(PROPERTIES))
    try:
        output = run_program(*command, timeout_s=ASK_WITHIN_S)
    except ServiceManagerError:
        return None
    return parse_systemctl(output.stdout) if output.returncode == 0 else None


def parse_systemctl(text: str) -> UnitFacts | None:
    """Parse the output of `systemctl show` (systemctl(1)); None if it has no state."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    load = values.get("LoadState", "")
    if not load:
        return None
    file_state = values.get("UnitFileState", "")
    return UnitFacts(
        manager="systemd",
        is_installed=load in {"loaded", "masked"},
        is_enabled=file_state in {"enabled", "enabled-runtime", "static", "alias", "linked"},
        is_masked=load == "masked" or file_state.startswith("masked"),
        is_running=values.get("ActiveState") in {"active", "activating", "reloading"},
        pid=_number(values.get("MainPID", "")) or None,
        state="/".join(values.get(name, "") for name in ("ActiveState", "SubState")).strip("/"),
        restarts=_number(values.get("NRestarts", "")),
    )


def _from_service_manager() -> UnitFacts | None:
    """Return the state from launchd or Windows."""
    try:
        state = detect_service_manager().state()
    except AgentError:
        return None
    return UnitFacts(
        manager="launchd" if sys.platform == "darwin" else "the service manager",
        is_installed=state.is_installed,
        is_enabled=state.starts_at_boot,
        is_running=state.activity in {"running", "starting"},
        pid=state.pid,
        state=state.activity,
        restarts=state.restarts or 0,
    )


def _number(text: str) -> int:
    return int(text[:9]) if text.isascii() and text.isdigit() else 0
