"""Passwords as argon2id hashes (RFC 9106), made and verified beside the event loop, few at once.

A verification is slow and takes memory on purpose. Who is nobody gets one, too: how long it takes
must not tell whether there is such an account.
"""

import asyncio
import secrets
import unicodedata
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

from controlplane.operation.errors import unavailable

Result = TypeVar("Result")
PASSWORD_MIN: Final = 12
PASSWORD_MAX: Final = 256
"""Characters. A limit from above bounds the work; no other rule is made (NIST SP 800-63B)."""
AT_ONCE: Final = 2
WAITING_MAX: Final = 32
"""Verifications that wait or run; each further one is told to come again."""
SALT_BYTES: Final = 16
HASH_BYTES: Final = 32


class Passwords:
    """``verify`` and ``hash`` are used from one event loop; ``close`` ends the threads."""

    def __init__(self, memory_kib: int, passes: int) -> None:
        self._hasher = hasher(memory_kib, passes)
        self._nobodys = _nobodys(memory_kib, passes)
        self._threads = ThreadPoolExecutor(AT_ONCE, "passwords")
        self._waiting = 0

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """Tell whether it is the password; None for ``password_hash`` is nobody's.

        Raises the refusal of one too many at once.
        """
        wanted = password_hash or self._nobodys
        return await self._run(lambda: self._is_right(wanted, password))

    async def hash(self, password: str) -> str:
        return await self._run(lambda: self._hasher.hash(_plain(password)))

    def is_outdated(self, password_hash: str) -> bool:
        """Tell whether it was made with other numbers than those of today."""
        return self._hasher.check_needs_rehash(password_hash)

    def close(self) -> None:
        self._threads.shutdown()

    def _is_right(self, password_hash: str, password: str) -> bool:
        try:
            return self._hasher.verify(password_hash, _plain(password))
        except (VerificationError, InvalidHashError):
            return False

    async def _run(self, work: Callable[[], Result]) -> Result:
        if self._waiting >= WAITING_MAX:
            raise unavailable("too many are signing in at this moment")
        self._waiting += 1
        try:
            # A thread does not end when its caller goes away, so neither does its place.
            task = asyncio.get_running_loop().run_in_executor(self._threads, work)
            task.add_done_callback(self._done)
        except BaseException:
            self._waiting -= 1
            raise
        return await asyncio.shield(task)

    def _done(self, task: "asyncio.Future[Result]") -> None:
        self._waiting -= 1
        if not task.cancelled():
            task.exception()  # seen, where nobody waits any more


def hasher(memory_kib: int, passes: int) -> PasswordHasher:
    """Return what hashes with these numbers, in one lane: the threads are the service's."""
    return PasswordHasher(
        type=Type.ID,
        time_cost=passes,
        memory_cost=memory_kib,
        parallelism=1,
        hash_len=HASH_BYTES,
        salt_len=SALT_BYTES,
    )


def hashed(password: str, memory_kib: int, passes: int) -> str:
    """Return the hash of a password. It takes its time: not for the event loop."""
    return hasher(memory_kib, passes).hash(_plain(password))


def require_good(password: str) -> None:
    """Raise ValueError, in words for a person, for one that nobody should have."""
    if not PASSWORD_MIN <= len(_plain(password)) <= PASSWORD_MAX:
        raise ValueError(f"a password has {PASSWORD_MIN} to {PASSWORD_MAX} characters")


def _plain(password: str) -> str:
    """Return one form of what keyboards write in several (RFC 8265)."""
    return unicodedata.normalize("NFC", password)


def _nobodys(memory_kib: int, passes: int) -> str:
    """Return a hash that costs what others do, and of which no password is known."""
    salt, value = (_base64(secrets.token_bytes(size)) for size in (SALT_BYTES, HASH_BYTES))
    return f"$argon2id$v=19$m={memory_kib},t={passes},p=1${salt}${value}"


def _base64(data: bytes) -> str:
    return b64encode(data).decode().rstrip("=")
