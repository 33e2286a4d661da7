"""Tests that the service refuses invalid requests and too many requests of OAuth clients."""

from typing import Any
from urllib.parse import urlencode

import pytest

from controlplane.web.oauth.endpoints import CALLS_BURST, PAGES_BURST, REGISTRATIONS_BURST
from tests.unit.controlplane.accounts.oauth.program import (
    BASE,
    FORM,
    REDIRECT,
    OAuthFlow,
    Program,
    Visitor,
)
from tests.unit.controlplane.running_service import RunningService


async def test_registrations_from_one_network_address_are_limited(service: RunningService) -> None:
    replies = [await Program(service).register() for _ in range(REGISTRATIONS_BURST + 1)]
    assert [each.status_code for each in replies] == [201] * REGISTRATIONS_BURST + [429]
    wait_s = replies[-1].headers["retry-after"]
    assert replies[-1].json() == {
        "error": "temporarily_unavailable",
        "error_description": "too many programs were registered from your network:"
        f" wait {wait_s} s",
    }


async def test_page_requests_from_one_network_address_are_limited(service: RunningService) -> None:
    visitor = Visitor(service)
    address = f"{BASE}/authorize?{Program(service).query()}"
    pages = [await visitor.get(address) for _ in range(PAGES_BURST + 2)]
    assert pages[0].status_code == 400
    assert pages[-1].status_code == 429
    wait_s = pages[-1].headers["retry-after"]
    assert f"Too many pages were opened from your network: wait {wait_s} s" in (pages[-1].text)


async def test_exchanges_from_one_network_address_are_limited(service: RunningService) -> None:
    program = Program(service)
    replies = [await program.exchange("x") for _ in range(CALLS_BURST + 2)]
    assert replies[0].json()["error"] == "invalid_client"
    assert replies[-1].status_code == 429
    assert replies[-1].json()["error"] == "temporarily_unavailable"
    assert "too many requests from your network: wait" in (replies[-1].json()["error_description"])


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"redirect_uris": []}, 400),
        ({"redirect_uris": [REDIRECT] * 11}, 400),
        ({"redirect_uris": REDIRECT}, 400),
        ({"redirect_uris": None}, 400),
        ({"client_name": 7}, 400),
        ({"client_name": "x" * 513}, 400),
        ({"client_name": "x" * 9000}, 413),
        ({"grant_types": ["password"]}, 400),
        ({"grant_types": 3}, 400),
        ({"response_types": ["token"]}, 400),
        ({"response_types": None}, 400),
        ({"software_statement": "a.b.c"}, 201),
        ({"client_name": "\ud800"}, 201),
    ],
)
async def test_only_small_and_valid_registrations_are_accepted(
    service: RunningService, changes: dict[str, Any], status: int
) -> None:
    reply = await Program(service).register(**changes)
    assert reply.status_code == status
    if status != 201:
        assert reply.json()["error"].startswith("invalid")


@pytest.mark.parametrize(
    "query",
    [
        "",
        "client_id=x&client_id=y",
        "client_id=%00",
        "client_id=%FF",
        "client_id=%22%5C",
        "a=" + "x" * 5000,
        "&".join(f"a{n}=1" for n in range(40)),
    ],
)
async def test_malformed_requests_are_refused_with_a_message(
    service: RunningService, flow: OAuthFlow, query: str
) -> None:
    page = await flow.visitor.get(f"{BASE}/authorize?{query}")
    assert page.status_code == 400
    assert "cannot be connected" in page.text
    for path in ("token", "revoke"):
        reply = await service.http.post(
            f"{BASE}/{path}", content=query, headers={"content-type": FORM}
        )
        assert reply.status_code == 400
        assert reply.json()["error"] in {
            "invalid_request",
            "invalid_client",
            "unsupported_grant_type",
        }


async def test_repeated_parameters_are_refused(flow: OAuthFlow) -> None:
    program, visitor = flow
    for name in ("state", "redirect_uri", "code_challenge", "client_id"):
        twice = program.query() + "&" + urlencode({name: "x"})
        reply = await visitor.get(f"{BASE}/authorize?{twice}")
        assert reply.status_code == 400
