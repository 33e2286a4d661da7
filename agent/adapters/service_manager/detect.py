"""Detects the service manager of this machine."""

import os
import sys
from pathlib import Path

from agent.adapters.service_manager.contract import ServiceManager, ServiceManagerError
from agent.config.model import default_config_path, may_exist
from agent.config.rights import no_configuration


def detect_service_manager() -> ServiceManager:
    """Return the service manager. Raises ServiceManagerError if this machine has none."""
    if sys.platform == "win32":
        from agent.adapters.service_manager.windows.api import Win32ServiceControl
        from agent.adapters.service_manager.windows.service import WindowsService

        program_data = Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData"))
        return WindowsService(Win32ServiceControl(), agent_command(), program_data)
    if sys.platform == "darwin":
        from agent.adapters.service_manager.launchd import LaunchdService

        return LaunchdService(agent_command())
    # sd_booted(3): this directory exists exactly when systemd is the init system.
    if not Path("/run/systemd/system").is_dir():
        raise ServiceManagerError(_no_systemd_message())
    from agent.adapters.service_manager.systemd import SystemdService

    return SystemdService(agent_command())


def _no_systemd_message() -> str:
    advice = (
        "this machine was not started by systemd: configure your init system to run"
        " `venue-agent run`"
    )
    return advice if may_exist(default_config_path()) else f"{advice}\n{no_configuration()}"


def agent_command() -> tuple[str, ...]:
    """Return the command line of this agent: the packaged executable, or this Python."""
    if getattr(sys, "frozen", False):
        # The path that the service runs contains no links, because a user who can write to the
        # directory of a link could replace the link.
        is_windows = sys.platform == "win32"
        return (sys.executable if is_windows else str(Path(sys.executable).resolve()),)
    # Option -I prevents imports from the current directory and PYTHONPATH.
    return (sys.executable, "-I", "-m", "agent")
