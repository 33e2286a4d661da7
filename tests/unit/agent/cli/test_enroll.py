"""The command `enroll`: the first time, a second time, when refused, and while an agent runs."""

import json
from pathlib import Path

import pytest

from tests.fakes.http_server import Reply
from tests.fakes.strict_service import StrictService
from tests.scenario.agent_process import run_agent, running_agent, write_config

pytestmark = pytest.mark.medium


async def test_prints_the_record_and_does_not_enroll_twice(tmp_path: Path) -> None:
    async with StrictService() as service:
        config = write_config(tmp_path, service.base_url)
        code, output, errors = await run_agent(config, "enroll")
        assert (code, errors) == (0, "")
        assert output.startswith("enrolled\n")
        assert f"binding      {service.binding_id}\n" in output
        code, output, _ = await run_agent(config, "enroll", "--json")
        assert code == 0
        assert json.loads(output)["bindingId"] == service.binding_id
        assert service.calls.count("enroll") == 1
        code, output, _ = await run_agent(config, "enroll", "--force")
        assert (code, service.calls.count("enroll")) == (0, 2)
    assert service.violations == []


async def test_refusal_is_printed_in_one_line(tmp_path: Path) -> None:
    problem = json.dumps({"status": 403, "code": "read_only_key", "detail": "it only reads"})
    async with StrictService() as service:
        service.overrides["challenge"] = lambda: Reply(403, problem.encode())
        code, output, errors = await run_agent(write_config(tmp_path, service.base_url), "enroll")
    assert (code, output) == (1, "")
    assert errors == (
        "venue-agent: not enrolled: this key has no write grant: it only reads (status 403)\n"
    )


async def test_enroll_does_not_disturb_a_running_agent(tmp_path: Path) -> None:
    async with StrictService() as service:
        config = write_config(tmp_path, service.base_url)
        async with running_agent(config) as agent:
            await service.until(lambda: service.heartbeats > 0)
            code, _, errors = await run_agent(config, "enroll", "--force")
            assert await agent.stop() == 0
    assert code == 1
    assert "stop it to enroll manually" in errors


async def test_a_missing_key_is_a_wrong_configuration(tmp_path: Path) -> None:
    config = write_config(tmp_path, "http://127.0.0.1:9")
    (tmp_path / "api-key").unlink()
    code, _, errors = await run_agent(config, "enroll")
    assert code == 2
    assert len(errors.splitlines()) == 1
