"""Reads all sources in parallel, each in a thread.

If a source hangs or fails, only its own fields are missing. A thread that does not return in time
is abandoned and its result is ignored. The collector's process exits without waiting for it.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial

from collectors.application.deadline import Deadline
from collectors.application.source import Reading, Source
from collectors.shared.background import in_background

POLL_S = 0.05
"""Interval at which `read_all` checks for a cancellation. It must not be longer than 100 ms (see
`Run.cancelled`)."""

GRACE_S = 0.15
"""Time after the deadline of a source in which it can still return the reason for its delay."""

Outcome = Reading | Exception
"""The reading of a source, or the exception that it raised."""

Outcomes = dict[str, Outcome]
"""Outcomes by the name of the source. A source without an entry has not been read yet."""


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
