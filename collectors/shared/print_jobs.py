"""Reads the jobs in the queues of a print spooler, and tests which of them are stuck."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from collectors.shared import ipp
from collectors.shared.text import clean_text

STUCK_AFTER_S: Final = 600
"""The age in seconds after which a job is stuck, even if its queue is not stopped."""

QUEUE_NAME_MAX: Final = 128
JOBS_REQUEST: Final = ipp.encode_request(
    ipp.GET_JOBS,
    requested=("job-id", "job-state", "time-at-creation", "job-printer-uri"),
    printer_uri="ipp://localhost/",
    which_jobs="not-completed",
)
_HELD, _STOPPED = 4, 6  # values of job-state (RFC 8011, section 5.3.7)


@dataclass(frozen=True, slots=True)
class Job:
    """An unfinished job. ``age_s`` is None if the spooler does not report its time of creation."""

    queue: str
    is_held: bool
    is_stopped: bool
    age_s: int | None

    def is_stuck(self, stopped_queues: Collection[str] = ()) -> bool:
        """Return whether a user must act.

        A job is stuck if it is stopped, if its queue is one of ``stopped_queues``, or if it is
        older than `STUCK_AFTER_S`. A job that is held on purpose is never stuck.
        """
        if self.is_held:
            return False
        return self.is_stopped or self.queue in stopped_queues or (self.age_s or 0) > STUCK_AFTER_S


def parse_jobs(response: ipp.Response, now: float) -> tuple[Job, ...]:
    """Return the unfinished jobs; ``now`` is in seconds since 1970."""
    return tuple(_job(job, now) for job in response.jobs)


def _job(job: ipp.Group, now: float) -> Job:
    state, created = job.integer("job-state"), job.integer("time-at-creation")
    name = unquote(urlsplit(job.text("job-printer-uri") or "").path.rpartition("/")[2])
    return Job(
        queue=clean_text(name, QUEUE_NAME_MAX),
        is_held=state == _HELD,
        is_stopped=state == _STOPPED,
        age_s=None if created is None else max(0, int(now - created)),
    )
