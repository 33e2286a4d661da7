"""What this system tells everybody of the agent, where its state is closed to who asks."""

from dataclasses import dataclass

from agent.doctor.processes import other_agents
from agent.doctor.service_unit import UnitFacts, read_unit


@dataclass(frozen=True, slots=True)
class Sighting:
    """``is_running``: None where it cannot be told. ``by`` names who says so."""

    is_running: bool | None
    pids: tuple[int, ...] = ()
    by: str = ""


def sighting_here() -> Sighting:
    return sighting_of(read_unit(), other_agents(None))


def sighting_of(unit: UnitFacts | None, processes: tuple[int, ...] | None) -> Sighting:
    """Judge by the service manager's word first: processes of others may be hidden (proc(5))."""
    if unit is not None and unit.is_running:
        pids = (unit.pid,) if unit.pid else processes or ()
        return Sighting(True, pids, unit.manager)
    if processes:
        return Sighting(True, processes, "the list of processes")
    if unit is not None and unit.is_installed:
        return Sighting(False, (), unit.manager)
    return Sighting(None)


def in_words(sighting: Sighting) -> str:
    """Return a sentence without its full stop."""
    if sighting.is_running is None:
        return "no process of an agent can be seen by this user"
    if not sighting.is_running:
        return f"it does not run, {sighting.by} says"
    numbers = ", ".join(str(pid) for pid in sighting.pids)
    process = f" as process {numbers}" if numbers else ""
    return f"it runs{process}, {sighting.by} says"
