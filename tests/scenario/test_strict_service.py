"""Runs the agent with `StrictService`, for every reading of the contract.

`StrictService` shares no code with the agent. The contract does not define the format of the reply
of `onCommands`; a `Reading` is one possible format. Every reading is tested in virtual time. A
medium run also tests a reading with a stream and a reading with polls in real processes; a large
run tests all readings there.
"""

from pathlib import Path

import pytest

from tests import sizes
from tests.fakes.hostile_service import HostileService
from tests.fakes.strict_service import Reading, StrictService
from tests.fakes.virtual_clock import VirtualClock, run_in_virtual_time
from tests.scenario.agent_process import forked_agent, write_config
from tests.scenario.simulated_agent import config_for, simulated_agent

READINGS = [reading for reading in Reading if reading is not Reading.NOTHING]


async def _answer_in(reading: Reading, home: Path) -> StrictService:
    clock = VirtualClock()
    async with HostileService(clock.true_time) as service:
        service.reading = reading
        async with simulated_agent(config_for(home, service.base_url), home, clock):
            request_id = await service.request_report("network")
            await service.until(lambda: service.report_for(request_id) is not None, 60)
        assert service.acknowledged == [(request_id, "received"), (request_id, "running")]
        return service


@pytest.mark.parametrize("reading", READINGS)
def test_agent_answers_a_request_in_every_reading_in_virtual_time(
    reading: Reading, memory_home: Path
) -> None:
    service = run_in_virtual_time(_answer_in(reading, memory_home))
    assert service.violations == []
    assert len(service.reports) == 1


@pytest.mark.parametrize("reading", sizes.large_except({Reading.SSE, Reading.ARRAY}, READINGS))
async def test_agent_answers_a_request_in_every_reading_in_real_processes(
    reading: Reading, tmp_path: Path
) -> None:
    async with (
        StrictService(reading) as service,
        forked_agent(write_config(tmp_path, service.base_url)) as agent,
    ):
        await service.until(lambda: service.heartbeats > 0)
        request_id = await service.request_report("application")
        await service.until(lambda: service.report_for(request_id) is not None)
        assert await agent.stop() == 0
    assert service.violations == []
    assert service.acknowledged == [(request_id, "received"), (request_id, "running")]
    report = service.report_for(request_id)
    assert report is not None
    assert report["outcome"] in {"completed", "partial"}
    assert report["report"]["version"] == 1


async def test_agent_answers_requests_of_both_kinds_one_after_the_other(tmp_path: Path) -> None:
    async with (
        StrictService(Reading.SSE) as service,
        forked_agent(write_config(tmp_path, service.base_url)) as agent,
    ):
        await service.until(lambda: service.heartbeats > 0)
        network = await service.request_report("network")
        application = await service.request_report("application")
        await service.until(lambda: len(service.reports) == 2)
        assert await agent.stop() == 0
    assert service.violations == []
    for request_id, version in ((network, 2), (application, 1)):
        report = service.report_for(request_id)
        assert report is not None
        assert report["report"]["version"] == version
        assert [s for r, s in service.acknowledged if r == request_id] == ["received", "running"]
    network_report = service.report_for(network)
    assert network_report is not None
    assert network_report["report"]["scope"] == "device"


async def test_an_empty_reply_to_on_commands_is_neither_a_command_nor_a_problem(
    tmp_path: Path,
) -> None:
    async with (
        StrictService(Reading.NOTHING) as service,
        forked_agent(write_config(tmp_path, service.base_url)) as agent,
    ):
        await service.until(lambda: service.calls.count("onCommands") >= 3)
        assert agent.status()["problems"] == []
        assert await agent.stop() == 0
    assert service.violations == []


async def test_enrolled_device_calls_current_and_does_not_enroll_again(tmp_path: Path) -> None:
    async with StrictService(Reading.SSE) as service:
        config = write_config(tmp_path, service.base_url)
        for _ in range(2):
            service.heartbeats = 0
            async with forked_agent(config) as agent:
                await service.until(lambda: service.heartbeats > 0)
                assert await agent.stop() == 0
    assert service.calls.count("enroll") == 1
    assert "current" in service.calls
    assert service.violations == []
