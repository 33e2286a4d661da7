"""The loops beside the calls: the sweep, what other processes changed, and the tracker."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from uuid import UUID

from sqlalchemy.orm import Session

from controlplane.accounts.key_store import note_uses, revoked_keys
from controlplane.core import Core
from controlplane.remote_control.overview.priority import note_silence, silent_devices
from controlplane.remote_control.overview.summaries import sum_up_old
from controlplane.remote_control.requests.delivery import keys_with_new_requests
from controlplane.remote_control.retention import delete_old
from controlplane.remote_control.sweep import sweep
from controlplane.remote_control.tracker import report_due, tracker_client
from controlplane.service.notify import Notifier
from controlplane.storage.notifications import listen

log = logging.getLogger("controlplane.background")
CHANGES_LOOKED_AT = timedelta(seconds=30)
"""Long enough for a slow transaction and for clocks of other machines that are a little off."""

SUMMED_UP_EVERY_S = 1.0
SUMMED_UP_AGAIN_S = 3600.0
"""A program of an older release may still run beside this one, on PostgreSQL."""


@asynccontextmanager
async def background(core: Core) -> AsyncIterator[None]:
    """Run the loops for as long as the context lasts."""
    async with AsyncExitStack() as stack:
        tasks = [
            _start("sweep", core.settings.sweep_interval_s, lambda: _sweep(core)),
            asyncio.create_task(_watch_silence(core), name="silence"),
            _start("summaries", SUMMED_UP_AGAIN_S, lambda: _sum_up_old(core)),
            _start("changes", core.settings.look_s, lambda: look_for_changes(core)),
        ]
        if core.settings.keep_reports_s is not None:
            keep = timedelta(seconds=core.settings.keep_reports_s)
            interval_s = core.settings.sweep_interval_s
            tasks.append(_start("retention", interval_s, lambda: _delete_old(core, keep)))
        notifier = Notifier()
        if notifier.watchdog_s:
            tasks.append(_start("watchdog", notifier.watchdog_s / 4, partial(_be_alive, notifier)))
        if core.postgresql is not None:
            hearing = listen(core.postgresql, core.name, core.feeds.notify)
            tasks.append(asyncio.create_task(hearing, name="notifications"))
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
            core.close_feeds()
            await core.feeds.finished()
            await core.console_feeds.finished()


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


async def look_for_changes(core: Core) -> None:
    """Find what other processes on this database did, and write down which keys were used.

    It finds what was not told: an SQLite database has no notices, and one of PostgreSQL's may be
    lost with a connection.
    """
    looked_at_s, since = core.keys.now_s(), core.clock() - CHANGES_LOOKED_AT

    def work(session: Session) -> tuple[frozenset[UUID], tuple[UUID, ...]]:
        return revoked_keys(session), keys_with_new_requests(session, since)

    revoked, asked = await core.read(work)
    core.keys.forget(revoked, looked_at_s)
    core.feeds.notify((*revoked, *asked, *core.feeds.cut))
    uses = core.keys.take_uses()
    if uses:
        await core.write(lambda session: note_uses(session, uses))


async def _be_alive(notifier: Notifier) -> None:
    notifier.alive()


async def _sweep(core: Core) -> None:
    now = core.clock()
    expired, deleted = await core.write(lambda session: sweep(session, now))
    if expired or deleted:
        log.info("expired %d requests, deleted %d old challenges", expired, deleted)


async def _watch_silence(core: Core) -> None:
    # While the service was down nobody could be heard: all get the time to return.
    await asyncio.sleep(core.settings.online_window_s)
    await _repeat("silence", core.settings.sweep_interval_s, lambda: note_silent(core))


async def note_silent(core: Core) -> None:
    """Note which devices were heard until now and are no more."""
    since = core.clock() - core.settings.online_window
    silent = await core.read(lambda session: silent_devices(session, since))
    if silent:
        await core.write(lambda session: note_silence(session, silent, since))
    for organization_id in set(silent.values()):
        core.console_feeds.notify(organization_id, silent, is_reordered=True)


async def _sum_up_old(core: Core) -> None:
    done = 0
    while reports := await core.write(sum_up_old):
        done += reports
        await asyncio.sleep(SUMMED_UP_EVERY_S)
    if done:
        log.info("summed up %d reports of an older release", done)


async def _delete_old(core: Core, keep: timedelta) -> None:
    deleted = 0
    while rows := await core.write(lambda session: delete_old(session, core.clock(), keep)):
        deleted += rows
    if deleted:
        log.info("deleted %d reports and requests older than %s", deleted, keep)
