"""Runs collections for requests and for the schedule, one collection at a time.

A collection answers all requests of its kind that wait when it starts. Each request gets its own
report. The journal marks a request as RUNNING before the collector starts, and as REPORTED in the
transaction that queues its report. If the agent crashes between these two steps, the collected
facts are lost, but the request is not.
"""

import asyncio
import contextlib
import logging
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agent.adapters.clock import Clock, wait_at_most
from agent.adapters.storage.journal import Entry
from agent.adapters.storage.ledger import Ledger
from agent.config.model import Limits
from agent.errors import TemporaryError
from agent.rules.lifecycle import BootAction, Event, State, boot_action
from agent.rules.reports.sealed_report import SealedReport
from agent.tasks.session.device_session import DeviceSession
from agent.wire.vocabulary import Kind

if TYPE_CHECKING:
    from agent.tasks.collection import Collection, CollectionResult

log = logging.getLogger(__name__)

IDLE: Final = "idle"
START_ACKNOWLEDGEMENT_TIMEOUT_S: Final = 10.0
"""Maximum time for acknowledging that the requests of one collection are running. After this time,
the collection starts without the remaining acknowledgements."""
UNACKNOWLEDGED_WAIT_S: Final = 30.0
"""Maximum time that a collection waits for requests that are not acknowledged yet. The first
collection of a kind does not wait."""


@dataclass(slots=True, eq=False)
class _Answers:
    """A collection's result and the requests that it still has to answer.

    In ``waiting``, None represents the scheduled report. ``sealed`` is the report for the first
    element of ``waiting``, once that report is sealed.
    """

    result: "CollectionResult"
    waiting: deque[Entry | None]
    sealed: SealedReport | None = None


@dataclass(kw_only=True, slots=True, eq=False)
class Executor:
    """Runs collections.

    Args:
        collection: returns the `Collection`, which the first call creates.
        work: is set when a request can run, or when the outbox has room again.
        wake_submitter: is called when a report is queued.
        on_activity: is called with a short description of the current activity.
    """

    collection: "Callable[[], Collection]"
    limits: Limits
    session: DeviceSession
    ledger: Ledger
    work: asyncio.Event
    clock: Clock
    wake_submitter: Callable[[], None]
    on_activity: Callable[[str], None]
    _scheduled: dict[Kind, None] = field(default_factory=dict)
    _ended_at: dict[Kind, float] = field(default_factory=dict)
    """The monotonic time at which the last collection of each kind ended."""
    _answers: _Answers | None = None
    expired: int = 0
    """Number of requests that expired before they could run."""

    def schedule(self, kind: Kind) -> None:
        """Request a scheduled report of ``kind``. Does nothing if one is already pending."""
        self._scheduled[kind] = None
        self.work.set()

    async def run(self) -> None:
        """Run collections for requests and for the schedule, forever."""
        await self.session.binding_state.wait_until_bound()
        # A disk error might have ended an earlier call of `run` before all reports were stored.
        await self._hand_over_all()
        self._recover()
        while True:
            await self.session.binding_state.wait_until_bound()
            self.work.clear()
            kind, wait_s = self._next_kind()
            if kind is not None:
                await self._run_kind(kind)
            else:
                await wait_at_most(self.work, wait_s, self.clock)

    # ------------------------------------------------------------------ what comes next

    def _next_kind(self) -> tuple[Kind | None, float | None]:
        """Return the kind to collect now, and the seconds until the next collection is due.

        At least one of the two is None. Both are None if no report is requested or scheduled.
        """
        waits = []
        requested_kinds = self.ledger.journal.kinds_in(State.ACKNOWLEDGED)
        for kind in dict.fromkeys((*requested_kinds, *self._scheduled)):
            if (wait_s := self._wait_s(kind)) <= 0:
                return kind, None
            waits.append(wait_s)
        return None, min(waits, default=None)

    def _wait_s(self, kind: Kind) -> float:
        """Return how long a collection of ``kind`` has to wait, in seconds.

        The first collection of a kind never waits. Later collections wait for the minimum
        interval, and then for requests that are not acknowledged yet, so that one collection
        answers them all. If the minimum interval is 0, no collection waits.
        """
        if (ended_at := self._ended_at.get(kind)) is None:
            return 0.0
        interval_s = self.limits.min_collection_interval_seconds
        remaining_s = ended_at + interval_s - self.clock.monotonic()
        if remaining_s <= 0 and interval_s and kind in self.ledger.journal.kinds_in(State.RECEIVED):
            return remaining_s + UNACKNOWLEDGED_WAIT_S
        return remaining_s

    def _recover(self) -> None:
        """For each unfinished request, run the boot action of its state (rules.lifecycle)."""
        now = self.clock.now()
        retries, expired_entries = [], []
        for entry in self.ledger.journal.unfinished():
            is_expired = self.session.is_past(entry.expires_at)
            action = boot_action(entry.state, attempt=entry.attempt, is_expired=is_expired)
            log.info("request %s is %s after a restart: %s", entry.request_id, entry.state, action)
            if action is BootAction.RUN_AGAIN:
                retries.append(entry)
            elif action is BootAction.REPORT_INTERRUPTED:
                self._hand_over(entry, self.collection().interrupted_report(entry))
            elif action is BootAction.EXPIRE:
                expired_entries.append(entry)
        self.ledger.journal.move_all(retries, Event.RETRIED, now)
        self._expire(expired_entries)
        self.wake_submitter()

    # ------------------------------------------------------------------ one collection

    async def _run_kind(self, kind: Kind) -> None:
        """Collect once. Make a report for each waiting request of ``kind`` and for the schedule."""
        running = await self._mark_running(kind)
        is_scheduled = kind in self._scheduled
        self._scheduled.pop(kind, None)
        if not running and not is_scheduled:
            return
        try:
            result = await self._collect(kind)
            waiting: deque[Entry | None] = deque(running)
            if is_scheduled:
                waiting.append(None)
            self._answers = _Answers(result, waiting)
            await self._hand_over_all()
        except asyncio.CancelledError:
            remaining = running if self._answers is None else self._answers.waiting
            self._answers = None
            self._note_stop(entry for entry in remaining if entry is not None)
            raise

    async def _mark_running(self, kind: Kind) -> tuple[Entry, ...]:
        """Mark the waiting requests of ``kind`` as running, or as expired if their time has passed.

        Returns the running requests, except those that the service refuses.
        """
        acknowledged_entries = self.ledger.journal.in_state(State.ACKNOWLEDGED)
        waiting = [entry for entry in acknowledged_entries if entry.kind == kind]
        is_past = {entry: self.session.is_past(entry.expires_at) for entry in waiting}
        self._expire([entry for entry in waiting if is_past[entry]])
        fresh_entries = [entry for entry in waiting if not is_past[entry]]
        running = self.ledger.journal.move_all(fresh_entries, Event.STARTED, self.clock.now())
        refused_entries: set[Entry] = set()
        try:
            await self._acknowledge_start(running, refused_entries)
        except asyncio.CancelledError:
            self._note_stop(entry for entry in running if entry not in refused_entries)
            raise
        return tuple(entry for entry in running if entry not in refused_entries)

    async def _acknowledge_start(
        self, entries: Iterable[Entry], refused_entries: set[Entry]
    ) -> None:
        """Acknowledge the start of ``entries`` within a time limit.

        Entries that the service refuses are added to ``refused_entries``. Entries that are not
        acknowledged in time are acknowledged before their report is sent (tasks.submit).
        """
        with contextlib.suppress(TimeoutError, TemporaryError):
            async with asyncio.timeout(START_ACKNOWLEDGEMENT_TIMEOUT_S):
                for entry in entries:
                    refusal = await self.session.acknowledge(entry, "running")
                    if refusal is None:
                        self.ledger.journal.note_running_acknowledged(entry.request_id)
                        continue
                    log.info("request %s was refused: %s", entry.request_id, refusal)
                    refused_entries.add(entry)
                    self.ledger.journal.move(entry, Event.REFUSED, self.clock.now(), detail=refusal)

    def _note_stop(self, entries: Iterable[Entry]) -> None:
        """Note in the journal that the agent stops.

        The requests run again at the next start. The stopped attempt does not count.
        """
        with contextlib.suppress(sqlite3.Error):  # for example, the disk is full
            self.ledger.journal.move_all(tuple(entries), Event.STOPPED, self.clock.now())

    def _expire(self, entries: list[Entry]) -> None:
        if entries:
            self.expired += len(entries)
            log.info("requests that expired before they could run: %d", len(entries))
            self.ledger.journal.move_all(entries, Event.EXPIRED, self.clock.now())

    async def _collect(self, kind: Kind) -> "CollectionResult":
        try:
            result = await self.collection().collect(kind)
        finally:
            self.on_activity(IDLE)
        if result.was_run:
            self._ended_at[kind] = self.clock.monotonic()
        return result

    # ------------------------------------------------------------------ reports

    async def _hand_over_all(self) -> None:
        """Seal and queue a report for each waiting request, one after the other.

        After a disk error, the remaining requests stay in ``_answers`` until `run` is called again.
        Any other error is a bug: the result of the collection is dropped.
        """
        try:
            while self._answers is not None and self._answers.waiting:
                await self._hand_over_next(self._answers)
        except (sqlite3.Error, OSError):
            raise
        except Exception:
            self._answers = None
            raise
        self._answers = None

    async def _hand_over_next(self, answers: _Answers) -> None:
        entry = answers.waiting[0]
        if answers.sealed is None:
            answers.sealed = self.collection().report(answers.result, entry)
        if entry is not None:
            await self._wait_for_room(len(answers.sealed.body))
        self._hand_over(entry, answers.sealed)
        answers.waiting.popleft()
        answers.sealed = None
        await asyncio.sleep(0)  # other tasks must run while a thousand reports are sealed

    async def _wait_for_room(self, size_bytes: int) -> None:
        """Wait until the outbox can store a report without dropping a requested report."""
        while not self.ledger.outbox.has_room(size_bytes, self.limits.outbox_max_bytes):
            self.work.clear()
            self.on_activity("waiting for room in the outbox")
            await self.work.wait()
            self.on_activity(IDLE)

    def _hand_over(self, entry: Entry | None, report: SealedReport) -> None:
        self.ledger.hand_over(entry, report, self.clock.now())
        ids = (report.report_id,) if entry is None else (report.report_id, entry.request_id)
        template = "scheduled report %s" if entry is None else "report %s for request %s"
        log.info(f"{template}: %s, %d bytes", *ids, report.outcome, len(report.body))
        self.wake_submitter()
