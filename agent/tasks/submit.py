"""Sends the reports of the outbox, oldest first, until the service has accepted them."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Final
from uuid import UUID

from agent.adapters.clock import Clock
from agent.adapters.storage.ledger import Ledger
from agent.adapters.storage.outbox import WaitingReport
from agent.adapters.storage.state import StateDirectory
from agent.config.model import Limits
from agent.errors import BodyRejected, BodyTooLarge, Refused, TemporaryError
from agent.rules.lifecycle import State
from agent.rules.retry import Backoff
from agent.tasks.health_board import HealthBoard
from agent.tasks.session.device_session import DeviceSession
from agent.wire.validation import ValidationError

log = logging.getLogger(__name__)

DRAIN_PAUSE_S: Final = 1.0
"""Maximum pause after a report that the service accepted. Without a pause, many devices that come
online together could overload the service."""
USER_WAITS_PAUSE_MIN_S: Final = 0.02
"""Minimum pause after a report that a user waits for."""
USER_WAITS_FACTOR: Final = 2.0
"""After a report that a user waits for, the pause is this multiple of the service's response time.
It is never longer than the pause after a report that no user waits for."""
AFTER_FAILURE: Final = Backoff(base_s=4.0, cap_s=120.0)
"""Pauses after reports that the service did not accept."""


@dataclass(kw_only=True, slots=True, eq=False)
class Submitter:
    """Sends reports.

    It calls ``wake_executor`` after each attempt, because the attempt may have freed outbox space.
    """

    limits: Limits
    session: DeviceSession
    ledger: Ledger
    state: StateDirectory
    health: HealthBoard
    clock: Clock
    rng: Random
    wake_executor: Callable[[], None]
    _work: asyncio.Event = field(default_factory=asyncio.Event)
    _failures: int = 0
    _postponed: set[UUID] = field(default_factory=set)
    """The ids of the reports that the service neither accepted nor refused at the last attempt.
    They are tried after all other reports."""

    def wake(self) -> None:
        """Apply the outbox's limits and start to send. Call this after a report was queued."""
        self.apply_limits()
        self._work.set()

    async def run(self) -> None:
        """Send reports, forever."""
        while True:
            self._work.clear()
            self.apply_limits()
            while (item := self._next_item()) is not None:
                await self.session.binding_state.wait_until_bound()
                start_s = self.clock.monotonic()
                is_accepted = await self._send(item)
                self._failures = 0 if is_accepted else self._failures + 1
                self.wake_executor()
                if self._next_item() is not None:
                    await self.clock.sleep(self._pause_s(item, self.clock.monotonic() - start_s))
            self.health.clear({"reports-waiting"})
            await self._work.wait()

    def _next_item(self) -> WaitingReport | None:
        """Return the oldest report. Postponed reports come after all others."""
        item = self.ledger.outbox.oldest(skip=self._postponed)
        if item is None and self._postponed:
            self._postponed.clear()
            item = self.ledger.outbox.oldest()
        return item

    def _pause_s(self, item: WaitingReport, took_s: float) -> float:
        """Return the pause after ``item``, in seconds. Sending it took ``took_s`` seconds."""
        if self._failures:
            return AFTER_FAILURE.delay_s(self._failures, self.rng)
        pause_s = DRAIN_PAUSE_S * self.rng.uniform(0.5, 1.0)
        if self._has_waiting_user(item):
            return min(pause_s, max(USER_WAITS_PAUSE_MIN_S, USER_WAITS_FACTOR * took_s))
        return pause_s

    def _has_waiting_user(self, item: WaitingReport) -> bool:
        """Return whether a user waits for a report: it answers a request that has not expired."""
        entry = None if item.request_id is None else self.ledger.journal.get(item.request_id)
        return entry is not None and not self.session.is_past(entry.expires_at)

    def apply_limits(self) -> None:
        """Drop reports that exceed the outbox's limits, and set the conditions of the outbox."""
        dropped_reports = self.ledger.drop_over_bounds(
            self.limits.outbox_max_bytes,
            timedelta(days=self.limits.outbox_max_age_days),
            self.clock.now(),
        )
        if dropped_reports:
            count = len(dropped_reports)
            noun = "report" if count == 1 else "reports"
            self.health.set("reports-dropped", f"{count} {noun}: too old, or the outbox is full")
        depth = self.ledger.outbox.depth()
        if depth.reports > 1:
            self.health.set("reports-waiting", f"{depth.reports} reports")

    async def _send(self, item: WaitingReport) -> bool:
        """Send a report. Returns whether the service accepted it."""
        try:
            await self._acknowledge_running(item)
            reply = await self.session.submit(item)
        except BodyTooLarge as error:
            self._shrink(item, str(error))
        except BodyRejected as error:
            self._replace_rejected(item, str(error))
        except Refused as error:
            await self._handle_refusal(item, error)
        except TemporaryError as error:
            log.warning("report %s is postponed: %s", item.report_id, error)
            self._postponed.add(item.report_id)
        else:
            self.ledger.settle(item, self.clock.now())
            log.info("report %s was accepted: %s", item.report_id, reply.outcome)
            return True
        return False

    async def _acknowledge_running(self, item: WaitingReport) -> None:
        """Acknowledge the start of the item's request, if the executor could not do it in time."""
        entry = None if item.request_id is None else self.ledger.journal.get(item.request_id)
        if entry is None or entry.state is not State.REPORTED or entry.running_acknowledged:
            return
        # A refusal is ignored here. The service's reply to the report decides what happens.
        await self.session.acknowledge(entry, "running")
        self.ledger.journal.note_running_acknowledged(entry.request_id)

    def _shrink(self, item: WaitingReport, why: str) -> None:
        """Replace a report that is too large by a smaller version of itself."""
        from agent.rules.reports.sealing import LAST_TIER, seal_smaller  # large, rarely needed

        try:
            smaller = seal_smaller(item.body, self.limits.max_report_bytes, tier=item.tier)
        except ValidationError:
            smaller = None
        if smaller is None:
            self._give_up(item, why)
            return
        how = "as a failed report" if smaller.tier == LAST_TIER else f"tier {smaller.tier}"
        log.warning("report %s is too large (%s): sealed again, %s", item.report_id, why, how)
        self.ledger.outbox.replace(smaller)

    def _replace_rejected(self, item: WaitingReport, why: str) -> None:
        """Quarantine the body for support, and send a small failed report instead."""
        from agent.rules.reports.sealing import LAST_TIER, seal_as_failed  # large, rarely needed

        if item.tier >= LAST_TIER:
            self._give_up(item, why)
            return
        path = self.state.quarantine(f"rejected-{item.report_id}.json", item.body)
        log.error("report %s was rejected: %s; its body is kept as %s", item.report_id, why, path)
        try:
            self.ledger.outbox.replace(seal_as_failed(item.body))
        except ValidationError:
            self._give_up(item, why)

    async def _handle_refusal(self, item: WaitingReport, error: Refused) -> None:
        """Drop the report if the service refuses only this report and not the device."""
        if not self.session.binding_state.is_bound:
            return  # The device was revoked during the call. The report is sent again later.
        await self.session.recheck_binding()
        if self.session.binding_state.is_bound:
            self.state.quarantine(f"refused-{item.report_id}.json", item.body)
            self._give_up(item, str(error))

    def _give_up(self, item: WaitingReport, why: str) -> None:
        log.error("report %s is dropped: %s", item.report_id, why)
        self.ledger.give_up(item, self.clock.now(), why)
        self.health.set("reports-dropped", f"report {item.report_id}: {why}")
