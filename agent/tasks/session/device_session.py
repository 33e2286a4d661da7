"""The service as this device sees it: its operations, and whether this device is bound.

What the loops of `agent.tasks` have of the service. An operation passes the circuit breaker: it
returns the service's answer, however long it takes to get one, and raises Refused, BodyRejected or
BodyTooLarge where that is the answer. The service's own clock decides what has expired.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

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
"""An acknowledgement or a report at which the service fails so often, while it answers others,
lets the next one go first."""


class DeviceSession:
    def __init__(
        self,
        client: ServiceClient,
        breaker: CircuitBreaker,
        binding_state: BindingState,
        clock: Clock,
        *,
        foreground: bool = False,
    ) -> None:
        self._client = client
        self._breaker = breaker
        self._binding_state = binding_state
        self._clock = clock
        self._foreground = foreground
        self._needs_recheck = asyncio.Event()
        self._rechecked = asyncio.Event()

    @property
    def is_reachable(self) -> bool:
        """True unless nobody answered the last try."""
        return self._breaker.is_up

    @property
    def clock_offset(self) -> timedelta:
        """How far the service's clock is ahead of this machine's."""
        return self._client.skew.offset

    def is_past(self, moment: datetime) -> bool:
        """Tell whether ``moment`` is past by the service's clock."""
        return self._client.skew.is_past(moment, self._clock.now())

    # ------------------------------------------------------------------ the binding

    @property
    def is_bound(self) -> bool:
        """True while a binding is held that the service has confirmed since the start."""
        return self._binding_state.is_bound

    @property
    def binding_id(self) -> UUID | None:
        return self._binding_state.binding_id

    async def wait_until_bound(self) -> None:
        await self._binding_state.wait_until_bound()

    async def wait_for_loss(self) -> None:
        """Return when the binding is no longer held, or is another one."""
        await self._binding_state.wait_for_loss()

    def request_recheck(self) -> None:
        """A call as this device was refused: have `current` asked whether it is still bound."""
        self._needs_recheck.set()

    async def recheck_binding(self) -> None:
        """Like `request_recheck`, and return when the service has been asked."""
        self._rechecked.clear()
        self._needs_recheck.set()
        await self._rechecked.wait()

    def note_rechecked(self) -> None:
        """Wake whoever waits for a recheck: what the service says of the binding is known."""
        self._rechecked.set()

    async def wait_for_recheck(self) -> None:
        """Return when somebody wants to know anew whether this device is bound."""
        if not self._needs_recheck.is_set():
            self.note_rechecked()
            await self._needs_recheck.wait()
        self._needs_recheck.clear()

    async def wait_for_another_key(self, at_most_s: float) -> None:
        """Wait, but no longer than until the API key has changed."""
        await self._breaker.wait_for_another_key(at_most_s)

    # ------------------------------------------------------------------ operations

    async def challenge(self, request: ChallengeRequest) -> ChallengeReply:
        return await self._breaker.call("challenge", lambda: self._client.challenge(request))

    async def enroll(self, request: EnrollRequest) -> EnrollmentRecord:
        return await self._breaker.call("enroll", lambda: self._client.enroll(request))

    async def current(self) -> EnrollmentRecord | None:
        return await self._breaker.call("current", self._client.current)

    async def heartbeat(self) -> HeartbeatReply:
        """Send a heartbeat for the binding that is held when the service can be asked."""
        return await self._breaker.call("heartbeat", self._heartbeat)

    async def _heartbeat(self) -> HeartbeatReply:
        if (binding_id := self.binding_id) is None:
            raise RuntimeError("a heartbeat is sent without a binding")
        request = HeartbeatRequest(binding_id=binding_id, foreground=self._foreground)
        return await self._client.heartbeat(request)

    async def acknowledge(self, entry: Entry, status: AcknowledgedStatus) -> str | None:
        """Acknowledge a request; return None once accepted, or why the service refuses.

        Raises ServiceUnavailable or CredentialRefused when the service fails at this alone.
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
        """Acknowledge a request that the service has lost: a refusal is no verdict on anything.

        Raises every ServiceError.
        """
        request = AcknowledgeRequest(
            request_id=entry.request_id, binding_id=entry.binding_id, status=status
        )
        return await self._breaker.call(
            "acknowledge", lambda: self._client.acknowledge(request), alone_max=alone_max
        )

    async def submit(self, item: Item) -> SubmitResultReply:
        """Send a sealed body as it is.

        Also raises ServiceUnavailable or CredentialRefused when the service fails at this alone.
        """
        return await self._breaker.call(
            "submitResult", lambda: self._submit(item), alone_max=ALONE_MAX
        )

    async def _submit(self, item: Item) -> SubmitResultReply:
        reply = await self._client.submit_result(item.body)
        if reply.report_id != item.report_id:
            raise ServiceUnavailable(
                "bad-reply", "the service took another report than the one sent"
            )
        return reply

    async def open_commands(self, connection: AsyncExitStack, *, stream: bool) -> CommandStream:
        """Ask once for commands; ``connection`` closes the answer. Raises every ServiceError."""

        def ask() -> Awaitable[CommandStream]:
            # While the service answers others, a silent one may be holding a long poll; after an
            # outage silence is the outage, and everybody waits behind this call.
            answer_within_s = LONG_POLL_S if self.is_reachable else None
            answer = self._client.commands(stream=stream, answer_within_s=answer_within_s)
            return connection.enter_async_context(answer)

        return await self._breaker.once("onCommands as a stream" if stream else "onCommands", ask)

    def note_reconnect_over(self, wish_s: float) -> None:
        """Note over which time the service wishes its callers to return, in seconds."""
        self._breaker.note_reconnect_over(wish_s)

    @property
    def reconnect_over_s(self) -> float:
        """Over how many seconds all callers of the service return after they were cut off."""
        return self._breaker.reconnect_over_s

    def give_up_stream(self) -> float:
        """Forget that streams failed; return how long the service wants none asked for, in s."""
        left_s = self._breaker.wait_left_s("onCommands as a stream")
        self._breaker.reset("onCommands as a stream")
        return left_s
