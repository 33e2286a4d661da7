"""A time limit for tests of code that must not need quadratic time."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_LIMIT_S = 60.0
"""With the tests' inputs, quadratic code takes minutes, and linear code a fraction of a second."""


@contextmanager
def generous_time_limit() -> Iterator[None]:
    """Raise TimeoutError in the block after a minute of processor time.

    The limit does not measure the speed of the code. It only stops code that would run for a very
    long time.
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
