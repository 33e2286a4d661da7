"""What every endpoint shares: the database in worker threads, the limits, the keys, the streams."""

import asyncio
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from uuid import UUID

from sqlalchemy.orm import Session

from agent.wire.device_operations import Command
from controlplane.accounts.key_cache import KeyCache
from controlplane.accounts.open_streams import OpenStreams
from controlplane.accounts.passwords import Passwords
from controlplane.accounts.sign_in_links import SignInLinks
from controlplane.clock import Clock
from controlplane.devices.overview.console_feeds import ConsoleFeeds, Snapshot
from controlplane.devices.overview.polling import ConsolePoller
from controlplane.devices.overview.report_changes import ReportChangeCache
from controlplane.devices.requests.command_feeds import CommandFeeds
from controlplane.devices.requests.delivery import waiting_by_key
from controlplane.operation.body_reader import BodyReader
from controlplane.operation.errors import unavailable
from controlplane.operation.fairness import Fairness
from controlplane.operation.rate_limit import RateLimit
from controlplane.settings import Settings
from controlplane.storage.database import Database, DatabaseBusyError
from controlplane.storage.transactions import Transactions
from controlplane.web.observability.metrics import Metrics
from controlplane.web.signing_keys import CachedSigningKeys

Result = TypeVar("Result")
SIGN_INS_PER_S = 1.0
SIGN_INS_BURST = 30
"""Tries to sign in from one address: beyond them the database is not even asked who failed."""


class Core:
    """Owns its threads; ``close`` ends them. The database is the caller's."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        clock: Clock,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        thread_time: Callable[[], float] = time.thread_time,
    ) -> None:
        """``monotonic`` and ``thread_time`` return seconds: limits and caches are measured by the
        first, what a call takes of the processor by the second."""
        self.settings = settings
        self.clock = clock
        self.monotonic = monotonic
        self.thread_time = thread_time
        self.feeds = CommandFeeds(self._waiting)
        self._console_poller = ConsolePoller(settings)
        self.console_feeds = ConsoleFeeds(self._shown)
        self.changes = ReportChangeCache()
        self.keys = KeyCache(settings.key_cached_s, monotonic)
        self.streams = OpenStreams()
        self.sign_in_links = SignInLinks()
        self.passwords = Passwords(settings.argon2_memory_kib, settings.argon2_passes)
        self.sign_ins = RateLimit(SIGN_INS_PER_S, SIGN_INS_BURST, monotonic)
        self.fairness = Fairness(settings, monotonic)
        self.metrics = Metrics()
        self.postgresql = database.postgresql
        self.name = secrets.token_hex(8)
        """Tells this service from others on the same database."""
        self.body_reader = BodyReader()
        self.signing_keys = CachedSigningKeys(self)
        self._database = database
        self._threads = ThreadPoolExecutor(settings.worker_threads, "database")

    async def read(self, work: Callable[[Session], Result]) -> Result:
        return await self.run(lambda transactions: transactions.read(work))

    async def write(self, work: Callable[[Session], Result]) -> Result:
        return await self.run(lambda transactions: transactions.write(work))

    async def run(self, job: Callable[[Transactions], Result]) -> Result:
        """Run ``job`` in a thread: what it does before its transaction holds up no other."""
        loop = asyncio.get_running_loop()
        observe = self.metrics.transacted
        transactions = Transactions(self._database, observe, time.perf_counter())
        try:
            return await loop.run_in_executor(self._threads, job, transactions)
        except DatabaseBusyError as error:
            raise unavailable(str(error)) from error

    def close(self) -> None:
        self.close_feeds()
        self._threads.shutdown()
        self.passwords.close()
        self.body_reader.close()

    def close_feeds(self) -> None:
        """End every stream."""
        self.feeds.close()
        self.console_feeds.close()

    async def _waiting(self, key_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[Command]]:
        now = self.clock()
        return await self.read(lambda session: waiting_by_key(session, key_ids, now))

    async def _shown(
        self, changed: Collection[int], shown: Collection[int], key_ids: Collection[UUID]
    ) -> Snapshot:
        now, poll = self.clock(), self._console_poller.poll
        return await self.read(lambda session: poll(session, now, changed, shown, key_ids))
