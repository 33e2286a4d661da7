"""The clock of the service: the only module that reads the wall clock."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Returns the current time in UTC."""


def system_clock() -> datetime:
    return datetime.now(UTC)
