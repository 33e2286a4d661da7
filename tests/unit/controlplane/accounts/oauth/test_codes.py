"""Tests of authorization codes that are stolen, used twice, or requested without PKCE."""

import asyncio

import pytest

from tests.unit.controlplane.accounts.oauth.program import (
    BASE,
    ISSUER,
    VERIFIER,
    OAuthFlow,
    Program,
    caller_of_token,
    challenge,
    code_of,
    parameters_of,
)
from tests.unit.controlplane.running_service import RunningService


async def test_a_reused_code_revokes_the_tokens_issued_from_it(
    service: RunningService, flow: OAuthFlow
) -> None:
    code = await code_of(flow)
    tokens = (await flow.program.exchange(code)).json()
    assert await caller_of_token(service, tokens["access_token"])
    again = await flow.program.exchange(code)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert await caller_of_token(service, tokens["access_token"]) is None
    refreshed = await flow.program.refresh(tokens["refresh_token"])
    assert refreshed.json()["error"] == "invalid_grant"


async def test_a_code_expires_after_a_minute(service: RunningService, flow: OAuthFlow) -> None:
    code = await code_of(flow)
    service.clock.advance(60)
    assert (await flow.program.exchange(code)).json()["error"] == "invalid_grant"


async def test_concurrent_exchanges_of_one_code_leave_no_valid_token(
    service: RunningService, flow: OAuthFlow
) -> None:
    code = await code_of(flow)
    replies = await asyncio.gather(*(flow.program.exchange(code) for _ in range(4)))
    access_tokens = [each.json()["access_token"] for each in replies if each.status_code == 200]
    assert len(access_tokens) == 1
    assert await caller_of_token(service, access_tokens[0]) is None


async def test_a_code_of_another_client_is_refused(
    service: RunningService, flow: OAuthFlow
) -> None:
    code = await code_of(flow)
    thief = Program(service)
    await thief.register()
    assert (await thief.exchange(code)).json()["error"] == "invalid_grant"
    unknown = await thief.exchange(code, client_id="vcl_" + "x" * 22)
    assert unknown.json()["error"] == "invalid_client"
    assert (await flow.program.exchange(code)).status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"code_challenge": None},
        {"code_challenge": None, "code_challenge_method": None},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": None},
        {"code_challenge_method": "s256"},
        {"code_challenge": "short"},
        {"code_challenge": VERIFIER, "code_challenge_method": "plain"},
    ],
)
async def test_an_authorization_request_without_pkce_s256_is_rejected(
    flow: OAuthFlow, changes: dict[str, str | None]
) -> None:
    program, visitor = flow
    reply = await visitor.get(f"{BASE}/authorize?{program.query(**changes)}")
    assert reply.status_code == 400
    assert "no code challenge" in reply.text
    assert "location" not in reply.headers


@pytest.mark.parametrize("verifier", [None, "w" * 64, challenge(), "short", "v" * 129])
async def test_a_code_is_refused_without_its_verifier(
    flow: OAuthFlow, verifier: str | None
) -> None:
    code = await code_of(flow)
    refused = await flow.program.exchange(code, code_verifier=verifier)
    assert refused.status_code == 400
    assert refused.json()["error"] in {"invalid_grant", "invalid_request"}
    assert "access_token" not in refused.json()


async def test_each_authorization_response_contains_the_issuer(flow: OAuthFlow) -> None:
    """A client that uses several authorization servers can check which one replied (RFC 9207)."""
    program, visitor = flow
    for decision in ("allow", "deny"):
        reply = await visitor.decide(program.query(), decision)
        assert parameters_of(reply)["iss"] == ISSUER
        assert parameters_of(reply)["state"] == "s t&te"


async def test_only_the_authorization_code_flow_is_supported(flow: OAuthFlow) -> None:
    program, visitor = flow
    for kind in ("token", "code token", "id_token"):
        page = await visitor.get(f"{BASE}/authorize?{program.query(response_type=kind)}")
        assert page.status_code == 400
        assert "response type" in page.text
        assert "location" not in page.headers
    for kind in ("password", "client_credentials", "implicit"):
        refused = await program.exchange("x", grant_type=kind)
        assert refused.json()["error"] == "unsupported_grant_type"
