"""A limit for code whose time must not grow with the square of its input."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_LIMIT_S = 60.0
"""Code with quadratic time takes minutes, and all other code a fraction of a second."""


@contextmanager
def generous_time_limit() -> Iterator[None]:
    """Interrupt the block with TimeoutError after a minute of processor time.

    The limit is not a measurement: it only stops code that would never end.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"not done after {_LIMIT_S:g} s of processor time")

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, _LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
