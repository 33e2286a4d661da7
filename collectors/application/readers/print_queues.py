"""Reads the print queues of CUPS and their jobs over its local socket (IPP, RFC 8011).

For jobs, only the id, state, creation time and queue are requested, so names and owners of jobs
are never received.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.source import Fields, Origin, Reading, Unreadable, left_out, source
from collectors.shared import ipp
from collectors.shared.cups import NotRunning, query_cups
from collectors.shared.print_jobs import JOBS_REQUEST, QUEUE_NAME_MAX, Job, parse_jobs
from collectors.shared.text import clean_text

ORIGIN: Final = Origin("CUPS")
QUEUES_MAX: Final = 32
_REQUESTED_ATTRIBUTES: Final = (
    "printer-name",
    "printer-state",
    "printer-state-reasons",
    "printer-is-accepting-jobs",
)


@dataclass(frozen=True, slots=True)
class Queue:
    """A print queue. ``accepting``: whether it accepts new jobs; None if that is unknown.

    ``reasons`` are the reasons of ``state`` as keywords (printer-state-reasons of IPP).
    """

    name: str
    state: str
    accepting: bool | None
    reasons: tuple[str, ...]


Query = Callable[[bytes, float], ipp.Response]
"""Sends an IPP request and returns the response. The deadline is a time of the monotonic clock."""


@source(
    "print queues",
    ORIGIN,
    "printqueue.queues",
    "printqueue.waitingJobs",
    "printqueue.stuckJobs",
    "printqueue.oldestJobSeconds",
)
def read_print_queues(deadline: Deadline, query: Query = query_cups) -> Reading:
    """Read the queues and their jobs. Raises Unreadable or OSError if CUPS cannot be queried."""
    printers = ipp.encode_request(ipp.CUPS_GET_PRINTERS, requested=_REQUESTED_ATTRIBUTES)
    try:
        queues = parse_queues(query(printers, deadline.at))
        return queue_reading(queues, parse_jobs(query(JOBS_REQUEST, deadline.at), time.time()))
    except NotRunning as error:
        raise Unreadable("not-applicable", "no print spooler (CUPS) runs here") from error


def queue_reading(queues: Sequence[Queue], jobs: Sequence[Job]) -> Reading:
    stopped_queues = {queue.name for queue in queues if queue.state in {"stopped", "offline"}}
    oldest = max((job.age_s for job in jobs if job.age_s is not None), default=None)
    fields = [
        ORIGIN.available("printqueue.queues", tuple(queue.name for queue in queues)),
        ORIGIN.available("printqueue.waitingJobs", len(jobs)),
        ORIGIN.available("printqueue.stuckJobs", sum(job.is_stuck(stopped_queues) for job in jobs)),
        ORIGIN.fact("printqueue.oldestJobSeconds", oldest, "no job waits", "not-applicable"),
    ]
    for queue in queues[:QUEUES_MAX]:
        queue_jobs = [job for job in jobs if job.queue == queue.name]
        fields += queue_fields(
            queue, len(queue_jobs), sum(job.is_stuck(stopped_queues) for job in queue_jobs)
        )
    return Reading(tuple(fields), limitations=left_out(len(queues), QUEUES_MAX, "print queues"))


def queue_fields(queue: Queue, waiting: int, stuck: int) -> Fields:
    prefix = f"printqueue.{queue.name}"
    yield ORIGIN.available(f"{prefix}.state", queue.state)
    yield ORIGIN.fact(f"{prefix}.accepting", queue.accepting, "the spooler does not report it")
    yield ORIGIN.available(f"{prefix}.reasons", queue.reasons)
    yield ORIGIN.available(f"{prefix}.waitingJobs", waiting)
    yield ORIGIN.available(f"{prefix}.stuckJobs", stuck)


def parse_queues(response: ipp.Response) -> tuple[Queue, ...]:
    return tuple(
        Queue(
            name=clean_text(name, QUEUE_NAME_MAX),
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
