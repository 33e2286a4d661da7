"""What time it is: the one place where the service reads the wall clock."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Tells the present moment, in UTC."""


def system_clock() -> datetime:
    return datetime.now(UTC)
