"""Tests of the tokens of the retail API: how they are issued, what they permit, when they end."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import select

from controlplane.retail import routes
from controlplane.retail.credentials import clients, signing_keys
from controlplane.retail.credentials.clients import REFRESH_LIFETIME
from controlplane.retail.credentials.signing_keys import AUDIENCE, ISSUER
from controlplane.settings import Settings
from controlplane.storage.database import Database
from controlplane.storage.merchant.retail_tables import RefreshToken, RetailKey, SigningKey
from controlplane.web.background import poll_changes
from controlplane.web.retail import TOKENS_BURST
from tests.unit.controlplane.retail.retailer import (
    access_of,
    exchange,
    new_key,
    post,
    validated_reply,
)
from tests.unit.controlplane.running_service import RunningService, running_service


@pytest.fixture
def settings() -> Settings:
    """Settings without a cache of keys: each call reads the key from the database."""
    return Settings(rate_per_s=0, key_cached_s=0)


async def get_fees(service: RunningService, access: str) -> httpx2.Response:
    headers = {"authorization": f"Bearer {access}".encode()}
    return validated_reply(await service.http.get(routes.FEES, headers=headers))


async def refresh(service: RunningService, token: str) -> httpx2.Response:
    return await post(service, routes.REFRESH, {"refresh_token": token})


CHALLENGE = re.compile(
    r'Bearer realm="retail", error="invalid_token",'
    r' error_description="([\x20-\x21\x23-\x5b\x5d-\x7e]+)"'
)
"""The header `WWW-Authenticate` of a 401 (RFC 6750, section 3)."""


def assert_unauthenticated(reply: httpx2.Response) -> str:
    """Check that a reply is a 401 with a valid header. Return the description of the error."""
    assert (reply.status_code, reply.content) == (401, b"")
    challenge = CHALLENGE.fullmatch(reply.headers["www-authenticate"])
    assert challenge is not None
    return challenge[1]


async def test_the_header_of_a_401_explains_the_refusal(service: RunningService) -> None:
    api_key = new_key(service)
    access = await access_of(service, api_key)
    exchange_call = "POST /api/v1/auth/tokens"
    replies = {
        "no header": await service.http.get(routes.FEES),
        "an API key": await get_fees(service, api_key),
        "a wrong token": await get_fees(service, access[:-4] + "AAAA"),
        "a wrong key": await exchange(service, "venue_live_" + "A" * 64),
        "a wrong refresh token": await refresh(service, "x"),
    }
    sentences = {name: assert_unauthenticated(reply) for name, reply in replies.items()}
    assert "Authorization: Bearer <access token> is missing" in sentences["no header"]
    assert sentences["an API key"].startswith("This is an API key, not an access token.")
    assert "has expired or was revoked" in sentences["a wrong token"]
    assert "or it was revoked" in sentences["a wrong key"]
    assert "was already used" in sentences["a wrong refresh token"]
    assert all(exchange_call in each for name, each in sentences.items() if name != "a wrong key")


async def test_an_api_key_gets_tokens_in_the_documented_form(service: RunningService) -> None:
    reply = await exchange(service, new_key(service))
    assert reply.status_code == 200
    tokens = reply.json()
    assert set(tokens) == {"access_token", "expires_in", "refresh_token", "token_type"}
    assert (tokens["expires_in"], tokens["token_type"]) == (3600, "Bearer")
    assert reply.headers["cache-control"] == "no-store"
    assert (await get_fees(service, tokens["access_token"])).status_code == 200


@pytest.mark.parametrize("environment", ["live", "test"])
async def test_keys_have_the_documented_form(service: RunningService, environment: Any) -> None:
    key = service.database.write(
        lambda session: clients.create_key(
            session,
            name="till",
            organization_id="org",
            environment=environment,
            can_write=False,
            now=service.clock(),
        )
    )[1]
    prefix, _, secret = key.rpartition("_")
    assert (prefix, len(secret)) == (f"venue_{environment}", 64)
    rows = service.database.read(lambda session: session.scalars(select(RetailKey)).all())
    assert all(key not in str(vars(row)) for row in rows)


@pytest.mark.parametrize(
    "key", ["", "vck_" + "a" * 43, "venue_live_" + "A" * 64, "venue_live_short", "\x00", "x" * 256]
)
async def test_an_invalid_api_key_gets_no_tokens(service: RunningService, key: str) -> None:
    assert_unauthenticated(await exchange(service, key))


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, {"api_key": ["is required"]}),
        ({"api_key": 1}, {"api_key": ["must be a text"]}),
        ({"api_key": "a", "more": 1}, {"more": ["is not known"]}),
    ],
)
async def test_the_refusal_of_an_invalid_token_request_names_the_fields(
    service: RunningService, body: Any, errors: Any
) -> None:
    reply = await post(service, routes.TOKENS, body)
    assert (reply.status_code, reply.json()["code"]) == (400, "validation_error")
    assert reply.json()["errors"] == errors


async def test_an_access_token_expires(service: RunningService) -> None:
    access = await access_of(service, new_key(service))
    service.clock.advance(3599)
    assert (await get_fees(service, access)).status_code == 200
    service.clock.advance(1)
    assert_unauthenticated(await get_fees(service, access))


async def test_credentials_of_the_facade_and_of_retail_are_not_interchangeable(
    service: RunningService,
) -> None:
    access = await access_of(service, new_key(service))
    assert_unauthenticated(await get_fees(service, service.write_key))
    assert_unauthenticated(await exchange(service, service.write_key))
    reply = await service.post("/api/public/v1/remoteControl/listDevices", api_key=access)
    assert reply.status_code == 401


def forge_token(service: RunningService, **changes: Any) -> str:
    """Return an access token with changed claims that is signed with the key of the service."""
    keys = service.database.read(signing_keys.load)
    assert keys is not None
    key_id = service.database.read(lambda session: session.scalars(select(RetailKey.id)).one())
    family = service.database.read(
        lambda session: session.scalars(select(RefreshToken.family)).first()
    )
    now = service.clock()
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": str(key_id),
        "iat": now,
        "exp": now + timedelta(hours=1),
        "jti": "1",
        "sid": str(family),
    }
    tokens = keys.access_tokens
    present_claims = {
        name: value for name, value in (claims | changes).items() if value is not None
    }
    return jwt.encode(
        present_claims, tokens.signing[tokens.current], "EdDSA", headers={"kid": tokens.current}
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "facade"},
        {"aud": None},
        {"iss": "another"},
        {"sub": None},
        {"sub": "no uuid"},
        {"sub": str(UUID(int=7))},
        {"exp": None},
        {"exp": datetime(2020, 1, 1, tzinfo=UTC)},
        {"iat": datetime(2030, 1, 1, tzinfo=UTC)},
        {"jti": None},
        {"sid": None},
        {"sid": str(UUID(int=7))},
    ],
)
async def test_a_token_with_wrong_claims_is_refused(
    service: RunningService, changes: dict[str, Any]
) -> None:
    await access_of(service, new_key(service))
    assert (await get_fees(service, forge_token(service))).status_code == 200
    assert_unauthenticated(await get_fees(service, forge_token(service, **changes)))


async def test_a_token_without_a_valid_signature_is_refused(service: RunningService) -> None:
    access = await access_of(service, new_key(service))
    head, claims, signature = access.split(".")
    decoded_claims = jwt.decode(access, options={"verify_signature": False})
    kid = jwt.get_unverified_header(access)["kid"]
    other_key = Ed25519PrivateKey.generate()
    for token in (
        f"{head}.{claims}.",
        f"{head}.{claims}.{signature[:-4]}AAAA",
        jwt.encode(decoded_claims, "", "none", headers={"kid": kid}),
        jwt.encode(decoded_claims, "a" * 32, "HS256", headers={"kid": kid}),
        jwt.encode(decoded_claims, other_key, "EdDSA", headers={"kid": kid}),
        jwt.encode(decoded_claims, other_key, "EdDSA", headers={"kid": "other"}),
        jwt.encode(decoded_claims, other_key, "EdDSA"),
        "a.b.c",
        "ä",
        "",
    ):
        assert_unauthenticated(await get_fees(service, token))
    assert (await get_fees(service, access)).status_code == 200


async def test_rotating_the_signing_key_revokes_the_tokens_that_it_signed(
    service: RunningService,
) -> None:
    access = await access_of(service, new_key(service))
    now = service.clock()
    service.database.write(lambda session: signing_keys.rotate(session, now))
    assert_unauthenticated(await get_fees(service, access))
    api_key = new_key(service)
    assert (await get_fees(service, await access_of(service, api_key))).status_code == 200
    rows = service.database.read(lambda session: session.scalars(select(SigningKey)).all())
    assert len([row for row in rows if row.purpose == "access tokens"]) == 2


async def test_revoking_an_api_key_ends_its_tokens(service: RunningService) -> None:
    api_key = new_key(service)
    tokens = (await exchange(service, api_key)).json()
    key_id = service.database.read(lambda session: session.scalars(select(RetailKey.id)).one())
    now = service.clock()
    service.database.write(lambda session: clients.revoke_key(session, key_id, now))
    assert_unauthenticated(await get_fees(service, tokens["access_token"]))
    assert_unauthenticated(await exchange(service, api_key))
    assert_unauthenticated(await refresh(service, tokens["refresh_token"]))


@pytest.mark.parametrize("settings", [Settings(rate_per_s=0)])
async def test_a_revoked_api_key_is_refused_at_once(service: RunningService) -> None:
    """Tokens of the retail API are not cached, even if API keys of the facade are."""
    access = await access_of(service, new_key(service))
    key_id = service.database.read(lambda session: session.scalars(select(RetailKey.id)).one())
    await poll_changes(service.core)
    assert (await get_fees(service, access)).status_code == 200
    now = service.clock()
    service.database.write(lambda session: clients.revoke_key(session, key_id, now))
    assert_unauthenticated(await get_fees(service, access))


async def test_a_second_use_of_a_refresh_token_ends_its_token_family(
    service: RunningService,
) -> None:
    first = (await exchange(service, new_key(service))).json()["refresh_token"]
    other = (await exchange(service, new_key(service))).json()["refresh_token"]
    second = (await refresh(service, first)).json()["refresh_token"]
    third = (await refresh(service, second)).json()["refresh_token"]
    assert_unauthenticated(await refresh(service, first))
    assert_unauthenticated(await refresh(service, third))
    assert (await refresh(service, other)).status_code == 200


async def test_the_end_of_a_token_family_ends_all_its_access_tokens(
    service: RunningService,
) -> None:
    """A refresh does not end earlier access tokens. The end of the token family ends them all."""
    key = new_key(service)
    first, other = (await exchange(service, key)).json(), (await exchange(service, key)).json()
    second = (await refresh(service, first["refresh_token"])).json()
    family = [first["access_token"], second["access_token"]]
    assert [(await get_fees(service, each)).status_code for each in family] == [200, 200]
    assert_unauthenticated(await refresh(service, first["refresh_token"]))
    for each in family:
        assert_unauthenticated(await get_fees(service, each))
    assert (await get_fees(service, other["access_token"])).status_code == 200


async def test_a_refresh_token_expires(service: RunningService) -> None:
    first = (await exchange(service, new_key(service))).json()["refresh_token"]
    second = (await refresh(service, first)).json()["refresh_token"]
    service.clock.advance(REFRESH_LIFETIME.total_seconds())
    assert_unauthenticated(await refresh(service, second))


async def test_an_exchange_deletes_expired_refresh_tokens(service: RunningService) -> None:
    key = new_key(service)
    await exchange(service, key)
    service.clock.advance(REFRESH_LIFETIME.total_seconds() - 1)
    await exchange(service, key)
    assert len(stored_tokens(service)) == 2
    service.clock.advance(1)
    await exchange(service, key)
    assert len(stored_tokens(service)) == 2


def stored_tokens(service: RunningService) -> Sequence[RefreshToken]:
    return service.database.read(lambda session: session.scalars(select(RefreshToken)).all())


async def test_a_refresh_returns_a_new_access_token(service: RunningService) -> None:
    tokens = (await exchange(service, new_key(service))).json()
    again = (await refresh(service, tokens["refresh_token"])).json()
    assert set(again) == set(tokens)
    assert again["access_token"] != tokens["access_token"]
    assert (await get_fees(service, again["access_token"])).status_code == 200


@pytest.mark.medium
async def test_guessing_api_keys_is_rate_limited(service: RunningService) -> None:
    statuses = [(await exchange(service, "guess")).status_code for _ in range(TOKENS_BURST)]
    assert set(statuses) == {401}
    reply = await exchange(service, "guess")
    assert (reply.status_code, reply.json()["code"]) == (429, "unexpected_error")
    assert int(reply.headers["retry-after"]) >= 1


@pytest.mark.medium
async def test_successful_token_requests_are_not_limited(service: RunningService) -> None:
    key = new_key(service)
    statuses = [(await exchange(service, key)).status_code for _ in range(2 * TOKENS_BURST)]
    assert set(statuses) == {200}


async def test_failures_behind_a_proxy_do_not_limit_other_networks(database: Database) -> None:
    settings = Settings(trusted_proxies=frozenset({"127.0.0.1"}), refusal_delay_s=0)
    async with running_service(database, settings) as service:
        key = new_key(service)
        for number in range(TOKENS_BURST):
            address = f"2001:db8::{number + 1:x}"
            failed = await exchange(service, "guess", x_forwarded_for=address)
            assert failed.status_code == 401
        assert (await exchange(service, key, x_forwarded_for="2001:db8::ffff")).status_code == 429
        assert (await exchange(service, key, x_forwarded_for="2001:db8:0:1::1")).status_code == 200
        assert (await exchange(service, key, x_forwarded_for="192.0.2.1")).status_code == 200


async def test_a_long_body_returns_413(service: RunningService) -> None:
    reply = await service.http.post(
        routes.TOKENS,
        content=json.dumps({"api_key": "x" * 5000}),
        headers={"content-type": "application/json"},
    )
    assert (reply.status_code, reply.json()["code"]) == (413, "invalid_request")
