"""The only timers with a period: heartbeats and scheduled reports, by APScheduler.

Jobs are made anew at each start; what must survive is in the journal and the outbox.
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
"""Of a heartbeat's period, either way."""
CRON_JITTER_S: Final = 60
"""A fleet with one schedule must not report in one second."""
MISSED_GRACE_S: Final = 3600
HEARTBEAT: Final = "heartbeat"


class Scheduler:
    def __init__(
        self,
        *,
        beat: Callable[[], Awaitable[None]],
        interval_s: float,
        want_report: Callable[[Kind], None],
        schedule: Schedule,
    ) -> None:
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        self._scheduler = AsyncIOScheduler(
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
        self._scheduler.add_job(
            beat,
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

    def beat_now(self) -> None:
        """Move the next heartbeat to now; the period begins anew with it."""
        if self._scheduler.running:
            self._scheduler.modify_job(HEARTBEAT, next_run_time=_now())

    def plan_anew(self) -> None:
        """Beat now and find every other job's next time again.

        APScheduler counts on the wall clock, which has just been set or has run on in sleep.
        """
        self.beat_now()
        for job in self._scheduler.get_jobs():
            if job.id != HEARTBEAT:
                job.modify(next_run_time=job.trigger.get_next_fire_time(None, _now()))

    def stop(self) -> None:
        """Stop the timers; a heartbeat under way is cancelled with the event loop's tasks."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)


def _now() -> datetime:
    return datetime.now().astimezone()
