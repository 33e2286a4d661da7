"""The one gate to the service: every call goes through it, so that they fail and wait together.

While the service does not answer, one caller at a time tries, after growing jittered waits; all
others wait behind it and go on at once when it gets through. However many tasks want something,
the number of attempts stays that of one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final, Protocol, TypeVar

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

_TROUBLES: Final = frozenset(
    {
        "name-resolution", "connection-refused", "connection-lost", "timeout", "tls", "proxy",
        "redirect", "captive-portal", "server-error", "bad-reply", "throttled",
        "credential-refused",
    }
)  # fmt: skip


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

    @property
    def is_up(self) -> bool:
        """True unless the last call to the service failed."""
        return self._failures == 0

    async def call(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the service's answer, however long it takes to get one.

        Raises Refused, BodyRejected and BodyTooLarge: these are answers.
        """
        while True:
            answered, answer = await self._try(ask)
            if answered:
                return answer  # type: ignore[return-value]  # set whenever answered is true

    async def wait_for_another_key(self, at_most_s: float) -> None:
        """Wait, but no longer than until the key has changed: for a key that lacks a grant."""
        known = self._present_key()
        until = self._clock.monotonic() + at_most_s
        while (left := until - self._clock.monotonic()) > 0 and self._present_key() == known:
            await self._clock.sleep(min(left, KEY_CHECK_S))

    async def _try(self, ask: Callable[[], Awaitable[Answer]]) -> tuple[bool, Answer | None]:
        if not self.is_up:
            async with self._probe:
                if not self.is_up:
                    await self._wait_for_the_gate()
                    return await self._attempt(ask)
        return await self._attempt(ask)

    async def _attempt(self, ask: Callable[[], Awaitable[Answer]]) -> tuple[bool, Answer | None]:
        generation = self._generation
        try:
            answer = await ask()
        except (Unavailable, CredentialRefused) as error:
            # Calls that were under way together fail together: they count as one failure.
            if generation == self._generation:
                self._note_failure(error)
            return False, None
        except ServiceError:
            self._note_answer()
            raise
        self._note_answer()
        return True, answer

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

    async def _wait_for_the_gate(self) -> None:
        while not self.is_up and (left := self._open_at - self._clock.monotonic()) > 0:
            if self._health.holds("credential-refused"):
                if self._present_key() != self._refused_key:
                    return
                left = min(left, KEY_CHECK_S)
            await self._clock.sleep(left)

    def _present_key(self) -> str | None:
        try:
            return self._api_key.read()
        except CredentialRefused:
            return None
