"""The state of the agent as the system shows it to every user."""

from dataclasses import dataclass

from agent.doctor.processes import other_agents
from agent.doctor.service_unit import UnitFacts, read_unit


@dataclass(frozen=True, slots=True)
class PublicStatus:
    """What every user of the machine can find out about the agent.

    ``is_running`` is None if it is unknown. ``by`` names the source of this information.
    """

    is_running: bool | None
    pids: tuple[int, ...] = ()
    by: str = ""


def public_status() -> PublicStatus:
    return judge_public_status(read_unit(), other_agents(None))


def judge_public_status(unit: UnitFacts | None, processes: tuple[int, ...] | None) -> PublicStatus:
    """Judge by the service manager, or else by the list of processes.

    The list comes second, because the system may hide processes of other users (proc(5)).
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
        return f"according to {status.by}, it does not run"
    numbers = " and ".join(", ".join(map(str, status.pids)).rsplit(", ", 1))
    noun = "process" if len(status.pids) == 1 else "processes"
    process = f" as {noun} {numbers}" if numbers else ""
    return f"according to {status.by}, it runs{process}"
