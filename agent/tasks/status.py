"""Keeps `status.json` and the service manager's status line true. Writes only what has changed."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from agent.adapters.clock import Clock
from agent.adapters.storage.status_file import DaemonStatus, StatusFile
from agent.wire.sd_notify import Notifier

log = logging.getLogger(__name__)

SETTLE_S: Final = 0.2
"""Changes that come together are written together."""


class StatusWriter:
    """``look`` gathers the present status."""

    def __init__(
        self, file: StatusFile, notifier: Notifier, clock: Clock, look: Callable[[], DaemonStatus]
    ) -> None:
        self._file = file
        self._notifier = notifier
        self._clock = clock
        self._look = look
        self._changed = asyncio.Event()

    def changed(self) -> None:
        self._changed.set()

    async def run(self) -> None:
        """Write after each change, for ever."""
        while True:
            await self._changed.wait()
            await self._clock.sleep(SETTLE_S)
            self._changed.clear()
            self.write_now()

    def write_now(self) -> None:
        status = self._look()
        self._notifier.status(in_words(status))
        try:
            self._file.write(status)
        except OSError as error:
            log.warning("the status file cannot be written: %s", error.strerror)


def in_words(status: DaemonStatus) -> str:
    """Say in one line what a daemon is doing."""
    if status.problems:
        return f"{status.activity}; {status.problems[0].title}: {status.problems[0].detail}"
    if status.binding is None:
        return "enrolling"
    return f"enrolled at {status.binding.location_id}; {status.activity}"
