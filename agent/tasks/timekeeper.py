"""Notices that the machine slept or that its clock was set, and tells who has to know."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agent.adapters.clock import Clock
from agent.rules.time_jump import Look, TimeJump, jump_between

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 20.0

OnJump = Callable[[TimeJump], None]


@dataclass(slots=True, eq=False)
class Timekeeper:
    """``on_jump`` is called after each jump."""

    clock: Clock
    on_jump: OnJump

    async def run(self) -> None:
        """Compare the clocks, for ever."""
        before = self._look()
        while True:
            await self.clock.sleep(LOOK_EVERY_S)
            after = self._look()
            jump = jump_between(before, after, meant_s=LOOK_EVERY_S)
            before = after
            if jump is not None:
                log.warning("%s: timers and connections are begun anew", jump.in_words())
                self.on_jump(jump)

    def _look(self) -> Look:
        return Look(self.clock.now(), self.clock.monotonic())
