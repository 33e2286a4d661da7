"""Heartbeats: tells the service that this device is alive."""

import logging
from datetime import datetime

from agent.errors import BodyRejected, BodyTooLarge, Refused
from agent.tasks.health_board import HealthBoard
from agent.tasks.session.device_session import DeviceSession

log = logging.getLogger(__name__)

SKEW_SHOWN_FROM_S = 120.0


class Heartbeat:
    def __init__(self, session: DeviceSession, health: HealthBoard) -> None:
        self._session = session
        self._health = health
        self.last_at: datetime | None = None
        """When the service saw us last, by its own clock."""

    async def beat(self) -> None:
        """Send one heartbeat, if there is a binding to send it for."""
        if not self._session.is_bound:
            return
        try:
            reply = await self._session.heartbeat()
        except (Refused, BodyRejected, BodyTooLarge) as error:
            self._health.set("heartbeat-rejected", str(error))
            if isinstance(error, Refused):
                # If it is revoked, `current` says so, and that is what is shown.
                self._session.request_recheck()
            return
        self._health.clear({"heartbeat-rejected"})
        self.last_at = reply.last_seen_at
        self._judge_clock(self._session.clock_offset.total_seconds())

    def _judge_clock(self, seconds: float) -> None:
        """``seconds``: how far the service's clock is ahead of this machine's."""
        if abs(seconds) < SKEW_SHOWN_FROM_S:
            self._health.clear({"clock-skew"})
            return
        direction = "behind" if seconds > 0 else "ahead of"
        minutes = round(abs(seconds) / 60)
        self._health.set("clock-skew", f"{minutes} minutes {direction} the service")
