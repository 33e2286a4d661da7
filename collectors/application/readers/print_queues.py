"""The print queues of CUPS and the jobs in them, asked over its local socket (IPP, RFC 8011).

Only states, counts and times are asked for, so no job's name or owner is ever received.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.source import Reading, Unreadable, available, either, left_out, source
from collectors.contract import Field
from collectors.shared import ipp
from collectors.shared.cups import NotRunning, ask_cups
from collectors.shared.text import clean_text

SOURCE: Final = "CUPS"
QUEUES_MAX: Final = 32
STUCK_AFTER_S: Final = 600
"""A receipt that waits ten minutes is stuck, whatever the spooler calls it."""

_HELD, _STOPPED = 4, 6
_PRINTER_WANTED: Final = (
    "printer-name",
    "printer-state",
    "printer-state-reasons",
    "printer-is-accepting-jobs",
)
_JOB_WANTED: Final = ("job-id", "job-state", "time-at-creation", "job-printer-uri")


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    state: str
    accepting: bool | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """``age_s`` is None when the spooler does not tell when it came."""

    queue: str
    held: bool
    stopped: bool
    age_s: int | None

    def is_stuck(self, stopped_queues: Collection[str] = ()) -> bool:
        """Somebody has to do something; a job held on purpose is not stuck."""
        if self.held:
            return False
        return self.stopped or self.queue in stopped_queues or (self.age_s or 0) > STUCK_AFTER_S


Ask = Callable[[bytes, float], ipp.Response]
"""Sends an IPP request until a moment of the monotonic clock, and returns the response."""


@source(
    "print queues",
    SOURCE,
    "printqueue.queues",
    "printqueue.waitingJobs",
    "printqueue.stuckJobs",
    "printqueue.oldestJobSeconds",
)
def read_print_queues(deadline: Deadline, ask: Ask = ask_cups) -> Reading:
    """Raises Unreadable or OSError when the spooler cannot be asked."""
    printers = ipp.encode_request(ipp.CUPS_GET_PRINTERS, requested=_PRINTER_WANTED)
    jobs = ipp.encode_request(
        ipp.GET_JOBS,
        requested=_JOB_WANTED,
        printer_uri="ipp://localhost/",
        which_jobs="not-completed",
    )
    try:
        queues = parse_queues(ask(printers, deadline.at))
        return queue_reading(queues, parse_jobs(ask(jobs, deadline.at), time.time()))
    except NotRunning as error:
        raise Unreadable("not-applicable", "no print spooler (CUPS) runs here") from error


def queue_reading(queues: Sequence[Queue], jobs: Sequence[Job]) -> Reading:
    stopped = {queue.name for queue in queues if queue.state in {"stopped", "offline"}}
    oldest = max((job.age_s for job in jobs if job.age_s is not None), default=None)
    fields = [
        available("printqueue.queues", SOURCE, tuple(queue.name for queue in queues)),
        available("printqueue.waitingJobs", SOURCE, len(jobs)),
        available("printqueue.stuckJobs", SOURCE, sum(job.is_stuck(stopped) for job in jobs)),
        either("printqueue.oldestJobSeconds", SOURCE, oldest, "no job waits", "not-applicable"),
    ]
    for queue in queues[:QUEUES_MAX]:
        mine = [job for job in jobs if job.queue == queue.name]
        fields += queue_fields(queue, len(mine), sum(job.is_stuck(stopped) for job in mine))
    limitations = left_out(len(queues), QUEUES_MAX, "print queues")
    return Reading(tuple(fields), limitations=limitations)


def queue_fields(queue: Queue, waiting: int, stuck: int) -> tuple[Field, ...]:
    prefix = f"printqueue.{queue.name}"
    return (
        available(f"{prefix}.state", SOURCE, queue.state),
        either(f"{prefix}.accepting", SOURCE, queue.accepting, "the spooler does not tell it"),
        available(f"{prefix}.reasons", SOURCE, queue.reasons),
        available(f"{prefix}.waitingJobs", SOURCE, waiting),
        available(f"{prefix}.stuckJobs", SOURCE, stuck),
    )


def parse_queues(response: ipp.Response) -> tuple[Queue, ...]:
    return tuple(
        Queue(
            name=clean_text(name, 128),
            state=printer.printer_state or "unknown",
            accepting=printer.boolean("printer-is-accepting-jobs"),
            reasons=tuple(
                clean_text(reason, 64)
                for reason in printer.texts("printer-state-reasons")[:16]
                if reason != "none"
            ),
        )
        for printer in response.printers
        if (name := printer.text("printer-name"))
    )


def parse_jobs(response: ipp.Response, now: float) -> tuple[Job, ...]:
    """The unfinished jobs; ``now`` is in seconds since 1970."""
    return tuple(_job(job, now) for job in response.jobs)


def _job(job: ipp.Group, now: float) -> Job:
    state = job.integer("job-state")
    created = job.integer("time-at-creation")
    return Job(
        queue=clean_text((job.text("job-printer-uri") or "").rpartition("/")[2], 128),
        held=state == _HELD,
        stopped=state == _STOPPED,
        age_s=None if created is None else max(0, int(now - created)),
    )
