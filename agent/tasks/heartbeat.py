"""Tells the service, period after period, that this device lives."""

import logging
from datetime import datetime

from agent.adapters.service_client import ServiceClient
from agent.errors import BodyRejected, BodyTooLarge, Refused
from agent.rules.clock_skew import ClockSkew
from agent.tasks.health_board import HealthBoard
from agent.tasks.session.binding_state import BindingState
from agent.tasks.session.circuit_breaker import CircuitBreaker
from agent.tasks.session.enrollment import Enrollment
from agent.wire.device_operations import HeartbeatRequest

log = logging.getLogger(__name__)

SKEW_WORTH_SAYING_S = 120.0


class Heartbeat:
    def __init__(
        self,
        client: ServiceClient,
        breaker: CircuitBreaker,
        binding_state: BindingState,
        enrollment: Enrollment,
        health: HealthBoard,
        *,
        foreground: bool,
    ) -> None:
        self._client = client
        self._breaker = breaker
        self._binding_state = binding_state
        self._enrollment = enrollment
        self._health = health
        self._foreground = foreground
        self.last_at: datetime | None = None
        """When the service saw us last, by its own clock."""

    async def beat(self) -> None:
        """Send one heartbeat, if there is a binding to send it for."""
        if not self._binding_state.may_work or self._binding_state.binding_id is None:
            return
        request = HeartbeatRequest(
            binding_id=self._binding_state.binding_id, foreground=self._foreground
        )
        try:
            reply = await self._breaker.call("heartbeat", lambda: self._client.heartbeat(request))
        except Refused as error:
            # If it is revoked, `current` says so, and that is what is shown.
            self._health.set("heartbeat-rejected", str(error))
            self._enrollment.recheck()
            return
        except (BodyRejected, BodyTooLarge) as error:
            self._health.set("heartbeat-rejected", str(error))
            return
        self._health.clear({"heartbeat-rejected"})
        self.last_at = reply.last_seen_at
        self._judge_clock(self._client.skew)

    def _judge_clock(self, skew: ClockSkew) -> None:
        seconds = skew.offset.total_seconds()
        if abs(seconds) < SKEW_WORTH_SAYING_S:
            self._health.clear({"clock-skew"})
            return
        direction = "behind" if seconds > 0 else "ahead of"
        minutes = round(abs(seconds) / 60)
        self._health.set("clock-skew", f"{minutes} minutes {direction} the service")
