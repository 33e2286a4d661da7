"""The agent's recent log lines, wherever this machine's service manager keeps them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from collectors.programs import find_program, program_environment

LINES: Final = 2000
LOG_MAX_BYTES: Final = 1_000_000
READ_WITHIN_S: Final = 3.0

FILES: Final = (
    Path("/Library/Logs/venue-agent.log"),
    Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData")) / "venue-agent/agent.log",
    Path("/var/log/venue-agent/venue-agent.log"),
    Path("/var/log/venue-agent.log"),
)


def read_logs(files: tuple[Path, ...] = FILES) -> str:
    """Return the last lines, or why there are none."""
    if sys.platform == "linux" and (journalctl := find_program("journalctl")):
        return _journal(journalctl)
    for path in files:
        try:
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - LOG_MAX_BYTES))
                return file.read(LOG_MAX_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
    return "no log could be read\n"


def _journal(journalctl: str) -> str:
    command = [journalctl, "--unit", "venue-agent.service", "--lines", str(LINES)]
    command += ["--no-pager", "--output", "short-iso-precise"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=READ_WITHIN_S,
            check=False,
            env=program_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the journal could not be read: {error}\n"
    return (done.stdout + done.stderr)[-LOG_MAX_BYTES:].decode("utf-8", "replace")
