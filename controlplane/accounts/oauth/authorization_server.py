"""The authorization server: Authlib with the clients, codes and tokens in our database.

Authlib implements RFC 6749, 7636, 7591, 7009 and 9207. This module implements the methods that
Authlib requires. A server object is created for each call and uses the transaction of the call. If
the token endpoint refuses a call, it returns a reply and raises no exception. The transaction is
therefore committed, with changes such as the end of a grant whose code was used twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import AuthorizationServer, ClientMixin, JsonRequest, OAuth2Request
from authlib.oauth2.rfc6749.errors import InvalidGrantError, InvalidRequestError
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9207 import IssuerParameter
from sqlalchemy.orm import Session

from controlplane.accounts.oauth import clients, grants
from controlplane.accounts.oauth.metadata import GRANT_TYPES, resource_of
from controlplane.accounts.oauth.oauth_request import OAuthReply, OAuthRequest
from controlplane.accounts.oauth.redirects import is_same_redirect_uri
from controlplane.accounts.oauth.registration import Registration
from controlplane.accounts.oauth.secrets import (
    ACCESS,
    ACCESS_LIFETIME,
    REFRESH,
    new_secret,
)
from controlplane.operation.errors import invalid_request
from controlplane.storage.account_tables import Membership
from controlplane.storage.oauth_tables import OAuthClient, OAuthCode, OAuthGrant, OAuthToken

CLIENT_METHODS: Final = ["none"]
"""How clients authenticate: not at all, because they have no secret (RFC 7591, 2)."""
S256_LENGTH: Final = 43
"""Length of a SHA-256 hash as base64url without padding."""
_PROBLEMS: Final = {
    "invalid_client": "The program is not registered, or its registration has ended.",
    "unsupported_response_type": "The program requested a response type other than code.",
    "invalid_target": "The program requested access to another service.",
}
_UNREGISTERED_ADDRESS: Final = "The program has not registered the address for the reply."
_NO_CHALLENGE: Final = "The program sent no code challenge with S256 (PKCE)."
_UNSUPPORTED: Final = "The program requested something that this service does not support."


class InvalidTargetError(OAuth2Error):  # type: ignore[misc]
    """The requested resource does not belong to this service (RFC 8707, 2)."""

    error = "invalid_target"
    description = "the resource does not belong to this service"


class Client(ClientMixin):  # type: ignore[misc]
    """A registered client, with the interface that Authlib requires."""

    def __init__(self, row: OAuthClient) -> None:
        self.row = row

    def get_client_id(self) -> str:
        return self.row.id

    def get_default_redirect_uri(self) -> None:
        """Return None: each request contains its redirect URI (OAuth 2.1, 4.1.1)."""

    def get_allowed_scope(self, _scope: str | None) -> str:
        """Return no scope: the server ignores all requested scopes (RFC 6749, 3.3)."""
        return ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return any(is_same_redirect_uri(redirect_uri, each) for each in self.row.redirect_uris)

    def check_endpoint_auth_method(self, method: str, _endpoint: str) -> bool:
        return method in CLIENT_METHODS

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in GRANT_TYPES


class Code:
    """A code that a client exchanges for tokens, with the interface that Authlib requires."""

    code_challenge_method = "S256"

    def __init__(self, row: OAuthCode) -> None:
        self.row = row
        self.code_challenge = row.code_challenge

    def get_redirect_uri(self) -> str:
        return self.row.redirect_uri

    def get_scope(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its grant, with the interface that Authlib requires."""

    row: OAuthToken
    grant: OAuthGrant

    def check_client(self, client: Client) -> bool:
        return self.grant.client_id == client.row.id

    def get_scope(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class ConsentingUser:
    """A user who consented, and the organization of the consent."""

    user_id: UUID
    organization_id: str


class Request(OAuth2Request):  # type: ignore[misc]
    """A request of a client, with the interface that Authlib requires."""

    def __init__(self, oauth_request: OAuthRequest) -> None:
        super().__init__(oauth_request.method, oauth_request.issuer + oauth_request.path)
        self.payload = BasicOAuth2Payload(dict(oauth_request.parameters))
        self.resources = oauth_request.resources

    @property
    def form(self) -> Mapping[str, str]:
        parameters: Mapping[str, str] = self.payload.data
        return parameters


class Server(AuthorizationServer):  # type: ignore[misc]
    """The authorization server of one call."""

    def __init__(self, session: Session, now: datetime, issuer: str) -> None:
        super().__init__()
        self.session = session
        self.now = now
        self.issuer = issuer
        self.register_grant(CodeGrant, [S256(required=True), ResourceCheck()])
        self.register_grant(RefreshGrant)
        self.register_endpoint(Revocation)
        self.register_endpoint(Registration)
        self.register_token_generator(
            "default",
            BearerTokenGenerator(
                lambda **_: new_secret(ACCESS),
                lambda **_: new_secret(REFRESH),
                int(ACCESS_LIFETIME.total_seconds()),
            ),
        )
        Issuer(issuer)(self)

    def require_valid(self, oauth_request: OAuthRequest) -> OAuthClient:
        """Return the client that requests consent. Raises a refusal if the request is invalid.

        The refusal is shown to the user and not sent to the client: anyone can register a client,
        so a link to this service could otherwise lead to any address (RFC 9700, 4.11).
        """
        try:
            grant = self.get_consent_grant(oauth_request)
        except OAuth2Error as error:
            raise invalid_request(_describe(error)) from error
        row: OAuthClient = grant.client.row
        return row

    def decide(self, oauth_request: OAuthRequest, user: ConsentingUser | None) -> OAuthReply:
        """Return the redirect to the client.

        It has a code, or the error ``access_denied`` if ``user`` is None. Raises a refusal if the
        request is invalid.
        """
        self.require_valid(oauth_request)
        request = self.create_oauth2_request(oauth_request)
        grant = self.get_authorization_grant(request)
        reply: OAuthReply = self.create_authorization_response(request, user, grant=grant)
        return reply

    def query_client(self, client_id: str) -> Client | None:
        row = clients.find_client(self.session, client_id)
        return None if row is None else Client(row)

    def save_token(self, token: Mapping[str, str], request: Any) -> None:
        if request.refresh_token is not None:
            grant = request.refresh_token.grant
        else:
            grant = grants.open_grant(self.session, request.authorization_code.row, self.now)
        grants.add_tokens(
            self.session, grant, token["access_token"], token["refresh_token"], self.now
        )

    def send_signal(self, *_: Any, **__: Any) -> None:
        """Do nothing: there are no receivers."""

    def create_oauth2_request(self, request: OAuthRequest | Request) -> Request:
        return request if isinstance(request, Request) else Request(request)

    def create_json_request(self, request: JsonRequest) -> JsonRequest:
        return request

    def handle_response(
        self, status: int, body: Mapping[str, Any] | str, headers: Sequence[tuple[str, str]]
    ) -> OAuthReply:
        values_by_name = {name.lower(): value for name, value in headers}
        location = values_by_name.pop("location", None)
        return OAuthReply(
            status, body if isinstance(body, Mapping) else {}, values_by_name, location
        )


class CodeGrant(AuthorizationCodeGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = CLIENT_METHODS

    def save_authorization_code(self, _code: str, request: Request) -> None:
        """Do nothing: `generate_authorization_code` has stored the hash of the code."""

    def generate_authorization_code(self) -> str:
        request = self.request
        row = OAuthCode(
            client_id=request.client.row.id,
            user_id=request.user.user_id,
            organization_id=request.user.organization_id,
            redirect_uri=request.payload.redirect_uri,
            code_challenge=request.payload.data["code_challenge"],
        )
        return grants.add_code(self.server.session, row, self.server.now)

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        row = grants.find_and_lock_code(self.server.session, code, client.row.id, self.server.now)
        return None if row is None else Code(row)

    def delete_authorization_code(self, _code: Code) -> None:
        """Do nothing: `grants.open_grant` has deleted the code."""

    def authenticate_user(self, code: Code) -> ConsentingUser | None:
        session = self.server.session
        return _consenting_user(session, code.row.user_id, code.row.organization_id)


class RefreshGrant(RefreshTokenGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = CLIENT_METHODS
    INCLUDE_NEW_REFRESH_TOKEN = True

    def validate_token_request(self) -> None:
        _require_resource(self.server.issuer, self.request)
        super().validate_token_request()

    def _validate_token_scope(self, _token: Token) -> None:
        """Accept any scope: no scopes are defined, so all are ignored (RFC 6749, 3.3 and 6)."""

    def authenticate_refresh_token(self, refresh_token: str) -> Token | None:
        session, now = self.server.session, self.server.now
        pair = grants.find_and_lock_refresh_token(session, refresh_token, now)
        return None if pair is None else Token(*pair)

    def authenticate_user(self, token: Token) -> ConsentingUser:
        session, grant = self.server.session, token.grant
        user = _consenting_user(session, grant.user_id, grant.organization_id)
        if user is None:
            raise InvalidGrantError()
        return user

    def revoke_old_credential(self, token: Token) -> None:
        token.row.used_at = self.server.now


class S256(CodeChallenge):  # type: ignore[misc]
    """PKCE with S256 only. A request must name S256: the default is ``plain`` (RFC 7636, 4.3)."""

    SUPPORTED_CODE_CHALLENGE_METHOD: Final = ["S256"]

    def validate_code_challenge(self, grant: CodeGrant, redirect_uri: str) -> None:
        data = grant.request.payload.data
        if len(data.get("code_challenge", "")) != S256_LENGTH:
            raise InvalidRequestError("a 'code_challenge' with S256 is required")
        if data.get("code_challenge_method") != "S256":
            raise InvalidRequestError("the 'code_challenge_method' must be S256")
        super().validate_code_challenge(grant, redirect_uri)


class ResourceCheck:
    """Refuses requests for a resource that does not belong to this service (RFC 8707)."""

    def __call__(self, grant: CodeGrant) -> None:
        def require(grant: CodeGrant, *_: Any) -> None:
            _require_resource(grant.server.issuer, grant.request)

        grant.register_hook("after_validate_authorization_request_payload", require)
        grant.register_hook("after_validate_token_request", require)


class Revocation(RevocationEndpoint):  # type: ignore[misc]
    """Ends the whole grant of the token (RFC 7009, 2.1)."""

    CLIENT_AUTH_METHODS = CLIENT_METHODS

    def query_token(self, token: str, _hint: str | None) -> Token | None:
        pair = grants.find_and_lock_token(self.server.session, token)
        return None if pair is None else Token(*pair)

    def revoke_token(self, token: Token, _request: Request) -> None:
        grants.end(self.server.session, token.grant)


class Issuer(IssuerParameter):  # type: ignore[misc]
    """Adds the parameter ``iss`` to authorization responses (RFC 9207)."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer

    def get_issuer(self) -> str:
        return self._issuer


def _describe(error: OAuth2Error) -> str:
    """Return a fixed text for users: the author of a link must not control text on our page."""
    if error.error == InvalidRequestError.error:
        # Authlib sets the redirect URI of an error only after it has checked the URI.
        return _NO_CHALLENGE if error.redirect_uri else _UNREGISTERED_ADDRESS
    return _PROBLEMS.get(error.error, _UNSUPPORTED)


def _require_resource(issuer: str, request: Request) -> None:
    if any(each != resource_of(issuer) for each in request.resources):
        raise InvalidTargetError()


def _consenting_user(
    session: Session, user_id: UUID, organization_id: str
) -> ConsentingUser | None:
    """Return the user, or None if the membership has ended."""
    membership = session.get(Membership, (user_id, organization_id))
    return None if membership is None else ConsentingUser(user_id, organization_id)
