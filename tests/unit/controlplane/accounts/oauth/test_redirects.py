"""Tests of the redirect URIs that are accepted and refused."""

import pytest

from tests.unit.controlplane.accounts.oauth.program import (
    BASE,
    REDIRECT,
    OAuthFlow,
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
async def test_the_service_never_redirects_to_an_unregistered_address(
    flow: OAuthFlow, uri: str | None
) -> None:
    program, visitor = flow
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
        "com.example.app:callback",
        "com.example.app:///callback",
        "com.example.app:",
        "com.example.app://user@host/callback",
        "com.example.app:/callback#part",
        "com.example.app:/call back",
        "Com.Example.App:/callback",
        ".com.example.app:/callback",
        "com..app:/callback",
        "cursor:callback",
        "javascript://cursor/%0aalert(1)",
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


@pytest.mark.parametrize(
    "uri",
    [
        "com.example.app:/oauth2redirect/example-provider",
        "com.example.desk-app://callback?from=browser",
        "com.example.app:/",
        "cursor://anysphere.cursor-mcp/oauth/callback",
    ],
)
async def test_a_desktop_program_gets_its_code_through_its_own_uri_scheme(
    service: RunningService, uri: str
) -> None:
    """A program without a listening socket registers a URI scheme with the operating system
    (RFC 8252, 7.1). If another program registers the same scheme, that program cannot use the code
    without the verifier of PKCE.
    """
    make_user(service)
    program, visitor = Program(service, uri), Visitor(service)
    assert (await program.register()).json()["redirect_uris"] == [uri]
    await visitor.sign_in(program.query(), "ada@example.com")
    page = await visitor.get(f"{BASE}/authorize?{program.query()}")
    assert "a program on this computer" in page.text
    scheme = uri.partition(":")[0]
    assert f"form-action 'self' {scheme}:;" in page.headers["content-security-policy"]
    reply = await visitor.decide(program.query())
    assert reply.headers["location"].startswith(f"{uri}{'&' if '?' in uri else '?'}code=")
    code = parameters_of(reply)["code"]
    assert (await program.exchange(code, code_verifier="w" * 64)).status_code == 400
    assert (await program.exchange(code)).status_code == 200
    for other in (uri + "/x", uri.replace(scheme, "com.example.other"), uri + "&x=1"):
        refused = await visitor.get(f"{BASE}/authorize?{program.query(redirect_uri=other)}")
        assert refused.status_code == 400


async def test_an_unsupported_redirect_uri_is_left_out_of_the_registration(
    service: RunningService,
) -> None:
    """The reply states which addresses are registered (RFC 7591, 3.2.1)."""
    make_user(service)
    good = ["https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback"]
    bad = ["myapp://callback", "http://agent.example/", "javascript:alert(1)", 7]
    program, visitor = Program(service, good[1]), Visitor(service)
    reply = await program.register(redirect_uris=[bad[0], good[0], *bad[1:], good[1]])
    assert (reply.status_code, reply.json()["redirect_uris"]) == (201, good)
    await visitor.sign_in(program.query(), "ada@example.com")
    code = parameters_of(await visitor.decide(program.query()))["code"]
    assert (await program.exchange(code)).status_code == 200
    page = await visitor.get(f"{BASE}/authorize?{program.query(redirect_uri=bad[0])}")
    assert page.status_code == 400
    refused = await program.register(redirect_uris=bad)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_redirect_uri")
    assert "com.example.app:/" in refused.json()["error_description"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"response_type": "token"}, "response type"),
        ({"response_type": None}, "response type"),
        ({"code_challenge": None}, "code challenge"),
        ({"code_challenge_method": "plain"}, "code challenge"),
        ({"resource": "https://other.example/"}, "another service"),
    ],
)
async def test_an_invalid_request_does_not_redirect_to_the_registered_address(
    service: RunningService, flow: OAuthFlow, changes: dict[str, str | None], problem: str
) -> None:
    """Anyone can register an address. A link to this service must not redirect to that address
    without a decision of the user. Otherwise, the link would be an open redirect (RFC 9700, 4.11).
    """
    program, visitor = flow
    stranger, query = Visitor(service), program.query(**changes)
    replies = [
        await stranger.get(f"{BASE}/authorize?{query}"),
        await visitor.get(f"{BASE}/authorize?{query}"),
        await stranger.sign_in(query, "ada@example.com", "not this one, no"),
    ]
    for reply in replies:
        assert reply.status_code == 400
        assert "location" not in reply.headers
        assert "cannot be connected" in reply.text
        assert problem in reply.text
        assert "agent.example" not in reply.text
        assert "form-action 'none'" in reply.headers["content-security-policy"]


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
async def test_only_the_port_of_a_loopback_redirect_uri_may_differ(
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
        page = await visitor.get(f"{BASE}/authorize?{program.query(redirect_uri=uri)}")
        assert page.status_code == 400


async def test_an_exchange_requires_the_redirect_uri_of_the_authorization_request(
    flow: OAuthFlow,
) -> None:
    program, _ = flow
    await program.register(redirect_uris=[REDIRECT, "https://agent.example/other"])
    await flow.visitor.sign_in(program.query(), "ada@example.com")
    code = await code_of(flow)
    for uri in ("https://agent.example/other", None):
        refused = await program.exchange(code, redirect_uri=uri)
        assert refused.json()["error"] == "invalid_grant"
    assert (await program.exchange(code)).status_code == 200
