"""Tests of tokens that are stolen, used twice, or used for another resource."""

import asyncio
from typing import Any

import pytest

from controlplane.accounts import users
from controlplane.web.openapi.interfaces import OPERATIONS
from tests.unit.controlplane.accounts.oauth.program import (
    BASE,
    ISSUER,
    Asking,
    Program,
    code_of,
    let_read,
    parameters_of,
    reads,
)
from tests.unit.controlplane.accounts.people import make_user, remove
from tests.unit.controlplane.running_service import RunningService


async def test_a_reused_refresh_token_revokes_its_family(
    service: RunningService, asking: Asking
) -> None:
    program = asking[0]
    first = (await program.exchange(await code_of(asking))).json()
    second = (await program.refresh(first["refresh_token"])).json()
    third = (await program.refresh(second["refresh_token"])).json()
    assert await reads(service, third["access_token"])
    stolen = await program.refresh(first["refresh_token"])
    assert (stolen.status_code, stolen.json()["error"]) == (400, "invalid_grant")
    for each in (first, second, third):
        assert await reads(service, each["access_token"]) is None
        assert (await program.refresh(each["refresh_token"])).status_code == 400


async def test_two_refreshes_at_once_end_the_family(
    service: RunningService, asking: Asking
) -> None:
    program = asking[0]
    token = (await program.exchange(await code_of(asking))).json()["refresh_token"]
    replies = await asyncio.gather(*(program.refresh(token) for _ in range(4)))
    given = [each.json()["access_token"] for each in replies if each.status_code == 200]
    assert len(given) == 1
    assert await reads(service, given[0]) is None


async def test_tokens_of_another_client_are_refused(
    service: RunningService, asking: Asking
) -> None:
    tokens = (await asking[0].exchange(await code_of(asking))).json()
    thief = Program(service)
    await thief.register()
    assert (await thief.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await thief.revoke(tokens["access_token"])).json()["error"] == "invalid_grant"
    assert await reads(service, tokens["access_token"])
    assert (await asking[0].refresh(tokens["access_token"])).json()["error"] == "invalid_grant"
    assert await reads(service, tokens["refresh_token"]) is None


async def test_a_token_is_accepted_only_by_the_agent_protocol(
    service: RunningService, asking: Asking
) -> None:
    tokens = (await asking[0].exchange(await code_of(asking))).json()
    console = ("/console/api/overview", "/console/api/profile", "/console/api/profile/create-key")
    for token in (tokens["access_token"], tokens["refresh_token"]):
        for path in (*(each.path for each in OPERATIONS), *console):
            assert (await service.post(path, api_key=token)).status_code == 401, path
        for path in ("/api/v1/uoms", "/api/v1/sales", "/api/v1/employees"):
            headers = {"authorization": f"Bearer {token}"}
            assert (await service.http.get(path, headers=headers)).status_code == 401, path


async def test_neither_a_session_nor_its_cookie_is_a_token(
    service: RunningService, asking: Asking
) -> None:
    assert await reads(service, asking[1].token) is None
    assert await reads(service, service.write_key) is not None
    code = await code_of(asking)
    assert await reads(service, code) is None


@pytest.mark.parametrize("resource", [f"{ISSUER}/api/mcp/v2", "https://other.example/api/mcp/v1"])
async def test_a_token_for_another_resource_is_not_given(asking: Asking, resource: str) -> None:
    program, visitor = asking
    redirect = await visitor.get(f"{BASE}/authorize?{program.query(resource=resource)}")
    assert parameters_of(redirect)["error"] == "invalid_target"
    code = await code_of(asking)
    refused = await program.exchange(code, resource=resource)
    assert refused.json()["error"] == "invalid_target"
    tokens = (await program.exchange(code)).json()
    again = await program.refresh(tokens["refresh_token"], resource=resource)
    assert again.json()["error"] == "invalid_target"
    assert (await program.refresh(tokens["refresh_token"])).status_code == 200


async def test_a_membership_takes_its_tokens_with_it(service: RunningService) -> None:
    account = make_user(service)
    make_user(service, organization_id="org-2")
    program, visitor, tokens = await let_read(service)
    code = parameters_of(await visitor.decide(program.query()))["code"]
    remove(service, account, "org-0001")
    assert await reads(service, tokens["access_token"]) is None
    assert (await program.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await program.exchange(code)).json()["error"] == "invalid_grant"
    make_user(service)
    assert await reads(service, tokens["access_token"]) is None
    assert (await program.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def test_a_new_password_ends_them_all(service: RunningService) -> None:
    make_user(service)
    program, _, tokens = await let_read(service)

    def work(session: Any) -> None:
        user = users.find_user(session, "ada@example.com")
        assert user is not None
        users.set_password(session, user, "another")

    service.database.write(work)
    assert await reads(service, tokens["access_token"]) is None
    assert (await program.refresh(tokens["refresh_token"])).status_code == 400
