"""Dynamic client registration (RFC 7591) with Authlib."""

from collections.abc import Mapping
from typing import Any, Final

from authlib.oauth2.rfc6749 import JsonRequest
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc7591 import ClientMetadataClaims, ClientRegistrationEndpoint
from authlib.oauth2.rfc7591.errors import InvalidClientMetadataError, InvalidRedirectURIError

from controlplane.accounts.oauth import clients
from controlplane.accounts.oauth.metadata import GRANT_TYPES, server_metadata
from controlplane.accounts.oauth.oauth_request import OAuthRequest
from controlplane.accounts.oauth.redirects import URIS_MAX, is_redirect_uri
from controlplane.storage.oauth_tables import OAuthClient

NAME_SENT_MAX: Final = 512
"""Maximum length of the name that a client sends. `clients.display_name` shortens it."""


def registration_request(oauth_request: OAuthRequest, body: Mapping[str, Any]) -> JsonRequest:
    request = JsonRequest("POST", oauth_request.issuer + oauth_request.path)
    request.payload = BasicOAuth2Payload(dict(body))
    return request


class Claims(ClientMetadataClaims):  # type: ignore[misc]
    def validate_redirect_uris(self) -> None:
        """Keep the supported redirect URIs. The reply lists them (RFC 7591, 3.2.1)."""
        uris = self.get("redirect_uris")
        if not isinstance(uris, list) or not 1 <= len(uris) <= URIS_MAX:
            raise InvalidRedirectURIError(f"'redirect_uris' must contain 1 to {URIS_MAX} addresses")
        supported_uris = [each for each in uris if isinstance(each, str) and is_redirect_uri(each)]
        if not supported_uris:
            raise InvalidRedirectURIError(
                "none of the redirect URIs is supported. Use an https address, an http address of"
                " the user's computer (127.0.0.1, [::1] or localhost), or an address that begins"
                " with a reversed domain name, as in com.example.app:/callback"
            )
        self["redirect_uris"] = supported_uris


class Registration(ClientRegistrationEndpoint):  # type: ignore[misc]
    """The endpoint with which clients register themselves.

    The agent protocol requires that any client can register. `clients` limits the number of
    registered clients.
    """

    def __init__(self, server: Any = None) -> None:
        super().__init__(server, [Claims])

    def authenticate_token(self, _request: JsonRequest) -> str:
        """Return a value that is not empty: Authlib then accepts the request without a token."""
        return "anyone"

    def get_server_metadata(self) -> dict[str, Any]:
        return server_metadata(self.server.issuer)

    def extract_client_metadata(self, request: JsonRequest) -> Mapping[str, Any]:
        """Return the metadata to store. Replace or omit unsupported values (RFC 7591, 2)."""
        metadata = request.payload.data
        name, types = metadata.get("client_name", ""), metadata.get("grant_types", [GRANT_TYPES[0]])
        if not isinstance(name, str) or len(name) > NAME_SENT_MAX:
            raise InvalidClientMetadataError(
                f"'client_name' must be a text of at most {NAME_SENT_MAX} characters"
            )
        if not isinstance(types, list) or GRANT_TYPES[0] not in types:
            raise InvalidClientMetadataError("'grant_types' must contain authorization_code")
        request.payload = BasicOAuth2Payload(
            {
                "redirect_uris": metadata.get("redirect_uris"),
                "client_name": clients.display_name(name),
                "token_endpoint_auth_method": "none",
                "grant_types": list(GRANT_TYPES),
                "response_types": metadata.get("response_types", ["code"]),
            }
        )
        if request.payload.data["response_types"] != ["code"]:
            raise InvalidClientMetadataError("'response_types' must be code")
        stored_metadata: Mapping[str, Any] = super().extract_client_metadata(request)
        return stored_metadata

    def generate_client_info(self, _request: JsonRequest) -> dict[str, Any]:
        """Return nothing: the row of the client has the id, and there is no client secret."""
        return {}

    def save_client(
        self, _info: Mapping[str, Any], metadata: Mapping[str, Any], _request: JsonRequest
    ) -> OAuthClient:
        return clients.add_client(
            self.server.session,
            metadata["client_name"],
            metadata["redirect_uris"],
            self.server.now,
        )

    def generate_client_registration_info(
        self, client: OAuthClient, _request: JsonRequest
    ) -> dict[str, Any]:
        issued_at_s = int(client.created_at.timestamp())
        return {"client_id": client.id, "client_id_issued_at": issued_at_s}
