"""Tests the messages for users about a wrong configuration or API key, and a missing service."""

import asyncio
import json
import logging
import re
from pathlib import Path

import pytest

from tests.fakes.http_server import Reply
from tests.fakes.strict_service import StrictService
from tests.fakes.virtual_clock import VirtualClock, run_in_virtual_time
from tests.scenario.agent_process import forked_agent, run_forked_agent, write_config
from tests.scenario.simulated_agent import config_for, simulated_agent


async def test_message_about_an_unknown_key_has_its_position_and_a_similar_key(
    tmp_path: Path,
) -> None:
    config = write_config(tmp_path, "http://127.0.0.1:1", heartbeat="intervall_seconds = 5")
    code, output, errors = await run_forked_agent(config, "run")
    line = config.read_text().splitlines().index("intervall_seconds = 5") + 1
    assert (code, output) == (2, "")
    assert errors == (
        f"venue-agent: {config}:{line}:1: unknown key 'intervall_seconds' in [heartbeat];"
        " did you mean 'interval_seconds'?\n"
    )


async def test_plain_http_is_refused_beyond_loopback(tmp_path: Path) -> None:
    code, _, errors = await run_forked_agent(
        write_config(tmp_path, "http://ops.example.com"), "run"
    )
    assert code == 2
    assert "config.toml:2:1: service.base_url must be https" in errors
    assert len(errors.splitlines()) == 1


async def test_a_public_subnet_is_refused(tmp_path: Path) -> None:
    config = write_config(tmp_path, "http://127.0.0.1:1", network='subnets = ["8.8.8.0/24"]')
    code, _, errors = await run_forked_agent(config, "config", "check")
    assert code == 2
    assert "is not a private range" in errors


async def test_missing_key_file_is_a_one_line_error(tmp_path: Path) -> None:
    config = write_config(tmp_path, "http://127.0.0.1:1")
    (tmp_path / "api-key").unlink()
    code, _, errors = await run_forked_agent(config, "run")
    assert code == 2
    assert errors == (
        f"venue-agent: the API key cannot be read from {tmp_path / 'api-key'}:"
        " No such file or directory; write the key into this file\n"
    )


async def test_error_about_an_empty_configuration_names_the_required_key(tmp_path: Path) -> None:
    empty = tmp_path / "config.toml"
    empty.write_text("")
    code, _, errors = await run_forked_agent(empty, "run")
    assert code == 2
    assert "the key 'service' is required" in errors


async def _problems_without_a_service(home: Path, caplog: pytest.LogCaptureFixture) -> set[str]:
    config = config_for(home, "http://127.0.0.1:9")
    async with simulated_agent(config, home, VirtualClock()) as app, asyncio.timeout(60):
        while "try 4:" not in caplog.text:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
        return {problem.code for problem in app.health.problems()}


def test_unreachable_service_is_retried_with_increasing_delays(
    memory_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    problems = run_in_virtual_time(_problems_without_a_service(memory_home, caplog))
    waits = [float(s) for s in re.findall(r"next try in ([\d.]+) s", caplog.text)]
    assert len(waits) == 4
    # A wait is 50 to 100 % of its maximum, which doubles with each attempt. The log rounds waits.
    for attempt, wait_s in enumerate(waits):
        assert 0.5 * 2**attempt - 0.1 <= wait_s <= 2**attempt + 0.1
    assert problems == {"connection-refused"}


async def test_read_only_key_is_reported_and_the_agent_keeps_running(tmp_path: Path) -> None:
    problem = {"title": "Forbidden", "status": 403, "code": "read_only_key"}
    async with StrictService() as service:
        service.overrides["challenge"] = lambda: Reply(
            403, json.dumps(problem).encode(), "application/problem+json"
        )
        async with forked_agent(write_config(tmp_path, service.base_url)) as agent:
            await agent.until_logged("this key has no write grant")
            assert agent.process.returncode is None
            assert await agent.stop() == 0
        assert agent.status()["problems"][0]["code"] == "not-enrolled"
        assert service.calls == ["challenge"]


async def test_refused_key_is_read_again_and_the_identity_is_kept(tmp_path: Path) -> None:
    async with StrictService() as service:
        config = write_config(tmp_path, service.base_url)
        valid_key = (tmp_path / "api-key").read_text()
        (tmp_path / "api-key").write_text("an-old-key\n")
        async with forked_agent(config) as agent:
            await agent.until_logged("does not accept the API key")
            identity = (tmp_path / "state" / "identity.pem").read_bytes()
            (tmp_path / "api-key").write_text(valid_key)
            await service.until(lambda: service.heartbeats > 0)
            assert await agent.stop() == 0
    assert (tmp_path / "state" / "identity.pem").read_bytes() == identity
