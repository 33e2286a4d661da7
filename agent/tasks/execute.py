"""Runs collections, one at a time: for requests, and for the schedule.

The journal says RUNNING before a child is started and REPORTED in the transaction that queues the
report; in between, a crash means that the collection is lost, never the request.
"""

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from agent.adapters.clock import Clock
from agent.adapters.journal import Entry, Journal
from agent.adapters.ledger import Ledger
from agent.errors import CredentialRefused, Unavailable
from agent.rules.clock_skew import ClockSkew
from agent.rules.lifecycle import BootAction, Event, State, boot_action
from agent.tasks.acknowledge import Acknowledger
from agent.tasks.standing import Standing
from agent.wire.vocabulary import Kind

if TYPE_CHECKING:
    from agent.tasks.collection import Collection, Finished

log = logging.getLogger(__name__)

IDLE: Final = "idle"
RUNNING_TOLD_WITHIN_S: Final = 10.0
"""A collection does not wait longer for the service to hear of its start."""


class Executor:
    """``collection`` makes reports, and is only asked for when one is wanted.

    ``wake_submitter`` is called when a report is queued, ``on_activity`` when another thing is
    being done.
    """

    def __init__(
        self,
        *,
        collection: "Callable[[], Collection]",
        acknowledger: Acknowledger,
        standing: Standing,
        journal: Journal,
        ledger: Ledger,
        clock: Clock,
        skew: Callable[[], ClockSkew],
        wake_submitter: Callable[[], None],
        on_activity: Callable[[], None],
    ) -> None:
        self._collection = collection
        self._acknowledger = acknowledger
        self._standing = standing
        self._journal = journal
        self._ledger = ledger
        self._clock = clock
        self._skew = skew
        self._wake_submitter = wake_submitter
        self._on_activity = on_activity
        self._work = asyncio.Event()
        self._scheduled: dict[Kind, None] = {}
        self._unsaved: tuple[Entry | None, Finished] | None = None
        self.activity = IDLE

    def wake(self) -> None:
        self._work.set()

    def schedule(self, kind: Kind) -> None:
        """Want a report of ``kind`` without a request; one that already waits is enough."""
        self._scheduled[kind] = None
        self._work.set()

    async def run(self) -> None:
        """Run what is runnable, for ever."""
        await self._standing.wait_to_work()
        if self._unsaved is not None:
            # The disk was full: what was collected has waited here for room.
            self._hand_over(*self._unsaved)
        self._recover()
        while True:
            await self._standing.wait_to_work()
            self._work.clear()
            if (entry := next(iter(self._journal.in_state(State.ACKNOWLEDGED)), None)) is not None:
                await self._run_request(entry)
            elif self._scheduled:
                kind = next(iter(self._scheduled))
                del self._scheduled[kind]
                await self._run_scheduled(kind)
            else:
                await self._work.wait()

    def _recover(self) -> None:
        """Do for each row what its state asks for after a start (rules.lifecycle)."""
        now = self._clock.now()
        for entry in self._journal.unfinished():
            is_expired = self._skew().is_past(entry.expires_at, now)
            action = boot_action(entry.state, attempt=entry.attempt, is_expired=is_expired)
            log.info("request %s was left %s: %s", entry.request_id, entry.state, action)
            if action is BootAction.RUN_AGAIN:
                self._journal.move(entry, Event.RETRIED, now)
            elif action is BootAction.REPORT_INTERRUPTED:
                self._hand_over(entry, self._collection().interrupted(entry))
            elif action is BootAction.EXPIRE:
                self._journal.move(entry, Event.RAN_OUT, now)
        self._acknowledger.wake()
        self._wake_submitter()

    async def _run_request(self, entry: Entry) -> None:
        now = self._clock.now()
        if self._skew().is_past(entry.expires_at, now):
            log.info("request %s ran out before it could run", entry.request_id)
            self._journal.move(entry, Event.RAN_OUT, now)
            return
        running = self._journal.move(entry, Event.STARTED, now)
        try:
            if (refusal := await self._tell_running(running)) is not None:
                log.info("request %s is no longer wanted: %s", entry.request_id, refusal)
                self._journal.move(running, Event.REFUSED, self._clock.now(), detail=refusal)
                return
            finished = await self._collect(entry.kind, running)
        except asyncio.CancelledError:
            # A clean stop: the collection is begun anew at the next start, and not counted.
            with contextlib.suppress(sqlite3.Error):  # the disk is full: found running at start
                self._journal.move(running, Event.STOPPED, self._clock.now())
            raise
        self._hand_over(running, finished)

    async def _tell_running(self, entry: Entry) -> str | None:
        """Acknowledge the start; a silent service does not keep the collection waiting."""
        try:
            async with asyncio.timeout(RUNNING_TOLD_WITHIN_S):
                refusal = await self._acknowledger.tell(entry, "running")
        except (TimeoutError, Unavailable, CredentialRefused):
            return None
        if refusal is None:
            self._journal.note_running_acknowledged(entry.request_id)
        return refusal

    async def _run_scheduled(self, kind: Kind) -> None:
        self._hand_over(None, await self._collect(kind, None))

    async def _collect(self, kind: Kind, entry: Entry | None) -> "Finished":
        try:
            return await self._collection().run(kind, entry)
        finally:
            self.now_doing(IDLE)

    def _hand_over(self, entry: Entry | None, finished: "Finished") -> None:
        report, sealed = finished.report, finished.sealed
        self._unsaved = (entry, finished)
        self._ledger.hand_over(entry, report, sealed, self._clock.now())
        self._unsaved = None
        request = "on schedule" if entry is None else f"for request {entry.request_id}"
        log.info(
            "report %s %s: %s, %d bytes", report.report_id, request, sealed.outcome,
            len(sealed.body),
        )  # fmt: skip
        self._wake_submitter()

    def now_doing(self, activity: str) -> None:
        """Note what is being done, in a few words for people."""
        self.activity = activity
        self._on_activity()
