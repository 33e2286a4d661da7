"""Writes `status.json` and the service manager's status line when the status changes."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from agent.adapters.clock import Clock
from agent.adapters.storage.status_file import DaemonStatus, StatusFile
from agent.wire.sd_notify import Notifier

log = logging.getLogger(__name__)

WRITE_DELAY_S: Final = 0.2
"""Delay of each write. Changes within this time are written together."""


@dataclass(slots=True, eq=False)
class StatusWriter:
    """Writes the status that ``read_status`` returns."""

    file: StatusFile
    notifier: Notifier
    clock: Clock
    read_status: Callable[[], DaemonStatus]
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def note_change(self) -> None:
        self._changed.set()

    async def run(self) -> None:
        """Write the status after each change, forever."""
        while True:
            await self._changed.wait()
            await self.clock.sleep(WRITE_DELAY_S)
            self._changed.clear()
            self.write_now()

    def write_now(self) -> None:
        status = self.read_status()
        self.notifier.status(describe(status))
        try:
            self.file.write(status)
        except OSError as error:
            log.warning("the status file cannot be written: %s", error.strerror)


def describe(status: DaemonStatus) -> str:
    """Return one line with the daemon's activity, and its first problem or its location.

    Without a problem and without a binding, the line is ``enrolling``.
    """
    if status.problems:
        return f"{status.activity}; {status.problems[0].title}: {status.problems[0].detail}"
    if status.binding is None:
        return "enrolling"
    return f"enrolled at {status.binding.location_id}; {status.activity}"
