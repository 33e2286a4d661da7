"""The state that every endpoint shares: database threads, limits, API keys and streams."""

import asyncio
import math
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from functools import partial
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from sqlalchemy.orm import Session

from agent.wire.device_operations import Command
from controlplane.accounts.keys.key_cache import KeyCache
from controlplane.accounts.keys.key_reader import KeyReader
from controlplane.accounts.oidc.providers import IdentityProvider
from controlplane.accounts.open_streams import OpenStreams
from controlplane.accounts.passwords import Passwords
from controlplane.accounts.refused_sign_ins import RefusedSignIns
from controlplane.accounts.sign_in_links import SignInLinks
from controlplane.clock import Clock
from controlplane.devices.overview.console_feeds import ConsoleFeeds, Snapshot
from controlplane.devices.overview.polling import ConsolePoller
from controlplane.devices.overview.report_changes import ReportChangeCache
from controlplane.devices.requests.command_feeds import CommandFeeds
from controlplane.devices.requests.requests import waiting_by_key
from controlplane.operation.body_reader import BodyReader
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import unavailable
from controlplane.operation.fairness import Fairness, FairQueue, RateLimit
from controlplane.operation.permissions import callers_of_key_hashes
from controlplane.retail.credentials import signing_keys
from controlplane.retail.credentials.signing_keys import SigningKeys
from controlplane.settings import Settings
from controlplane.storage.database import Database, DatabaseBusyError
from controlplane.web.accounts.oidc.provider_client import ProviderClient
from controlplane.web.long_calls import Answer, LongCalls
from controlplane.web.observability.metrics import Metrics, Transaction

Argument = TypeVar("Argument")
Result = TypeVar("Result")
Work = Callable[[Session], Result]
SIGN_INS_PER_S = 1.0
SIGN_INS_BURST = 30
"""Limits of the attempts to sign in from one network. Attempts beyond the limits do not
reach the database."""
SQLITE_CALLS_MAX = 3
"""Maximum number of calls that read or write an SQLite database at once. The driver releases the
interpreter lock for each row. The more calls run at once, the more often threads pass on this lock.
With three calls at once, a call with 80 rows takes a third less processor time than with seven."""


class Transact(Protocol):
    """Runs ``work`` in a transaction, and measures its duration."""

    def __call__(self, kind: Transaction, work: Work[Result], /) -> Result: ...


Renew = Callable[[Session, Caller, datetime], Caller]
"""Returns the caller with its current permissions. Raises a refusal if the credential has ended."""


@dataclass(frozen=True, slots=True)
class CallState:
    """The time of a call, the settings, and the key that signs cursors."""

    now: datetime
    settings: Settings
    cursor_key: bytes


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """One call of an operation.

    Long operations can run in separate processes. Their calls and results are then pickled.

    Attributes:
        work: the operation. It runs in one transaction.
        finish: takes the result of ``work``, for example to encode it. It runs after the commit.
        arguments: the second argument of ``work``.
        free_s: processor seconds of the call that are not charged to the API key's limit for large
            bodies (`Fairness.charge`). By default, nothing is charged to this limit.
        renew: reads the permissions of the caller again inside the transaction.
        page_size: page size that the caller requested.
        address: IP address of the caller.
    """

    caller: Caller
    state: CallState
    work: Callable[[RequestContext, Any], Any]
    finish: Callable[[Any], Result]
    arguments: Any
    _: KW_ONLY
    free_s: float = math.inf
    renew: Renew | None = None
    page_size: int | None = None
    address: str = ""

    def context(self, session: Session) -> RequestContext:
        caller, now = self.caller, self.state.now
        if self.renew is not None:
            caller = self.renew(session, caller, now)
        settings, cursor_key = self.state.settings, self.state.cursor_key
        return RequestContext(
            session, caller, now, settings, cursor_key, self.page_size, self.address
        )

    def answer(self, database: Database, thread_time: Callable[[], float]) -> Answer:
        """Run the call, which only reads. Returns an error instead of raising it."""
        began_s, processor_began_s = time.perf_counter(), thread_time()
        result, error, read_s = None, None, 0.0
        try:
            result = database.read(lambda session: self.work(self.context(session), self.arguments))
            read_s = time.perf_counter() - began_s
            result = self.finish(result)
        except Exception as raised:  # noqa: BLE001 - raised later, after the caller was charged
            error = raised
        return Answer(result, error, thread_time() - processor_began_s, read_s)


class Core:
    """The state that every endpoint shares.

    ``close`` ends its threads and processes. It does not close the database.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        clock: Clock,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        thread_time: Callable[[], float] = time.thread_time,
        long_calls: LongCalls | None = None,
        identity_providers: Sequence[IdentityProvider] = (),
    ) -> None:
        """
        Args:
            identity_providers: providers with which users sign in by OpenID Connect.
            long_calls: runs operations that can take long. By default, they run in threads.
            monotonic: returns seconds, for limits and caches.
            thread_time: returns seconds of processor time of the current thread.
        """
        self.settings = settings
        self.clock = clock
        self.monotonic = monotonic
        self.thread_time = thread_time
        self.feeds = CommandFeeds(self._read_waiting_commands)
        self._console_poller = ConsolePoller(settings)
        self.console_feeds = ConsoleFeeds(self._poll_console)
        self.changes = ReportChangeCache()
        self.keys = KeyCache(settings.key_cached_s, monotonic)
        self.key_reader = KeyReader(
            lambda hashes: self.read(partial(callers_of_key_hashes, hashes=hashes))
        )
        self.streams = OpenStreams()
        self.sign_in_links = SignInLinks()
        self.passwords = Passwords(settings.argon2_memory_kib, settings.argon2_passes)
        self.sign_ins = RateLimit(SIGN_INS_PER_S, SIGN_INS_BURST, monotonic)
        self.provider_clients = {
            each.id: ProviderClient(each, monotonic) for each in identity_providers
        }
        self.refused_sign_ins = RefusedSignIns(monotonic)
        self.fairness = Fairness(settings, monotonic)
        self.metrics = Metrics()
        self.postgresql = database.postgresql
        self.name = secrets.token_hex(8)
        """Distinguishes this process from other processes of the service on the same database."""
        self.body_reader = BodyReader()
        self._signing_keys: SigningKeys | None = None
        self._signing_keys_read_at_s = 0.0
        self._database = database
        self._threads = ThreadPoolExecutor(settings.worker_threads, "database")
        calls_max = settings.worker_threads - 1  # one thread stays free (`run_for`)
        if database.postgresql is None:
            calls_max = min(calls_max, SQLITE_CALLS_MAX)
        self._turns = FairQueue(max(1, calls_max))
        self._long_calls = long_calls or LongCalls.in_threads(database, settings, thread_time)
        self._parsing = ThreadPoolExecutor(1, "bodies")

    @property
    def identity_providers(self) -> Sequence[IdentityProvider]:
        return [each.provider for each in self.provider_clients.values()]

    async def read(self, work: Callable[[Session], Result]) -> Result:
        return await self.run(lambda transact: transact("read", work))

    async def write(
        self, work: Callable[[Session], Result], callers: Collection[Caller] = ()
    ) -> Result:
        return await self.run(lambda transact: transact("write", work), callers)

    async def run(
        self,
        job: Callable[[Transact], Result],
        callers: Collection[Caller] = (),
        *,
        free_s: float = math.inf,
        queued_s: float | None = None,
    ) -> Result:
        """Run ``job`` in a thread. ``job`` calls its argument to run a transaction.

        Work that ``job`` does outside its transactions does not make them longer.

        Args:
            callers: they are charged equal parts of the processor time of ``job``.
            free_s: seconds of each part that are not charged to the limit for large bodies
                (`Fairness.charge`). By default, nothing is charged to this limit.
            queued_s: when the job was queued, by `time.perf_counter`. The default is now.
        """
        took_s: list[float] = []
        queue_time_s = time.perf_counter() if queued_s is None else queued_s

        def transact(kind: Transaction, work: Work[Any]) -> Any:
            return self._transact(kind, work, queue_time_s)

        measured = self.timed(job, took_s)
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, measured, transact
            )
        except DatabaseBusyError as error:
            raise unavailable(str(error)) from error
        finally:
            for caller in callers:
                self.fairness.charge(caller, sum(took_s) / len(callers), free_s=free_s)

    def timed(
        self, work: Callable[[Argument], Result], took_s: list[float]
    ) -> Callable[[Argument], Result]:
        """Return a function that calls ``work`` and appends its processor seconds to ``took_s``."""

        def measured(argument: Argument) -> Result:
            began_s = self.thread_time()
            try:
                return work(argument)
            finally:
                took_s.append(self.thread_time() - began_s)

        return measured

    async def read_for(self, caller: Caller, work: Callable[[Session], Result]) -> Result:
        return await self.run_for(caller, lambda transact: transact("read", work))

    async def run_for(
        self, caller: Caller, job: Callable[[Transact], Result], *, free_s: float = math.inf
    ) -> Result:
        """Run ``job`` for one caller. Organizations take turns.

        If there are several threads, one always stays free. Heartbeats and background tasks do not
        wait for a turn.
        """
        queued_s = time.perf_counter()
        async with self._turns.turn(caller.organization_id):
            return await self.run(job, (caller,), free_s=free_s, queued_s=queued_s)

    async def run_long(self, call: Call[Result]) -> Result:
        """Return the result of a call that can take long. Other calls do not wait for it.

        Raises a refusal if too many of these calls of the organization wait.
        """
        queued_s = time.perf_counter()
        answer = await self._long_calls.run(call)
        self.fairness.charge(call.caller, answer.processor_s, free_s=call.free_s)
        waited_s = time.perf_counter() - queued_s - answer.read_s
        self.metrics.count_transaction("read", waited_s, answer.read_s, 1)
        if answer.error is not None:
            raise answer.error
        result: Result = answer.result
        return result

    async def parse(self, parse: Callable[[bytes], Result], body: bytes) -> Result:
        """Run ``parse`` in the thread for bodies.

        There is only one such thread. Several would not be faster, because they share the
        interpreter lock, and the event loop would wait longer for this lock.
        """
        return await asyncio.get_running_loop().run_in_executor(self._parsing, parse, body)

    async def call_state(self) -> CallState:
        """Return the state of a call that begins now."""
        return CallState(self.clock(), self.settings, (await self.signing_keys()).cursor_key)

    async def signing_keys(self) -> SigningKeys:
        """Return the current signing keys. They are cached for a few seconds.

        If the database has none, new keys are created.
        """
        now_s, keys = self.monotonic(), self._signing_keys
        if keys is None or now_s - self._signing_keys_read_at_s >= self.settings.key_cached_s:
            keys = await self.read(signing_keys.load)
            if keys is None:
                now = self.clock()
                keys = await self.write(lambda session: signing_keys.create(session, now))
            self._signing_keys, self._signing_keys_read_at_s = keys, now_s
        return keys

    def close(self) -> None:
        self.close_feeds()
        self._threads.shutdown()
        self._long_calls.close()
        self._parsing.shutdown()
        self.passwords.close()
        self.body_reader.close()

    def close_feeds(self) -> None:
        """End every stream."""
        self.feeds.close()
        self.console_feeds.close()

    def _transact(self, kind: Transaction, work: Work[Result], queued_s: float) -> Result:
        """Run a transaction for a job, and measure how long it waited and took.

        ``queued_s`` is when the job was queued, by `time.perf_counter`.
        """
        begun_s: list[float] = []

        def begin(session: Session) -> Result:
            begun_s.append(time.perf_counter())
            return work(session)

        try:
            return self._database.read(begin) if kind == "read" else self._database.write(begin)
        finally:
            ended_s = time.perf_counter()
            first_s = begun_s[0] if begun_s else ended_s
            waited_s, took_s = first_s - queued_s, ended_s - first_s
            self.metrics.count_transaction(kind, waited_s, took_s, len(begun_s))

    async def _read_waiting_commands(
        self, key_ids: Sequence[UUID]
    ) -> Mapping[UUID, Sequence[Command]]:
        now = self.clock()
        return await self.read(lambda session: waiting_by_key(session, key_ids, now))

    async def _poll_console(
        self, changed: Collection[int], displayed: Collection[int], key_ids: Collection[UUID]
    ) -> Snapshot:
        now, poll = self.clock(), self._console_poller.poll
        return await self.read(lambda session: poll(session, now, changed, displayed, key_ids))
