"""The wall clock of the service, and of the commands that work directly on its database."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final

Clock = Callable[[], datetime]
"""Returns the current time in UTC."""
system_clock: Final[Clock] = partial(datetime.now, UTC)
