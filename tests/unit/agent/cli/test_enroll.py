"""Tests of `enroll`: the first time, a second time, when refused, and while an agent runs."""

import json
from pathlib import Path

import pytest

from tests.fakes.http_server import Reply
from tests.fakes.strict_service import StrictService
from tests.scenario.agent_process import forked_agent, run_forked_agent, write_config

pytestmark = pytest.mark.medium


async def test_enroll_prints_the_record_and_repeats_the_enrollment_only_with_force(
    tmp_path: Path,
) -> None:
    async with StrictService() as service:
        config = write_config(tmp_path, service.base_url)
        code, output, errors = await run_forked_agent(config, "enroll")
        assert (code, errors) == (0, "")
        assert output.startswith("enrolled\n")
        assert f"binding      {service.binding_id}\n" in output
        code, output, _ = await run_forked_agent(config, "enroll", "--json")
        assert code == 0
        assert json.loads(output)["bindingId"] == service.binding_id
        assert service.calls.count("enroll") == 1
        code, output, _ = await run_forked_agent(config, "enroll", "--force")
        assert (code, service.calls.count("enroll")) == (0, 2)
    assert service.violations == []


async def test_refusal_is_printed_in_two_lines(tmp_path: Path) -> None:
    problem = json.dumps({"status": 403, "code": "read_only_key", "detail": "it only reads"})
    async with StrictService() as service:
        service.overrides["challenge"] = lambda: Reply(403, problem.encode())
        code, output, errors = await run_forked_agent(
            write_config(tmp_path, service.base_url), "enroll"
        )
    assert (code, output) == (1, "")
    assert errors == (
        f"venue-agent: not enrolled at {service.base_url}: this key has no write grant: it only"
        " reads (status 403)\n"
        "venue-agent: put a valid key with a write grant for this location into the file"
        f" {tmp_path}/api-key\n"
    )


@pytest.mark.parametrize(
    ("status", "problem", "detail", "fix"),
    [
        (
            401,
            {"detail": "a valid API key is needed: Authorization: Bearer <API key>, or a cookie"},
            ": a valid API key is needed: Authorization: Bearer <API key>, or a cookie (status",
            "put a valid key with a write grant for this location into the file",
        ),
        (
            403,
            {"code": "foreign_location", "detail": "the key is for another location"},
            ": the key is for another location (status 403)",
            "correct service.location_id, or use a key for this location",
        ),
        (
            404,
            {},
            ": the service refuses the call (status 404)",
            "check service.base_url and service.location_id",
        ),
        (500, {}, ": the service failed (status 500)", "try again later"),
    ],
)
async def test_refusal_names_the_service_and_the_next_step(
    tmp_path: Path, status: int, problem: dict[str, str], detail: str, fix: str
) -> None:
    async with StrictService() as service:
        service.overrides["challenge"] = lambda: Reply(status, json.dumps(problem).encode())
        code, _, errors = await run_forked_agent(write_config(tmp_path, service.base_url), "enroll")
    first, second = errors.splitlines()
    assert code == 1
    assert first.startswith(f"venue-agent: not enrolled at {service.base_url}{detail}")
    assert second.startswith(f"venue-agent: {fix}")


async def test_unreachable_service_is_named_with_the_next_step(tmp_path: Path) -> None:
    code, _, errors = await run_forked_agent(write_config(tmp_path, "http://127.0.0.1:9"), "enroll")
    assert code == 1
    assert errors.splitlines() == [
        (
            "venue-agent: not enrolled at http://127.0.0.1:9: the service's address refuses"
            " connections: Connection refused"
        ),
        "venue-agent: check service.base_url and that no firewall rejects the connection",
    ]


async def test_enroll_is_refused_while_an_agent_runs(tmp_path: Path) -> None:
    async with StrictService() as service:
        config = write_config(tmp_path, service.base_url)
        async with forked_agent(config) as agent:
            await service.until(lambda: service.heartbeats > 0)
            code, _, errors = await run_forked_agent(config, "enroll", "--force")
            assert await agent.stop() == 0
    assert code == 1
    assert "stop it to enroll manually" in errors


async def test_enroll_without_a_key_exits_with_2(tmp_path: Path) -> None:
    config = write_config(tmp_path, "http://127.0.0.1:9")
    (tmp_path / "api-key").unlink()
    code, _, errors = await run_forked_agent(config, "enroll")
    assert code == 2
    assert len(errors.splitlines()) == 1
