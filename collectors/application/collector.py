"""Takes the application snapshot: reads all sources in parallel and puts the facts in order.

Each source runs in a thread. If a source hangs or fails, only its own fields are missing. A thread
that does not return in time is abandoned and its result is ignored. The collector's process exits
without waiting for it.
"""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from collectors.application.deadline import Deadline
from collectors.application.registry import sources_before_confinement
from collectors.application.source import Reading, Source, status_of
from collectors.contract import ApplicationFacts, ApplicationJob, Failure, FieldStatus, Run
from collectors.shared.background import in_background

RESERVE_S = 0.3
"""The part of the job's time that is reserved for assembling and writing the facts."""

POLL_S = 0.05
"""Interval at which `read_all` checks for a cancellation. It must not be longer than 100 ms (see
`Run.cancelled`)."""

GRACE_S = 0.15
"""Time after the deadline of a source in which it can still return the reason for its delay."""

Outcome = Reading | Exception
"""The reading of a source, or the exception that it raised."""

Outcomes = dict[str, Outcome]
"""Outcomes by the name of the source. A source without an entry has not been read yet."""


def application_collector(job: ApplicationJob) -> Callable[[Run], ApplicationFacts]:
    """Return the function that takes the snapshot of this machine within ``job.max_duration_s``.

    Call this function before the process is confined: it starts programs that the confinement
    forbids. Call the returned function afterwards.
    """
    sources = sources_before_confinement(sys.platform, job)
    return partial(take_snapshot, sources, job.max_duration_s)


def take_snapshot(
    sources: Sequence[Source[[]]], max_duration_s: float, run: Run
) -> ApplicationFacts:
    """Read ``sources``, report the progress, and assemble the facts."""
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    started_s = time.monotonic()

    def assemble(outcomes: Outcomes, *, cancelled: bool = False) -> ApplicationFacts:
        """Return the facts in the order of the sources. Every declared key is present."""
        readings = [(source, _reading(source, outcomes.get(source.name))) for source in sources]
        return ApplicationFacts(
            started_at=started_at,
            duration_ms=round((time.monotonic() - started_s) * 1000, 1),
            fields=tuple(f for source, r in readings if not source.in_browser for f in r.fields),
            interfaces=tuple(entry for _, reading in readings for entry in reading.interfaces),
            peripherals=tuple(entry for _, reading in readings for entry in reading.peripherals),
            browser_fields=tuple(
                f for source, r in readings if source.in_browser for f in r.fields
            ),
            learned=tuple(printer for _, reading in readings for printer in reading.learned),
            strangers=tuple(stranger for _, reading in readings for stranger in reading.strangers),
            failures=_failures(sources, outcomes),
            limitations=tuple(text for _, reading in readings for text in reading.limitations),
            truncated=any(reading.truncated for _, reading in readings),
            cancelled=cancelled,
        )

    def report(outcomes: Outcomes) -> None:
        run.progress("sources", len(outcomes), len(sources))
        run.checkpoint(assemble(outcomes))

    deadline = Deadline.after(max(0.1, max_duration_s - RESERVE_S))
    outcomes = read_all(sources, deadline, lambda: run.cancelled, report)
    return assemble(outcomes, cancelled=run.cancelled)


def _reading(source: Source[[]], outcome: Outcome | None) -> Reading:
    """Return the reading of a source.

    For each declared key that the source did not report, the reading has a field with a status and
    a reason instead of a value.
    """
    reading = outcome if isinstance(outcome, Reading) else Reading()
    status, reason = _why_missing(outcome)
    present = {field.key for field in reading.fields}
    missing = (key for key in source.keys if key not in present)
    absences = source.origin.all_absent(missing, status, reason)
    return replace(reading, fields=(*reading.fields, *absences))


def _why_missing(outcome: Outcome | None) -> tuple[FieldStatus, str]:
    if outcome is None:
        return "collection-failed", "the collection ended before this was read"
    if isinstance(outcome, Reading):
        return "collection-failed", "the source did not report it"
    return status_of(outcome)


def _failures(sources: Sequence[Source[[]]], outcomes: Outcomes) -> tuple[Failure, ...]:
    """Return a failure for each source that failed in whole or in part.

    A source does not count as failed if the system denied access, if the source does not apply to
    this machine, or if the run was cancelled before the source was read.
    """
    return tuple(
        Failure(source.name, reason)
        for source in sources
        if (reason := _failure_reason(outcomes.get(source.name))) is not None
    )


def _failure_reason(outcome: Outcome | None) -> str | None:
    if isinstance(outcome, Exception):
        status, reason = status_of(outcome)
        return reason if status == "collection-failed" else None
    fields = outcome.fields if outcome else ()
    return next((f.reason for f in fields if f.status == "collection-failed"), None)


def read_all(
    sources: Iterable[Source[[]]],
    deadline: Deadline,
    is_cancelled: Callable[[], bool],
    report: Callable[[Outcomes], None],
) -> Outcomes:
    """Read all sources in parallel until each has returned, failed or exceeded its time.

    ``report`` is called with all outcomes so far whenever a source has ended. If ``is_cancelled``
    returns True, this function returns early, without the outcomes of the remaining sources.
    """
    futures: dict[Future[Reading], tuple[str, Deadline]] = {}
    for source in sources:
        source_deadline = deadline.sooner(source.limit_s)
        future = in_background(partial(source, source_deadline), f"source-{source.name}")
        futures[future] = source.name, source_deadline
    outcomes: Outcomes = {}
    while futures and not is_cancelled():
        nearest_s = min(source_deadline.remaining_s() for _, source_deadline in futures.values())
        timeout_s = min(POLL_S, nearest_s + GRACE_S)
        done_futures, _ = wait(futures, timeout=timeout_s, return_when=FIRST_COMPLETED)
        now = time.monotonic()
        ended_futures = [
            f
            for f, (_, source_deadline) in futures.items()
            if f in done_futures or source_deadline.at + GRACE_S <= now
        ]
        for future in ended_futures:
            outcomes[futures.pop(future)[0]] = _outcome(future)
        if ended_futures:
            report(dict(outcomes))
    return outcomes


def _outcome(future: "Future[Reading]") -> Outcome:
    if not future.done():
        return TimeoutError("no answer within the time limit")
    error = future.exception()
    return error if isinstance(error, Exception) else future.result()
