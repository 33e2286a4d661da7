"""Tests that API keys are read from the database in groups: one query for several calls."""

import asyncio
from collections.abc import Mapping, Sequence
from uuid import UUID

import pytest

from controlplane.accounts.keys.key_reader import KEYS_PER_QUERY, KeyReader
from controlplane.operation.caller import Caller
from controlplane.operation.permissions import hash_secret

CALLER = Caller(UUID(int=1), "org-0001", True)
CALLERS = {hash_secret("one"): CALLER}
"""The results of every query: only the key "one" is valid."""


class PausedQueries:
    """Queries that wait until the test continues them."""

    def __init__(self) -> None:
        self.groups: list[Sequence[str]] = []
        self.continued = asyncio.Event()
        self.error: Exception | None = None

    async def read(self, hashes: Sequence[str]) -> Mapping[str, Caller]:
        self.groups.append(hashes)
        await self.continued.wait()
        if self.error is not None:
            raise self.error
        return CALLERS


async def run_until_waiting(*tasks: asyncio.Task[Caller | None]) -> None:
    """Let the tasks run until each of them waits."""
    for _ in range(len(tasks) + 3):
        await asyncio.sleep(0)


async def test_keys_that_arrive_during_a_query_share_the_next_query() -> None:
    queries = PausedQueries()
    reader = KeyReader(queries.read)
    tasks = [asyncio.create_task(reader.caller("one"))]
    await run_until_waiting(*tasks)
    tasks += [asyncio.create_task(reader.caller(key)) for key in ("one", "two", "two")]
    await run_until_waiting(*tasks)
    queries.continued.set()
    assert await asyncio.gather(*tasks) == [CALLER, CALLER, None, None]
    # The second call with the key "one" came after the first query began. That query may have
    # read an older state, so the second call needs the next query.
    assert [len(group) for group in queries.groups] == [1, 2]


async def test_a_query_reads_a_bounded_number_of_keys() -> None:
    queries = PausedQueries()
    queries.continued.set()
    reader = KeyReader(queries.read)
    await asyncio.gather(*(reader.caller(f"key {number}") for number in range(KEYS_PER_QUERY + 1)))
    assert [len(group) for group in queries.groups] == [KEYS_PER_QUERY, 1]


async def test_each_caller_gets_the_error_of_the_query() -> None:
    queries = PausedQueries()
    queries.error = RuntimeError("the database does not answer")
    queries.continued.set()
    reader = KeyReader(queries.read)
    results = await asyncio.gather(
        *(reader.caller(key) for key in ("one", "two")), return_exceptions=True
    )
    assert results == [queries.error, queries.error]
    queries.error = None
    assert await reader.caller("one") == CALLER


async def test_a_cancelled_call_does_not_cancel_others_with_the_same_key() -> None:
    queries = PausedQueries()
    reader = KeyReader(queries.read)
    tasks = [asyncio.create_task(reader.caller("one")) for _ in range(2)]
    await run_until_waiting(*tasks)
    tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    queries.continued.set()
    assert await tasks[1] == CALLER
