"""The application snapshot: reads every source at once and puts the facts in a fixed order."""

import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

from collectors.application.deadline import Deadline
from collectors.application.registry import sources_before_confinement
from collectors.application.runner import Outcome, Outcomes, read_all
from collectors.application.source import Reading, Source, all_absent, status_of
from collectors.contract import ApplicationFacts, ApplicationJob, Failure, Run

RESERVE_S = 0.3
"""Kept of the job's time for putting the facts together and writing them."""


def application_collector(job: ApplicationJob) -> Callable[[Run], ApplicationFacts]:
    """Return what takes the snapshot of this machine within ``job.max_duration_s``.

    To be called before the process confines itself, what it returns after.
    """
    sources = sources_before_confinement(sys.platform, job)
    return partial(snapshot, sources, job.max_duration_s)


def snapshot(sources: Sequence[Source[[]]], max_duration_s: float, run: Run) -> ApplicationFacts:
    """Read ``sources``, tell each step, and assemble what came."""
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    started = time.monotonic()

    def facts(outcomes: Outcomes, *, cancelled: bool = False) -> ApplicationFacts:
        duration_ms = round((time.monotonic() - started) * 1000, 1)
        return assemble(sources, outcomes, started_at, duration_ms, cancelled=cancelled)

    def told(outcomes: Outcomes) -> None:
        run.progress("sources", len(outcomes), len(sources))
        run.checkpoint(facts(outcomes))

    deadline = Deadline.after(max(0.1, max_duration_s - RESERVE_S))
    outcomes = read_all(sources, deadline, lambda: run.cancelled, told)
    return facts(outcomes, cancelled=run.cancelled)


def assemble(
    sources: Sequence[Source[[]]],
    outcomes: Outcomes,
    started_at: str,
    duration_ms: float,
    *,
    cancelled: bool = False,
) -> ApplicationFacts:
    """Put readings together in the order of ``sources``; every key owed is in the result."""
    readings = [_reading(source, outcomes.get(source.name)) for source in sources]
    return ApplicationFacts(
        started_at=started_at,
        duration_ms=duration_ms,
        fields=tuple(field for reading in readings for field in reading.fields),
        interfaces=tuple(entry for reading in readings for entry in reading.interfaces),
        peripherals=tuple(entry for reading in readings for entry in reading.peripherals),
        browser_fields=tuple(field for reading in readings for field in reading.browser_fields),
        failures=_failures(sources, outcomes),
        limitations=tuple(text for reading in readings for text in reading.limitations),
        truncated=any(reading.truncated for reading in readings),
        cancelled=cancelled,
    )


def _reading(source: Source[[]], outcome: Outcome | None) -> Reading:
    if outcome is not None and outcome.reading is not None:
        return _with_every_key(source, outcome.reading)
    if outcome is None or outcome.error is None:
        return _missing(source, Reading(), "the run ended before this was read")
    status, reason = status_of(outcome.error)
    fields = all_absent(source.keys, source.origin, status, reason)
    return Reading(browser_fields=fields) if source.in_browser else Reading(fields=fields)


def _with_every_key(source: Source[[]], reading: Reading) -> Reading:
    return _missing(source, reading, "the source did not say")


def _missing(source: Source[[]], reading: Reading, reason: str) -> Reading:
    told = reading.browser_fields if source.in_browser else reading.fields
    present = {field.key for field in told}
    owed = [key for key in source.keys if key not in present]
    fields = (*told, *all_absent(owed, source.origin, "collection-failed", reason))
    return Reading(
        fields=reading.fields if source.in_browser else fields,
        browser_fields=fields if source.in_browser else reading.browser_fields,
        interfaces=reading.interfaces,
        peripherals=reading.peripherals,
        limitations=reading.limitations,
        truncated=reading.truncated,
    )


def _failures(sources: Sequence[Source[[]]], outcomes: Outcomes) -> tuple[Failure, ...]:
    """One failure for each source that broke, as a whole or in part; a refusal is none."""
    return tuple(
        Failure(source.name, reason)
        for source in sources
        if (reason := _broken(outcomes.get(source.name))) is not None
    )


def _broken(outcome: Outcome | None) -> str | None:
    if outcome is None:
        return None
    if outcome.error is not None:
        status, reason = status_of(outcome.error)
        return reason if status == "collection-failed" else None
    reading = outcome.reading or Reading()
    every = (*reading.fields, *reading.browser_fields)
    return next((f.reason for f in every if f.status == "collection-failed"), None)
