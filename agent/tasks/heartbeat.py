"""Sends heartbeats, which show the service that this device is alive."""

import logging
from dataclasses import dataclass
from datetime import datetime

from agent.errors import FinalError, Refused
from agent.tasks.health_board import HealthBoard
from agent.tasks.session.device_session import DeviceSession

log = logging.getLogger(__name__)

SKEW_REPORTED_FROM_S = 120.0
"""Minimum difference of the clocks, in seconds, that is reported as a problem."""


@dataclass(slots=True, eq=False)
class Heartbeat:
    """Sends heartbeats."""

    session: DeviceSession
    health: HealthBoard
    last_at: datetime | None = None
    """The time of the last accepted heartbeat, by the service's clock."""

    async def send(self) -> None:
        """Send a heartbeat, if the device is bound."""
        if not self.session.binding_state.is_bound:
            return
        try:
            reply = await self.session.heartbeat()
        except FinalError as error:
            self.health.set("heartbeat-rejected", str(error))
            if isinstance(error, Refused):
                # The recheck calls `current`, which reports a revoked device.
                self.session.request_recheck()
            return
        self.health.clear({"heartbeat-rejected"})
        self.last_at = reply.last_seen_at
        self._check_clock(self.session.client.skew.offset.total_seconds())

    def _check_clock(self, seconds: float) -> None:
        """Report a wrong clock. ``seconds`` is the service's time minus this machine's time."""
        if abs(seconds) < SKEW_REPORTED_FROM_S:
            self.health.clear({"clock-skew"})
            return
        direction = "behind" if seconds > 0 else "ahead of"
        minutes = round(abs(seconds) / 60)
        self.health.set("clock-skew", f"{minutes} minutes {direction} the service")
