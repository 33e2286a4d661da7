"""The service's operations, called as this device.

Every operation passes the circuit breaker. Most operations are repeated until the service accepts
or refuses the call, however long that takes. After a refusal, they raise FinalError. The service's
clock decides whether a request has expired.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from agent.adapters.clock import Clock
from agent.adapters.service_client import CommandStream, ServiceClient
from agent.adapters.storage.journal import Entry
from agent.adapters.storage.outbox import WaitingReport
from agent.errors import FinalError, Refused, ServiceUnavailable
from agent.tasks.session.binding_state import BindingState
from agent.tasks.session.circuit_breaker import CircuitBreaker
from agent.wire import device_operations as messages
from agent.wire.vocabulary import AcknowledgedStatus

LONG_POLL_S: Final = 90.0
"""Timeout for the start of a reply of `onCommands`. A service can wait until it has a command."""
ALONE_MAX: Final = 4
"""Maximum number of failures of one acknowledgement or report while other calls succeed. Then the
acknowledgement or report is postponed (`CircuitBreaker.call`)."""


@dataclass(slots=True, eq=False)
class DeviceSession:
    """The operations of this device, its binding and the circuit breakers."""

    client: ServiceClient
    breaker: CircuitBreaker
    binding_state: BindingState
    clock: Clock
    foreground: bool = False
    """Sent with each heartbeat: whether the agent runs on a terminal, and not as a service."""
    _needs_recheck: asyncio.Event = field(default_factory=asyncio.Event)
    _rechecked: asyncio.Event = field(default_factory=asyncio.Event)

    def is_past(self, timestamp: datetime) -> bool:
        """Return whether ``timestamp`` has passed by the service's clock."""
        return self.client.skew.is_past(timestamp, self.clock.now())

    # ------------------------------------------------------------------ the binding

    def request_recheck(self) -> None:
        """Request a call of `current`, because the service refused a call of this device."""
        self._needs_recheck.set()

    async def recheck_binding(self) -> None:
        """Request a call of `current`, and return when it is finished."""
        self._rechecked.clear()
        self._needs_recheck.set()
        await self._rechecked.wait()

    def note_rechecked(self) -> None:
        """Make every pending `recheck_binding` return."""
        self._rechecked.set()

    async def wait_for_recheck_request(self) -> None:
        """Return when a recheck is requested. Call this at first, and again after each recheck.

        If no recheck was requested while the last recheck ran, every pending `recheck_binding`
        returns.
        """
        if not self._needs_recheck.is_set():
            self.note_rechecked()
            await self._needs_recheck.wait()
        self._needs_recheck.clear()

    # ------------------------------------------------------------------ operations

    async def challenge(self, request: messages.ChallengeRequest) -> messages.ChallengeReply:
        return await self.breaker.call("challenge", lambda: self.client.challenge(request))

    async def enroll(self, request: messages.EnrollRequest) -> messages.EnrollmentRecord:
        return await self.breaker.call("enroll", lambda: self.client.enroll(request))

    async def current(self) -> messages.EnrollmentRecord | None:
        return await self.breaker.call("current", self.client.current)

    async def heartbeat(self) -> messages.HeartbeatReply:
        """Send a heartbeat for the binding that exists when the breaker lets the call pass."""
        return await self.breaker.call("heartbeat", self._heartbeat)

    async def _heartbeat(self) -> messages.HeartbeatReply:
        if (binding_id := self.binding_state.binding_id) is None:
            raise RuntimeError("a heartbeat needs a binding")
        request = messages.HeartbeatRequest(binding_id=binding_id, foreground=self.foreground)
        return await self.client.heartbeat(request)

    async def acknowledge(self, entry: Entry, status: AcknowledgedStatus) -> str | None:
        """Acknowledge a request. Return the reason if the service refuses it; None if it does not.

        Raises TemporaryError after ``ALONE_MAX`` failures (`CircuitBreaker.call`).
        """
        try:
            await self.acknowledge_or_raise(entry, status, alone_max=ALONE_MAX)
        except FinalError as error:
            if isinstance(error, Refused):
                self.request_recheck()
            return str(error)
        return None

    async def acknowledge_or_raise(
        self, entry: Entry, status: AcknowledgedStatus, *, alone_max: int = 1
    ) -> messages.AcknowledgeReply:
        """Acknowledge a request, and give up after ``alone_max`` failures (`CircuitBreaker.call`).

        Raises every ServiceError.
        """
        request = messages.AcknowledgeRequest(
            request_id=entry.request_id, binding_id=entry.binding_id, status=status
        )
        return await self.breaker.call(
            "acknowledge", lambda: self.client.acknowledge(request), alone_max=alone_max
        )

    async def submit(self, item: WaitingReport) -> messages.SubmitResultReply:
        """Send a sealed body without changes.

        Raises FinalError, and TemporaryError after ``ALONE_MAX`` failures (`CircuitBreaker.call`).
        """
        return await self.breaker.call(
            "submitResult", lambda: self._submit(item), alone_max=ALONE_MAX
        )

    async def _submit(self, item: WaitingReport) -> messages.SubmitResultReply:
        reply = await self.client.submit_result(item.body)
        if reply.report_id != item.report_id:
            raise ServiceUnavailable(
                "bad-reply", "the service confirmed a different report than the one sent"
            )
        return reply

    async def open_commands(self, connection: AsyncExitStack, *, stream: bool) -> CommandStream:
        """Make one attempt to open `onCommands`. Leaving ``connection`` closes the reply.

        Raises every ServiceError.
        """

        def open_reply() -> Awaitable[CommandStream]:
            # A service can delay the reply until it has a command (long poll), so the timeout is
            # long. During an outage, the usual timeout applies, because all other calls wait for
            # the result of this attempt.
            answer_within_s = LONG_POLL_S if self.breaker.is_up else None
            answer = self.client.commands(stream=stream, answer_within_s=answer_within_s)
            return connection.enter_async_context(answer)

        return await self.breaker.call_once(
            "onCommands as a stream" if stream else "onCommands", open_reply
        )

    def give_up_stream(self) -> float:
        """Close the breaker of streams. Return how long it would have stayed open, in seconds."""
        remaining_s = self.breaker.wait_left_s("onCommands as a stream")
        self.breaker.reset("onCommands as a stream")
        return remaining_s
