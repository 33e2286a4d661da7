"""Runs every source on its own: a hung or crashing one costs its own fields and nothing else.

A thread that never returns is left behind, and its late answer ignored: the child process ends
without waiting for threads.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterable

from collectors.application.deadline import Deadline
from collectors.application.source import Reading, Source

POLL_S = 0.05
"""How often the cancellation is looked at; the contract asks for every 100 ms."""

GRACE_S = 0.15
"""What a source has, past its deadline, to say itself what it was waiting for."""


Outcome = Reading | Exception
"""A reading, or the error that stood in its way."""

Outcomes = dict[str, Outcome]
"""By the name of the source; one that is missing was not read (yet)."""


def read_all(
    sources: Iterable[Source[[]]],
    deadline: Deadline,
    cancelled: Callable[[], bool],
    told: Callable[[Outcomes], None],
) -> Outcomes:
    """Read all sources at once, until each has answered, failed or used up its time.

    ``told`` is called with everything so far whenever something came. Returns early, with fewer
    outcomes, once ``cancelled``.
    """
    answers: queue.SimpleQueue[tuple[str, Outcome]] = queue.SimpleQueue()
    waiting = {source.name: _start(source, deadline, answers) for source in sources}
    outcomes: Outcomes = {}
    while waiting and not cancelled():
        known = len(outcomes)
        for name, outcome in (*_next(answers, waiting), *_overdue(waiting)):
            if waiting.pop(name, None) is not None:
                outcomes[name] = outcome
        if len(outcomes) > known:
            told(dict(outcomes))
    return outcomes


def _start(
    source: Source[[]], deadline: Deadline, answers: "queue.SimpleQueue[tuple[str, Outcome]]"
) -> Deadline:
    own = deadline.sooner(source.deadline_s)

    def work() -> None:
        answers.put((source.name, _attempt(source, own)))

    threading.Thread(target=work, name=f"source-{source.name}", daemon=True).start()
    return own


def _attempt(source: Source[[]], deadline: Deadline) -> Outcome:
    try:
        return source.read(deadline)
    except Exception as error:  # noqa: BLE001 - the runner's boundary: becomes the source's fields
        return error


def _next(
    answers: "queue.SimpleQueue[tuple[str, Outcome]]", waiting: dict[str, Deadline]
) -> list[tuple[str, Outcome]]:
    nearest = min(deadline.remaining_s() for deadline in waiting.values())
    got = []
    try:
        got.append(answers.get(timeout=min(POLL_S, nearest + GRACE_S)))
        while True:
            got.append(answers.get_nowait())
    except queue.Empty:
        return got


def _overdue(waiting: dict[str, Deadline]) -> list[tuple[str, Outcome]]:
    now = time.monotonic()
    return [
        (name, TimeoutError("no answer within the time for it"))
        for name, deadline in waiting.items()
        if deadline.at + GRACE_S <= now
    ]
