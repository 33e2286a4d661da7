"""Calls to an identity provider: metadata, keys, tokens and userinfo.

Each call has a time limit and a maximum size of the reply, and follows no redirects. Connections
are not kept open, because a provider is called rarely.
"""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import quote

import httpx2

from agent.wire.addresses import is_loopback_url
from controlplane.accounts.oidc.claims import (
    Claims,
    UnknownKeyError,
    has_groups,
    read_claims,
    verify_id_token,
)
from controlplane.accounts.oidc.errors import ProviderRefusedError, ProviderUnavailableError
from controlplane.accounts.oidc.flow import Flow
from controlplane.accounts.oidc.metadata import ProviderMetadata, metadata_url, parse_metadata
from controlplane.accounts.oidc.providers import IdentityProvider

TIMEOUT_S: Final = 8.0
REPLY_MAX_BYTES: Final = 262_144
METADATA_CACHED_S: Final = 3600.0
"""How long the metadata and the keys of a provider are cached."""
KEYS_REFETCH_S: Final = 30.0
"""If an ID token was signed with an unknown key, the provider's keys are fetched again, unless the
last fetch was less than this time ago."""
NOT_ABOUT_USER: Final = frozenset(
    {"server_error", "temporarily_unavailable", "invalid_client", "unauthorized_client"}
)
"""OAuth errors that do not concern the user: the same call can succeed later, for example when the
operator has replaced an expired client secret. Entra ID defines ``temporarily_unavailable`` for its
token endpoint."""
_ERROR_CODE: Final = re.compile(r"[a-z_]{1,64}")
TOKEN_MAX: Final = 16_384
"""Maximum length of a token that is stored."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a provider states about a user, and its tokens for later checks."""

    claims: Claims
    access_token: str
    refresh_token: str | None


@dataclass(slots=True)
class _CacheEntry:
    metadata: ProviderMetadata
    keys: Mapping[str, Any]
    fetched_at_s: float


class ProviderClient:
    """Calls one provider. Use it from one event loop. ``monotonic`` returns seconds."""

    def __init__(self, provider: IdentityProvider, monotonic: Callable[[], float]) -> None:
        self.provider = provider
        self._monotonic = monotonic
        self._cached: _CacheEntry | None = None
        self._http = httpx2.AsyncClient(
            timeout=TIMEOUT_S,
            follow_redirects=False,
            limits=httpx2.Limits(max_keepalive_connections=0),
            # A proxy from the environment could not reach a loopback address of this machine.
            trust_env=not is_loopback_url(provider.issuer),
        )

    async def metadata(self) -> ProviderMetadata:
        """Return the metadata. Raises ProviderUnavailableError."""
        return (await self._load()).metadata

    async def exchange(self, flow: Flow, code: str, now: datetime) -> Answer:
        """Return the answer for the code of a sign-in. Raises ProviderError."""
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": flow.redirect_uri,
            "code_verifier": flow.code_verifier,
        }
        tokens = await self._request_tokens(fields)
        return await self._answer(tokens, now, nonce=flow.nonce)

    async def revalidate(
        self, access_token: str, refresh_token: str | None, subject: str, now: datetime
    ) -> Answer:
        """Return the provider's current answer about the user of a session.

        Raises:
            ProviderRefusedError: the provider does not confirm the user, so the session must end.
            ProviderUnavailableError: the provider does not answer.
        """
        if refresh_token is not None:
            fields = {"grant_type": "refresh_token", "refresh_token": refresh_token}
            if self.provider.is_entra:
                # Entra ID sends an ID token, and so the groups, only if `openid` is requested.
                fields["scope"] = " ".join(self.provider.scopes)
            answer = await self._answer(await self._request_tokens(fields), now)
        else:
            userinfo = await self._fetch_userinfo(access_token)
            answer = Answer(read_claims(None, userinfo, self.provider), access_token, None)
        if answer.claims.subject != subject:
            raise ProviderRefusedError("the provider's answer is about a different user")
        # Without a new refresh token, the old one is still valid (RFC 6749, section 6).
        newest_refresh_token = answer.refresh_token or refresh_token
        return Answer(answer.claims, answer.access_token, newest_refresh_token)

    async def _answer(
        self, tokens: Mapping[str, Any], now: datetime, *, nonce: str | None = None
    ) -> Answer:
        access_token, refresh_token = tokens.get("access_token"), tokens.get("refresh_token")
        if not isinstance(access_token, str) or not 0 < len(access_token) <= TOKEN_MAX:
            raise ProviderRefusedError("the provider sent no usable access token")
        if not isinstance(refresh_token, str) or not 0 < len(refresh_token) <= TOKEN_MAX:
            refresh_token = None
        id_token = None
        if nonce is not None or "id_token" in tokens:
            id_token = await self._verify(tokens.get("id_token"), access_token, nonce, now)
        has_userinfo = (await self.metadata()).userinfo_endpoint is not None
        userinfo = await self._fetch_userinfo(access_token) if has_userinfo else {}
        if not has_groups(userinfo, self.provider):
            self._require_groups_at_later_checks(
                id_token, refresh_token, is_sign_in=nonce is not None
            )
        return Answer(read_claims(id_token, userinfo, self.provider), access_token, refresh_token)

    def _require_groups_at_later_checks(
        self, id_token: Mapping[str, Any] | None, refresh_token: str | None, *, is_sign_in: bool
    ) -> None:
        """Refuse answers that would end memberships of users who are still in their groups.

        This is called if userinfo has no groups. The groups must then be in an ID token, now and at
        each later check. The reply to a refresh can lack an ID token (OpenID Connect Core, 12.2).
        In this case, only the session ends. The memberships remain until the next sign-in, because
        the provider has not stated that the user has left the groups.
        """
        if id_token is None:
            raise ProviderRefusedError("the provider sent no groups when the session was checked")
        if is_sign_in and refresh_token is None and has_groups(id_token, self.provider):
            raise ProviderRefusedError(
                f"{self.provider.label} sends the groups only when you sign in, so they cannot be"
                " checked later: ask the operator to request the scope offline_access"
            )

    async def _verify(
        self, token: object, access_token: str, nonce: str | None, now: datetime
    ) -> Mapping[str, Any]:
        """Verify an ID token. If its key is unknown, the provider's keys are fetched again."""
        cached = await self._load()
        for is_last_attempt in (False, True):
            try:
                return verify_id_token(
                    token, cached.keys, self.provider,
                    now=now, access_token=access_token, nonce=nonce,
                )  # fmt: skip
            except UnknownKeyError:
                if is_last_attempt or self._monotonic() - cached.fetched_at_s < KEYS_REFETCH_S:
                    break
                cached = await self._load(is_forced=True)
        raise ProviderRefusedError("the ID token was signed with an unknown key")

    async def _load(self, *, is_forced: bool = False) -> _CacheEntry:
        cached, now_s = self._cached, self._monotonic()
        if cached is None or is_forced or now_s - cached.fetched_at_s >= METADATA_CACHED_S:
            issuer = self.provider.issuer
            metadata = parse_metadata(await self._get(metadata_url(issuer)), issuer)
            keys = await self._get(metadata.jwks_uri)
            if not isinstance(keys.get("keys"), list):
                raise ProviderUnavailableError("the provider sent no keys")
            cached = self._cached = _CacheEntry(metadata, keys, now_s)
        return cached

    async def _fetch_userinfo(self, access_token: str) -> Mapping[str, Any]:
        endpoint = (await self.metadata()).userinfo_endpoint
        if endpoint is None:
            raise ProviderRefusedError("the provider has neither refresh tokens nor userinfo")
        return await self._get(endpoint, {"Authorization": f"Bearer {access_token}"})

    async def _request_tokens(self, fields: Mapping[str, str]) -> Mapping[str, Any]:
        from authlib.oauth2.auth import ClientAuth
        from authlib.oauth2.client import DEFAULT_HEADERS

        metadata = await self.metadata()
        method = metadata.client_authentication(self.provider)
        client_id, secret = self.provider.client_id, self.provider.client_secret
        if method == "client_secret_basic" and secret is not None:
            # RFC 6749, 2.3.1. `%20` is used for a space because all providers decode it.
            client_id, secret = quote(client_id, safe=""), quote(secret, safe="")
        authentication = ClientAuth(client_id, secret, method)
        body = str(httpx2.QueryParams(dict(fields)))
        url, headers, body = authentication.prepare(
            "POST", metadata.token_endpoint, dict(DEFAULT_HEADERS), body
        )
        return await self._call("POST", url, headers, body.encode())

    async def _get(self, url: str, headers: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        return await self._call("GET", url, {"Accept": "application/json", **(headers or {})})

    async def _call(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> Mapping[str, Any]:
        """Return the JSON object of a reply. Raises ProviderError."""
        try:
            async with (
                asyncio.timeout(TIMEOUT_S),
                self._http.stream(method, url, headers=headers, content=content) as response,
            ):
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > REPLY_MAX_BYTES:
                        raise ProviderUnavailableError("the provider's reply is too large")
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            raise ProviderUnavailableError(f"no reply ({type(error).__name__})") from error
        finally:
            self._http.cookies.clear()  # calls for different users share this client
        return _parse(response.status_code, bytes(body))


def _parse(status: int, body: bytes) -> Mapping[str, Any]:
    """Return the JSON object of a reply.

    A refusal is a 4xx, except 404, 408, 429 and the OAuth errors in `NOT_ABOUT_USER`.
    """
    temporary = {HTTPStatus.NOT_FOUND, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
    is_refusal = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    if is_refusal and status not in temporary:
        error = _error_code(body)
        if error in NOT_ABOUT_USER:
            raise ProviderUnavailableError(f"the provider answered with {error}")
        raise ProviderRefusedError(f"the provider refused ({error or f'status {status}'})")
    if status != HTTPStatus.OK:
        raise ProviderUnavailableError(f"the provider answered with status {status}")
    content = _json(body)
    if not isinstance(content, dict):
        raise ProviderUnavailableError("the provider's reply is not a JSON object")
    return content


def _error_code(body: bytes) -> str | None:
    """Return the error code in a refusal (RFC 6749, 5.2), if it has a valid one."""
    content = _json(body)
    error = content.get("error") if isinstance(content, dict) else None
    return error if isinstance(error, str) and _ERROR_CODE.fullmatch(error) else None


def _json(body: bytes) -> object:
    """Return the value of a JSON text, or None if the text is not valid."""
    try:
        return cast("object", json.loads(body))
    except (ValueError, RecursionError):
        return None
