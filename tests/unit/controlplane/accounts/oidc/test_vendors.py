"""Tests of the differences between the providers that companies use.

The claims have the form that the documentation of the providers describes.
"""

import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from sqlalchemy import select

from controlplane.accounts.oidc import providers
from controlplane.accounts.oidc.claims import read_claims
from controlplane.accounts.oidc.errors import ProviderRefusedError, ProviderUnavailableError
from controlplane.accounts.oidc.flow import Flow
from controlplane.accounts.oidc.metadata import parse_metadata
from controlplane.accounts.oidc.providers import IdentityProvider
from controlplane.storage.account_tables import Membership, SignInSession
from controlplane.storage.audit_tables import AuditEntry
from tests.fakes.identity_provider.process import ProviderProcess
from tests.unit.controlplane.accounts.oidc.conftest import provider_at
from tests.unit.controlplane.accounts.oidc.test_sessions import LIMIT_S, run_checks, sign_in
from tests.unit.controlplane.accounts.oidc.visitor import Visitor
from tests.unit.controlplane.accounts.people import OVERVIEW
from tests.unit.controlplane.running_service import RunningService

TENANT = "11111111-2222-3333-4444-555555555555"
ENTRA = provider_at(f"https://login.microsoftonline.com/{TENANT}/v2.0")
ENTRA_ADA = {"sub": "ada-1", "email": "ada@contoso.example", "name": "Ada"}
"""The claims of Entra ID's userinfo. Other claims are only in the ID token."""
MANY_GROUPS = {
    "groups": None,
    "_claim_names": {"groups": "src1"},
    "_claim_sources": {"src1": {"endpoint": "https://graph.example/users/1/getMemberObjects"}},
}
"""The claims of a user who has too many groups for an ID token. Instead of the groups, they contain
the URL at which the groups can be read."""
METADATA = {
    "authorization_endpoint": "https://accounts.google.com/o/oauth2/v2/auth",
    "token_endpoint": "https://oauth2.googleapis.com/token",
    "jwks_uri": "https://www.googleapis.com/oauth2/v3/certs",
}


@pytest.fixture
def entra(monkeypatch: pytest.MonkeyPatch, provider: ProviderProcess) -> ProviderProcess:
    """Let the service treat the fake provider as Entra ID."""
    monkeypatch.setattr(providers, "ENTRA_HOSTS", frozenset({"127.0.0.1"}))
    return provider


def answer_as_entra(provider: ProviderProcess, *, groups: list[str], **changes: Any) -> None:
    """Give ``groups`` and ``xms_edov`` only in ID tokens, as Entra ID does."""
    provider.control(
        claims={**ENTRA_ADA, "xms_edov": "1", "groups": groups},
        userinfo={"xms_edov": None, "groups": None},
        refreshes_id_tokens=True,
        **changes,
    )


def memberships(service: RunningService) -> list[str]:
    query = select(Membership.organization_id)
    return service.database.read(lambda session: list(session.scalars(query)))


def sessions(service: RunningService) -> list[SignInSession]:
    return service.database.read(lambda session: list(session.scalars(select(SignInSession))))


def last_detail(service: RunningService) -> str:
    query = select(AuditEntry.detail).order_by(AuditEntry.position.desc()).limit(1)
    return service.database.read(lambda session: session.scalars(query).one()) or ""


# ---------------------------------------------------------------------------- verified addresses


@pytest.mark.parametrize("value", [True, "true", "1", 1])
def test_entra_verifies_an_address_with_xms_edov(value: object) -> None:
    id_token = {**ENTRA_ADA, "xms_edov": value}
    assert read_claims(id_token, ENTRA_ADA, ENTRA).email == "ada@contoso.example"


@pytest.mark.parametrize(
    ("id_token", "userinfo"),
    [
        (ENTRA_ADA, ENTRA_ADA),
        ({**ENTRA_ADA, "xms_edov": False}, ENTRA_ADA),
        ({**ENTRA_ADA, "xms_edov": "0"}, ENTRA_ADA),
        ({**ENTRA_ADA, "xms_edov": [1]}, ENTRA_ADA),
        # `xms_edov` counts only in the ID token, and only for the address in the ID token.
        ({"sub": "ada-1", "xms_edov": True}, ENTRA_ADA),
        (ENTRA_ADA, {**ENTRA_ADA, "xms_edov": True}),
        ({**ENTRA_ADA, "xms_edov": True, "email_verified": False}, ENTRA_ADA),
    ],
)
def test_an_address_that_entra_does_not_verify_is_ignored(
    id_token: dict[str, Any], userinfo: dict[str, Any]
) -> None:
    assert read_claims(id_token, userinfo, ENTRA).email is None


def test_the_verified_address_of_entra_is_the_one_in_the_id_token() -> None:
    userinfo = {**ENTRA_ADA, "email": "boss@contoso.example"}
    claims = read_claims({**ENTRA_ADA, "xms_edov": True}, userinfo, ENTRA)
    assert claims.email == "ada@contoso.example"


@pytest.mark.parametrize(
    "issuer", ["https://evil.example/login.microsoftonline.com", "https://login.contoso.example"]
)
def test_only_entra_verifies_addresses_with_xms_edov(issuer: str) -> None:
    claims = read_claims({**ENTRA_ADA, "xms_edov": True}, ENTRA_ADA, provider_at(issuer))
    assert claims.email is None


async def test_email_verified_can_be_a_string(
    service: RunningService, provider: ProviderProcess
) -> None:
    """Userinfo of Amazon Cognito has the string "true"."""
    provider.control(userinfo={"email_verified": "true"})
    await sign_in(service)


# ---------------------------------------------------------------------------- groups


async def test_a_user_of_entra_signs_in_and_stays_signed_in(
    service: RunningService, entra: ProviderProcess
) -> None:
    answer_as_entra(entra, groups=["venue-owners"])
    visitor = await sign_in(service)
    await run_checks(service, 900)
    assert (await visitor.post(OVERVIEW)).status_code == 200
    # Entra ID sends an ID token only if the scope `openid` is requested.
    first, *refreshed = entra.token_requests()
    assert "scope" not in first
    assert {each["scope"] for each in refreshed} == {"openid email profile"}
    answer_as_entra(entra, groups=[])
    await run_checks(service, LIMIT_S)
    assert memberships(service) == []


async def test_a_refresh_at_another_provider_requests_no_scope(
    service: RunningService, provider: ProviderProcess
) -> None:
    """A provider may have granted fewer scopes than the sign-in requested. Then it refuses a
    refresh that requests more scopes than it granted (RFC 6749, section 6).
    """
    await sign_in(service)
    await run_checks(service, LIMIT_S)
    assert ["scope" in each for each in provider.token_requests()] == [False, False]


async def test_a_sign_in_is_refused_if_its_groups_cannot_be_checked_later(
    service: RunningService, entra: ProviderProcess
) -> None:
    """Without a refresh token, the service can only read userinfo, which has no groups."""
    answer_as_entra(entra, groups=["venue-owners"], issues_refresh_tokens=False)
    reply = await Visitor(service).sign_in_with_provider()
    assert (reply.status_code, "offline_access" in reply.text) == (403, True)
    assert sessions(service) == []


@pytest.mark.parametrize("overage", [MANY_GROUPS, {"groups": None, "hasgroups": True}])
async def test_too_many_groups_refuse_the_sign_in_and_keep_the_membership(
    service: RunningService, entra: ProviderProcess, overage: dict[str, Any]
) -> None:
    answer_as_entra(entra, groups=["venue-owners"])
    await sign_in(service)
    entra.control(id_token=overage)
    await run_checks(service, LIMIT_S)
    assert (memberships(service), sessions(service)) == (["org-0001"], [])
    assert "too many groups" in last_detail(service)
    reply = await Visitor(service).sign_in_with_provider()
    assert (reply.status_code, "too many groups" in reply.text) == (403, True)
    assert memberships(service) == ["org-0001"]


def test_too_many_groups_do_not_affect_another_claim() -> None:
    """The application roles of Entra ID are always complete."""
    provider = ENTRA.model_copy(update={"groups_claim": "roles"})
    id_token = {**ENTRA_ADA, "roles": ["Owner"], **MANY_GROUPS, "hasgroups": True}
    assert read_claims(id_token, ENTRA_ADA, provider).groups == {"Owner"}
    del id_token["roles"]
    assert read_claims(id_token, ENTRA_ADA, provider).groups == frozenset()


def test_a_custom_claim_that_only_refers_to_the_groups_is_refused() -> None:
    provider = provider_at("https://contoso.example").model_copy(
        update={"groups_claim": "https://contoso.example/groups"}
    )
    names = {"https://contoso.example/groups": "src1"}
    with pytest.raises(ProviderRefusedError, match="too many groups"):
        read_claims({"sub": "a", "_claim_names": names}, {"sub": "a"}, provider)


async def test_a_refreshed_answer_without_groups_ends_only_the_session(
    service: RunningService, provider: ProviderProcess
) -> None:
    """The reply to a refresh need not contain an ID token (OpenID Connect Core, 12.2)."""
    provider.control(userinfo={"groups": None})
    await sign_in(service)
    await run_checks(service, LIMIT_S)
    assert (memberships(service), sessions(service)) == (["org-0001"], [])
    assert "no groups" in last_detail(service)
    await sign_in(service)


async def test_userinfo_without_groups_ends_the_membership_if_it_had_groups_before(
    service: RunningService, provider: ProviderProcess
) -> None:
    """Some providers leave out the claim if the user has no groups."""
    provider.control(issues_refresh_tokens=False)
    await sign_in(service)
    provider.control(userinfo={"groups": None})
    await run_checks(service, LIMIT_S)
    assert memberships(service) == []


# ---------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, "temporarily_unavailable"),  # Entra ID: the client should retry
        (401, "invalid_client"),  # the client secret has expired
        (400, "unauthorized_client"),
    ],
)
async def test_an_error_that_does_not_concern_the_user_does_not_end_the_session(
    service: RunningService, provider: ProviderProcess, status: int, error: str
) -> None:
    visitor = await sign_in(service)
    provider.control(replies={"/token": [status, f'{{"error": "{error}"}}']})
    await run_checks(service, LIMIT_S)
    assert (await visitor.post(OVERVIEW)).status_code == 401
    provider.control(replies={})
    await run_checks(service, 60)
    assert (await visitor.post(OVERVIEW)).status_code == 200


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"error": "invalid_grant"}', "(invalid_grant)"),
        ('{"error": "<b>"}', "(status 401)"),
        ('{"error": 1}', "(status 401)"),
        ("[1]", "(status 401)"),
        ("no", "(status 401)"),
    ],
)
async def test_a_refusal_names_the_error_of_the_provider(
    service: RunningService, provider: ProviderProcess, body: str, reason: str
) -> None:
    provider.control(replies={"/token": [401, body]})
    reply = await Visitor(service).sign_in_with_provider()
    assert (reply.status_code, reason in reply.text) == (403, True)


async def test_a_sign_in_with_an_expired_client_secret_names_the_error_of_the_provider(
    service: RunningService, provider: ProviderProcess
) -> None:
    provider.control(replies={"/token": [401, '{"error": "invalid_client"}']})
    reply = await Visitor(service).sign_in_with_provider()
    assert (reply.status_code, "the provider answered with invalid_client" in reply.text) == (
        503,
        True,
    )


# ---------------------------------------------------------------------------- keys


@pytest.mark.parametrize(
    "other",
    [
        {"kty": "AKP", "alg": "ML-DSA-44", "pub": "AAAA"},
        {"kty": "EC", "crv": "BP-256", "x": "AAAA", "y": "AAAA"},
        {"kty": "OKP", "crv": "Ed1", "x": "AAAA"},
        {"kty": "RSA"},
        {"kty": 1},
        {},
    ],
)
async def test_keys_that_cannot_be_used_are_ignored(
    service: RunningService, provider: ProviderProcess, other: dict[str, Any]
) -> None:
    async with httpx2.AsyncClient(trust_env=False) as http:
        keys = (await http.get(f"{provider.issuer}/keys")).json()["keys"]
    text = json.dumps({"keys": [{"kid": "other", **other}, *keys]})
    provider.control(replies={"/keys": [200, text]})
    await sign_in(service)


# ---------------------------------------------------------------------------- requests


def google(*scopes: str) -> IdentityProvider:
    provider = provider_at(providers.GOOGLE_ISSUER)
    return provider.model_copy(update={"scopes": ("openid", "email", *scopes)})


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        (google("offline_access"), ("openid email", "offline", "consent")),
        (google(), ("openid email", None, None)),
        (
            ENTRA.model_copy(update={"scopes": ("openid", "offline_access")}),
            ("openid offline_access", None, None),
        ),
    ],
)
def test_google_gets_a_parameter_for_a_refresh_token_instead_of_a_scope(
    provider: IdentityProvider, expected: tuple[str | None, ...]
) -> None:
    metadata = parse_metadata({"issuer": provider.issuer, **METADATA}, provider.issuer)
    url = Flow.begin(provider, "https://venue.example/callback").authorization_url(metadata)
    fields = dict(parse_qsl(urlsplit(url).query))
    assert tuple(fields.get(each) for each in ("scope", "access_type", "prompt")) == expected


@pytest.mark.parametrize(
    ("configured", "named"),
    [
        # Auth0 and authentik: the issuer ends with a slash.
        ("https://contoso.auth0.example", "https://contoso.auth0.example/"),
        # Entra ID without a tenant.
        (
            "https://login.microsoftonline.com/common/v2.0",
            "https://login.microsoftonline.com/{tenantid}/v2.0",
        ),
    ],
)
def test_the_error_for_a_wrong_issuer_names_both_issuers(configured: str, named: str) -> None:
    with pytest.raises(ProviderUnavailableError) as caught:
        parse_metadata({"issuer": named, **METADATA}, configured)
    assert repr(named) in str(caught.value)
    assert repr(configured) in str(caught.value)
