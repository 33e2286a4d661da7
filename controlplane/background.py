"""The loops beside the calls: the sweep, and the tracker where there is one."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from controlplane.core import Core
from controlplane.remote_control.sweep import sweep
from controlplane.remote_control.tracker import report_due, tracker_client

log = logging.getLogger("controlplane.background")


@asynccontextmanager
async def background(core: Core) -> AsyncIterator[None]:
    """Run the loops for as long as the context lasts."""
    async with AsyncExitStack() as stack:
        tasks = [_start("sweep", core.settings.sweep_interval_s, lambda: _sweep(core))]
        if core.settings.tracker_url is not None:
            client = await stack.enter_async_context(tracker_client(core.settings))
            tasks.append(
                _start(
                    "tracker", core.settings.tracker_interval_s, lambda: report_due(core, client)
                )
            )
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _start(
    name: str, interval_s: float, work: Callable[[], Awaitable[object]]
) -> asyncio.Task[None]:
    return asyncio.create_task(_repeat(name, interval_s, work), name=name)


async def _repeat(name: str, interval_s: float, work: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await work()
        except Exception:
            # The boundary of a loop: one bad turn (a database away, say) must not end it.
            log.exception("%s failed, next turn in %g s", name, interval_s)
        await asyncio.sleep(interval_s)


async def _sweep(core: Core) -> None:
    now = core.clock()
    expired, deleted = await core.write(lambda session: sweep(session, now))
    if expired or deleted:
        log.info("expired %d requests, deleted %d old challenges", expired, deleted)
