"""The one gate to the service: every call goes through it, so that they fail and wait together.

While the service does not answer, one caller at a time tries, after growing jittered waits; all
others wait behind it and go on at once when it gets through. However many tasks want something,
the number of attempts stays that of one.

A service may also answer some calls and fail at one of them. Such a call waits by itself, longer
each time, and holds nobody up.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Final, Generic, Protocol, TypeVar

from agent.adapters.clock import Clock
from agent.credential import ApiKeySource
from agent.errors import CredentialRefused, ServiceError, Throttled, Unavailable
from agent.rules import retry
from agent.rules.health import CONDITIONS
from agent.tasks.health_board import HealthBoard

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

KEY_CHECK_S: Final = 5.0
"""How often a refused key's file is looked at for another key."""
ALONE_WORTH_SAYING: Final = 3
"""A call that fails so often while others are answered is said to be in trouble."""

_TROUBLES: Final = frozenset(
    {
        "name-resolution", "connection-refused", "connection-lost", "timeout", "tls", "proxy",
        "redirect", "captive-portal", "server-error", "bad-reply", "throttled",
        "credential-refused",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Answered(Generic[Answer]):
    answer: Answer


@dataclass(frozen=True, slots=True)
class _Failed:
    """``is_alone``: the service had answered the call before this one."""

    error: Unavailable | CredentialRefused
    is_alone: bool


class Caller(Protocol):
    """Asks the service something: once, or until it answers."""

    async def call(self, ask: Callable[[], Awaitable[Answer]]) -> Answer: ...


class DirectCaller:
    """Asks once; every error is the caller's. For the command line."""

    async def call(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        return await ask()


class Link:
    def __init__(
        self, clock: Clock, rng: Random, health: HealthBoard, api_key: ApiKeySource
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._health = health
        self._api_key = api_key
        self._probe = asyncio.Lock()
        self._failures = 0
        self._tries = 0
        self._was_refused = False
        self._generation = 0
        self._open_at = 0.0
        self._refused_key: str | None = None
        self._look_at_the_gate = asyncio.Event()
        self._failing_alone = 0

    @property
    def is_up(self) -> bool:
        """True unless the last call to the service failed."""
        return self._failures == 0

    async def call(
        self, ask: Callable[[], Awaitable[Answer]], *, alone_max: int | None = None
    ) -> Answer:
        """Return the service's answer, however long it takes to get one.

        Raises Refused, BodyRejected and BodyTooLarge: these are answers. With ``alone_max``,
        raises Unavailable or CredentialRefused after so many failures of this call while the
        service answered others: for a caller that has something else to do meanwhile.
        """
        failures_alone = 0
        try:
            while True:
                tried = await self._try(ask)
                if isinstance(tried, _Answered):
                    return tried.answer
                if not tried.is_alone:
                    continue
                failures_alone += 1
                if failures_alone == ALONE_WORTH_SAYING:
                    self._note_failing_alone(1, str(tried.error))
                if failures_alone == alone_max:
                    raise tried.error
                await self._wait_alone(failures_alone)
        finally:
            if failures_alone >= ALONE_WORTH_SAYING:
                self._note_failing_alone(-1)

    def look_again(self) -> None:
        """Try now: the machine slept, or its clock was set, and the network may be another."""
        if not self._health.holds("throttled"):
            self._open_at = self._clock.monotonic()
        self._look_at_the_gate.set()

    async def wait_for_another_key(self, at_most_s: float) -> None:
        """Wait, but no longer than until the key has changed: for a key that lacks a grant."""
        known = self._present_key()
        until = self._clock.monotonic() + at_most_s
        while (left := until - self._clock.monotonic()) > 0 and self._present_key() == known:
            await self._clock.sleep(min(left, KEY_CHECK_S))

    async def _try(self, ask: Callable[[], Awaitable[Answer]]) -> "_Answered[Answer] | _Failed":
        if not self.is_up:
            async with self._probe:
                if not self.is_up:
                    await self._wait_for_the_gate()
                    return await self._attempt(ask)
        return await self._attempt(ask)

    async def _attempt(self, ask: Callable[[], Awaitable[Answer]]) -> "_Answered[Answer] | _Failed":
        generation = self._generation
        is_alone = self.is_up
        try:
            answer = await ask()
        except (Unavailable, CredentialRefused) as error:
            # Calls that were under way together fail together: they count as one failure.
            if generation == self._generation:
                self._note_failure(error)
            return _Failed(error, is_alone)
        except ServiceError:
            self._note_answer()
            raise
        self._note_answer()
        return _Answered(answer)

    def _note_failure(self, error: Unavailable | CredentialRefused) -> None:
        self._failures += 1
        self._generation += 1
        is_refused = isinstance(error, CredentialRefused)
        # Each kind of trouble grows its own waits: the first 401 after a long outage is the first.
        self._tries = self._tries + 1 if is_refused is self._was_refused else 1
        self._was_refused = is_refused
        code = "credential-refused" if isinstance(error, CredentialRefused) else error.cause
        if isinstance(error, CredentialRefused):
            delay_s = retry.CREDENTIAL.delay_s(self._tries, self._rng)
            self._refused_key = self._present_key()
        elif isinstance(error, Throttled):
            delay_s = retry.throttled_delay_s(error.retry_after_s, self._tries, self._rng)
        else:
            delay_s = retry.UNAVAILABLE.delay_s(self._tries, self._rng)
        self._open_at = self._clock.monotonic() + delay_s
        log.info(
            "try %d: %s: %s; next try in %.1f s", self._failures, CONDITIONS[code].title, error,
            delay_s,
        )  # fmt: skip
        self._health.clear(_TROUBLES - {code})
        self._health.report(code, str(error))

    def _note_answer(self) -> None:
        if not self.is_up:
            log.info("the service answers again, after %d failed tries", self._failures)
        self._failures = 0
        self._tries = 0
        self._generation += 1
        self._refused_key = None
        self._health.clear(_TROUBLES)

    async def _wait_alone(self, failures_alone: int) -> None:
        """Wait before the next try of a call that failed while the service answered others.

        The first failure of a call may be the first one of all: for that the gate is enough.
        """
        if failures_alone > 1:
            await self._clock.sleep(retry.UNAVAILABLE.delay_s(failures_alone, self._rng))

    def _note_failing_alone(self, change: int, why: str = "") -> None:
        self._failing_alone += change
        if change > 0:
            self._health.report("partly-failing", why)
        elif not self._failing_alone:
            self._health.clear({"partly-failing"})

    async def _wait_for_the_gate(self) -> None:
        while not self.is_up and (left := self._open_at - self._clock.monotonic()) > 0:
            if self._health.holds("credential-refused"):
                if self._present_key() != self._refused_key:
                    return
                left = min(left, KEY_CHECK_S)
            await self._sleep_at_the_gate(left)

    async def _sleep_at_the_gate(self, seconds: float) -> None:
        """Sleep, unless somebody asks to look again."""
        self._look_at_the_gate.clear()
        sleep = asyncio.ensure_future(self._clock.sleep(seconds))
        looked = asyncio.ensure_future(self._look_at_the_gate.wait())
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
