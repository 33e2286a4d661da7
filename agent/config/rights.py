"""What this user may not do, and the words for doing it with more rights."""

import os
import sys
from pathlib import Path
from typing import Final

from agent.config.model import is_privileged

STEPPED_DOWN: Final = "VENUE_AGENT_STEPPED_DOWN"
"""Set in the environment of a verb that root started and that goes on as another user: what it
says is for root.

A variable, since nothing of the process itself tells any more: setuid(2) leaves no trace, and a
dozen messages in seven modules ask. `step_down` hands on in the same way where the configuration
and the state directory are. Who sets it by hand gets advice without "sudo", and nothing else."""


def is_for_root() -> bool:
    """Tell whether root, or an administrator's process, typed this."""
    return is_privileged() or STEPPED_DOWN in os.environ


def has_service_manager() -> bool:
    """Tell whether `venue-agent service` can do anything here (sd_booted(3))."""
    return sys.platform in {"win32", "darwin"} or Path("/run/systemd/system").is_dir()


def by_root(command: str) -> str:
    """Return a command that needs rights as this user has to type it."""
    return f"`{command}`" if is_for_root() else f"`sudo {command}`"


def as_root(words: str) -> str:
    """Say how ``venue-agent words`` gets at what is closed to this user."""
    if sys.platform == "win32":
        return f"run `venue-agent {words}` in a terminal opened as administrator"
    if is_for_root():
        return "it is closed to root as well: look at the mount and the access rules"
    # sudo(8) passes no variables on.
    named = os.environ.get("VENUE_AGENT_CONFIG")
    variable = f"VENUE_AGENT_CONFIG={named} " if named else ""
    return f"as root: `sudo {variable}venue-agent {words}`"


def how_to_start(*, is_installed: bool, is_of_the_machine: bool) -> str:
    """Say how an agent that does not run is started: as the service where there is one."""
    by_hand = by_root("venue-agent run") if is_of_the_machine else "`venue-agent run`"
    if is_installed:
        return f"start it: {by_root('venue-agent service start')}, or by hand {by_hand}"
    if has_service_manager():
        install = by_root("venue-agent service install")
        return f"start it by hand: {by_hand}, or at every boot: {install}"
    return f"start it: {by_hand}"
