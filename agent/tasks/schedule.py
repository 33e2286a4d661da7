"""The only timers with a period: heartbeats and scheduled reports, by APScheduler.

Jobs are made anew at each start; what must survive is in the journal and the outbox.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from agent.config import Schedule
from agent.wire.vocabulary import Kind

JITTER_FRACTION: Final = 0.1
"""Of a heartbeat's period, either way."""
CRON_JITTER_S: Final = 60
"""A fleet with one schedule must not report in one second."""
MISSED_GRACE_S: Final = 3600


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
            id="heartbeat",
        )
        crontabs: tuple[tuple[Kind, str], ...] = (
            ("network", schedule.network),
            ("application", schedule.application),
        )
        for kind, crontab in crontabs:
            if crontab:
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
        """Move the next heartbeat to the present; the period runs on from there."""
        self._scheduler.modify_job("heartbeat", next_run_time=_now())

    def stop(self) -> None:
        """Stop the timers; a heartbeat under way is cancelled with the event loop's tasks."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)


def _now() -> datetime:
    return datetime.now().astimezone() + timedelta(milliseconds=1)
