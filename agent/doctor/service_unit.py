"""The state of the agent's unit in the service manager."""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Final

from agent.adapters.service_manager.commands import run_checked, run_program
from agent.adapters.service_manager.contract import ServiceState
from agent.adapters.service_manager.detect import detect_service_manager
from agent.adapters.service_manager.systemd import UNIT, parse_properties, state_of
from agent.errors import AgentError

PROPERTIES: Final = "LoadState,UnitFileState,ActiveState,MainPID,NRestarts"
READ_WITHIN_S: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFacts(ServiceState):
    """The state of a unit in the service manager that ``manager`` names.

    With systemd, a masked unit is also installed.
    """

    manager: str
    is_masked: bool = False

    @property
    def is_running(self) -> bool:
        return self.activity in {"running", "starting"}


UnitReader = Callable[[], UnitFacts | None]


def read_unit() -> UnitFacts | None:
    """Return the unit's state; None if no supported service manager answers."""
    try:
        if sys.platform != "linux":
            manager = "launchd" if sys.platform == "darwin" else "the service manager"
            return UnitFacts(manager=manager, **asdict(detect_service_manager().state()))
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
    state = replace(state_of(properties), is_installed=load in {"loaded", "masked"})
    is_masked = load == "masked" or file_state.startswith("masked")
    return UnitFacts(manager="systemd", is_masked=is_masked, **asdict(state))
