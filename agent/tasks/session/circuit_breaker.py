"""Circuit breakers between the agent and the service: whether a call may be made now, or when.

Each operation has a breaker. When the service answers an operation with a refusal (5xx, 429, 401,
a web page), only that operation's breaker opens, longer each time; nobody else is held up. One more
breaker is shared by all operations: it opens while there is no contact at all (no name, no
connection, no TLS, silence).

A closed breaker lets every call pass. An open one holds callers back until its wait, which grows
and is jittered, is over. Then it is half-open: one caller makes the next try, the others wait
behind it and go on at once when it gets through. However many tasks want something, the number of
attempts stays that of one.

A service that carries many says over which time they should return (`note_reconnect_over`): no
wait for contact is then shorter than half of it. A heartbeat, which has time, leaves the tries to
others for four times as long, and follows them within it.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal, TypeVar

from agent.adapters.clock import Clock
from agent.config.credential import ApiKeySource
from agent.errors import CredentialRefused, ServiceError, ServiceUnavailable, Throttled
from agent.rules import retry
from agent.rules.health import CONDITIONS
from agent.tasks.health_board import HealthBoard
from agent.tasks.wakeup import wait_at_most

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")
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
"""A stream is a thing of its own: a service may refuse it and answer the same question at once."""

KEY_CHECK_S: Final = 5.0
"""How often a refused key's file is looked at for another key."""
LETS_OTHERS_TRY: Final = 4
"""So many times the time over which callers return, a heartbeat makes no try to find contact."""
PARTLY_FAILING_FROM: Final = 3
"""An operation that fails so often while others are answered is said to be in trouble."""

WITHOUT_CONTACT: Final = frozenset(
    {"name-resolution", "connection-refused", "connection-lost", "timeout", "tls"}
)
"""Causes of a call that nothing answered; every other one is an answer of somebody's."""


@dataclass(slots=True, eq=False)
class _Breaker:
    """Closed while ``failures`` is 0; else open until ``retry_at``, and half-open from then on."""

    failures: int = 0
    tries: int = 0
    is_key_refused: bool = False
    generation: int = 0
    retry_at: float = 0.0
    has_retry_after: bool = False
    refused_key: str | None = None
    code: str | None = None
    callers: int = 0
    answers_before: int = 0
    """How many calls of any operation had been answered when this one began to fail."""
    probe: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the one caller that makes the next try."""

    @property
    def is_closed(self) -> bool:
        return self.failures == 0


@dataclass(slots=True, eq=False)
class CircuitBreaker:
    """The breakers of all operations, and the one that they share."""

    clock: Clock
    rng: Random
    health: HealthBoard
    api_key: ApiKeySource
    _shared: _Breaker = field(default_factory=_Breaker)
    _of: defaultdict[Operation, _Breaker] = field(default_factory=lambda: defaultdict(_Breaker))
    _answers: int = 0
    _reconnect_over_s: float = 0.0
    _contact: asyncio.Event = field(default_factory=asyncio.Event)
    _retry_now: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_up(self) -> bool:
        """True unless the last try found nobody: a refusal is an answer of somebody's."""
        return self._shared.is_closed

    async def call(
        self,
        operation: Operation,
        ask: Callable[[], Awaitable[Answer]],
        *,
        alone_max: int | None = None,
    ) -> Answer:
        """Return the service's answer, however long it takes to get one.

        Raises Refused, BodyRejected and BodyTooLarge: these are answers. With ``alone_max``,
        raises ServiceUnavailable or CredentialRefused after so many failures of this call while the
        service answered others: for a caller that has something else to do meanwhile.
        """
        failures_alone, answers = 0, self._answers
        with self._trying(operation):
            while True:
                try:
                    return await self.once(operation, ask)
                except (ServiceUnavailable, CredentialRefused):
                    failures_alone += self._answers > answers
                    answers = self._answers
                    if failures_alone == alone_max:
                        raise

    async def once(self, operation: Operation, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the service's answer to one try, made as soon as the breakers let it pass.

        Raises every ServiceError; the waits grow from one call to the next all the same.
        """
        if operation == "heartbeat":
            await self._let_others_try()
        async with self._passing(self._of[operation]), self._passing(self._shared):
            return await self._attempt(operation, ask)

    def note_reconnect_over(self, wish_s: float) -> None:
        """Note over which time the service wishes its callers to return."""
        self._reconnect_over_s = retry.reconnect_over_s(wish_s)

    @property
    def reconnect_over_s(self) -> float:
        """Over how many seconds all callers of the service return after they were cut off."""
        return self._reconnect_over_s

    def wait_left_s(self, operation: Operation) -> float:
        """Return how long the breaker of ``operation`` stays open, in seconds."""
        breaker = self._of[operation]
        return 0.0 if breaker.is_closed else max(0.0, breaker.retry_at - self.clock.monotonic())

    def retry_now(self) -> None:
        """Try now: the machine slept, or its clock was set, and the network may be another."""
        for breaker in (self._shared, *self._of.values()):
            if not breaker.has_retry_after:
                breaker.retry_at = self.clock.monotonic()
        self._retry_now.set()

    async def wait_for_another_key(self, at_most_s: float) -> None:
        """Wait, but no longer than until the key has changed: for a key that lacks a grant."""
        known = self._present_key()
        until = self.clock.monotonic() + at_most_s
        while (left := until - self.clock.monotonic()) > 0 and self._present_key() == known:
            await self.clock.sleep(min(left, KEY_CHECK_S))

    # ------------------------------------------------------------------ one try

    @contextlib.asynccontextmanager
    async def _passing(self, breaker: _Breaker) -> AsyncIterator[None]:
        """Make a call when ``breaker`` lets it pass; unless it is closed, be the only one."""
        if not breaker.is_closed:
            async with breaker.probe:
                if not breaker.is_closed:
                    await self._wait_for(breaker)
                    yield
                    return
        yield

    async def _let_others_try(self) -> None:
        """Return at once in contact; else some time after others found it, or when they do not."""
        if self.is_up or not self._reconnect_over_s:
            return
        self._contact.clear()
        await wait_at_most(self._contact, LETS_OTHERS_TRY * self._reconnect_over_s, self.clock)
        if self._shared.is_closed:
            await self.clock.sleep(self.rng.uniform(0.0, self._reconnect_over_s))

    async def _attempt(self, operation: Operation, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        before = (self._shared.generation, self._of[operation].generation)
        try:
            answer = await ask()
        except (ServiceUnavailable, CredentialRefused) as error:
            self._note_failure(operation, error, *before)
            raise
        except ServiceError:
            self._note_answer(operation)
            raise
        self._note_answer(operation)
        return answer

    # ------------------------------------------------------------------ what a try tells

    def _note_failure(
        self,
        operation: Operation,
        error: ServiceUnavailable | CredentialRefused,
        shared_generation: int,
        generation: int,
    ) -> None:
        """Open the breaker that the failure speaks of.

        Calls that were under way together fail together: they count as one failure.
        """
        own = self._of[operation]
        has_contact = (
            not isinstance(error, ServiceUnavailable) or error.cause not in WITHOUT_CONTACT
        )
        if has_contact:
            self._note_contact()
        elif not self._fails_alone(own) and shared_generation == self._shared.generation:
            self._open(self._shared, error, "the service")
        if generation != own.generation:
            return
        if own.is_closed:
            own.answers_before = self._answers
        if has_contact or self._fails_alone(own):
            self._open(own, error, operation)
            if own.failures >= PARTLY_FAILING_FROM and self._answers > own.answers_before:
                self.health.set("partly-failing", f"{operation}: {error}")
        else:
            own.failures += 1
            own.generation += 1
            own.retry_at = self.clock.monotonic()

    def _fails_alone(self, breaker: _Breaker) -> bool:
        """Tell whether others were answered since this operation began to fail."""
        return (
            self._shared.is_closed
            and not breaker.is_closed
            and self._answers > breaker.answers_before
        )

    def _open(
        self, breaker: _Breaker, error: ServiceUnavailable | CredentialRefused, what: str
    ) -> None:
        breaker.failures += 1
        breaker.generation += 1
        is_refused = isinstance(error, CredentialRefused)
        # Each kind of trouble grows its own waits: the first 401 after a long outage is the first.
        breaker.tries = breaker.tries + 1 if is_refused is breaker.is_key_refused else 1
        breaker.is_key_refused = is_refused
        retry_after_s = error.retry_after_s if isinstance(error, Throttled) else None
        breaker.has_retry_after = retry_after_s is not None
        if isinstance(error, CredentialRefused):
            code, delay_s = "credential-refused", retry.CREDENTIAL.delay_s(breaker.tries, self.rng)
            breaker.refused_key = self._present_key()
        else:
            code = error.cause
            delay_s = self._delay_s(breaker, retry_after_s)
        breaker.retry_at = self.clock.monotonic() + delay_s
        log.info(
            "try %d: %s: %s (%s); next try in %.1f s", breaker.failures, CONDITIONS[code].title,
            error, what, delay_s,
        )  # fmt: skip
        self._say(breaker, code, str(error))

    def _delay_s(self, breaker: _Breaker, retry_after_s: float | None) -> float:
        if breaker is self._shared:
            return retry.unavailable_delay_s(breaker.tries, self._reconnect_over_s, self.rng)
        return retry.throttled_delay_s(retry_after_s, breaker.tries, self.rng)

    def _note_contact(self) -> None:
        """Somebody answered, whatever it was: nobody needs to wait behind another any more."""
        if not self._shared.is_closed:
            log.info("the service answers again, after %d failed tries", self._shared.failures)
        self._shared.failures = self._shared.tries = 0
        self._shared.generation += 1
        self._contact.set()
        self._say(self._shared, None)

    def _note_answer(self, operation: Operation) -> None:
        self._note_contact()
        self._answers += 1
        own = self._of[operation]
        if own.code is not None:
            log.info("%s is answered again, after %d failed tries", operation, own.failures)
        own.generation += 1
        self.reset(operation)

    def reset(self, operation: Operation) -> None:
        """Close the breaker of ``operation``, and say nothing more of it."""
        own = self._of[operation]
        own.failures = own.tries = 0
        own.has_retry_after = False
        own.refused_key = None
        self._say(own, None)

    # ------------------------------------------------------------------ what is said of it

    def _say(self, breaker: _Breaker, code: str | None, detail: str = "") -> None:
        """Say what opened ``breaker``, and no longer what had, unless another was opened by it."""
        before, breaker.code = breaker.code, code
        if before is not None and before not in {
            each.code for each in (self._shared, *self._of.values())
        }:
            self.health.clear({before})
        if code is not None:
            self.health.set(code, detail)
        if not any(b.code and b.failures >= PARTLY_FAILING_FROM for b in self._of.values()):
            self.health.clear({"partly-failing"})

    @contextlib.contextmanager
    def _trying(self, operation: Operation) -> Iterator[None]:
        """When nobody tries any more, nothing is said of an operation that failed."""
        own = self._of[operation]
        own.callers += 1
        try:
            yield
        finally:
            own.callers -= 1
            if not own.callers:
                self._say(own, None)

    # ------------------------------------------------------------------ waits

    async def _wait_for(self, breaker: _Breaker) -> None:
        while not breaker.is_closed and (left := breaker.retry_at - self.clock.monotonic()) > 0:
            if breaker.is_key_refused:
                if self._present_key() != breaker.refused_key:
                    return
                left = min(left, KEY_CHECK_S)
            self._retry_now.clear()
            await wait_at_most(self._retry_now, left, self.clock)

    def _present_key(self) -> str | None:
        try:
            return self.api_key.read()
        except CredentialRefused:
            return None
