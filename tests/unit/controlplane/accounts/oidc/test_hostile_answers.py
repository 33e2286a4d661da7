"""Tests the sign-in with a provider. The service refuses each invalid answer, and opens no session
for such an answer.
"""

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from sqlalchemy import func, select

from controlplane.accounts.oidc.flow import Flow
from controlplane.settings import Settings
from controlplane.storage.account_tables import SignInSession, User
from controlplane.storage.database import Database
from tests.fakes.identity_provider.process import ADA, ProviderProcess, provider_process
from tests.unit.controlplane.accounts.oidc.conftest import provider_at
from tests.unit.controlplane.accounts.oidc.visitor import Visitor
from tests.unit.controlplane.accounts.people import OVERVIEW
from tests.unit.controlplane.running_service import RunningService, running_service

YEAR_S = 365 * 86_400


def count_users_and_sessions(service: RunningService) -> tuple[int, ...]:
    """Return the numbers of users and sessions."""

    def work(session: Any) -> tuple[int, ...]:
        tables = (User, SignInSession)
        return tuple(session.scalar(select(func.count()).select_from(each)) for each in tables)

    return service.database.read(work)


def change_parameters(address: str, **changes: str | None) -> str:
    """Return the address with changed query parameters. The value None removes a parameter."""
    parts = urlsplit(address)
    parameters = {**dict(parse_qsl(parts.query)), **changes}
    kept = {name: value for name, value in parameters.items() if value is not None}
    return parts._replace(query=urlencode(kept)).geturl()


async def test_a_user_signs_in(service: RunningService) -> None:
    visitor = Visitor(service)
    reply = await visitor.sign_in_with_provider()
    assert (reply.status_code, reply.headers["location"]) == (303, "/")
    assert list(visitor.cookies) == ["venue.session_token"]
    profile = (await visitor.post("/console/api/profile")).json()
    assert profile["user"]["email"] == "ada@contoso.example"
    assert [each["role"] for each in profile["organizations"]] == ["owner"]
    assert (await visitor.post(OVERVIEW)).status_code == 200


async def test_the_request_has_state_nonce_and_a_challenge_with_s256(
    service: RunningService,
) -> None:
    first, second = [dict(parse_qsl(await Visitor(service).begin())) for _ in range(2)]
    assert first["code_challenge_method"] == "S256"
    for name in ("state", "nonce", "code_challenge"):
        assert len(first[name]) == 43
        assert first[name] != second[name]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"id_token": {"iss": "https://evil.example"}}, "InvalidClaimError"),
        ({"id_token": {"aud": "another client"}}, "InvalidClaimError"),
        ({"id_token": {"aud": ["venue", "other"]}}, "MissingClaimError"),
        ({"id_token": {"aud": ["venue", "other"], "azp": "other"}}, "InvalidClaimError"),
        ({"id_token": {"nonce": "of another sign-in"}}, "InvalidClaimError"),
        ({"id_token": {"nonce": None}}, "MissingClaimError"),
        ({"id_token": {"at_hash": "AAAA"}}, "InvalidClaimError"),
        ({"id_token": {"sub": "someone-else"}}, "different users"),
        ({"id_token": {"exp": None}}, "MissingClaimError"),
        # The ID token was issued in 1970, or it will be issued in a hundred years.
        ({"now": 1_000_000}, "ExpiredTokenError"),
        ({"now": 1_763_640_000 + 100 * YEAR_S}, "InvalidClaimError|InvalidTokenError"),
        ({"algorithm": "none"}, "UnsupportedAlgorithmError|not valid"),
        ({"algorithm": "HS256"}, "UnsupportedAlgorithmError|not valid"),
        ({"replies": {"/token": [200, "{}"]}}, "no usable access token"),
        ({"replies": {"/token": [200, '{"access_token": "x"}']}}, "no ID token"),
        ({"claims": {**ADA, "email_verified": False}}, "not verified"),
        ({"claims": {**ADA, "email_verified": "false"}}, "not verified"),
        ({"claims": {**ADA, "email_verified": 1}}, "not verified"),
        ({"claims": {**ADA, "email_verified": None, "xms_edov": True}}, "not verified"),
        ({"claims": {**ADA, "email": "ada@fabrikam.example"}}, "domain"),
        ({"claims": {**ADA, "email": "ada@evil.contoso.example"}}, "domain"),
        ({"claims": {**ADA, "groups": ["staff"]}}, "groups"),
        ({"claims": {**ADA, "groups": {"venue-owners": True}}}, "groups"),
        ({"answer": {"iss": "https://evil.example"}}, "different provider"),
        ({"answer": {"iss": None}}, "different provider"),
        ({"answer": {"code": None, "error": "access_denied"}}, "cancelled"),
        ({"answer": {"state": "of another browser"}}, "browser"),
    ],
)
async def test_an_invalid_answer_is_refused(
    service: RunningService, provider: ProviderProcess, changes: dict[str, Any], problem: str
) -> None:
    provider.control(**changes)
    visitor = Visitor(service)
    reply = await visitor.sign_in_with_provider()
    assert reply.status_code == 403, reply.text
    assert reply.headers["content-type"].startswith("text/html")
    assert any(each in reply.text for each in problem.split("|")), reply.text
    assert visitor.cookies == {}
    assert count_users_and_sessions(service) == (0, 0)


@pytest.mark.parametrize(
    "replies",
    [
        {"/token": [500, "no"]},
        {"/token": [200, "<html>"]},
        {"/token": [200, "[1]"]},
        {"/token": [200, "[" * 100_000]},
        {"/token": [302, "{}"]},
        {"/keys": [200, "{}"]},
        {"/userinfo": [200, '"' + "x" * 300_000 + '"']},
    ],
)
async def test_an_unusable_provider_is_reported_as_unavailable(
    service: RunningService, provider: ProviderProcess, replies: dict[str, Any]
) -> None:
    visitor = Visitor(service)
    provider.control(replies=replies)
    if "/keys" in replies:
        # The service fetches the keys before it redirects the browser to the provider.
        assert (await visitor.get(visitor.path)).status_code == 503
        return
    reply = await visitor.sign_in_with_provider()
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "30")
    assert count_users_and_sessions(service) == (0, 0)


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "http://127.0.0.1:1"},
        {"token_endpoint": "http://contoso.example/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": None},
    ],
)
async def test_unsafe_metadata_is_refused(
    service: RunningService, provider: ProviderProcess, metadata: dict[str, Any]
) -> None:
    provider.control(metadata=metadata)
    assert (await Visitor(service).get("/api/auth/oidc/contoso")).status_code == 503


async def test_an_answer_of_the_provider_can_be_used_once(service: RunningService) -> None:
    visitor = Visitor(service)
    answer = await visitor.consent(await visitor.begin())
    cookies = dict(visitor.cookies)
    assert (await visitor.finish(answer)).status_code == 303
    again = await visitor.finish(answer)
    assert (again.status_code, "start again" in again.text) == (403, True)
    # A browser that keeps the cookie gains nothing: the provider accepts each code only once.
    visitor.cookies = cookies
    assert (await visitor.finish(answer)).status_code == 403
    assert count_users_and_sessions(service) == (1, 1)


async def test_an_answer_of_another_browser_is_refused(service: RunningService) -> None:
    """An attacker cannot sign a user in with the attacker's account (login CSRF)."""
    attacker, user = Visitor(service), Visitor(service)
    answer = await attacker.consent(await attacker.begin())
    assert (await user.finish(answer)).status_code == 403
    await user.begin()
    assert (await user.finish(answer)).status_code == 403
    assert count_users_and_sessions(service) == (0, 0)


async def test_a_stolen_code_is_refused(service: RunningService) -> None:
    """The code verifier of another browser does not fit the code (PKCE)."""
    user, thief = Visitor(service), Visitor(service)
    code = dict(parse_qsl(urlsplit(await user.consent(await user.begin())).query))["code"]
    answer = change_parameters(await thief.consent(await thief.begin()), code=code)
    assert (await thief.finish(answer)).status_code == 403
    assert count_users_and_sessions(service) == (0, 0)


async def test_a_repeated_parameter_is_refused(service: RunningService) -> None:
    visitor = Visitor(service)
    answer = await visitor.consent(await visitor.begin())
    assert (await visitor.finish(answer + "&state=other")).status_code == 403


async def test_an_answer_of_one_provider_is_refused_at_the_path_of_another_provider(
    database: Database, settings: Settings, provider: ProviderProcess
) -> None:
    """In a mix-up attack, a hostile provider redirects the browser to an honest provider, which
    issues a code. The service must not send this code to the hostile provider.
    """
    with provider_process() as evil:
        both = (provider_at(provider.issuer), provider_at(evil.issuer, "evil"))
        async with running_service(database, settings, identity_providers=both) as service:
            provider.reset(service.clock())
            evil.reset(service.clock())
            # The hostile provider redirects the browser to the honest provider.
            visitor = Visitor(service, "evil")
            request = await visitor.begin()
            forwarded = request.replace(evil.issuer, provider.issuer)
            answer = await visitor.consent(forwarded)
            assert answer.startswith("/api/auth/oidc/evil/callback")
            assert (await visitor.finish(answer)).status_code == 403
            honest = answer.replace("/evil/", "/contoso/")
            assert (await visitor.finish(honest)).status_code == 403
            assert "/token" not in evil.control()
            assert count_users_and_sessions(service) == (0, 0)


async def test_new_keys_of_the_provider_are_fetched(
    service: RunningService, provider: ProviderProcess
) -> None:
    assert (await Visitor(service).sign_in_with_provider()).status_code == 303
    provider.control(rotate=True)
    # For an unknown key, the service fetches the provider's keys at most once in 30 s.
    assert (await Visitor(service).sign_in_with_provider()).status_code == 403
    service.clock.advance(31)
    assert (await Visitor(service).sign_in_with_provider()).status_code == 303
    provider.control(calls=[])
    assert (await Visitor(service).sign_in_with_provider()).status_code == 303
    assert "/keys" not in provider.control()


def test_state_nonce_and_verifier_differ_by_provider_and_browser() -> None:
    contoso, evil = provider_at("https://c.example"), provider_at("https://e.example", "evil")
    flows = [Flow(contoso, "", "a"), Flow(contoso, "", "b"), Flow(evil, "", "a")]
    values = {value for each in flows for value in (each.state, each.nonce, each.code_verifier)}
    assert len(values) == 9
