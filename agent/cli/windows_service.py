"""`venue-agent.exe windows-service`: the daemon as a service. Only Windows calls it."""

import os
import sys
from pathlib import Path

from agent.adapters.service_manager.windows.host import run_service
from agent.wire.sd_notify import Notifier


def main() -> int:
    """Run the service, and return the exit code."""
    data_directory = Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData")) / "venue-agent"
    try:
        return run_service(data_directory, _run_daemon)
    except OSError as error:
        sys.stderr.write(
            f"venue-agent: only the service manager can start this command: {error.strerror}\n"
        )
        return 1


def _run_daemon(config: Path, notifier: Notifier) -> int:
    # Imported here, because the service manager expects a reply before these imports end.
    import asyncio

    from agent import daemon
    from agent.cli.main import run_command

    def run() -> int:
        asyncio.run(daemon.run(config, foreground=False, notifier=notifier))
        return 0

    return run_command(run)
