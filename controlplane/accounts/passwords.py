"""Hashes and verifies passwords with argon2id (RFC 9106), in one thread.

Verification is slow and takes memory on purpose. It also runs for unknown accounts, so that its
duration does not reveal whether an account exists. Strangers can request it. Therefore the
thread has a lower priority than other threads of the service, and its queue is fair: networks take
turns, and calls of known users come first (`Passwords`).
"""

import asyncio
import itertools
import secrets
import sys
import unicodedata
from base64 import b64encode
from bisect import insort
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

from controlplane.operation.errors import unavailable
from controlplane.operation.niceness import lower_priority

Result = TypeVar("Result")
PASSWORD_MIN: Final = 12
PASSWORD_MAX: Final = 256
"""Maximum number of characters, which limits the work of a verification.

Apart from the length, there are no rules for passwords, as NIST SP 800-63B recommends.
"""
WAITING_MAX: Final = 128
"""Maximum number of calls that wait. If there are more, the last one in the queue is refused. A
call that waits takes no memory for its hash."""
NETWORK_CALLS_MAX: Final = 10
"""Maximum number of calls of one network that wait or run. Further calls are refused.

Sign-ins alone cause no such refusal, because `controlplane.accounts.throttle` permits at most ten
unfinished sign-ins of a network. It does not limit invited users who create an account.
"""
SALT_BYTES: Final = 16
HASH_BYTES: Final = 32


@dataclass(order=True, slots=True)
class _Job:
    """A call in the queue. The job with the lowest ``rank`` is next.

    ``rank``: whether the caller is not known (`Passwords`), the number of earlier calls of the
    caller's network that wait or run, and the number of the arrival.
    """

    rank: tuple[bool, int, int]
    network: str = field(compare=False)
    work: Callable[[], Any] = field(compare=False)
    result: "asyncio.Future[Any]" = field(compare=False)

    @property
    def is_known(self) -> bool:
        return not self.rank[0]


class Passwords:
    """Hashes and verifies passwords. Use it from one event loop. ``close`` ends the thread.

    The argument ``network`` is the network of the caller. ``is_known`` is whether the caller is
    signed in, has just sent the correct password, or has a session that was created in this
    network. A caller with an invitation is not known: many networks can use the link of one
    invitation at once.
    """

    def __init__(self, memory_kib: int, passes: int) -> None:
        self._hasher = hasher(memory_kib, passes)
        self._dummy_hash = _dummy_hash(memory_kib, passes)
        # Only Linux has priorities for single threads.
        initializer = lower_priority if sys.platform == "linux" else None
        self._thread = ThreadPoolExecutor(1, "passwords", initializer)
        self._waiting: list[_Job] = []
        self._calls: Counter[str] = Counter()
        self._arrivals = itertools.count()
        self._is_running = False

    async def verify(
        self, password_hash: str | None, password: str, network: str, *, is_known: bool
    ) -> bool:
        """Return whether the password is right.

        ``password_hash`` is None for an unknown account, and empty for an account without a
        password.

        Raises a refusal if too many calls are waiting.
        """
        expected_hash = password_hash or self._dummy_hash
        return await self._run(
            lambda: self._is_right(expected_hash, password), network, is_known=is_known
        )

    async def hash(self, password: str, network: str, *, is_known: bool) -> str:
        """Return the hash of a password. Raises a refusal if too many calls are waiting."""
        return await self._run(
            lambda: self._hasher.hash(_normalize(password)), network, is_known=is_known
        )

    def is_outdated(self, password_hash: str) -> bool:
        """Return whether the hash was made with parameters that differ from the current ones."""
        return self._hasher.check_needs_rehash(password_hash)

    def close(self) -> None:
        self._thread.shutdown()

    def _is_right(self, password_hash: str, password: str) -> bool:
        try:
            return self._hasher.verify(password_hash, _normalize(password))
        except (VerificationError, InvalidHashError):
            return False

    async def _run(self, work: Callable[[], Result], network: str, *, is_known: bool) -> Result:
        earlier_calls = self._calls[network]
        if earlier_calls >= NETWORK_CALLS_MAX:
            raise unavailable(
                "too many users of your network are signing in at the moment. Try again later"
            )
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        job = _Job((not is_known, earlier_calls, next(self._arrivals)), network, work, result)
        self._calls[network] += 1
        insort(self._waiting, job)
        if len(self._waiting) > WAITING_MAX:
            busy = unavailable("too many users are signing in at the moment. Try again later")
            last = self._waiting.pop()
            if not last.result.done():  # it is done if its caller was cancelled
                last.result.set_exception(busy)
        self._start_next()
        try:
            return await result
        finally:
            self._leave(job)

    def _leave(self, job: _Job) -> None:
        self._calls[job.network] -= 1
        if not self._calls[job.network]:
            del self._calls[job.network]
        if job in self._waiting:  # its caller was cancelled
            self._waiting.remove(job)

    def _start_next(self) -> None:
        if self._is_running or not self._waiting:
            return
        job = self._waiting.pop(0)
        self._is_running = True
        task = asyncio.get_running_loop().run_in_executor(self._thread, job.work)
        task.add_done_callback(partial(self._finish, job))

    def _finish(self, job: _Job, task: "asyncio.Future[Any]") -> None:
        self._is_running = False
        self._start_next()
        # The error is always retrieved. Otherwise asyncio would log it if the caller was cancelled.
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or job.result.done():
            job.result.cancel()
        elif error is not None:
            job.result.set_exception(error)
        else:
            job.result.set_result(task.result())


def hasher(memory_kib: int, passes: int) -> PasswordHasher:
    """Return an argon2id hasher with these parameters and one lane."""
    return PasswordHasher(
        type=Type.ID,
        time_cost=passes,
        memory_cost=memory_kib,
        parallelism=1,
        hash_len=HASH_BYTES,
        salt_len=SALT_BYTES,
    )


def hash_password(password: str, memory_kib: int, passes: int) -> str:
    """Return the hash of a password. Hashing is slow: do not call this in the event loop."""
    return hasher(memory_kib, passes).hash(_normalize(password))


def require_valid_length(password: str) -> None:
    """Raise ValueError with a message for users if the password is too short or too long."""
    if not PASSWORD_MIN <= len(_normalize(password)) <= PASSWORD_MAX:
        raise ValueError(f"a password must have {PASSWORD_MIN} to {PASSWORD_MAX} characters")


def _normalize(password: str) -> str:
    """Return the normalized form of a password (RFC 8265)."""
    return unicodedata.normalize("NFC", password)


def _dummy_hash(memory_kib: int, passes: int) -> str:
    """Return a hash that no known password has. Its verification takes as long as any other."""
    salt, value = (_base64(secrets.token_bytes(size)) for size in (SALT_BYTES, HASH_BYTES))
    return f"$argon2id$v=19$m={memory_kib},t={passes},p=1${salt}${value}"


def _base64(data: bytes) -> str:
    return b64encode(data).decode().rstrip("=")
