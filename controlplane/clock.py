"""The wall clock of the service. The command line and the clients read the time themselves."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final

Clock = Callable[[], datetime]
"""Returns the current time in UTC."""
system_clock: Final[Clock] = partial(datetime.now, UTC)
