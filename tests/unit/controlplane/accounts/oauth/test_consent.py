"""Tests that only a signed-in user can consent, and only on the service's own page."""

import pytest

from tests.unit.controlplane.accounts.oauth.program import (
    BASE,
    ISSUER,
    OAuthFlow,
    Program,
    Visitor,
    hidden_fields,
)
from tests.unit.controlplane.accounts.people import make_user
from tests.unit.controlplane.running_service import RunningService


async def test_consent_requires_a_signed_in_user(service: RunningService) -> None:
    program, stranger = Program(service), Visitor(service)
    await program.register()
    fields = {"query": program.query(), "proof": "", "decision": "allow"}
    reply = await stranger.post(f"{BASE}/authorize", fields)
    assert reply.headers["location"].startswith(f"{BASE}/authorize?")


async def test_a_decision_without_the_proof_of_the_consent_page_is_refused(flow: OAuthFlow) -> None:
    """The proof is a hidden field of the consent page, so other sites cannot send it."""
    program, visitor = flow
    for invalid_proof in ("", "0" * 64, "ü"):
        fields = {"query": program.query(), "proof": invalid_proof, "decision": "allow"}
        reply = await visitor.post(f"{BASE}/authorize", fields | {"organization": "org-0001"})
        assert reply.status_code == 403
        assert "location" not in reply.headers


async def test_a_consent_form_is_valid_only_for_its_session_and_request(
    service: RunningService, flow: OAuthFlow
) -> None:
    program, visitor = flow
    make_user(service, "eve@example.com")
    other = Program(service, "https://evil.example/")
    await other.register()
    eve = Visitor(service)
    await eve.sign_in(other.query(), "eve@example.com")
    fields_of_eve = hidden_fields(await eve.get(f"{BASE}/authorize?{other.query()}"))
    fields_of_ada = hidden_fields(await visitor.get(f"{BASE}/authorize?{program.query()}"))
    for fields in (fields_of_eve, fields_of_ada | {"query": fields_of_eve["query"]}):
        decision = fields | {"decision": "allow", "organization": "org-0001"}
        assert (await visitor.post(f"{BASE}/authorize", decision)).status_code == 403


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
async def test_another_site_can_neither_consent_nor_sign_in(
    flow: OAuthFlow, origin: str | None, headers: dict[str, str]
) -> None:
    program, visitor = flow
    fields = hidden_fields(await visitor.get(f"{BASE}/authorize?{program.query()}"))
    decision = fields | {"decision": "allow", "organization": "org-0001"}
    reply = await visitor.post(f"{BASE}/authorize", decision, origin, **headers)
    assert reply.status_code == 403
    assert "location" not in reply.headers
    credentials = {"email": "ada@example.com", "password": "correct horse battery"}
    reply = await visitor.post(f"{BASE}/sign-in", fields | credentials, origin, **headers)
    assert reply.status_code == 403
    assert "set-cookie" not in reply.headers


async def test_pages_forbid_frames_caches_and_scripts(
    service: RunningService, flow: OAuthFlow
) -> None:
    program, visitor = flow
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


async def test_wrong_passwords_on_the_sign_in_page_are_limited(
    service: RunningService,
) -> None:
    make_user(service)
    program, visitor = Program(service), Visitor(service)
    await program.register()
    for _ in range(10):
        reply = await visitor.sign_in(program.query(), "ada@example.com", "wrong wrong wrong")
        assert reply.status_code == 401
    right = await visitor.sign_in(program.query(), "ada@example.com")
    assert right.status_code == 429
    assert right.headers["retry-after"]
    assert "wait" in right.text


async def test_sign_in_redirects_only_to_the_authorization_page(flow: OAuthFlow) -> None:
    _, visitor = flow
    for query in ("https://evil.example", "x=1\r\nSet-Cookie: a=b", "//evil.example/", ""):
        reply = await visitor.sign_in(query, "ada@example.com")
        location = reply.headers.get("location", "")
        assert reply.status_code == 400 or location.startswith(f"{BASE}/authorize?")
        assert "\n" not in location
        assert "a=b" not in reply.headers.get("set-cookie", "")
