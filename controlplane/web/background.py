"""Periodic tasks: expiry, liveness, changes by other processes, retention, webhooks."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import httpx2
from sqlalchemy.orm import Session

from agent.wire.sd_notify import Notifier
from controlplane.accounts.keys.key_store import note_uses, revoke_unused, revoked_keys
from controlplane.alerts.evaluation import evaluate_fleet
from controlplane.audit.retention import delete_old_entries
from controlplane.devices.findings.judging import judge_again, stop_counting_old_reports
from controlplane.devices.overview.summaries import store_old_contents, summarize_old_reports
from controlplane.devices.requests.requests import keys_with_new_requests
from controlplane.devices.retention import delete_old_monitoring
from controlplane.operation.permissions import permission_versions
from controlplane.pending_requests.dispatch import DispatchResult, dispatch_due, has_due
from controlplane.remote_control.report_volume import delete_old_volumes
from controlplane.remote_control.retention import delete_old, sweep
from controlplane.storage.notifications import listen, publish
from controlplane.web.accounts.oidc.session_checks import CHECK_INTERVAL_S, check_sessions
from controlplane.web.core import Core
from controlplane.web.webhooks.alerts import AlertOutbox, Receivers
from controlplane.web.webhooks.public_addresses import public_client
from controlplane.web.webhooks.sending import Outbox, send_due, webhook_client
from controlplane.web.webhooks.tracker import TrackerOutbox

log = logging.getLogger("controlplane.web.background")
Delete = Callable[[Session, datetime, timedelta], int]
"""Takes the current time and a duration. Deletes some rows that are older than the duration.
Returns the number of deleted rows, which is 0 if no such row is left."""
CHANGES_LOOKBACK = timedelta(seconds=30)
"""How far back each poll searches for new requests, by the time of their creation. A slow
transaction can commit a request long after its creation, and the clocks of machines differ
slightly."""

RETENTION_EVERY_S = 3600.0
SUMMARY_PAUSE_S = 1.0
"""Pause between two transactions that summarize old reports."""
SUMMARIES_EVERY_S = 3600.0
"""Interval of the search for reports without a summary. The search is repeated, because on
PostgreSQL a process of an older release may still run at the same time and store such reports."""


@asynccontextmanager
async def background(core: Core) -> AsyncIterator[None]:
    """Run the periodic tasks as long as the context lasts."""
    async with AsyncExitStack() as stack:
        tasks = [
            _start("sweep", core.settings.sweep_interval_s, lambda: _sweep(core)),
            _start("watch", core.settings.sweep_interval_s, lambda: watch_fleet(core)),
            _start("summaries", SUMMARIES_EVERY_S, lambda: _summarize_old_reports(core)),
            _start("monitoring retention", RETENTION_EVERY_S, lambda: _delete_old_monitoring(core)),
            _start("changes", core.settings.poll_interval_s, lambda: poll_changes(core)),
            *_start_retention(core),
        ]
        if core.provider_clients:
            check = partial(check_sessions, core)
            tasks.append(_start("session checks", CHECK_INTERVAL_S, check))
        notifier = Notifier()
        if notifier.watchdog_s:
            # Several pings fit into the timeout, so that a single late ping is harmless.
            tasks.append(_start("watchdog", notifier.watchdog_s / 4, partial(_ping, notifier)))
        if core.postgresql is not None:
            listener = listen(core.postgresql, core.name, core.feeds.notify)
            tasks.append(asyncio.create_task(listener, name="notifications"))
        tasks += await _start_outboxes(core, stack)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            core.close_feeds()
            await core.feeds.wait_for_poll()
            await core.console_feeds.wait_for_poll()


def _start_retention(core: Core) -> Iterator[asyncio.Task[None]]:
    settings = core.settings
    entries = (core, "entries of the audit log", delete_old_entries, settings.keep_audit_s)
    yield _start("audit retention", RETENTION_EVERY_S, partial(_delete_old, *entries))
    if settings.keep_reports_s is not None:
        reports = (core, "reports and requests", delete_old, settings.keep_reports_s)
        yield _start("retention", RETENTION_EVERY_S, partial(_delete_old, *reports))


async def _start_outboxes(core: Core, stack: AsyncExitStack) -> list[asyncio.Task[None]]:
    settings, tasks = core.settings, []
    operator_outboxes: list[tuple[str | None, Outbox]] = [
        (settings.tracker_url, TrackerOutbox(settings)),
        (settings.notify_url, AlertOutbox(settings)),
    ]
    for url, outbox in operator_outboxes:
        if url is None:
            continue
        client = await stack.enter_async_context(webhook_client(url, settings.delivery_timeout_s))
        send = partial(send_due, core, client, outbox)
        tasks.append(_start(outbox.name, settings.tracker_interval_s, send))
    client = await stack.enter_async_context(public_client(settings.delivery_timeout_s))
    for receivers in ("webhooks", "mail"):
        send = partial(send_to_organizations, core, client, receivers)
        tasks.append(_start(f"organizations' {receivers}", settings.tracker_interval_s, send))
    return tasks


def _start(
    name: str, interval_s: float, work: Callable[[], Awaitable[object]]
) -> asyncio.Task[None]:
    return asyncio.create_task(_repeat(name, interval_s, work), name=name)


async def _repeat(name: str, interval_s: float, work: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await work()
        except Exception:
            # Every error is caught: a failure, for example of the database, must not end the task.
            log.exception("%s failed, next attempt in %g s", name, interval_s)
        await asyncio.sleep(interval_s)


async def poll_changes(core: Core) -> None:
    """Apply changes that other processes stored in the database.

    This ends the streams of revoked keys. The streams of users whose permissions changed are
    checked: they end, or send only data that is still permitted. Polling is necessary, because
    SQLite sends no notifications, and notifications of PostgreSQL are lost while the connection is
    interrupted.

    Also stores when API keys were last used in calls to this process.
    """
    now, settings = core.clock(), core.settings
    polled_at_s, since = core.keys.now_s(), now - CHANGES_LOOKBACK
    owners = core.keys.owners().union(core.streams.owners())

    def work(
        session: Session,
    ) -> tuple[frozenset[UUID], Mapping[UUID, int], tuple[UUID, ...], bool]:
        return (
            revoked_keys(session),
            permission_versions(session, owners),
            keys_with_new_requests(session, since),
            has_due(session, now, settings),
        )

    revoked, versions, requested, has_pending = await core.read(work)
    core.keys.apply_poll(revoked, versions, polled_at_s)
    changed_credentials = core.streams.find_changed(versions)
    with_more_commands = core.feeds.keys_with_more_commands
    core.feeds.notify((*revoked, *changed_credentials, *requested, *with_more_commands))
    if changed_credentials:
        core.console_feeds.poll_again()
    uses = core.keys.take_uses()
    if uses:
        await core.write(lambda session: note_uses(session, uses))
    if has_pending:
        await dispatch_pending_requests(core)


async def dispatch_pending_requests(core: Core) -> None:
    """Dispatch the pending requests of devices that are online again."""
    now = core.clock()

    def work(session: Session) -> DispatchResult:
        result = dispatch_due(session, now, core.settings)
        publish(session, result.keys_to_notify, core.name)
        return result

    result = await core.write(work)
    core.feeds.notify(result.keys_to_notify)
    for organization_id, positions in result.changed.items():
        core.console_feeds.notify(organization_id, positions, is_reordered=False)


async def _ping(notifier: Notifier) -> None:
    notifier.alive()


async def _sweep(core: Core) -> None:
    """Expire requests, delete old challenges, stop counting old reports, and revoke unused keys."""
    now = core.clock()
    expired_count, deleted_count = await core.write(lambda session: sweep(session, now))
    if expired_count or deleted_count:
        log.info("expired requests: %d, deleted challenges: %d", expired_count, deleted_count)
    await _run_until_done(core, partial(stop_counting_old_reports, now=now))
    if revoked_count := await core.write(lambda session: revoke_unused(session, now)):
        log.info("API keys revoked because they were not used in time: %d", revoked_count)


async def watch_fleet(core: Core) -> None:
    """Update the liveness of devices, and evaluate the alert rules."""
    now = core.clock()
    changed_organizations = await core.write(
        lambda session: evaluate_fleet(session, now, core.settings)
    )
    for organization_id, positions in changed_organizations.items():
        core.console_feeds.notify(organization_id, positions, is_reordered=True)


async def _delete_old_monitoring(core: Core) -> None:
    now = core.clock()
    await core.write(lambda session: delete_old_monitoring(session, now))
    await core.write(lambda session: delete_old_volumes(session, now))


async def send_to_organizations(
    core: Core, client: httpx2.AsyncClient, receivers: Receivers
) -> int:
    """Send the due alert notifications to the webhooks or e-mail addresses of organizations.

    Returns the number of attempts.
    """
    outbox, now = AlertOutbox(core.settings, receivers), core.clock()
    total = 0
    if await core.read(lambda session: outbox.has_due(session, now)):
        while count := await send_due(core, client, outbox):
            total += count
    return total


async def _summarize_old_reports(core: Core) -> None:
    if count := await _run_until_done(core, summarize_old_reports, pause_s=SUMMARY_PAUSE_S):
        log.info("summarized %d reports of an older release", count)
    now = core.clock()
    await _run_until_done(core, partial(store_old_contents, now=now), pause_s=SUMMARY_PAUSE_S)
    if count := await _run_until_done(core, partial(judge_again, now=now), pause_s=SUMMARY_PAUSE_S):
        log.info("judged %d reports by the rules of this release", count)


async def _delete_old(core: Core, rows_name: str, delete: Delete, keep_s: float) -> None:
    keep = timedelta(seconds=keep_s)
    if count := await _run_until_done(core, lambda session: delete(session, core.clock(), keep)):
        log.info("deleted %d %s older than %s", count, rows_name, keep)


async def _run_until_done(
    core: Core, step: Callable[[Session], int], *, pause_s: float = 0.0
) -> int:
    """Run ``step`` repeatedly, each time in its own transaction, until it returns 0.

    Returns the sum of the results.
    """
    total = 0
    while count := await core.write(step):
        total += count
        await asyncio.sleep(pause_s)
    return total
