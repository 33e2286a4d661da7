"""Tests of the redirect URIs that are accepted and refused."""

import pytest

from tests.unit.controlplane.accounts.oauth.program import (
    BASE,
    REDIRECT,
    Asking,
    Program,
    Visitor,
    code_of,
    parameters_of,
)
from tests.unit.controlplane.accounts.people import make_user
from tests.unit.controlplane.running_service import RunningService


@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example/callback",
        REDIRECT + "/",
        REDIRECT + "?next=evil",
        REDIRECT.upper(),
        "http://agent.example/callback",
        "https://agent.example@evil.example/callback",
        "https://agent.example:444/callback",
        "https://agent.example\\@evil.example/callback",
        "javascript:alert(1)",
        None,
    ],
)
async def test_no_browser_is_sent_to_an_address_that_was_not_registered(
    asking: Asking, uri: str | None
) -> None:
    program, visitor = asking
    reply = await visitor.get(f"{BASE}/authorize?{program.query(redirect_uri=uri)}")
    assert reply.status_code == 400
    assert "location" not in reply.headers
    assert "cannot be connected" in reply.text
    assert "evil" not in reply.text


@pytest.mark.parametrize(
    "uri",
    [
        "http://agent.example/callback",
        "https://agent.example/callback#part",
        "https://user@agent.example/",
        "https:/agent.example/",
        "https://agent.example\\evil",
        "https://agent.example/a b",
        "https://agent.example/\n",
        "http://127.0.0.1@evil.example/",
        "http://127.0.0.1.evil.example/",
        "http://localhost.evil.example/",
        "http://192.168.0.1/",
        "myapp://callback",
        "data:text/html,x",
        "https://",
        "https://agent.example/" + "x" * 500,
        7,
    ],
)
async def test_an_invalid_redirect_uri_is_not_registered(
    service: RunningService, uri: object
) -> None:
    reply = await Program(service).register(redirect_uris=[uri])
    assert reply.status_code == 400
    assert reply.json()["error"] == "invalid_redirect_uri"


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
async def test_the_port_is_free_on_loopback_and_nothing_else(
    service: RunningService, host: str
) -> None:
    make_user(service)
    program, visitor = Program(service, f"http://{host}:1/callback?a=1"), Visitor(service)
    await program.register()
    program.redirect_uri = f"http://{host}:49152/callback?a=1"
    await visitor.sign_in(program.query(), "ada@example.com")
    reply = await visitor.decide(program.query())
    assert reply.headers["location"].startswith(program.redirect_uri + "&code=")
    assert (await program.exchange(parameters_of(reply)["code"])).status_code == 200
    other = "localhost" if host != "localhost" else "127.0.0.1"
    for uri in (
        f"http://{other}:1/callback?a=1",
        f"http://{host}:1/callback",
        f"http://{host}:1/other?a=1",
        f"https://{host}:1/callback?a=1",
        f"http://{host}:1@evil.example/callback?a=1",
    ):
        request = await visitor.get(f"{BASE}/authorize?{program.query(redirect_uri=uri)}")
        assert request.status_code == 400


async def test_the_redirect_uri_of_the_exchange_is_that_of_the_request(asking: Asking) -> None:
    program, _ = asking
    await program.register(redirect_uris=[REDIRECT, "https://agent.example/other"])
    await asking[1].sign_in(program.query(), "ada@example.com")
    code = await code_of(asking)
    for uri in ("https://agent.example/other", None):
        refused = await program.exchange(code, redirect_uri=uri)
        assert refused.json()["error"] == "invalid_grant"
    assert (await program.exchange(code)).status_code == 200
