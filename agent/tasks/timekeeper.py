"""Detects that the machine slept or that its clock was set."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agent.adapters.clock import Clock
from agent.rules.time_jump import ClockReading, TimeJump, jump_between

log = logging.getLogger(__name__)

CHECK_EVERY_S: Final = 20.0

OnJump = Callable[[TimeJump], None]


@dataclass(slots=True, eq=False)
class Timekeeper:
    """``on_jump`` is called after each jump."""

    clock: Clock
    on_jump: OnJump

    async def run(self) -> None:
        """Compare the clocks, forever."""
        before = self._reading()
        while True:
            await self.clock.sleep(CHECK_EVERY_S)
            after = self._reading()
            jump = jump_between(before, after, meant_s=CHECK_EVERY_S)
            before = after
            if jump is not None:
                log.warning("%s: restarting timers and connections", jump.describe())
                self.on_jump(jump)

    def _reading(self) -> ClockReading:
        return ClockReading(self.clock.now(), self.clock.monotonic())
