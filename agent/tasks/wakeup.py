"""Waits for an event with a time limit."""

import asyncio
from typing import Any

from agent.adapters.clock import Clock


async def wait_at_most(event: asyncio.Event, seconds: float | None, clock: Clock) -> None:
    """Return when ``event`` is set, or after ``seconds``; None means no limit."""
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(event.wait())]
    if seconds is not None:
        waits.append(asyncio.ensure_future(clock.sleep(seconds)))
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waits:
            waiter.cancel()
