"""The official Python client obtains an OAuth token and uses it.

The tests cover discovery, registration, the user's sign-in and consent, calls, the refresh, the
second consent after the grant was revoked, and the refusal of an unknown token.
"""

import json
import re
import time
from html import unescape
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from controlplane.accounts import users
from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.accounts.passwords import hasher
from tests.contract.agent_protocol.served import ServedApp
from tests.unit.controlplane.accounts.people import MEMORY_KIB, PASSES, PASSWORD

pytestmark = pytest.mark.medium

REDIRECT = "http://localhost:49152/callback"
EMAIL = "ada@example.com"
HIDDEN = re.compile(r'name="(query|proof|organization)" value="([^"]*)"')


class ClientStorage:
    """The client's storage for its tokens and its registration."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class SimulatedUser:
    """Signs in and consents: follows redirects and submits the forms as a browser does."""

    def __init__(self, issuer: str) -> None:
        self.visits = 0
        self.browser = httpx2.AsyncClient(headers={"origin": issuer}, base_url=issuer)
        self._redirect = ""

    async def open_authorization_page(self, address: str) -> None:
        self.visits += 1
        page = await self.browser.get(address)
        if 'type="password"' in page.text:
            form = hidden_fields(page) | {"email": EMAIL, "password": PASSWORD}
            redirect = await self.browser.post("/api/auth/oauth2/sign-in", data=form)
            page = await self.browser.get(redirect.headers["location"])
        assert "Harness" in page.text
        form = hidden_fields(page) | {"decision": "allow"}
        decision_reply = await self.browser.post("/api/auth/oauth2/authorize", data=form)
        self._redirect = decision_reply.headers["location"]
        assert self._redirect.startswith(REDIRECT)

    async def authorization_result(self) -> AuthorizationCodeResult:
        parameters = parse_qs(urlsplit(self._redirect).query)
        return AuthorizationCodeResult(
            code=parameters["code"][0], state=parameters["state"][0], iss=parameters["iss"][0]
        )

    async def end_every_grant(self) -> None:
        headers = {"content-type": "application/json"}
        listed = await self.browser.post(
            "/console/api/profile/grants", content="{}", headers=headers
        )
        for grant in listed.json()["grants"]:
            await self.browser.post(
                "/console/api/profile/end-grant",
                content=json.dumps({"grantId": grant["id"]}),
                headers=headers,
            )


def hidden_fields(page: httpx2.Response) -> dict[str, str]:
    return {name: unescape(value) for name, value in HIDDEN.findall(page.text)}


def make_user(served: ServedApp) -> None:
    password_hash = hasher(MEMORY_KIB, PASSES).hash(PASSWORD)

    def work(session: object) -> None:
        now = served.clock()
        user = users.add_user(
            session, email=EMAIL, name="Ada", password_hash=password_hash, now=now
        )  # type: ignore[arg-type]
        users.set_membership(
            session, user.id, DEFAULT_ORGANIZATION, role="owner", locations=(), now=now
        )  # type: ignore[arg-type]

    served.database.write(work)


async def test_the_official_client_signs_in_refreshes_its_token_and_can_only_read(
    served_without_added_key: ServedApp,
) -> None:
    make_user(served_without_added_key)
    issuer = served_without_added_key.url.removesuffix("/api/mcp/v1")
    simulated_user, storage = SimulatedUser(issuer), ClientStorage()
    provider = OAuthClientProvider(
        served_without_added_key.url,
        OAuthClientMetadata(client_name="Harness", redirect_uris=[AnyUrl(REDIRECT)]),
        storage,
        simulated_user.open_authorization_page,
        simulated_user.authorization_result,
    )
    async with (
        simulated_user.browser,
        httpx2.AsyncClient(auth=provider) as http,
        Client(streamable_http_client(served_without_added_key.url, http_client=http)) as client,
    ):
        assert len((await client.list_tools()).tools) == 7
        context = (await client.call_tool("business_context", {})).structured_content
        assert context["credential"] == {
            "kind": "oauthToken", "readOnly": True, "allLocations": True,
        }  # fmt: skip
        assert context["role"] == "owner"
        assert storage.tokens is not None
        assert storage.client is not None
        assert storage.client.client_secret is None

        good = (await client.call_tool("read_catalog", {"limit": 1})).structured_content
        change = {"goodId": good["rows"][0]["goodId"], "status": "inactive"}
        with pytest.raises(MCPError, match="this credential is read-only"):
            await client.call_tool("set_catalog_availability", change)

        first = storage.tokens
        provider.context.token_expiry_time = time.time() - 1
        assert (await client.call_tool("query_sales", {"period": "last7"})).structured_content
        assert storage.tokens.access_token != first.access_token
        assert storage.tokens.refresh_token != first.refresh_token
        assert simulated_user.visits == 1

        await simulated_user.end_every_grant()
        await client.call_tool("business_context", {})
        assert simulated_user.visits == 2


async def test_an_unknown_token_is_refused_with_the_address_of_the_metadata(
    served_without_added_key: ServedApp,
) -> None:
    make_user(served_without_added_key)
    issuer = served_without_added_key.url.removesuffix("/api/mcp/v1")
    token = "voa_" + "x" * 43
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}) as http:
        reply = await http.post(
            served_without_added_key.url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}
        )
    assert reply.status_code == 401
    match = re.fullmatch(r'Bearer resource_metadata="(.+)"', reply.headers["www-authenticate"])
    assert match is not None
    async with httpx2.AsyncClient() as http:
        document = (await http.get(match[1])).json()
    assert document["resource"] == served_without_added_key.url
    assert document["authorization_servers"] == [issuer]
