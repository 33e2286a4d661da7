"""The periodic timers: heartbeats and scheduled reports, by APScheduler.

Jobs are created at each start; persistent state is in the journal and the outbox.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, get_args

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from agent.config.model import Schedule
from agent.wire.vocabulary import Kind

JITTER_FRACTION: Final = 0.1
"""Part of the heartbeat interval by which each heartbeat varies."""
CRON_JITTER_S: Final = 60
"""Spreads the reports of a fleet with one schedule."""
MISSED_GRACE_S: Final = 3600
HEARTBEAT: Final = "heartbeat"


class Scheduler:
    """Runs heartbeats and scheduled reports."""

    def __init__(
        self,
        *,
        send_heartbeat: Callable[[], Awaitable[None]],
        interval_s: float,
        want_report: Callable[[Kind], None],
        schedule: Schedule,
    ) -> None:
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        self._scheduler = AsyncIOScheduler(
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
        self._scheduler.add_job(
            send_heartbeat,
            IntervalTrigger(seconds=interval_s, jitter=interval_s * JITTER_FRACTION),
            id=HEARTBEAT,
        )
        for kind in get_args(Kind):
            if crontab := getattr(schedule, kind):
                trigger = CronTrigger.from_crontab(crontab)
                trigger.jitter = CRON_JITTER_S
                self._scheduler.add_job(
                    want_report,
                    trigger,
                    args=(kind,),
                    id=kind,
                    misfire_grace_time=MISSED_GRACE_S,
                )

    def start(self) -> None:
        self._scheduler.start()

    def send_heartbeat_now(self) -> None:
        """Send the next heartbeat now; the interval restarts."""
        if self._scheduler.running:
            self._scheduler.modify_job(HEARTBEAT, next_run_time=_now())

    def plan_anew(self) -> None:
        """Send a heartbeat now, and compute the next time of every other job again.

        APScheduler uses the wall clock, which was just set, or continued during sleep.
        """
        self.send_heartbeat_now()
        for job in self._scheduler.get_jobs():
            if job.id != HEARTBEAT:
                job.modify(next_run_time=job.trigger.get_next_fire_time(None, _now()))

    def stop(self) -> None:
        """Stop the timers. A running heartbeat is cancelled with the event loop's tasks."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)


def _now() -> datetime:
    return datetime.now().astimezone()
