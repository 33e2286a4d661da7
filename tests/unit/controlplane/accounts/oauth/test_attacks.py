"""What thieves, other sites and other programs try, and that it gets them nothing."""

import asyncio
from typing import Any
from urllib.parse import urlencode

import pytest

from controlplane.accounts import users
from controlplane.openapi.areas import OPERATIONS
from tests.unit.controlplane.accounts.oauth.program import (
    BASE,
    COOKIE,
    FORM,
    ISSUER,
    REDIRECT,
    VERIFIER,
    Program,
    Visitor,
    challenge,
    hidden,
    let_read,
    parameters_of,
    reads,
)
from tests.unit.controlplane.accounts.people import make_person, remove
from tests.unit.controlplane.running_service import RunningService


@pytest.fixture
async def asking(service: RunningService) -> tuple[Program, Visitor]:
    """A program, and a person who is signed in and was not asked yet."""
    make_person(service)
    program, visitor = Program(service), Visitor(service)
    await program.register()
    await visitor.sign_in(program.query(), "ada@example.com")
    return program, visitor


Asking = tuple[Program, Visitor]


async def code_of(asking: Asking, **changes: str | None) -> str:
    program, visitor = asking
    return parameters_of(await visitor.decide(program.query(**changes)))["code"]


# ---------------------------------------------------------------------------- redirects


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
async def test_such_an_address_is_not_registered(service: RunningService, uri: object) -> None:
    reply = await Program(service).register(redirect_uris=[uri])
    assert reply.status_code == 400
    assert reply.json()["error"] == "invalid_redirect_uri"


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
async def test_the_port_is_free_on_loopback_and_nothing_else(
    service: RunningService, host: str
) -> None:
    make_person(service)
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
        asked = await visitor.get(f"{BASE}/authorize?{program.query(redirect_uri=uri)}")
        assert asked.status_code == 400


async def test_the_redirect_uri_of_the_exchange_is_that_of_the_request(asking: Asking) -> None:
    program, _ = asking
    await program.register(redirect_uris=[REDIRECT, "https://agent.example/other"])
    await asking[1].sign_in(program.query(), "ada@example.com")
    code = await code_of(asking)
    for uri in ("https://agent.example/other", None):
        refused = await program.exchange(code, redirect_uri=uri)
        assert refused.json()["error"] == "invalid_grant"
    assert (await program.exchange(code)).status_code == 200


# ---------------------------------------------------------------------------- codes and PKCE


async def test_a_code_is_good_once_and_shown_again_ends_what_came_of_it(
    service: RunningService, asking: Asking
) -> None:
    code = await code_of(asking)
    tokens = (await asking[0].exchange(code)).json()
    assert await reads(service, tokens["access_token"])
    again = await asking[0].exchange(code)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert await reads(service, tokens["access_token"]) is None
    refreshed = await asking[0].refresh(tokens["refresh_token"])
    assert refreshed.json()["error"] == "invalid_grant"


async def test_a_code_is_good_for_a_minute(service: RunningService, asking: Asking) -> None:
    code = await code_of(asking)
    service.clock.advance(60)
    assert (await asking[0].exchange(code)).json()["error"] == "invalid_grant"


async def test_two_exchanges_of_one_code_at_once_leave_no_token(
    service: RunningService, asking: Asking
) -> None:
    code = await code_of(asking)
    replies = await asyncio.gather(*(asking[0].exchange(code) for _ in range(4)))
    given = [each.json()["access_token"] for each in replies if each.status_code == 200]
    assert len(given) == 1
    assert await reads(service, given[0]) is None


async def test_a_code_is_no_other_program_s(service: RunningService, asking: Asking) -> None:
    code = await code_of(asking)
    thief = Program(service)
    await thief.register()
    assert (await thief.exchange(code)).json()["error"] == "invalid_grant"
    nobody = await thief.exchange(code, client_id="vcl_" + "x" * 22)
    assert nobody.json()["error"] == "invalid_client"
    assert (await asking[0].exchange(code)).status_code == 200


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
async def test_without_pkce_by_s256_nobody_is_asked(
    asking: Asking, changes: dict[str, str | None]
) -> None:
    program, visitor = asking
    told = parameters_of(await visitor.get(f"{BASE}/authorize?{program.query(**changes)}"))
    assert told["error"] == "invalid_request"
    assert (told["iss"], told["state"]) == (ISSUER, "s t&te")


@pytest.mark.parametrize("verifier", [None, "w" * 64, challenge(), "short", "v" * 129])
async def test_without_the_verifier_a_code_is_nothing(asking: Asking, verifier: str | None) -> None:
    code = await code_of(asking)
    refused = await asking[0].exchange(code, code_verifier=verifier)
    assert refused.status_code == 400
    assert refused.json()["error"] in {"invalid_grant", "invalid_request"}
    assert "access_token" not in refused.json()


async def test_each_answer_names_its_issuer(asking: Asking) -> None:
    """A program that talks to several servers sees whose answer it has (RFC 9207)."""
    program, visitor = asking
    for decision in ("allow", "deny"):
        reply = await visitor.decide(program.query(), decision)
        assert parameters_of(reply)["iss"] == ISSUER
        assert parameters_of(reply)["state"] == "s t&te"


async def test_other_flows_are_not_served(asking: Asking) -> None:
    program, visitor = asking
    for kind in ("token", "code token", "id_token"):
        told = await visitor.get(f"{BASE}/authorize?{program.query(response_type=kind)}")
        assert parameters_of(told)["error"] == "unsupported_response_type"
    for kind in ("password", "client_credentials", "implicit"):
        refused = await program.exchange("x", grant_type=kind)
        assert refused.json()["error"] == "unsupported_grant_type"


# ---------------------------------------------------------------------------- tokens


async def test_a_refresh_token_shown_twice_ends_the_family(
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


async def test_tokens_are_no_other_program_s(service: RunningService, asking: Asking) -> None:
    tokens = (await asking[0].exchange(await code_of(asking))).json()
    thief = Program(service)
    await thief.register()
    assert (await thief.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await thief.revoke(tokens["access_token"])).json()["error"] == "invalid_grant"
    assert await reads(service, tokens["access_token"])
    assert (await asking[0].refresh(tokens["access_token"])).json()["error"] == "invalid_grant"
    assert await reads(service, tokens["refresh_token"]) is None


async def test_a_token_is_good_at_the_agent_protocol_and_nowhere_else(
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
    told = await visitor.get(f"{BASE}/authorize?{program.query(resource=resource)}")
    assert parameters_of(told)["error"] == "invalid_target"
    code = await code_of(asking)
    refused = await program.exchange(code, resource=resource)
    assert refused.json()["error"] == "invalid_target"
    tokens = (await program.exchange(code)).json()
    again = await program.refresh(tokens["refresh_token"], resource=resource)
    assert again.json()["error"] == "invalid_target"
    assert (await program.refresh(tokens["refresh_token"])).status_code == 200


async def test_a_membership_takes_its_tokens_with_it(service: RunningService) -> None:
    person = make_person(service)
    make_person(service, organization_id="org-2")
    program, visitor, tokens = await let_read(service)
    code = parameters_of(await visitor.decide(program.query()))["code"]
    remove(service, person, "org-0001")
    assert await reads(service, tokens["access_token"]) is None
    assert (await program.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await program.exchange(code)).json()["error"] == "invalid_grant"
    make_person(service)
    assert await reads(service, tokens["access_token"]) is None
    assert (await program.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def test_a_new_password_ends_them_all(service: RunningService) -> None:
    make_person(service)
    program, _, tokens = await let_read(service)

    def work(session: Any) -> None:
        user = users.find_user(session, "ada@example.com")
        assert user is not None
        users.set_password(session, user, "another")

    service.database.write(work)
    assert await reads(service, tokens["access_token"]) is None
    assert (await program.refresh(tokens["refresh_token"])).status_code == 400


# ---------------------------------------------------------------------------- consent


async def test_nobody_consents_but_who_is_signed_in(service: RunningService) -> None:
    program, stranger = Program(service), Visitor(service)
    await program.register()
    fields = {"query": program.query(), "proof": "", "decision": "allow"}
    reply = await stranger.post(f"{BASE}/authorize", fields)
    assert reply.headers["location"].startswith(f"{BASE}/authorize?")


async def test_no_decision_without_the_page(asking: Asking) -> None:
    """To look at the page changes nothing, and a form without its proof is nobody's."""
    program, visitor = asking
    for made_up in ("", "0" * 64, "ü"):
        fields = {"query": program.query(), "proof": made_up, "decision": "allow"}
        reply = await visitor.post(f"{BASE}/authorize", fields | {"organization": "org-0001"})
        assert reply.status_code == 403
        assert "location" not in reply.headers


async def test_a_decision_is_of_its_session_and_of_its_request(
    service: RunningService, asking: Asking
) -> None:
    program, visitor = asking
    make_person(service, "eve@example.com")
    other = Program(service, "https://evil.example/")
    await other.register()
    eve = Visitor(service)
    await eve.sign_in(other.query(), "eve@example.com")
    hers = hidden(await eve.get(f"{BASE}/authorize?{other.query()}"))
    ours = hidden(await visitor.get(f"{BASE}/authorize?{program.query()}"))
    for fields in (hers, ours | {"query": hers["query"]}):
        decided = fields | {"decision": "allow", "organization": "org-0001"}
        assert (await visitor.post(f"{BASE}/authorize", decided)).status_code == 403


@pytest.mark.parametrize(
    ("origin", "headers"),
    [
        ("https://evil.example", {}),
        ("null", {}),
        (None, {}),
        (ISSUER, {"sec_fetch_site": "cross-site"}),
        (ISSUER, {"sec_fetch_site": "same-site"}),
    ],
)
async def test_another_site_decides_nothing_and_signs_nobody_in(
    asking: Asking, origin: str | None, headers: dict[str, str]
) -> None:
    program, visitor = asking
    fields = hidden(await visitor.get(f"{BASE}/authorize?{program.query()}"))
    decided = fields | {"decision": "allow", "organization": "org-0001"}
    reply = await visitor.post(f"{BASE}/authorize", decided, origin, **headers)
    assert reply.status_code == 403
    assert "location" not in reply.headers
    told = {"email": "ada@example.com", "password": "correct horse battery"}
    reply = await visitor.post(f"{BASE}/sign-in", fields | told, origin, **headers)
    assert reply.status_code == 403
    assert "set-cookie" not in reply.headers


async def test_no_page_is_framed_cached_or_scripted(
    service: RunningService, asking: Asking
) -> None:
    program, visitor = asking
    address = f"{BASE}/authorize?{program.query()}"
    pages = [
        await visitor.get(address),
        await Visitor(service).get(address),
        await visitor.get(f"{BASE}/authorize"),
        await visitor.sign_in(program.query(), "ada@example.com", "wrong wrong wrong"),
    ]
    for page in pages:
        policy = page.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        assert page.headers["x-frame-options"] == "DENY"
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["referrer-policy"] == "same-origin"
        assert "<script" not in page.text
    assert (
        "form-action 'self' https://agent.example;" in pages[0].headers["content-security-policy"]
    )


async def test_guessing_passwords_on_the_page_is_counted_as_elsewhere(
    service: RunningService,
) -> None:
    make_person(service)
    program, visitor = Program(service), Visitor(service)
    await program.register()
    for _ in range(10):
        reply = await visitor.sign_in(program.query(), "ada@example.com", "wrong wrong wrong")
        assert reply.status_code == 401
    right = await visitor.sign_in(program.query(), "ada@example.com")
    assert right.status_code == 429
    assert right.headers["retry-after"]
    assert "wait" in right.text


async def test_the_sign_in_page_leads_nowhere_else(asking: Asking) -> None:
    _, visitor = asking
    for query in ("https://evil.example", "x=1\r\nSet-Cookie: a=b", "//evil.example/", ""):
        reply = await visitor.sign_in(query, "ada@example.com")
        location = reply.headers.get("location", "")
        assert reply.status_code == 400 or location.startswith(f"{BASE}/authorize?")
        assert "\n" not in location
        assert COOKIE in reply.headers.get("set-cookie", COOKIE)


# ---------------------------------------------------------------------------- floods and rubbish


async def test_registrations_are_few_for_an_address(service: RunningService) -> None:
    statuses = [(await Program(service).register()).status_code for _ in range(11)]
    assert statuses == [201] * 10 + [429]


async def test_exchanges_are_bounded_for_an_address(service: RunningService) -> None:
    program = Program(service)
    replies = [await program.exchange("x") for _ in range(62)]
    assert replies[0].json()["error"] == "invalid_client"
    assert replies[-1].status_code == 429
    assert replies[-1].json()["error"] == "temporarily_unavailable"


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
async def test_a_registration_is_small_and_of_the_right_kind(
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
async def test_rubbish_is_refused_in_words(
    service: RunningService, asking: Asking, query: str
) -> None:
    page = await asking[1].get(f"{BASE}/authorize?{query}")
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


async def test_parameters_that_come_twice_are_refused(asking: Asking) -> None:
    program, visitor = asking
    for name in ("state", "redirect_uri", "code_challenge", "client_id"):
        twice = program.query() + "&" + urlencode({name: "x"})
        reply = await visitor.get(f"{BASE}/authorize?{twice}")
        assert reply.status_code == 400
