"""Circuit breakers between the agent and the service.

Each operation has its own breaker. If the service replies with an error that can be temporary (5xx,
429, 401, a web page), only the breaker of this operation opens. Each further error keeps it open
for longer. All operations also share one breaker, which opens if the service sends no reply at all:
the name cannot be resolved, the connection or TLS fails, or the call times out.

A closed breaker passes every call. An open breaker delays all calls. The delay grows with each
failure and is jittered. After the delay, the breaker is half-open: one caller makes the next
attempt, and the other callers wait for its result. Therefore any number of tasks causes no more
attempts than one task.

A service with many devices can set a time over which they spread their calls after an outage
(`set_reconnect_time`). Each delay of the shared breaker is then at least half of this time. During
an outage, heartbeats wait until another call has reached the service, and follow at a random time
within the set time. If no call reaches the service for four times the set time, heartbeats also
make attempts.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal, TypeVar

from agent.adapters.clock import Clock, wait_at_most
from agent.config.credential import ApiKeySource
from agent.errors import (
    WITHOUT_CONTACT,
    ApiKeyUnreadable,
    CredentialRefused,
    ServiceError,
    ServiceUnavailable,
    TemporaryError,
    Throttled,
)
from agent.rules import retry
from agent.rules.health import CONDITIONS
from agent.tasks.health_board import HealthBoard

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Send = Callable[[], Awaitable[Answer]]
"""Sends a call once, and returns the reply."""
Operation = Literal[
    "challenge",
    "enroll",
    "current",
    "heartbeat",
    "acknowledge",
    "submitResult",
    "onCommands",
    "onCommands as a stream",
]
"""`onCommands` has two breakers, because a service can refuse streams and still accept polls."""

KEY_CHECK_S: Final = 5.0
"""Interval at which the API key is read again after the service has refused it."""
HEARTBEAT_WAIT_FACTOR: Final = 4
"""During an outage, heartbeats wait at most this multiple of ``reconnect_spread_s`` until another
call has reached the service."""
PARTLY_FAILING_FROM: Final = 3
"""Number of failures of one operation that sets the condition ``partly-failing``, if other
operations succeed."""


@dataclass(slots=True, eq=False)
class _Breaker:
    """Closed while ``failures`` is 0. Otherwise open until ``retry_at``, and then half-open.

    ``tries`` counts the consecutive failures of the same kind (401, or any other). It determines
    the delay. ``generation`` increases with each change of the breaker, so that a call detects the
    changes by other calls.
    """

    failures: int = 0
    tries: int = 0
    is_key_refused: bool = False
    generation: int = 0
    retry_at: float = 0.0
    has_retry_after: bool = False
    """Whether the service requested the current delay with Retry-After."""
    refused_key: str | None = None
    code: str | None = None
    """The condition (rules.health) that the last failure has set."""
    callers: int = 0
    """Number of tasks that are in `CircuitBreaker.call` with this operation."""
    answers_before: int = 0
    """Value of ``CircuitBreaker._answers`` when this operation began to fail."""
    probe: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the caller that makes the next attempt."""

    @property
    def is_closed(self) -> bool:
        return self.failures == 0


@dataclass(slots=True, eq=False)
class CircuitBreaker:
    """The breaker of each operation, and the shared breaker."""

    clock: Clock
    rng: Random
    health: HealthBoard
    api_key: ApiKeySource
    _shared: _Breaker = field(default_factory=_Breaker)
    _breakers: defaultdict[Operation, _Breaker] = field(
        default_factory=lambda: defaultdict(_Breaker)
    )
    _answers: int = 0
    """Number of calls with a final reply: a success, or an error that a repetition would not
    change."""
    on_attempt: Callable[[Operation, ServiceError | None, float], None] = lambda *_: None
    """Called after each attempt with the operation, its error or None, and its duration (s)."""
    reconnect_spread_s: float = 0.0
    """Time over which the devices spread their calls after an outage, in seconds."""
    _contact: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by any reply of the service. Heartbeats wait for it during an outage."""
    _retry_now: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_up(self) -> bool:
        """Whether the shared breaker is closed: the service replies, perhaps with errors."""
        return self._shared.is_closed

    async def call(
        self, operation: Operation, send: Send[Answer], *, alone_max: int | None = None
    ) -> Answer:
        """Call ``send`` until it succeeds, and return the reply.

        Raises FinalError at once, because a repetition would not help. With ``alone_max``, also
        raises TemporaryError when this call has failed ``alone_max`` times. A failure counts only
        if another call has got a final reply (``_answers``) since the start of this call, or since
        its previous failure. When the last call of an operation ends, the operation's condition is
        cleared.
        """
        breaker, failures_alone, answers = self._breakers[operation], 0, self._answers
        breaker.callers += 1
        try:
            while True:
                try:
                    return await self.call_once(operation, send)
                except TemporaryError:
                    failures_alone += self._answers > answers
                    answers = self._answers
                    if failures_alone == alone_max:
                        raise
        finally:
            breaker.callers -= 1
            if not breaker.callers:
                self._set_condition(breaker, None)

    async def call_once(self, operation: Operation, send: Send[Answer]) -> Answer:
        """Make one attempt as soon as the breakers allow it, and return the reply.

        Raises every ServiceError. As with `call`, each failure makes the next delay longer.
        """
        if operation == "heartbeat":
            await self._delay_heartbeat()
        async with self._passing(self._breakers[operation]), self._passing(self._shared):
            return await self._attempt(operation, send)

    def set_reconnect_time(self, requested_s: float) -> None:
        """Set the time over which the devices spread their calls after an outage."""
        self.reconnect_spread_s = retry.reconnect_spread_s(requested_s)

    def wait_left_s(self, operation: Operation) -> float:
        """Return how long the breaker of ``operation`` stays open, in seconds."""
        breaker = self._breakers[operation]
        return 0.0 if breaker.is_closed else max(0.0, breaker.retry_at - self.clock.monotonic())

    def retry_now(self) -> None:
        """End all delays, except those that the service requested with Retry-After.

        Call this after the machine slept or its clock was set: the network might have changed.
        """
        for breaker in (self._shared, *self._breakers.values()):
            if not breaker.has_retry_after:
                breaker.retry_at = self.clock.monotonic()
        self._retry_now.set()

    async def wait_for_another_key(self, at_most_s: float) -> None:
        """Return after ``at_most_s`` seconds, or earlier if a user replaces the API key."""
        key_before = self._present_key()
        deadline = self.clock.monotonic() + at_most_s
        while (remaining_s := deadline - self.clock.monotonic()) > 0:
            if self._present_key() != key_before:
                return
            await self.clock.sleep(min(remaining_s, KEY_CHECK_S))

    # ------------------------------------------------------------------ one attempt

    @contextlib.asynccontextmanager
    async def _passing(self, breaker: _Breaker) -> AsyncIterator[None]:
        """Run the body when ``breaker`` allows it. An open breaker lets callers run one by one."""
        if not breaker.is_closed:
            async with breaker.probe:
                if not breaker.is_closed:
                    await self._wait_for(breaker)
                    yield
                    return
        yield

    async def _delay_heartbeat(self) -> None:
        """Delay a heartbeat during an outage, so that other calls make the first attempts."""
        if self.is_up or not self.reconnect_spread_s:
            return
        self._contact.clear()
        await wait_at_most(
            self._contact, HEARTBEAT_WAIT_FACTOR * self.reconnect_spread_s, self.clock
        )
        if self._shared.is_closed:
            await self.clock.sleep(self.rng.uniform(0.0, self.reconnect_spread_s))

    async def _attempt(self, operation: Operation, send: Send[Answer]) -> Answer:
        generations = (self._shared.generation, self._breakers[operation].generation)
        began_s = self.clock.monotonic()
        try:
            answer = await send()
        except ServiceError as error:
            self.on_attempt(operation, error, self.clock.monotonic() - began_s)
            if isinstance(error, TemporaryError):
                self._note_failure(operation, error, *generations)
            else:
                self._note_answer(operation)
            raise
        self.on_attempt(operation, None, self.clock.monotonic() - began_s)
        self._note_answer(operation)
        return answer

    # ------------------------------------------------------------------ results

    def _note_failure(
        self, operation: Operation, error: TemporaryError, shared_generation: int, generation: int
    ) -> None:
        """Open the breaker of the operation, or the shared breaker.

        The shared breaker opens if there was no reply at all, unless other calls have got a final
        reply since this operation began to fail. Any reply closes the shared breaker. An API key
        that cannot be read does not change it, because no call was sent.

        ``shared_generation`` and ``generation`` are the values of the two breakers before the call.
        If another call has changed a breaker since then, this failure does not change it again.
        Therefore calls that fail together count as one failure.
        """
        breaker = self._breakers[operation]
        is_silent = isinstance(error, ServiceUnavailable) and error.cause in WITHOUT_CONTACT
        if is_silent:
            if not self._fails_alone(breaker) and shared_generation == self._shared.generation:
                self._open(self._shared, error, "the service")
        elif not isinstance(error, ApiKeyUnreadable):
            self._note_contact()
        if generation != breaker.generation:
            return
        if breaker.is_closed:
            breaker.answers_before = self._answers
        if not is_silent or self._fails_alone(breaker):
            self._open(breaker, error, operation)
            if breaker.failures >= PARTLY_FAILING_FROM and self._answers > breaker.answers_before:
                self.health.set("partly-failing", f"{operation}: {error}")
        else:  # the shared breaker causes the delay
            breaker.failures += 1
            breaker.generation += 1
            breaker.retry_at = self.clock.monotonic()

    def _fails_alone(self, breaker: _Breaker) -> bool:
        """Return whether other calls have got a final reply since this operation began to fail."""
        is_failing = self._shared.is_closed and not breaker.is_closed
        return is_failing and self._answers > breaker.answers_before

    def _open(self, breaker: _Breaker, error: TemporaryError, name: str) -> None:
        breaker.failures += 1
        breaker.generation += 1
        is_refused = isinstance(error, CredentialRefused)
        # ``tries`` starts again when the kind of failure changes: the delays after 401 differ from
        # the delays of an outage.
        breaker.tries = breaker.tries + 1 if is_refused is breaker.is_key_refused else 1
        breaker.is_key_refused = is_refused
        retry_after_s = error.retry_after_s if isinstance(error, Throttled) else None
        breaker.has_retry_after = retry_after_s is not None
        if isinstance(error, ServiceUnavailable):
            code: str = error.cause
            delay_s = self._delay_s(breaker, retry_after_s)
        else:
            code, delay_s = "credential-refused", retry.CREDENTIAL.delay_s(breaker.tries, self.rng)
            breaker.refused_key = self._present_key()
        breaker.retry_at = self.clock.monotonic() + delay_s
        log.info(
            "try %d: %s: %s (%s); next try in %.1f s", breaker.failures, CONDITIONS[code].title,
            error, name, delay_s,
        )  # fmt: skip
        self._set_condition(breaker, code, str(error))

    def _delay_s(self, breaker: _Breaker, retry_after_s: float | None) -> float:
        if breaker is self._shared:
            return retry.unavailable_delay_s(breaker.tries, self.reconnect_spread_s, self.rng)
        return retry.throttled_delay_s(retry_after_s, breaker.tries, self.rng)

    def _note_contact(self) -> None:
        """Close the shared breaker after any reply."""
        if not self._shared.is_closed:
            log.info("the service replies again, after %d failed attempts", self._shared.failures)
        self._shared.failures = self._shared.tries = 0
        self._shared.generation += 1
        self._contact.set()
        self._set_condition(self._shared, None)

    def _note_answer(self, operation: Operation) -> None:
        self._note_contact()
        self._answers += 1
        breaker = self._breakers[operation]
        if breaker.code is not None:
            log.info("%s succeeds again, after %d failed attempts", operation, breaker.failures)
        breaker.generation += 1
        self.reset(operation)

    def reset(self, operation: Operation) -> None:
        """Close the breaker of ``operation``, and clear its condition."""
        breaker = self._breakers[operation]
        breaker.failures = breaker.tries = 0
        breaker.has_retry_after = False
        breaker.refused_key = None
        self._set_condition(breaker, None)

    # ------------------------------------------------------------------ conditions

    def _set_condition(self, breaker: _Breaker, code: str | None, detail: str = "") -> None:
        """Set the condition of ``breaker``.

        Its previous condition is cleared, unless another breaker has the same condition.
        """
        previous_code, breaker.code = breaker.code, code
        current_codes = {each.code for each in (self._shared, *self._breakers.values())}
        if previous_code is not None and previous_code not in current_codes:
            self.health.clear({previous_code})
        if code is not None:
            self.health.set(code, detail)
        failures = (each.failures for each in self._breakers.values() if each.code)
        if max(failures, default=0) < PARTLY_FAILING_FROM:
            self.health.clear({"partly-failing"})

    # ------------------------------------------------------------------ waits

    async def _wait_for(self, breaker: _Breaker) -> None:
        while (
            not breaker.is_closed and (remaining_s := breaker.retry_at - self.clock.monotonic()) > 0
        ):
            if breaker.is_key_refused:
                if self._present_key() != breaker.refused_key:
                    return
                remaining_s = min(remaining_s, KEY_CHECK_S)
            self._retry_now.clear()
            await wait_at_most(self._retry_now, remaining_s, self.clock)

    def _present_key(self) -> str | None:
        try:
            return self.api_key.read()
        except CredentialRefused:
            return None
