"""Sends the service an acknowledgement of each request, once the journal contains the request."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from agent.adapters.clock import Clock
from agent.adapters.storage.journal import Entry, Journal
from agent.errors import ServiceError, TemporaryError
from agent.rules.lifecycle import Event, State
from agent.tasks.session.device_session import DeviceSession
from agent.wire.vocabulary import AcknowledgedStatus

log = logging.getLogger(__name__)

POSTPONED_PAUSE_S: Final = 30.0
"""Pause before failed acknowledgements are tried again."""
REPEATS_MAX: Final = 1000
"""Maximum number of repeated acknowledgements that wait to be sent."""
REFUSED_PAUSE_S: Final = 5.0
"""Pause after a refusal. It limits the rate of calls if the service refuses many requests."""


@dataclass(slots=True, eq=False)
class Acknowledger:
    """Acknowledges requests. It calls ``wake_executor`` when a request can run."""

    session: DeviceSession
    journal: Journal
    clock: Clock
    wake_executor: Callable[[], None]
    _work: asyncio.Event = field(default_factory=asyncio.Event)
    _repeats: OrderedDict[UUID, tuple[Entry, AcknowledgedStatus]] = field(
        default_factory=OrderedDict
    )
    """The acknowledgements that wait to be repeated, by the id of the request."""
    expired: int = 0
    """Number of requests that expired before they were acknowledged."""

    def wake(self) -> None:
        self._work.set()

    def acknowledge_again(self, entry: Entry, status: AcknowledgedStatus) -> None:
        """Repeat an acknowledgement that the service has lost. The request does not run again."""
        self._repeats[entry.request_id] = (entry, status)
        if len(self._repeats) > REPEATS_MAX:
            # The service did not get the dropped acknowledgement, so it delivers the request again.
            self._repeats.popitem(last=False)
        self._work.set()

    async def run(self) -> None:
        """Acknowledge received requests, forever."""
        while True:
            await self.session.binding_state.wait_until_bound()
            self._work.clear()
            postponed_count = 0
            for entry in self.journal.in_state(State.RECEIVED):
                try:
                    await self._acknowledge_received(entry)
                except TemporaryError as error:
                    log.warning("request %s is acknowledged later: %s", entry.request_id, error)
                    postponed_count += 1
            self.wake_executor()
            await self._acknowledge_repeats()
            if postponed_count:
                await self.clock.sleep(POSTPONED_PAUSE_S)
            else:
                await self._work.wait()

    async def _acknowledge_repeats(self) -> None:
        while self._repeats:
            _, (entry, status) = self._repeats.popitem(last=False)
            try:
                await self.session.acknowledge_or_raise(entry, status)
            except ServiceError as error:
                # The error is ignored: the service delivers the request again if it still needs the
                # acknowledgement.
                log.info("request %s is not acknowledged again: %s", entry.request_id, error)

    async def _acknowledge_received(self, entry: Entry) -> None:
        if self.session.is_past(entry.expires_at):
            self.expired += 1
            log.info("request %s expired before it was acknowledged", entry.request_id)
            self.journal.move(entry, Event.EXPIRED, self.clock.now())
            return
        refusal = await self.session.acknowledge(entry, "received")
        now = self.clock.now()
        if refusal is None:
            self.journal.move(entry, Event.ACCEPTED, now)
            self.wake_executor()
        else:
            log.info("request %s was refused: %s", entry.request_id, refusal)
            self.journal.move(entry, Event.REFUSED, now, detail=refusal)
            await self.clock.sleep(REFUSED_PAUSE_S)
