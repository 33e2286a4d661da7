"""What this system tells everybody of the agent, where its state is closed to who asks."""

from dataclasses import dataclass

from agent.doctor.processes import other_agents
from agent.doctor.service_unit import UnitFacts, read_unit


@dataclass(frozen=True, slots=True)
class PublicStatus:
    """``is_running``: None where it cannot be told. ``by`` names who says so."""

    is_running: bool | None
    pids: tuple[int, ...] = ()
    by: str = ""


def public_status() -> PublicStatus:
    return judge_public_status(read_unit(), other_agents(None))


def judge_public_status(unit: UnitFacts | None, processes: tuple[int, ...] | None) -> PublicStatus:
    """Judge by the service manager's word first: processes of others may be hidden (proc(5))."""
    if unit is not None and unit.is_running:
        pids = (unit.pid,) if unit.pid else processes or ()
        return PublicStatus(True, pids, unit.manager)
    if processes:
        return PublicStatus(True, processes, "the list of processes")
    if unit is not None and unit.is_installed:
        return PublicStatus(False, (), unit.manager)
    return PublicStatus(None)


def in_words(status: PublicStatus) -> str:
    """Return a sentence without its full stop."""
    if status.is_running is None:
        return "no process of an agent can be seen by this user"
    if not status.is_running:
        return f"it does not run, {status.by} says"
    numbers = ", ".join(str(pid) for pid in status.pids)
    process = f" as process {numbers}" if numbers else ""
    return f"it runs{process}, {status.by} says"
