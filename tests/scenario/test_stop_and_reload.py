"""SIGTERM stops the agent cleanly in every phase; SIGHUP reloads its configuration."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.fakes.http_server import Reply
from tests.fakes.strict_service import Reading, StrictService
from tests.scenario.agent_process import AgentProcess, forked_agent, write_config

Phase = Callable[[StrictService, AgentProcess], Awaitable[None]]
"""A function that returns when the agent has reached the phase in the function's name."""


async def _empty_stream() -> AsyncIterator[bytes]:
    yield b""
    await asyncio.Event().wait()


def hang() -> Reply:
    """Begin a reply and never end it."""
    return Reply(200, stream=_empty_stream())


async def enrolling(service: StrictService, agent: AgentProcess) -> None:
    await service.until(lambda: "challenge" in service.calls)


async def listening(service: StrictService, agent: AgentProcess) -> None:
    await service.until(lambda: "onCommands" in service.calls and service.heartbeats > 0)


async def acknowledging(service: StrictService, agent: AgentProcess) -> None:
    await service.request_report("application")
    await service.until(lambda: "acknowledge" in service.calls)


async def collecting(service: StrictService, agent: AgentProcess) -> None:
    await service.request_report("application")
    await service.until(lambda: len(service.acknowledged) == 2)


async def submitting(service: StrictService, agent: AgentProcess) -> None:
    await service.request_report("application")
    await service.until(lambda: "submitResult" in service.calls)


async def retrying(service: StrictService, agent: AgentProcess) -> None:
    await agent.until_logged("try 2:")


CASES: dict[str, tuple[Phase, dict[str, Callable[[], Reply]]]] = {
    "enrolling": (enrolling, {"challenge": hang}),
    "listening": (listening, {}),
    "heartbeat hangs": (acknowledging, {"heartbeat": hang}),
    "acknowledging": (acknowledging, {"acknowledge": hang}),
    "collecting": (collecting, {}),
    "submitting": (submitting, {"submitResult": hang}),
    "retrying": (retrying, {"challenge": lambda: Reply(500)}),
}
"""For each case, the phase in which the agent gets SIGTERM, and the replies (by operation) that
replace the correct ones."""


@pytest.mark.parametrize("case", CASES)
async def test_sigterm_ends_every_phase_cleanly(case: str, tmp_path: Path) -> None:
    phase, overrides = CASES[case]
    async with StrictService() as service:
        service.overrides.update(overrides)
        async with forked_agent(write_config(tmp_path, service.base_url)) as agent:
            await phase(service, agent)
            assert await agent.stop() == 0, agent.log
            assert "is abandoned" not in agent.log, "a loop did not end when it was cancelled"
            assert agent.status()["phase"] == "stopped"


async def test_stopped_collection_starts_again_at_the_next_start(tmp_path: Path) -> None:
    async with StrictService() as service:
        config = write_config(tmp_path, service.base_url)
        async with forked_agent(config) as agent:
            await service.until(lambda: service.heartbeats > 0)
            request_id = await service.request_report("application")
            await service.until(lambda: len(service.acknowledged) == 2)
            assert await agent.stop() == 0
        assert service.reports == []
        async with forked_agent(config) as agent:
            await service.until(lambda: service.report_for(request_id) is not None)
            assert await agent.stop() == 0
    assert len(service.reports) == 1
    assert service.reports[0]["outcome"] in {"completed", "partial"}
    assert service.violations == []


async def test_sighup_loads_a_valid_configuration_and_ignores_an_invalid_one(
    tmp_path: Path,
) -> None:
    async with StrictService(Reading.SSE) as service:
        config = write_config(tmp_path, service.base_url)
        async with forked_agent(config) as agent:
            await service.until(lambda: service.heartbeats > 0)
            valid_text = config.read_text()
            config.write_text(valid_text + "[nonsense]\n")
            agent.process.send_signal(signal.SIGHUP)
            await agent.until_logged("not reloaded: ")
            config.write_text(
                valid_text.replace("interval_seconds = 1", "interval_seconds = 0.2", 1)
            )
            agent.process.send_signal(signal.SIGHUP)
            await agent.until_logged("the configuration was reloaded")
            before = service.heartbeats
            await service.until(lambda: service.heartbeats > before + 3)
            assert await agent.stop() == 0
    assert service.violations == []


async def test_a_second_agent_on_the_same_state_ends_and_names_the_pid_of_the_first(
    tmp_path: Path,
) -> None:
    async with StrictService() as service:
        config = write_config(tmp_path, service.base_url)
        async with forked_agent(config) as first:
            await service.until(lambda: service.heartbeats > 0)
            async with forked_agent(config) as second:
                assert await second.process.wait() == 1
                assert f"another agent (process {first.process.pid})" in second.log
            assert await first.stop() == 0
