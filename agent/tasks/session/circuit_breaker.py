"""The way to the service: who has to wait before a call may be made, and for how long.

Each operation has a gate of its own. When the service answers an operation with a refusal (5xx,
429, 401, a web page), only that operation waits, longer each time; nobody else is held up. All
operations together have one more gate: while there is no contact at all (no name, no connection,
no TLS, silence) one caller at a time tries, after growing jittered waits; all others wait behind
it and go on at once when it gets through. However many tasks want something, the number of
attempts stays that of one.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final, Generic, Literal, Protocol, TypeVar

from agent.adapters.clock import Clock
from agent.config.credential import ApiKeySource
from agent.errors import CredentialRefused, ServiceError, Throttled, Unavailable
from agent.rules import retry
from agent.rules.health import CONDITIONS
from agent.tasks.health_board import HealthBoard

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
ALONE_WORTH_SAYING: Final = 3
"""An operation that fails so often while others are answered is said to be in trouble."""

WITHOUT_CONTACT: Final = frozenset(
    {"name-resolution", "connection-refused", "connection-lost", "timeout", "tls"}
)
"""Causes of a call that nothing answered; every other one is an answer of somebody's."""


@dataclass(frozen=True, slots=True)
class _Answered(Generic[Answer]):
    answer: Answer


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Unavailable | CredentialRefused


@dataclass(slots=True, eq=False)
class _Gate:
    """Open while ``failures`` is 0; else the next try, by one caller, comes at ``open_at``."""

    failures: int = 0
    tries: int = 0
    was_refused: bool = False
    generation: int = 0
    open_at: float = 0.0
    is_wait_named: bool = False
    refused_key: str | None = None
    code: str | None = None
    callers: int = 0
    answers_before: int = 0
    """How many calls of any operation had been answered when this one began to fail."""
    probe: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_open(self) -> bool:
        return self.failures == 0


class Caller(Protocol):
    """Asks the service something: once, or until it answers."""

    async def call(self, operation: Operation, ask: Callable[[], Awaitable[Answer]]) -> Answer: ...


class DirectCaller:
    """Asks once; every error is the caller's. For the command line."""

    async def call(self, operation: Operation, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        return await ask()


class CircuitBreaker:
    def __init__(
        self, clock: Clock, rng: Random, health: HealthBoard, api_key: ApiKeySource
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._health = health
        self._api_key = api_key
        self._all = _Gate()
        self._of: defaultdict[Operation, _Gate] = defaultdict(_Gate)
        self._answers = 0
        self._look_at_the_gates = asyncio.Event()

    @property
    def is_up(self) -> bool:
        """True unless the last try found nobody: a refusal is an answer of somebody's."""
        return self._all.is_open

    async def call(
        self,
        operation: Operation,
        ask: Callable[[], Awaitable[Answer]],
        *,
        alone_max: int | None = None,
    ) -> Answer:
        """Return the service's answer, however long it takes to get one.

        Raises Refused, BodyRejected and BodyTooLarge: these are answers. With ``alone_max``,
        raises Unavailable or CredentialRefused after so many failures of this call while the
        service answered others: for a caller that has something else to do meanwhile.
        """
        failures_alone, answers = 0, self._answers
        with self._trying(operation):
            while True:
                tried = await self._try(operation, ask)
                if isinstance(tried, _Answered):
                    return tried.answer
                failures_alone += self._answers > answers
                answers = self._answers
                if failures_alone == alone_max:
                    raise tried.error

    async def once(self, operation: Operation, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the service's answer to one try, made as soon as the gates allow one.

        Raises every ServiceError; the waits grow from one call to the next all the same.
        """
        tried = await self._try(operation, ask)
        if isinstance(tried, _Answered):
            return tried.answer
        raise tried.error

    def wait_left_s(self, operation: Operation) -> float:
        """Return how long ``operation`` has to wait yet by its own gate."""
        gate = self._of[operation]
        return 0.0 if gate.is_open else max(0.0, gate.open_at - self._clock.monotonic())

    def look_again(self) -> None:
        """Try now: the machine slept, or its clock was set, and the network may be another."""
        for gate in (self._all, *self._of.values()):
            if not gate.is_wait_named:
                gate.open_at = self._clock.monotonic()
        self._look_at_the_gates.set()

    async def wait_for_another_key(self, at_most_s: float) -> None:
        """Wait, but no longer than until the key has changed: for a key that lacks a grant."""
        known = self._present_key()
        until = self._clock.monotonic() + at_most_s
        while (left := until - self._clock.monotonic()) > 0 and self._present_key() == known:
            await self._clock.sleep(min(left, KEY_CHECK_S))

    # ------------------------------------------------------------------ one try

    async def _try(
        self, operation: Operation, ask: Callable[[], Awaitable[Answer]]
    ) -> "_Answered[Answer] | _Failed":
        own = self._of[operation]
        if not own.is_open:
            async with own.probe:
                if not own.is_open:
                    await self._wait_for(own)
                    return await self._try_contact(operation, ask)
        return await self._try_contact(operation, ask)

    async def _try_contact(
        self, operation: Operation, ask: Callable[[], Awaitable[Answer]]
    ) -> "_Answered[Answer] | _Failed":
        if not self._all.is_open:
            async with self._all.probe:
                if not self._all.is_open:
                    await self._wait_for(self._all)
                    return await self._attempt(operation, ask)
        return await self._attempt(operation, ask)

    async def _attempt(
        self, operation: Operation, ask: Callable[[], Awaitable[Answer]]
    ) -> "_Answered[Answer] | _Failed":
        before = (self._all.generation, self._of[operation].generation)
        try:
            answer = await ask()
        except (Unavailable, CredentialRefused) as error:
            self._note_failure(operation, error, *before)
            return _Failed(error)
        except ServiceError:
            self._note_answer(operation)
            raise
        self._note_answer(operation)
        return _Answered(answer)

    # ------------------------------------------------------------------ what a try tells

    def _note_failure(
        self,
        operation: Operation,
        error: Unavailable | CredentialRefused,
        generation_of_all: int,
        generation: int,
    ) -> None:
        """Close the gate that the failure speaks of.

        Calls that were under way together fail together: they count as one failure.
        """
        own = self._of[operation]
        has_contact = not isinstance(error, Unavailable) or error.cause not in WITHOUT_CONTACT
        if has_contact:
            self._note_contact()
        elif not self._fails_alone(own) and generation_of_all == self._all.generation:
            self._close(self._all, error, "the service")
        if generation != own.generation:
            return
        if own.is_open:
            own.answers_before = self._answers
        if has_contact or self._fails_alone(own):
            self._close(own, error, operation)
            if own.failures >= ALONE_WORTH_SAYING and self._answers > own.answers_before:
                self._health.set("partly-failing", f"{operation}: {error}")
        else:
            own.failures += 1
            own.generation += 1
            own.open_at = self._clock.monotonic()

    def _fails_alone(self, gate: _Gate) -> bool:
        """Tell whether others were answered since this operation began to fail."""
        return self._all.is_open and not gate.is_open and self._answers > gate.answers_before

    def _close(self, gate: _Gate, error: Unavailable | CredentialRefused, what: str) -> None:
        gate.failures += 1
        gate.generation += 1
        is_refused = isinstance(error, CredentialRefused)
        # Each kind of trouble grows its own waits: the first 401 after a long outage is the first.
        gate.tries = gate.tries + 1 if is_refused is gate.was_refused else 1
        gate.was_refused = is_refused
        gate.is_wait_named = False
        code = "credential-refused" if isinstance(error, CredentialRefused) else error.cause
        if isinstance(error, CredentialRefused):
            delay_s = retry.CREDENTIAL.delay_s(gate.tries, self._rng)
            gate.refused_key = self._present_key()
        elif isinstance(error, Throttled):
            gate.is_wait_named = error.retry_after_s is not None
            delay_s = retry.throttled_delay_s(error.retry_after_s, gate.tries, self._rng)
        else:
            delay_s = retry.UNAVAILABLE.delay_s(gate.tries, self._rng)
        gate.open_at = self._clock.monotonic() + delay_s
        log.info(
            "try %d: %s: %s (%s); next try in %.1f s", gate.failures, CONDITIONS[code].title,
            error, what, delay_s,
        )  # fmt: skip
        self._say(gate, code, str(error))

    def _note_contact(self) -> None:
        """Somebody answered, whatever it was: nobody needs to wait behind another any more."""
        if not self._all.is_open:
            log.info("the service answers again, after %d failed tries", self._all.failures)
        self._all.failures = self._all.tries = 0
        self._all.generation += 1
        self._say(self._all, None)

    def _note_answer(self, operation: Operation) -> None:
        self._note_contact()
        self._answers += 1
        own = self._of[operation]
        if own.code is not None:
            log.info("%s is answered again, after %d failed tries", operation, own.failures)
        own.generation += 1
        self.forget(operation)

    def forget(self, operation: Operation) -> None:
        """Begin anew with ``operation``: its gate is open, and nothing is said of it."""
        own = self._of[operation]
        own.failures = own.tries = 0
        own.is_wait_named = False
        own.refused_key = None
        self._say(own, None)
        self._judge_parts()

    # ------------------------------------------------------------------ what is said of it

    def _say(self, gate: _Gate, code: str | None, detail: str = "") -> None:
        """Say what is wrong at ``gate`` now, and no longer what was, unless another has it too."""
        before, gate.code = gate.code, code
        if before is not None and before != code and not self._is_said(before):
            self._health.clear({before})
        if code is not None:
            self._health.set(code, detail)

    def _is_said(self, code: str) -> bool:
        return any(gate.code == code for gate in (self._all, *self._of.values()))

    def _judge_parts(self) -> None:
        if not any(g.code and g.failures >= ALONE_WORTH_SAYING for g in self._of.values()):
            self._health.clear({"partly-failing"})

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
                self._judge_parts()

    # ------------------------------------------------------------------ waits

    async def _wait_for(self, gate: _Gate) -> None:
        while not gate.is_open and (left := gate.open_at - self._clock.monotonic()) > 0:
            if gate.was_refused:
                if self._present_key() != gate.refused_key:
                    return
                left = min(left, KEY_CHECK_S)
            await self._sleep_at_the_gate(left)

    async def _sleep_at_the_gate(self, seconds: float) -> None:
        """Sleep, unless somebody asks to look again."""
        self._look_at_the_gates.clear()
        sleep = asyncio.ensure_future(self._clock.sleep(seconds))
        looked = asyncio.ensure_future(self._look_at_the_gates.wait())
        try:
            await asyncio.wait((sleep, looked), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            looked.cancel()

    def _present_key(self) -> str | None:
        try:
            return self._api_key.read()
        except CredentialRefused:
            return None
