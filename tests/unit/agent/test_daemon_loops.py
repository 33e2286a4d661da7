"""Tests that a failed loop of the daemon is reported and restarted, and that the daemon ends if a
loop has ended and is not restarted.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from agent import daemon
from agent.errors import AgentError
from agent.tasks.health_board import HealthBoard
from tests.fakes.fake_clock import FakeClock


class OneLoopApp:
    """An app with only one loop. ``runs`` counts the starts of the loop."""

    def __init__(self, loop: Callable[[], Awaitable[None]]) -> None:
        self.health = HealthBoard(FakeClock(), lambda: None)
        self.runs = 0
        self._loop = loop

    async def run(self) -> None:
        self.runs += 1
        await self._loop()


async def end_at_once() -> None:
    """Return at once. A loop must never return."""


async def cancel_itself() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def raise_error() -> None:
    raise ValueError("\x1b[31mwords of a service")


@pytest.mark.parametrize("loop", [end_at_once, cancel_itself, raise_error])
async def test_failed_loop_is_reported_and_restarted(
    loop: Callable[[], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon, "RESTART", SimpleNamespace(delay_s=lambda attempt, rng: 0.0))
    app: Any = OneLoopApp(loop)
    task = asyncio.create_task(daemon._keep_running("execute", app.run, app, asyncio.Queue()))
    async with asyncio.timeout(60):
        while app.runs < 3:  # noqa: ASYNC110 - the daemon restarts the loop without a wait
            await asyncio.sleep(0)
    (problem,) = app.health.problems()
    assert problem.code == "internal-error"
    assert problem.detail.startswith("execute: ")
    assert "\x1b" not in problem.detail
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_loop_that_ends_stops_the_daemon_with_an_error() -> None:
    async def wait_forever() -> None:
        await asyncio.Event().wait()

    signal_task: Any = asyncio.create_task(wait_forever())
    loop = asyncio.create_task(end_at_once(), name="execute")
    with pytest.raises(AgentError, match="cannot continue without: execute"):
        await daemon._wait_for_signal_or_failure(signal_task, [loop])
    signal_task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await signal_task
