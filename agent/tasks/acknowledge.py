"""Tells the service which requests have been taken. A request is journalled before, always."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final
from uuid import UUID

from agent.adapters.clock import Clock
from agent.adapters.service_client import ServiceClient
from agent.adapters.storage.journal import Entry, Journal
from agent.errors import (
    BodyRejected,
    BodyTooLarge,
    CredentialRefused,
    Refused,
    ServiceError,
    Unavailable,
)
from agent.rules.lifecycle import Event, State
from agent.tasks.session.binding_state import BindingState
from agent.tasks.session.circuit_breaker import CircuitBreaker
from agent.tasks.session.enrollment import Enrollment
from agent.wire.device_operations import AcknowledgeRequest
from agent.wire.vocabulary import AcknowledgedStatus

log = logging.getLogger(__name__)

ALONE_MAX: Final = 4
"""An acknowledgement at which the service fails so often lets the others go first."""
PUT_OFF_S: Final = 30.0
AGAIN_MAX: Final = 1000
REFUSED_PAUSE_S: Final = 5.0
"""A service that refuses every request is not asked about all of them in one second."""


class Acknowledger:
    """``wake_executor`` is called when a request has become runnable."""

    def __init__(
        self,
        *,
        client: ServiceClient,
        breaker: CircuitBreaker,
        binding_state: BindingState,
        enrollment: Enrollment,
        journal: Journal,
        clock: Clock,
        wake_executor: Callable[[], None],
    ) -> None:
        self._client = client
        self._breaker = breaker
        self._binding_state = binding_state
        self._enrollment = enrollment
        self._journal = journal
        self._clock = clock
        self._wake_executor = wake_executor
        self._work = asyncio.Event()
        self._again: OrderedDict[UUID, tuple[Entry, AcknowledgedStatus]] = OrderedDict()
        self.expired = 0
        """Requests that ran out before they were acknowledged."""

    def wake(self) -> None:
        self._work.set()

    def tell_again(self, entry: Entry, status: AcknowledgedStatus) -> None:
        """Acknowledge a request once more that the service has lost; it is not run again."""
        self._again[entry.request_id] = (entry, status)
        if len(self._again) > AGAIN_MAX:
            self._again.popitem(last=False)  # it will be delivered again
        self._work.set()

    async def run(self) -> None:
        """Acknowledge whatever is received, for ever."""
        while True:
            await self._binding_state.wait_to_work()
            self._work.clear()
            put_off = 0
            for entry in self._journal.in_state(State.RECEIVED):
                try:
                    await self._acknowledge_received(entry)
                except (Unavailable, CredentialRefused) as error:
                    log.warning("request %s is acknowledged later: %s", entry.request_id, error)
                    put_off += 1
            self._wake_executor()
            await self._tell_all_again()
            if put_off:
                await self._clock.sleep(PUT_OFF_S)
            else:
                await self._work.wait()

    async def _tell_all_again(self) -> None:
        while self._again:
            _, (entry, status) = self._again.popitem(last=False)
            acknowledge = partial(self._client.acknowledge, self._request(entry, status))
            try:
                await self._breaker.call("acknowledge", acknowledge, alone_max=1)
            except ServiceError as error:
                # No verdict: what the service wanted of this request, it has had.
                log.info("request %s is not acknowledged again: %s", entry.request_id, error)

    async def _acknowledge_received(self, entry: Entry) -> None:
        now = self._clock.now()
        if self._client.skew.is_past(entry.expires_at, now):
            self.expired += 1
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
            await self._clock.sleep(REFUSED_PAUSE_S)

    async def tell(self, entry: Entry, status: AcknowledgedStatus) -> str | None:
        """Acknowledge ``entry``; return None once accepted, or why the service refuses.

        Raises Unavailable or CredentialRefused when the service fails at this and not at others.
        """
        request = self._request(entry, status)
        try:
            await self._breaker.call(
                "acknowledge", lambda: self._client.acknowledge(request), alone_max=ALONE_MAX
            )
        except Refused as error:
            self._enrollment.recheck()
            return str(error)
        except (BodyRejected, BodyTooLarge) as error:
            return str(error)
        return None

    @staticmethod
    def _request(entry: Entry, status: AcknowledgedStatus) -> AcknowledgeRequest:
        return AcknowledgeRequest(
            request_id=entry.request_id, binding_id=entry.binding_id, status=status
        )
