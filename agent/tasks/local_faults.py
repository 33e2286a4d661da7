"""Records faults of print queues, the kiosk and watched devices. They leave the connection intact.

The agent's recorder calls this module after heartbeats. This module is imported only on machines
where there is something to record.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Final

from agent.rules.connectivity.events import Throttling
from agent.rules.connectivity.local_faults import LocalFaults, LocalReading
from agent.wire.payloads.history import Event, Incident

log = logging.getLogger(__name__)

READ_EVERY_S: Final = 300.0
"""Minimum interval of the readings. They have no timer: the first heartbeat after this interval
causes the next reading."""
CONFIRM_AFTER_S: Final = 20.0
"""Minimum interval after a reading that was incomplete, or that the next reading has to confirm."""


class LocalFaultRecorder:
    """Reads the faults, and remembers those that have not ended.

    Args:
        read: returns the current state of the print queues, the kiosk, the watched devices and
            the processor, within about three seconds. It never raises.
    """

    def __init__(self, read: Callable[[], Awaitable[LocalReading]]) -> None:
        self._read = read
        self.faults = LocalFaults()
        """The open incidents, and the recent ones that a new incident may continue."""
        self._throttling = Throttling()
        self._due_s = 0.0

    def resume(self, recent: Iterable[Incident], open_incidents: Iterable[Incident]) -> None:
        """Continue the incidents of the previous recorder, after a reload of the configuration.

        ``recent`` are the ended incidents of the last hour, which a new incident may continue.
        """
        self.faults = LocalFaults(recent, open_incidents)

    def is_due(self, now_s: float) -> bool:
        return now_s >= self._due_s

    async def observe(
        self, read_time: Callable[[], datetime], now_s: float, *, is_excused: bool
    ) -> tuple[Sequence[Incident], Sequence[Event], bool]:
        """Read once. Return the ended incidents, new events, and whether an incident began.

        Args:
            read_time: returns the wall clock's time.
            now_s: the monotonic time.
            is_excused: whether the time is in ``quiet_hours``. All open incidents then end.
        """
        reading = await self._read()
        at = read_time()
        throttling = self._throttling.observe(reading.throttle_count, at, now_s)
        events = [Event(kind, at, detail) for kind, detail in reading.events]
        events += filter(None, (throttling,))
        earlier_faults = self.faults.current_incidents(at)
        ended = self.faults.end_all(at) if is_excused else self.faults.observe(at, reading)
        is_unsure = self.faults.is_suspected or reading.is_pending
        self._due_s = now_s + (CONFIRM_AFTER_S if is_unsure else READ_EVERY_S)
        new_faults = [
            fault for fault in self.faults.current_incidents(at) if fault not in earlier_faults
        ]
        for fault in new_faults:
            log.warning("%s (%s)", fault.evidence, fault.cause)
        for fault in ended:
            log.warning("the fault of %s (%s) ended", fault.subject, fault.cause)
        return ended, events, bool(new_faults)
