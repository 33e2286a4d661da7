"""Reads API keys from the database. Keys that are needed at the same time share a query.

While the key cache is empty or no longer valid, the key of every call must be read. With a query
for each call, a fleet would occupy all database threads. Then the poll of the key cache, which
makes the cache valid again, would have to wait for a free thread.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from controlplane.operation.caller import Caller
from controlplane.operation.permissions import hash_secret

KEYS_PER_QUERY: Final = 256

Read = Callable[[Sequence[str]], Awaitable[Mapping[str, Caller]]]
"""Takes hashes of keys. Returns the callers by hash. Unknown and invalid keys are left out."""


class KeyReader:
    """Reads keys in groups, one group at a time. Use it from the event loop only."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._waiting: dict[str, asyncio.Future[Caller | None]] = {}
        self._reading: asyncio.Task[None] | None = None

    async def caller(self, key: str) -> Caller | None:
        """Return the caller of an API key, or None if the key is unknown or invalid.

        The query begins after this call, so its result is not older than the call. Raises
        the error of the query.
        """
        key_hash = hash_secret(key)
        result = self._waiting.get(key_hash)
        if result is None:
            result = self._waiting[key_hash] = asyncio.get_running_loop().create_future()
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_all(), name="API keys")
        # A caller that disconnects must not cancel the result for others with the same key.
        return await asyncio.shield(result)

    async def _read_all(self) -> None:
        try:
            while self._waiting:
                hashes = [*self._waiting][:KEYS_PER_QUERY]
                group = {each: self._waiting.pop(each) for each in hashes}
                await self._read_group(group)
        finally:
            self._reading = None

    async def _read_group(self, group: dict[str, asyncio.Future[Caller | None]]) -> None:
        try:
            callers = await self._read(tuple(group))
        except Exception as error:  # noqa: BLE001 - each caller gets the error
            for future in group.values():
                future.set_exception(error)
                # Without this call, asyncio logs the error if all callers have disconnected.
                future.exception()
            return
        for key_hash, future in group.items():
            future.set_result(callers.get(key_hash))
