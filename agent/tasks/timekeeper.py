"""Detects that the machine has slept, or that its clock was set."""

import logging
from collections.abc import Callable
from typing import Final

from agent.adapters.clock import Clock
from agent.rules.time_jump import ClockReading, TimeJump, jump_between

log = logging.getLogger(__name__)

CHECK_EVERY_S: Final = 20.0


async def watch_clocks(clock: Clock, on_jump: Callable[[TimeJump], None]) -> None:
    """Compare the wall clock with the monotonic clock, forever. Calls ``on_jump`` after a jump."""
    before = ClockReading(clock.now(), clock.monotonic())
    while True:
        await clock.sleep(CHECK_EVERY_S)
        after = ClockReading(clock.now(), clock.monotonic())
        jump = jump_between(before, after, planned_s=CHECK_EVERY_S)
        before = after
        if jump is not None:
            log.warning("%s: restarting timers and connections", jump.describe())
            on_jump(jump)
