"""The timers of heartbeats and scheduled reports, run by APScheduler.

The timers are created at each start and are not stored.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, get_args

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger

from agent.config.model import Schedule
from agent.wire.vocabulary import Kind

JITTER_FRACTION: Final = 0.1
"""Maximum random shift of a heartbeat, as a fraction of the heartbeat interval."""
CRON_JITTER_S: Final = 60
"""Maximum random shift of a scheduled report. It spreads the reports of devices that have the same
schedule."""
MISSED_GRACE_S: Final = 3600
"""A scheduled report that cannot start within this time is skipped."""
HEARTBEAT: Final = "heartbeat"


class Scheduler:
    """Runs heartbeats, one every ``interval_s`` seconds, and scheduled reports."""

    def __init__(
        self,
        *,
        send_heartbeat: Callable[[], Awaitable[None]],
        interval_s: float,
        request_report: Callable[[Kind], None],
        schedule: Schedule,
    ) -> None:
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        self._send = send_heartbeat
        self._scheduler = AsyncIOScheduler(
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
        self._scheduler.add_job(
            self._send_heartbeat,
            IntervalTrigger(seconds=interval_s, jitter=interval_s * JITTER_FRACTION),
            id=HEARTBEAT,
        )
        for kind in get_args(Kind):
            if crontab := getattr(schedule, kind):
                # Imported here, because it needs 90 KiB and few devices have a schedule.
                from apscheduler.triggers.cron import CronTrigger

                trigger = CronTrigger.from_crontab(crontab)
                trigger.jitter = CRON_JITTER_S
                self._scheduler.add_job(
                    request_report,
                    trigger,
                    args=(kind,),
                    id=kind,
                    misfire_grace_time=MISSED_GRACE_S,
                )

    def start(self) -> None:
        self._scheduler.start()

    def send_heartbeat_now(self) -> None:
        """Send a heartbeat now. The next heartbeat follows after one interval."""
        if self._scheduler.running:
            self._scheduler.modify_job(HEARTBEAT, next_run_time=_now())

    def reschedule(self) -> None:
        """Send a heartbeat now, and compute the next time of every scheduled report again.

        Call this after the clock was set or the machine slept. The times that APScheduler has
        computed are then wrong.
        """
        self.send_heartbeat_now()
        for job in self._scheduler.get_jobs():
            if job.id != HEARTBEAT:
                job.modify(next_run_time=job.trigger.get_next_fire_time(None, _now()))

    def stop(self) -> None:
        """Stop the timers, and cancel a running heartbeat."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    async def _send_heartbeat(self) -> None:
        try:
            await self._send()
        except asyncio.CancelledError:
            # APScheduler would log the cancelled job as an error. During `stop`, a cancelled job is
            # normal.
            if self._scheduler.running:
                raise


def _now() -> datetime:
    return datetime.now().astimezone()
