"""Tells the service which requests have been taken. A request is journalled before, always."""

import asyncio
import logging
from collections.abc import Callable

from agent.adapters.clock import Clock
from agent.adapters.facade import Facade
from agent.adapters.journal import Entry, Journal
from agent.errors import BodyRejected, BodyTooLarge, Refused
from agent.rules.lifecycle import Event, State
from agent.tasks.enroll import Enrollment
from agent.tasks.link import Link
from agent.tasks.standing import Standing
from agent.wire.device_operations import AcknowledgeRequest
from agent.wire.vocabulary import AcknowledgedStatus

log = logging.getLogger(__name__)


class Acknowledger:
    """``wake_executor`` is called when a request has become runnable."""

    def __init__(
        self,
        *,
        facade: Facade,
        link: Link,
        standing: Standing,
        enrollment: Enrollment,
        journal: Journal,
        clock: Clock,
        wake_executor: Callable[[], None],
    ) -> None:
        self._facade = facade
        self._link = link
        self._standing = standing
        self._enrollment = enrollment
        self._journal = journal
        self._clock = clock
        self._wake_executor = wake_executor
        self._work = asyncio.Event()

    def wake(self) -> None:
        self._work.set()

    async def run(self) -> None:
        """Acknowledge whatever is received, for ever."""
        while True:
            await self._standing.wait_to_work()
            self._work.clear()
            for entry in self._journal.in_state(State.RECEIVED):
                await self._acknowledge_received(entry)
            self._wake_executor()
            await self._work.wait()

    async def _acknowledge_received(self, entry: Entry) -> None:
        now = self._clock.now()
        if self._facade.skew.is_past(entry.expires_at, now):
            log.info("request %s ran out before it was acknowledged", entry.request_id)
            self._journal.move(entry, Event.RAN_OUT, now)
            return
        refusal = await self.tell(entry, "received")
        now = self._clock.now()
        if refusal is None:
            self._journal.move(entry, Event.ACCEPTED, now)
            self._wake_executor()
        else:
            log.info("request %s is no longer wanted: %s", entry.request_id, refusal)
            self._journal.move(entry, Event.REFUSED, now, detail=refusal)

    async def tell(self, entry: Entry, status: AcknowledgedStatus) -> str | None:
        """Acknowledge ``entry``; return None once accepted, or why the service refuses."""
        request = AcknowledgeRequest(
            request_id=entry.request_id, binding_id=entry.binding_id, status=status
        )
        try:
            await self._link.call(lambda: self._facade.acknowledge(request))
        except Refused as error:
            self._enrollment.doubt()
            return str(error)
        except (BodyRejected, BodyTooLarge) as error:
            return str(error)
        return None
