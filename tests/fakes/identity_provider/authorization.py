"""The fake provider's endpoints for codes and tokens, built on Authlib's authorization server."""

import hashlib
import hmac
import json
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from authlib.oauth2.rfc6749 import AuthorizationServer, ClientMixin, OAuth2Request
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core.grants import OpenIDCode
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

CLIENT_ID: Final = "venue"
CLIENT_SECRET: Final = "a secret: 100%41 + €"
"""A secret whose characters the service must encode (RFC 6749, 2.3.1)."""
Claims = dict[str, Any]


@dataclass
class State:
    """The data and the behaviour of the provider. Tests change them (`apply`).

    Attributes:
        issuer: the URL of the provider.
        now: the time at which ID tokens are issued, in seconds since 1970.
        claims: claims of the user who is signed in at the provider.
        id_token: changes of the ID token's claims; None removes a claim.
        algorithm: the signature algorithm of the ID tokens at sign-in: RS256, none, or HS256 with
            the public key as the secret.
        userinfo: changes of the claims of userinfo; None removes a claim.
        is_disabled: whether tokens and userinfo are refused.
        issues_refresh_tokens: whether the client gets a refresh token with each access token.
        refreshes_id_tokens: whether the client also gets a new ID token when it uses a refresh
            token.
        metadata: changes of the provider's metadata document.
        answer: changes of the parameters that ``/authorize`` sends to the client; None removes one.
        replies: replaces the replies to some paths; maps each path to a status and a text.
        keys: the signing key, as a list of one element.
        codes: the authorization codes that are valid.
        tokens: the access tokens and the refresh tokens that are valid.
        token_requests: the fields of each call of ``/token``.
        calls: the path of each request that the provider received.
    """

    issuer: str
    now: int = 0
    claims: Claims = field(default_factory=dict)
    id_token: Claims = field(default_factory=dict)
    algorithm: str = "RS256"
    is_disabled: bool = False
    issues_refresh_tokens: bool = True
    refreshes_id_tokens: bool = False
    userinfo: Claims = field(default_factory=dict)
    metadata: Claims = field(default_factory=dict)
    answer: Claims = field(default_factory=dict)
    replies: dict[str, tuple[int, str]] = field(default_factory=dict)
    keys: list[RSAKey] = field(default_factory=list)
    codes: dict[str, "Code"] = field(default_factory=dict)
    tokens: dict[str, "Token"] = field(default_factory=dict)
    token_requests: list[dict[str, str]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def rotate(self) -> None:
        """Replace the signing key."""
        parameters = {"kid": secrets.token_hex(4), "use": "sig"}
        self.keys = [RSAKey.generate_key(2048, parameters, private=True)]

    def issue_id_token(self) -> str:
        """Return an ID token with the current claims of the user, for a client that uses a refresh
        token."""
        claims = {
            **self.claims, "iss": self.issuer, "aud": CLIENT_ID,
            "iat": self.now, "exp": self.now + 3600, **self.id_token,
        }  # fmt: skip
        present = {name: value for name, value in claims.items() if value is not None}
        return str(jwt.encode({"alg": "RS256", "kid": self.keys[0].kid}, present, self.keys[0]))

    def apply(self, changes: Mapping[str, Any]) -> None:
        for name, value in changes.items():
            if name == "rotate":
                self.rotate()
            else:
                setattr(self, name, value)


class Client(ClientMixin):  # type: ignore[misc]
    def get_client_id(self) -> str:
        return CLIENT_ID

    def get_default_redirect_uri(self) -> None: ...

    def get_allowed_scope(self, scope: str | None) -> str:
        return scope or ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return "/api/auth/oidc/" in redirect_uri

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == CLIENT_SECRET

    def check_endpoint_auth_method(self, method: str, _endpoint: str) -> bool:
        return method == "client_secret_basic"

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in {"authorization_code", "refresh_token"}


class Code:
    """An authorization code, with the interface that Authlib requires."""

    def __init__(self, payload: Mapping[str, str], claims: Claims) -> None:
        self.claims = claims
        self.nonce = payload.get("nonce")
        self.code_challenge = payload["code_challenge"]
        self.code_challenge_method = payload["code_challenge_method"]
        self.redirect_uri = payload["redirect_uri"]
        self.scope = payload["scope"]

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str | None:
        return self.nonce

    def get_auth_time(self) -> None: ...

    def get_acr(self) -> None: ...

    def get_amr(self) -> None: ...


class Token:
    """The user and the scope of an access token and its refresh token. A refresh token is valid
    once.
    """

    def __init__(self, claims: Claims, scope: str) -> None:
        self.claims = claims
        self.scope = scope

    def check_client(self, _client: Client) -> bool:
        return True

    def get_scope(self) -> str:
        return self.scope


class Request(OAuth2Request):  # type: ignore[misc]
    def __init__(self, method: str, uri: str, headers: Mapping[str, str], data: Claims) -> None:
        super().__init__(method, uri, headers=headers)
        self.payload = BasicOAuth2Payload(data)

    @property
    def args(self) -> Claims:
        return dict(self.payload.data)

    form = args


class CodeGrant(AuthorizationCodeGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic",)

    def save_authorization_code(self, code: str, request: Request) -> None:
        state: State = self.server.state
        state.codes[code] = Code(request.payload.data, dict(state.claims))

    def query_authorization_code(self, code: str, _client: Client) -> Code | None:
        state: State = self.server.state
        return state.codes.get(code)

    def delete_authorization_code(self, code: Code) -> None:
        state: State = self.server.state
        state.codes = {key: each for key, each in state.codes.items() if each is not code}

    def authenticate_user(self, code: Code) -> Claims:
        return code.claims


class RefreshGrant(RefreshTokenGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic",)
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> Token | None:
        state: State = self.server.state
        return state.tokens.pop(refresh_token, None)

    def authenticate_user(self, token: Token) -> Claims:
        return token.claims

    def revoke_old_credential(self, _token: Token) -> None: ...


class IdToken(OpenIDCode):  # type: ignore[misc]
    def __init__(self, state: State) -> None:
        super().__init__(require_nonce=True)
        self.state = state

    def exists_nonce(self, _nonce: str, _request: Request) -> bool:
        return False

    def resolve_client_private_key(self, _client: Client) -> KeySet:
        return KeySet(self.state.keys)

    def get_client_claims(self, client: Client) -> Claims:
        return {
            "iss": self.state.issuer,
            "aud": [client.get_client_id()],
            "iat": self.state.now,
            "exp": self.state.now + 300,
        }

    def generate_user_info(self, user: Claims, _scope: str) -> Claims:
        return dict(user)

    def encode_id_token(self, token: Mapping[str, str], request: Request) -> str:
        genuine = super().encode_id_token(token, request)
        state, key = self.state, self.state.keys[0]
        if not state.id_token and state.algorithm == "RS256":
            return str(genuine)
        claims = {**jwt.decode(genuine, key).claims, **state.id_token}
        claims = {name: value for name, value in claims.items() if value is not None}
        if state.algorithm == "none":
            return str(jwt.encode({"alg": "none"}, claims, None, ["none"]))
        header = {"alg": state.algorithm, "kid": key.kid}
        if state.algorithm == "HS256":
            # An attacker can sign with the public key, which is not secret, as an HMAC secret.
            # Libraries refuse to sign with this key, so `hs256` computes the signature.
            return hs256(header, claims, key.as_pem(private=False))
        return str(jwt.encode(header, claims, key, [state.algorithm]))


def hs256(header: Claims, claims: Claims, secret: bytes) -> str:
    signing_input = ".".join(_base64(json.dumps(each).encode()) for each in (header, claims))
    signature = hmac.new(secret, signing_input.encode(), hashlib.sha256).digest()
    return f"{signing_input}.{_base64(signature)}"


def _base64(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


class Server(AuthorizationServer):  # type: ignore[misc]
    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state
        self.register_grant(CodeGrant, [CodeChallenge(required=True), IdToken(state)])
        self.register_grant(RefreshGrant, [])
        generate = lambda **_: secrets.token_urlsafe(24)  # noqa: E731
        self.register_token_generator("default", BearerTokenGenerator(generate, generate))

    def query_client(self, client_id: str) -> Client | None:
        return Client() if client_id == CLIENT_ID else None

    def save_token(self, token: dict[str, Any], request: Request) -> None:
        token_record = Token(request.user, token.get("scope", ""))
        self.state.tokens[token["access_token"]] = token_record
        if not self.state.issues_refresh_tokens:
            token.pop("refresh_token", None)
        elif "refresh_token" in token:
            self.state.tokens[token["refresh_token"]] = token_record

    def send_signal(self, *_: Any, **__: Any) -> None: ...

    def create_oauth2_request(self, request: Request) -> Request:
        return request

    def handle_response(
        self, status: int, body: Any, headers: Sequence[tuple[str, str]]
    ) -> tuple[int, Any, dict[str, str]]:
        return status, body, dict(headers)
