"""The service's operations, called as this device.

Every operation passes the circuit breaker. It returns the service's reply, however long that takes,
and raises Refused, BodyRejected or BodyTooLarge if that is the reply. The service's clock decides
what has expired.
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
from agent.adapters.storage.outbox import Item
from agent.errors import BodyRejected, BodyTooLarge, Refused, ServiceUnavailable
from agent.tasks.session.binding_state import BindingState
from agent.tasks.session.circuit_breaker import CircuitBreaker
from agent.wire.device_operations import (
    AcknowledgeReply,
    AcknowledgeRequest,
    ChallengeReply,
    ChallengeRequest,
    EnrollmentRecord,
    EnrollRequest,
    HeartbeatReply,
    HeartbeatRequest,
    SubmitResultReply,
)
from agent.wire.vocabulary import AcknowledgedStatus

LONG_POLL_S: Final = 90.0
"""A service may hold `onCommands` this long before it begins to answer."""
ALONE_MAX: Final = 4
"""After so many failures of one acknowledgement or report, while the service answers other calls,
the next one is sent first."""


@dataclass(slots=True, eq=False)
class DeviceSession:
    """The operations of this device, its binding and the circuit breakers."""

    client: ServiceClient
    breaker: CircuitBreaker
    binding_state: BindingState
    clock: Clock
    foreground: bool = False
    _needs_recheck: asyncio.Event = field(default_factory=asyncio.Event)
    _rechecked: asyncio.Event = field(default_factory=asyncio.Event)

    def is_past(self, timestamp: datetime) -> bool:
        """Return whether ``timestamp`` is past on the service's clock."""
        return self.client.skew.is_past(timestamp, self.clock.now())

    # ------------------------------------------------------------------ the binding

    def request_recheck(self) -> None:
        """Request a call of `current`, because the service refused a call of this device."""
        self._needs_recheck.set()

    async def recheck_binding(self) -> None:
        """Like `request_recheck`, but return when `current` has been called."""
        self._rechecked.clear()
        self._needs_recheck.set()
        await self._rechecked.wait()

    def note_rechecked(self) -> None:
        """End the wait of every `recheck_binding`."""
        self._rechecked.set()

    async def wait_for_recheck(self) -> None:
        """Return when a recheck is requested."""
        if not self._needs_recheck.is_set():
            self.note_rechecked()
            await self._needs_recheck.wait()
        self._needs_recheck.clear()

    # ------------------------------------------------------------------ operations

    async def challenge(self, request: ChallengeRequest) -> ChallengeReply:
        return await self.breaker.call("challenge", lambda: self.client.challenge(request))

    async def enroll(self, request: EnrollRequest) -> EnrollmentRecord:
        return await self.breaker.call("enroll", lambda: self.client.enroll(request))

    async def current(self) -> EnrollmentRecord | None:
        return await self.breaker.call("current", self.client.current)

    async def heartbeat(self) -> HeartbeatReply:
        """Send a heartbeat for the binding at the time of the call, not of the wait before it."""
        return await self.breaker.call("heartbeat", self._heartbeat)

    async def _heartbeat(self) -> HeartbeatReply:
        if (binding_id := self.binding_state.binding_id) is None:
            raise RuntimeError("a heartbeat needs a binding")
        request = HeartbeatRequest(binding_id=binding_id, foreground=self.foreground)
        return await self.client.heartbeat(request)

    async def acknowledge(self, entry: Entry, status: AcknowledgedStatus) -> str | None:
        """Acknowledge a request. Return None if accepted, else the reason of the refusal.

        Raises ServiceUnavailable or CredentialRefused after ALONE_MAX failures of this call alone.
        """
        try:
            await self.acknowledge_again(entry, status, alone_max=ALONE_MAX)
        except Refused as error:
            self.request_recheck()
            return str(error)
        except (BodyRejected, BodyTooLarge) as error:
            return str(error)
        return None

    async def acknowledge_again(
        self, entry: Entry, status: AcknowledgedStatus, *, alone_max: int = 1
    ) -> AcknowledgeReply:
        """Acknowledge a request that the service has lost. Raises every ServiceError."""
        request = AcknowledgeRequest(
            request_id=entry.request_id, binding_id=entry.binding_id, status=status
        )
        return await self.breaker.call(
            "acknowledge", lambda: self.client.acknowledge(request), alone_max=alone_max
        )

    async def submit(self, item: Item) -> SubmitResultReply:
        """Send a sealed body as it is.

        Also raises ServiceUnavailable or CredentialRefused after ALONE_MAX failures of this call
        alone.
        """
        return await self.breaker.call(
            "submitResult", lambda: self._submit(item), alone_max=ALONE_MAX
        )

    async def _submit(self, item: Item) -> SubmitResultReply:
        reply = await self.client.submit_result(item.body)
        if reply.report_id != item.report_id:
            raise ServiceUnavailable(
                "bad-reply", "the service confirmed a different report than the one sent"
            )
        return reply

    async def open_commands(self, connection: AsyncExitStack, *, stream: bool) -> CommandStream:
        """Open `onCommands` once; ``connection`` closes it. Raises every ServiceError."""

        def ask() -> Awaitable[CommandStream]:
            # While other calls succeed, a late reply may be a long poll. During an outage, all
            # other calls wait for this attempt, so it has the usual timeout.
            answer_within_s = LONG_POLL_S if self.breaker.is_up else None
            answer = self.client.commands(stream=stream, answer_within_s=answer_within_s)
            return connection.enter_async_context(answer)

        return await self.breaker.once("onCommands as a stream" if stream else "onCommands", ask)

    def give_up_stream(self) -> float:
        """Close the breaker of streams; return how long it would have stayed open, in seconds."""
        left_s = self.breaker.wait_left_s("onCommands as a stream")
        self.breaker.reset("onCommands as a stream")
        return left_s
