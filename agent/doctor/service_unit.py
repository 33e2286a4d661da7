"""The state of the agent's unit in the service manager."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from agent.adapters.service_manager.commands import run_checked, run_program
from agent.adapters.service_manager.contract import ServiceState
from agent.adapters.service_manager.detect import detect_service_manager
from agent.adapters.service_manager.systemd import UNIT, parse_properties, state_of
from agent.errors import AgentError

PROPERTIES: Final = "LoadState,UnitFileState,ActiveState,MainPID,NRestarts"
READ_WITHIN_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """The state of a unit.

    ``pid`` is the id of its main process. ``restarts`` counts the automatic restarts since the last
    start that was not automatic.
    """

    manager: str
    is_installed: bool
    is_enabled: bool
    is_masked: bool = False
    is_running: bool = False
    pid: int | None = None
    restarts: int = 0


UnitReader = Callable[[], UnitFacts | None]


def read_unit() -> UnitFacts | None:
    """Return the unit's state; None if no supported service manager answers."""
    try:
        if sys.platform != "linux":
            manager = "launchd" if sys.platform == "darwin" else "the service manager"
            return _unit_facts(manager, detect_service_manager().state())
        run = partial(run_program, timeout_s=READ_WITHIN_S)
        command = ("systemctl", "show", UNIT, f"--property={PROPERTIES}")
        return parse_systemctl(run_checked(run, *command).stdout)
    except AgentError:
        return None


def parse_systemctl(text: str) -> UnitFacts | None:
    """Parse the output of `systemctl show` (systemctl(1)); None if it has no LoadState."""
    properties = parse_properties(text)
    load = properties.get("LoadState", "")
    if not load:
        return None
    file_state = properties.get("UnitFileState", "")
    return replace(
        _unit_facts("systemd", state_of(properties)),
        is_installed=load in {"loaded", "masked"},
        is_masked=load == "masked" or file_state.startswith("masked"),
    )


def _unit_facts(manager: str, state: ServiceState) -> UnitFacts:
    return UnitFacts(
        manager=manager,
        is_installed=state.is_installed,
        is_enabled=state.starts_at_boot,
        is_running=state.activity in {"running", "starting"},
        pid=state.pid,
        restarts=state.restarts or 0,
    )
