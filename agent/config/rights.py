"""Advice for users: commands that need more rights, and how to get a configuration or a service."""

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Final

from agent.config.model import config_paths, is_privileged, may_exist

STEPPED_DOWN: Final = "VENUE_AGENT_STEPPED_DOWN"
"""Variable that `step_down` sets in a process that root started and that continues as another user.
After setuid(2), the process has no other way to find out that root started it.

The variable affects the advice in messages and nothing else: root reads these messages, so they do
not advise "sudo". `step_down` also passes the paths of the configuration and of the state directory
as variables."""
_INSTALL: Final = "venue-agent service install --base-url URL --location ID --api-key-file FILE"


_TAKES_CONFIG: Final = re.compile(
    r"(?<=`)([^`]*\bvenue-agent"
    r" (?:run|enroll|collect|check|status|doctor|history|timeline|printers|upgrade check"
    r"|config (?:check|show))\b[^`]*)"
    r"(?=`)"
)
"""Matches a command between backquotes in a text, if the command accepts `--config`."""

_config_path: Path | None = None
"""The configuration that the user named with `--config`."""


def name_configuration(path: Path | None) -> None:
    """Store the path that the user named with `--config`, for `with_config`."""
    global _config_path  # noqa: PLW0603 - a process runs one command
    _config_path = path


def with_config(text: str) -> str:
    """Add the user's `--config` to the commands in ``text``, so that they can be copied."""
    if _config_path is None:
        return text
    option = f" --config {shlex.quote(str(_config_path))}"
    return _TAKES_CONFIG.sub(
        lambda command: command[1] + ("" if "--config" in command[1] else option), text
    )


def is_started_by_root() -> bool:
    """Return whether root, or an administrator, started this process."""
    return is_privileged() or STEPPED_DOWN in os.environ


def has_service_manager() -> bool:
    """Return whether `venue-agent service` works on this machine (sd_booted(3))."""
    return sys.platform in {"win32", "darwin"} or Path("/run/systemd/system").is_dir()


def with_sudo(command: str) -> str:
    """Return a command that needs root's rights, as this user has to type it."""
    return f"`{command}`" if is_started_by_root() else f"`sudo {command}`"


def how_to_run_as_root(words: str) -> str:
    """Return how to run ``venue-agent words`` with access to files that this user cannot read."""
    if sys.platform == "win32":
        return f"run `venue-agent {words}` in a terminal opened as administrator"
    if is_started_by_root():
        return "root has no access either: check the mount and the access rules"
    # sudo(8) does not pass variables.
    config_path = os.environ.get("VENUE_AGENT_CONFIG")
    variable = f"VENUE_AGENT_CONFIG={config_path} " if config_path else ""
    return f"as root: `sudo {variable}venue-agent {words}`"


def how_to_start(*, is_installed: bool, is_system_agent: bool) -> str:
    """Return advice on how to start the agent: as a service, if there is a service manager.

    Only root can start the agent of the machine (``is_system_agent``). An agent of this user starts
    without root's rights.
    """
    by_hand = with_sudo("venue-agent run") if is_system_agent else "`venue-agent run`"
    if is_installed:
        return f"start it: {with_sudo('venue-agent service start')}, or by hand {by_hand}"
    if has_service_manager():
        install = with_sudo("venue-agent service install")
        return f"start it by hand: {by_hand}, or at every boot: {install}"
    return f"start it: {by_hand}"


def no_configuration() -> str:
    """Return where a configuration is expected and how to create one.

    The result is a sentence without its full stop.
    """
    candidates = config_paths()
    paths = " or ".join(str(path) for path in candidates)
    if has_service_manager() and "VENUE_AGENT_CONFIG" not in os.environ:
        return f"there is no configuration at {paths}: {with_sudo(_INSTALL)} creates one"
    directory = candidates[0].parent
    has_directory = sys.platform == "win32" or may_exist(directory)
    prefix = "" if has_directory else f"mkdir -p {directory} && "
    example = f"`{prefix}venue-agent config example >{candidates[0]}`"
    return f"there is no configuration at {paths}: {example} creates one to fill in"
