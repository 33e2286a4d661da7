"""The agent's recent log lines, from the systemd journal or a file."""

import os
import sys
from pathlib import Path
from typing import Final

from agent.adapters.service_manager.commands import run_program
from agent.adapters.service_manager.contract import ServiceManagerError
from collectors.programs import find_program

LINES: Final = 2000
LOG_MAX: Final = 1_000_000
"""Maximum length of a log: in bytes for a file, in characters for the systemd journal."""
READ_WITHIN_S: Final = 3.0

FILES: Final = (
    Path("/Library/Logs/venue-agent.log"),
    Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData")) / "venue-agent/agent.log",
    Path("/var/log/venue-agent/venue-agent.log"),
    Path("/var/log/venue-agent.log"),
)


def read_logs(files: tuple[Path, ...] = FILES) -> str:
    """Return the last lines, or the reason why there are none."""
    if sys.platform == "linux" and find_program("journalctl"):
        return _journal()
    for path in files:
        try:
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - LOG_MAX))
                return file.read(LOG_MAX).decode("utf-8", "replace")
        except OSError:
            continue
    return "no log could be read\n"


def _journal() -> str:
    try:
        output = run_program(
            "journalctl", "--unit", "venue-agent.service", "--lines", str(LINES),
            "--no-pager", "--output", "short-iso-precise", timeout_s=READ_WITHIN_S,
        )  # fmt: skip
    except ServiceManagerError as error:
        return f"the systemd journal could not be read: {error}\n"
    return (output.stdout + output.stderr)[-LOG_MAX:]
