"""The state of the agent as the system shows it to every user."""

from dataclasses import dataclass

from agent.doctor.processes import describe_processes, other_agents
from agent.doctor.service_unit import UnitFacts, read_unit


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
