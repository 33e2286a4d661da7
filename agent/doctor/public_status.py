"""The state of the agent as the system shows it to every user: its unit and its processes."""

import os
import sys
from collections.abc import Callable, Sequence
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
WRAPPERS: Final = frozenset({"doas", "gdb", "ltrace", "runuser", "strace", "su", "sudo", "timeout"})
"""Programs whose command line can contain the command line of an agent that they start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFacts(ServiceState):
    """The state of a unit. ``manager`` is the name of the service manager.

    A unit that is masked in systemd counts as installed.
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


def other_agents(holder: int | None) -> tuple[int, ...] | None:
    """Return the process ids of other agents; None if processes cannot be listed.

    This process and its parent are left out. An agent of another user is not
    listed if the system hides the command lines of other users' processes.

    Args:
        holder: The process that has locked the state directory. It is left out as well.
    """
    import psutil  # slow to import, and rarely needed

    excluded_pids = {holder, os.getpid(), os.getppid()}
    try:
        return tuple(
            process.pid
            for process in psutil.process_iter(["cmdline"])
            if process.pid not in excluded_pids and is_agent(tuple(process.info["cmdline"] or ()))
        )
    except (psutil.Error, OSError):
        return None


def describe_processes(pids: Sequence[int]) -> str:
    """Return a text such as "processes 12, 13 and 14"."""
    noun = "process" if len(pids) == 1 else "processes"
    return f"{noun} {' and '.join(', '.join(map(str, pids)).rsplit(', ', 1))}"


def is_agent(words: tuple[str, ...]) -> bool:
    """Return whether the command line ``words`` starts a daemon, such as `venue-agent run`."""
    for index, word in enumerate(words[:-1]):
        is_program = _name(word) == "venue-agent" or (word == "agent" and words[index - 1] == "-m")
        if is_program:
            return words[index + 1] == "run" and _name(words[0]) not in WRAPPERS
    return False


def _name(word: str) -> str:
    return word.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe")


@dataclass(frozen=True, slots=True)
class PublicStatus:
    """What every user of the machine can find out about the agent.

    ``is_running`` is None if it is unknown. ``source`` names where this information is from.
    """

    is_running: bool | None
    pids: tuple[int, ...] = ()
    source: str = ""


def public_status() -> PublicStatus:
    return combine_status(read_unit(), other_agents(None))


def combine_status(unit: UnitFacts | None, processes: tuple[int, ...] | None) -> PublicStatus:
    """Return the status according to the service manager or to the list of processes.

    A running service has precedence over the list, because the system may hide processes of other
    users in the list (proc(5)).
    """
    if unit is not None and unit.is_running:
        pids = (unit.pid,) if unit.pid else processes or ()
        return PublicStatus(True, pids, unit.manager)
    if processes:
        return PublicStatus(True, processes, "the process list")
    if unit is not None and unit.is_installed:
        return PublicStatus(False, (), unit.manager)
    return PublicStatus(None)


def describe(status: PublicStatus) -> str:
    """Return a sentence about the status, without its full stop."""
    if status.is_running is None:
        return "this user can see no process of an agent"
    if not status.is_running:
        return f"according to {status.source}, it does not run"
    processes = f" as {describe_processes(status.pids)}" if status.pids else ""
    return f"according to {status.source}, it runs{processes}"
