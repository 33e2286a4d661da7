"""The service manager of this machine."""

import os
import sys
import time
from pathlib import Path

from agent.adapters.service_manager.contract import ServiceManager, ServiceManagerError
from agent.adapters.service_manager.program import agent_command


def detect_service_manager() -> ServiceManager:
    """Return it. Raises ServiceManagerError where there is none that this agent knows."""
    if sys.platform == "win32":
        from agent.adapters.service_manager.windows.api import (
            Win32ServiceControl,
        )
        from agent.adapters.service_manager.windows.service import WindowsService

        program_data = Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData"))
        return WindowsService(Win32ServiceControl(), agent_command(), program_data, time.sleep)
    from agent.adapters.service_manager.commands import SystemCommands

    if sys.platform == "darwin":
        from agent.adapters.service_manager.launchd import LaunchdService

        return LaunchdService(SystemCommands(), agent_command(), time.sleep)
    # sd_booted(3): this directory exists exactly when systemd is the init system.
    if not Path("/run/systemd/system").is_dir():
        raise ServiceManagerError(
            "this machine was not started by systemd: have your init system run `venue-agent run`"
        )
    from agent.adapters.service_manager.systemd import SystemdService

    return SystemdService(SystemCommands(), agent_command())
