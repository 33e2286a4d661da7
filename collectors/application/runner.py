"""Reads all sources at once, so that one that hangs or fails costs only its own fields.

A thread that never returns is abandoned and its late result ignored: the child process exits
without waiting for threads.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial

from collectors.application.deadline import Deadline
from collectors.application.source import Reading, Source
from collectors.shared.background import in_background

POLL_S = 0.05
"""How often the cancellation is checked. The contract requires a check every 100 ms."""

GRACE_S = 0.15
"""Time after its deadline in which a source can still report what it was waiting for."""

Outcome = Reading | Exception
"""A reading, or the error that prevented it."""

Outcomes = dict[str, Outcome]
"""By the name of the source. A missing name was not read (yet)."""


def read_all(
    sources: Iterable[Source[[]]],
    deadline: Deadline,
    cancelled: Callable[[], bool],
    report: Callable[[Outcomes], None],
) -> Outcomes:
    """Read all sources at once, until each has returned, failed or used up its time.

    ``report`` is called with all outcomes so far whenever there are new ones. Returns early, with
    fewer outcomes, once ``cancelled``.
    """
    waiting: dict[Future[Reading], tuple[str, Deadline]] = {}
    for source in sources:
        own = deadline.sooner(source.deadline_s)
        future = in_background(partial(source, own), f"source-{source.name}")
        waiting[future] = source.name, own
    outcomes: Outcomes = {}
    while waiting and not cancelled():
        nearest_s = min(own.remaining_s() for _, own in waiting.values())
        timeout_s = min(POLL_S, nearest_s + GRACE_S)
        done, _ = wait(waiting, timeout=timeout_s, return_when=FIRST_COMPLETED)
        now = time.monotonic()
        ended = [f for f, (_, own) in waiting.items() if f in done or own.at + GRACE_S <= now]
        for future in ended:
            outcomes[waiting.pop(future)[0]] = _outcome(future)
        if ended:
            report(dict(outcomes))
    return outcomes


def _outcome(future: "Future[Reading]") -> Outcome:
    if not future.done():
        return TimeoutError("no answer within the time for it")
    error = future.exception()
    return error if isinstance(error, Exception) else future.result()
