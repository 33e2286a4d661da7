"""Hashes and verifies passwords with argon2id (RFC 9106), in a few threads.

Verification is slow and takes memory on purpose. It also runs for unknown accounts, so that its
duration does not reveal whether an account exists.
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
"""Maximum number of characters, which limits the work of a verification.

Apart from the length, there are no rules for passwords, as NIST SP 800-63B recommends.
"""
AT_ONCE: Final = 2
WAITING_MAX: Final = 32
"""Maximum number of calls that wait or run. Further calls are refused as unavailable."""
SALT_BYTES: Final = 16
HASH_BYTES: Final = 32


class Passwords:
    """``verify`` and ``hash`` are used from one event loop; ``close`` ends the threads."""

    def __init__(self, memory_kib: int, passes: int) -> None:
        self._hasher = hasher(memory_kib, passes)
        self._dummy_hash = _dummy_hash(memory_kib, passes)
        self._threads = ThreadPoolExecutor(AT_ONCE, "passwords")
        self._waiting = 0

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """Return whether the password is right. For an unknown account, ``password_hash`` is None.

        Raises a refusal if too many verifications are waiting.
        """
        wanted = password_hash or self._dummy_hash
        return await self._run(lambda: self._is_right(wanted, password))

    async def hash(self, password: str) -> str:
        return await self._run(lambda: self._hasher.hash(_plain(password)))

    def is_outdated(self, password_hash: str) -> bool:
        """Return whether the hash was made with parameters that differ from the current ones."""
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
            raise unavailable("too many users are signing in at the moment. Try again later")
        self._waiting += 1
        try:
            # If the caller is cancelled, the thread continues, and is counted until it ends.
            task = asyncio.get_running_loop().run_in_executor(self._threads, work)
            task.add_done_callback(self._done)
        except BaseException:
            self._waiting -= 1
            raise
        return await asyncio.shield(task)

    def _done(self, task: "asyncio.Future[Result]") -> None:
        self._waiting -= 1
        if not task.cancelled():
            task.exception()  # asyncio logs exceptions that are never retrieved


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


def hashed(password: str, memory_kib: int, passes: int) -> str:
    """Return the hash of a password. It is slow: do not call it in the event loop."""
    return hasher(memory_kib, passes).hash(_plain(password))


def require_good(password: str) -> None:
    """Raise ValueError with a message for users if the password is too short or too long."""
    if not PASSWORD_MIN <= len(_plain(password)) <= PASSWORD_MAX:
        raise ValueError(f"a password must have {PASSWORD_MIN} to {PASSWORD_MAX} characters")


def _plain(password: str) -> str:
    """Return the normalized form of a password (RFC 8265)."""
    return unicodedata.normalize("NFC", password)


def _dummy_hash(memory_kib: int, passes: int) -> str:
    """Return a hash of an unknown password, which takes as long to verify as any other."""
    salt, value = (_base64(secrets.token_bytes(size)) for size in (SALT_BYTES, HASH_BYTES))
    return f"$argon2id$v=19$m={memory_kib},t={passes},p=1${salt}${value}"


def _base64(data: bytes) -> str:
    return b64encode(data).decode().rstrip("=")
