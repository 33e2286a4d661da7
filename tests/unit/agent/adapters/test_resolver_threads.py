"""Tests that a stop of the agent does not wait for the system's resolver."""

import asyncio
import threading

import pytest

from agent.adapters.resolver_threads import ResolverThreads


def test_the_end_of_the_event_loop_does_not_wait_for_a_thread() -> None:
    may_end = threading.Event()
    thread: list[threading.Thread] = []

    async def run() -> None:
        loop, has_begun = asyncio.get_running_loop(), asyncio.Event()

        def resolve() -> None:
            thread.append(threading.current_thread())
            loop.call_soon_threadsafe(has_begun.set)
            may_end.wait(5)

        loop.set_default_executor(ResolverThreads())
        future = loop.run_in_executor(None, resolve)
        await has_begun.wait()
        future.cancel()

    asyncio.run(run())
    assert thread[0].is_alive()
    may_end.set()
    thread[0].join()


async def test_results_are_returned_and_errors_are_raised() -> None:
    loop, threads = asyncio.get_running_loop(), ResolverThreads()
    assert await loop.run_in_executor(threads, len, "name") == 4
    with pytest.raises(ZeroDivisionError):
        await loop.run_in_executor(threads, divmod, 1, 0)
