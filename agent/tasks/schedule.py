"""The timers of heartbeats and scheduled reports.

The timers are created at each start and are not stored. They belong to the event loop, because the
scheduler of APScheduler would need 1.7 MiB of memory in an idle daemon. APScheduler computes the
times of cron expressions. It is loaded only if the configuration contains one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Final, get_args

from agent.adapters.clock import Clock
from agent.config.model import Schedule
from agent.wire.vocabulary import Kind

if TYPE_CHECKING:
    from apscheduler.triggers.cron import CronTrigger

log = logging.getLogger(__name__)

JITTER_FRACTION: Final = 0.1
"""Maximum random shift of a heartbeat, as a fraction of the heartbeat interval."""
CRON_JITTER_S: Final = 60
"""Maximum random shift of a scheduled report, because many devices can have the same schedule."""
MISSED_GRACE: Final = timedelta(hours=1)
"""A scheduled report that cannot start within this time is skipped."""


class Scheduler:
    """Runs heartbeats and scheduled reports."""

    def __init__(
        self,
        *,
        send_heartbeat: Callable[[], Awaitable[None]],
        interval_s: float,
        request_report: Callable[[Kind], None],
        schedule: Schedule,
        clock: Clock,
        rng: Random,
    ) -> None:
        self._send = send_heartbeat
        self._interval_s = interval_s
        self._request_report = request_report
        self._triggers = _triggers_of(schedule)
        self._clock = clock
        self._rng = rng
        self._is_running = False
        self._next_heartbeat: asyncio.TimerHandle | None = None
        self._heartbeat: asyncio.Task[None] | None = None
        self._next_reports: dict[Kind, asyncio.TimerHandle] = {}

    def start(self) -> None:
        """Start the timers. Call inside the event loop."""
        self._is_running = True
        self._plan_heartbeat(self._pause_s())
        self._plan_reports()

    def send_heartbeat_now(self) -> None:
        """Send a heartbeat now. The next heartbeat follows after one interval."""
        if self._is_running:
            self._plan_heartbeat(0)

    def plan_anew(self) -> None:
        """Send a heartbeat now, and compute the next time of every scheduled report again.

        Call this after the clock was set or the machine slept, because a timer of the event loop
        counts neither of them.
        """
        if self._is_running:
            self.send_heartbeat_now()
            self._plan_reports()

    def stop(self) -> None:
        """Stop the timers, and cancel a running heartbeat."""
        self._is_running = False
        for timer in (self._next_heartbeat, *self._next_reports.values()):
            if timer is not None:
                timer.cancel()
        if self._heartbeat is not None:
            self._heartbeat.cancel()

    def _pause_s(self) -> float:
        return self._interval_s * self._rng.uniform(1 - JITTER_FRACTION, 1 + JITTER_FRACTION)

    def _plan_heartbeat(self, after_s: float) -> None:
        if self._next_heartbeat is not None:
            self._next_heartbeat.cancel()
        loop = asyncio.get_running_loop()
        self._next_heartbeat = loop.call_later(after_s, self._begin_heartbeat)

    def _begin_heartbeat(self) -> None:
        """Send a heartbeat, unless the previous one has not ended. Plan the next one."""
        self._plan_heartbeat(self._pause_s())
        if self._heartbeat is None or self._heartbeat.done():
            self._heartbeat = asyncio.create_task(self._send_heartbeat(), name="heartbeat")

    async def _send_heartbeat(self) -> None:
        try:
            await self._send()
        except Exception:
            log.exception("a heartbeat failed")

    def _plan_reports(self) -> None:
        for kind in self._triggers:
            self._plan_report(kind)

    def _plan_report(self, kind: Kind) -> None:
        if (timer := self._next_reports.pop(kind, None)) is not None:
            timer.cancel()
        due_at = self._triggers[kind].get_next_fire_time(None, self._now())
        if due_at is not None:  # a date such as February 30 never comes
            self._wait_for_report(kind, due_at)

    def _wait_for_report(self, kind: Kind, due_at: datetime) -> None:
        loop, wait_s = asyncio.get_running_loop(), (due_at - self._now()).total_seconds()
        self._next_reports[kind] = loop.call_later(wait_s, self._begin_report, kind, due_at)

    def _begin_report(self, kind: Kind, due_at: datetime) -> None:
        """Request a scheduled report, unless its time is still to come or long past."""
        late = self._now() - due_at
        if late < timedelta():  # the clock runs slower than the event loop's
            self._wait_for_report(kind, due_at)
            return
        self._plan_report(kind)
        if late <= MISSED_GRACE:
            self._request_report(kind)

    def _now(self) -> datetime:
        return self._clock.now().astimezone()


def _triggers_of(schedule: Schedule) -> "dict[Kind, CronTrigger]":
    kinds: tuple[Kind, ...] = get_args(Kind)
    crontabs = {kind: text for kind in kinds if (text := getattr(schedule, kind))}
    if not crontabs:
        return {}
    from apscheduler.triggers.cron import CronTrigger  # large

    triggers = {kind: CronTrigger.from_crontab(text) for kind, text in crontabs.items()}
    for trigger in triggers.values():
        trigger.jitter = CRON_JITTER_S
    return triggers
