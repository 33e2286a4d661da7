"""Tests of tokens that are stolen, used twice, or used for another resource."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import func, select

from controlplane.accounts import users
from controlplane.accounts.oauth import grants
from controlplane.accounts.oauth.secrets import REFRESH_LIFETIME
from controlplane.accounts.profile import PREFIX as PROFILE
from controlplane.storage.oauth_tables import OAuthToken
from controlplane.web.openapi.interfaces import OPERATIONS
from tests.unit.controlplane.accounts.oauth.program import (
    BASE,
    COOKIE,
    ISSUER,
    OAuthFlow,
    Program,
    Visitor,
    caller_of_token,
    code_of,
    complete_flow,
    parameters_of,
)
from tests.unit.controlplane.accounts.people import (
    PASSWORD,
    end_membership,
    make_user,
)
from tests.unit.controlplane.running_service import RunningService


async def test_a_reused_refresh_token_revokes_all_tokens_of_its_grant(
    service: RunningService, flow: OAuthFlow
) -> None:
    program = flow.program
    first = (await program.exchange(await code_of(flow))).json()
    second = (await program.refresh(first["refresh_token"])).json()
    third = (await program.refresh(second["refresh_token"])).json()
    assert await caller_of_token(service, third["access_token"])
    stolen = await program.refresh(first["refresh_token"])
    assert (stolen.status_code, stolen.json()["error"]) == (400, "invalid_grant")
    for each in (first, second, third):
        assert await caller_of_token(service, each["access_token"]) is None
        assert (await program.refresh(each["refresh_token"])).status_code == 400


END_CAUSES = ("reuse", "revocation", "password", "membership", "profile", "limit", "expiry")


@pytest.mark.parametrize("cause", END_CAUSES)
async def test_the_end_of_a_grant_ends_all_its_access_tokens(
    service: RunningService, flow: OAuthFlow, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    """A refresh does not end earlier access tokens, because calls may still use these tokens. The
    end of the grant ends all its access tokens, whatever ended the grant.
    """
    user = make_user(service)
    make_user(service, organization_id="org-2")
    program = flow.program
    first = (await program.exchange(await code_of(flow))).json()
    second = (await program.refresh(first["refresh_token"])).json()
    issued = [first["access_token"], second["access_token"]]
    assert all([await caller_of_token(service, each) for each in issued])
    if cause == "reuse":
        assert (await program.refresh(first["refresh_token"])).status_code == 400
    elif cause == "revocation":
        assert (await program.revoke(second["refresh_token"])).status_code == 200
    elif cause == "password":
        service.database.write(_set_new_password)
    elif cause == "membership":
        end_membership(service, user, "org-0001")
    elif cause == "profile":
        service.database.write(
            lambda session: [
                grants.end(session, each)
                for each, _ in grants.of_user(session, user.id, service.clock())
            ]
        )
    elif cause == "limit":
        monkeypatch.setattr(grants, "GRANTS_MAX", 1)
        assert (await program.exchange(await code_of(flow))).status_code == 200
    else:
        service.clock.advance(REFRESH_LIFETIME.total_seconds())
    assert [await caller_of_token(service, each) for each in issued] == [None, None]


async def test_a_client_that_refreshes_its_tokens_many_times_keeps_its_access(
    service: RunningService, flow: OAuthFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Used refresh tokens are kept for 30 days. A grant has at most ``TOKENS_MAX`` access tokens
    and as many refresh tokens. At this limit, the service deletes old tokens, but never the newest
    token.
    """
    monkeypatch.setattr(grants, "TOKENS_MAX", 4)
    program = flow.program
    tokens = (await program.exchange(await code_of(flow))).json()
    for _ in range(8):
        service.clock.advance(3600)
        tokens = (await program.refresh(tokens["refresh_token"])).json()
        assert await caller_of_token(service, tokens["access_token"])
    for _ in range(8):  # the clock does not advance between these refreshes
        tokens = (await program.refresh(tokens["refresh_token"])).json()
        assert await caller_of_token(service, tokens["access_token"])
    count = select(func.count()).select_from(OAuthToken)
    assert service.database.read(lambda session: session.scalar(count)) <= 8


@pytest.mark.parametrize("scope", ["read", "read write"])
async def test_a_refresh_ignores_the_requested_scope(
    service: RunningService, flow: OAuthFlow, scope: str
) -> None:
    """No scopes are defined. The service ignores the scope of a request (RFC 6749, 3.3 and 6)."""
    program = flow.program
    code = await code_of(flow, scope="read write")
    tokens = (await program.exchange(code)).json()
    reply = await program.refresh(tokens["refresh_token"], scope=scope)
    assert reply.status_code == 200
    assert "scope" not in reply.json()
    caller = await caller_of_token(service, reply.json()["access_token"])
    assert caller is not None
    assert caller.can_write is False


async def test_concurrent_refreshes_with_one_token_end_the_grant(
    service: RunningService, flow: OAuthFlow
) -> None:
    program = flow.program
    token = (await program.exchange(await code_of(flow))).json()["refresh_token"]
    replies = await asyncio.gather(*(program.refresh(token) for _ in range(4)))
    access_tokens = [each.json()["access_token"] for each in replies if each.status_code == 200]
    assert len(access_tokens) == 1
    assert await caller_of_token(service, access_tokens[0]) is None


async def test_tokens_of_another_client_are_refused(
    service: RunningService, flow: OAuthFlow
) -> None:
    tokens = (await flow.program.exchange(await code_of(flow))).json()
    thief = Program(service)
    await thief.register()
    assert (await thief.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await thief.revoke(tokens["access_token"])).json()["error"] == "invalid_grant"
    assert await caller_of_token(service, tokens["access_token"])
    assert (await flow.program.refresh(tokens["access_token"])).json()["error"] == "invalid_grant"
    assert await caller_of_token(service, tokens["refresh_token"]) is None


async def test_a_token_is_accepted_only_by_the_agent_protocol(
    service: RunningService, flow: OAuthFlow
) -> None:
    tokens = (await flow.program.exchange(await code_of(flow))).json()
    console = ("/console/api/overview", "/console/api/profile", "/console/api/profile/create-key")
    for token in (tokens["access_token"], tokens["refresh_token"]):
        for path in (*(each.path for each in OPERATIONS), *console):
            assert (await service.post(path, api_key=token)).status_code == 401, path
        for path in ("/api/v1/uoms", "/api/v1/sales", "/api/v1/employees"):
            headers = {"authorization": f"Bearer {token}"}
            assert (await service.http.get(path, headers=headers)).status_code == 401, path


async def test_a_session_token_and_a_code_are_not_accepted_as_access_tokens(
    service: RunningService, flow: OAuthFlow
) -> None:
    assert await caller_of_token(service, flow.visitor.token) is None
    assert await caller_of_token(service, service.write_key) is not None
    code = await code_of(flow)
    assert await caller_of_token(service, code) is None


@pytest.mark.parametrize("resource", [f"{ISSUER}/api/mcp/v2", "https://other.example/api/mcp/v1"])
async def test_a_token_for_another_resource_is_not_issued(flow: OAuthFlow, resource: str) -> None:
    program, visitor = flow
    page = await visitor.get(f"{BASE}/authorize?{program.query(resource=resource)}")
    assert page.status_code == 400
    assert "another service" in page.text
    code = await code_of(flow)
    refused = await program.exchange(code, resource=resource)
    assert refused.json()["error"] == "invalid_target"
    tokens = (await program.exchange(code)).json()
    again = await program.refresh(tokens["refresh_token"], resource=resource)
    assert again.json()["error"] == "invalid_target"
    assert (await program.refresh(tokens["refresh_token"])).status_code == 200


async def test_the_end_of_a_membership_revokes_its_tokens(service: RunningService) -> None:
    account = make_user(service)
    make_user(service, organization_id="org-2")
    program, visitor, tokens = await complete_flow(service)
    code = parameters_of(await visitor.decide(program.query()))["code"]
    end_membership(service, account, "org-0001")
    assert await caller_of_token(service, tokens["access_token"]) is None
    assert (await program.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await program.exchange(code)).json()["error"] == "invalid_grant"
    make_user(service)
    assert await caller_of_token(service, tokens["access_token"]) is None
    assert (await program.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def _change_password(service: RunningService, visitor: Visitor) -> None:
    headers = {"origin": ISSUER, "cookie": f"{COOKIE}={visitor.token}"}
    passwords = {"oldPassword": PASSWORD, "newPassword": "another password"}
    reply = await service.http.post(f"{PROFILE}/change-password", json=passwords, headers=headers)
    assert reply.status_code == 200, reply.text


async def _set_password_by_command(service: RunningService, _: Visitor) -> None:
    service.database.write(_set_new_password)


@pytest.mark.parametrize("change", [_change_password, _set_password_by_command])
async def test_a_new_password_revokes_all_tokens_of_the_user(
    service: RunningService, change: Callable[[RunningService, Visitor], Awaitable[None]]
) -> None:
    make_user(service)
    program, visitor, tokens = await complete_flow(service)

    await change(service, visitor)
    assert await caller_of_token(service, tokens["access_token"]) is None
    assert (await program.refresh(tokens["refresh_token"])).status_code == 400


def _set_new_password(session: Any) -> None:
    user = users.find_user(session, "ada@example.com")
    assert user is not None
    users.set_password(session, user, "another")
