"""An OAuth client, and the browser of its user."""

import base64
import hashlib
import html
import json
import re
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
from starlette.requests import Request

from controlplane.operation.caller import Caller
from controlplane.operation.errors import Refusal
from controlplane.web.admission import admit, by_key_or_token
from tests.unit.controlplane.accounts.people import PASSWORD
from tests.unit.controlplane.running_service import RunningService

ISSUER = "https://venue.example"
RESOURCE = f"{ISSUER}/api/mcp/v1"
REDIRECT = "https://agent.example/callback"
VERIFIER = "v" * 64
BASE = "/api/auth/oauth2"
COOKIE = "__Secure-venue.session_token"
FORM = "application/x-www-form-urlencoded"
_HIDDEN = re.compile(r'name="(query|proof)" value="([^"]*)"')


def challenge(verifier: str = VERIFIER) -> str:
    """Return the code challenge of a verifier, with the method S256 (RFC 7636, 4.2)."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def parameters_of(reply: httpx2.Response) -> dict[str, str]:
    """Return the parameters of the redirect to the client."""
    assert reply.status_code == 303, reply.text
    result = parse_qs(urlsplit(reply.headers["location"]).query)
    return {name: values[0] for name, values in result.items()}


class Visitor:
    """The browser of a user. After `sign_in`, it sends the session cookie."""

    def __init__(self, service: RunningService) -> None:
        self._http = service.http
        self.token = ""

    async def get(self, path: str) -> httpx2.Response:
        """Open a page by a link on another site, such as the page of the client."""
        return await self._call("GET", path, None, {"sec-fetch-site": "cross-site"})

    async def post(
        self, path: str, fields: dict[str, str], origin: str | None = ISSUER, **headers: str
    ) -> httpx2.Response:
        site_headers = {"content-type": FORM} | ({} if origin is None else {"origin": origin})
        extra_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self._call("POST", path, urlencode(fields), site_headers | extra_headers)

    async def sign_in(self, query: str, email: str, password: str = PASSWORD) -> httpx2.Response:
        fields = {"email": email, "password": password, "query": query}
        reply = await self.post(f"{BASE}/sign-in", fields)
        if "set-cookie" in reply.headers:
            self.token = reply.headers["set-cookie"].partition("=")[2].partition(";")[0]
        return reply

    async def decide(
        self, query: str, decision: str = "allow", organization: str = "org-0001", **extra: str
    ) -> httpx2.Response:
        """Open the consent page and submit its form. ``extra`` are changed form fields."""
        page = await self.get(f"{BASE}/authorize?{query}")
        assert page.status_code == 200, page.text
        fields = hidden_fields(page) | {"decision": decision, "organization": organization}
        return await self.post(f"{BASE}/authorize", fields | extra)

    async def _call(
        self, method: str, path: str, content: str | None, headers: dict[str, str]
    ) -> httpx2.Response:
        if self.token:
            headers = headers | {"cookie": f"{COOKIE}={self.token}"}
        self._http.cookies.clear()
        reply = await self._http.request(method, path, content=content, headers=headers)
        self._http.cookies.clear()
        return reply


def hidden_fields(page: httpx2.Response) -> dict[str, str]:
    """Return the hidden fields of the page's form by name."""
    return {name: html.unescape(value) for name, value in _HIDDEN.findall(page.text)}


class Program:
    """An OAuth client. Its requests are valid, unless a test changes their parameters."""

    def __init__(self, service: RunningService, redirect_uri: str = REDIRECT) -> None:
        self._http = service.http
        self.redirect_uri = redirect_uri
        self.client_id = ""

    async def register(self, **changes: Any) -> httpx2.Response:
        body = {"client_name": "Agent", "redirect_uris": [self.redirect_uri]} | changes
        headers = {"content-type": "application/json"}
        content = json.dumps(body)
        reply = await self._http.post(f"{BASE}/register", content=content, headers=headers)
        if reply.status_code == 201:
            self.client_id = reply.json()["client_id"]
        return reply

    def query(self, **changes: str | None) -> str:
        """Return the query of an authorization request. The value None removes a parameter."""
        parameters: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "state": "s t&te",
            "code_challenge": challenge(),
            "code_challenge_method": "S256",
            "resource": RESOURCE,
        }
        return urlencode({k: v for k, v in (parameters | changes).items() if v is not None})

    async def exchange(self, code: str, **changes: str | None) -> httpx2.Response:
        return await self._send(
            "token",
            {
                "grant_type": "authorization_code",
                "code": code,
                "client_id": self.client_id,
                "redirect_uri": self.redirect_uri,
                "code_verifier": VERIFIER,
                "resource": RESOURCE,
            }
            | changes,
        )

    async def refresh(self, token: str, **changes: str | None) -> httpx2.Response:
        fields = {
            "grant_type": "refresh_token",
            "refresh_token": token,
            "client_id": self.client_id,
        }
        return await self._send("token", fields | changes)

    async def revoke(self, token: str, **changes: str | None) -> httpx2.Response:
        return await self._send("revoke", {"token": token, "client_id": self.client_id} | changes)

    async def _send(self, path: str, fields: dict[str, Any]) -> httpx2.Response:
        content = urlencode({name: value for name, value in fields.items() if value is not None})
        headers = {"content-type": FORM}
        return await self._http.post(f"{BASE}/{path}", content=content, headers=headers)


async def complete_flow(
    service: RunningService, email: str = "ada@example.com"
) -> tuple[Program, Visitor, dict[str, Any]]:
    """Register a client, sign its user in, consent, and exchange the code for tokens."""
    program, visitor = Program(service), Visitor(service)
    await program.register()
    await visitor.sign_in(program.query(), email)
    code = parameters_of(await visitor.decide(program.query()))["code"]
    reply = await program.exchange(code)
    assert reply.status_code == 200, reply.text
    return program, visitor, reply.json()


async def caller_of_token(service: RunningService, token: str) -> Caller | None:
    """Return the caller that the agent protocol identifies by ``token``; None if the service
    refuses the token.
    """
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/mcp/v1",
        "query_string": b"",
        "headers": [
            (b"authorization", f"Bearer {token}".encode()),
            (b"content-type", b"application/json"),
        ],
        "state": {},
    }
    try:
        return await admit(service.core, Request(scope), authenticate=by_key_or_token, writes=False)
    except Refusal as refusal:
        if refusal.status != 401:
            raise
        return None


class OAuthFlow(NamedTuple):
    """A registered client, and the browser of a signed-in user who has not consented yet."""

    program: Program
    visitor: Visitor


async def code_of(flow: OAuthFlow, **changes: str | None) -> str:
    """Consent as the user. Return the authorization code. ``changes`` are changed parameters of the
    authorization request.
    """
    program, visitor = flow
    return parameters_of(await visitor.decide(program.query(**changes)))["code"]
