"""Sign-in with oidc-provider, a certified OpenID provider: `make test-oidc`.

The provider and the service run on loopback. A client without JavaScript opens the pages of both,
follows their redirects and submits their forms. The service's clock is the real one, plus the time
by which a test has advanced it.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import httpx2
import pytest
import uvicorn
from sqlalchemy import select

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.accounts.oidc.providers import read_providers
from controlplane.accounts.sessions import VERIFY_EVERY
from controlplane.server import bind, url_of
from controlplane.settings import Settings
from controlplane.storage.account_tables import SignInSession, User
from controlplane.storage.audit_tables import AuditEntry
from controlplane.storage.database import Database
from controlplane.web.accounts.oidc.provider_client import KEYS_REFETCH_S
from controlplane.web.accounts.oidc.session_checks import check_sessions
from controlplane.web.app import build_app
from controlplane.web.core import Core
from tests.contract.openid_provider.provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    Provider,
    running_provider,
)

CALLBACK: Final = "/api/auth/oidc/contoso/callback"
OVERVIEW: Final = "/console/api/overview"
CREATE_KEY: Final = "/console/api/profile/create-key"
NEW_KEY: Final = {"name": "till", "canWrite": True, "locations": []}
GROUPS: Final = {
    "ada": ["all-staff", "venue-owners"],
    "vera": ["venue-viewers"],
    "norman": ["all-staff"],
}
SHUTDOWN_TIMEOUT_S: Final = 300


class OffsetClock:
    """The real time, plus the time by which a test has advanced it."""

    def __init__(self) -> None:
        self._offset_s = 0.0

    def __call__(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self._offset_s)

    def monotonic(self) -> float:
        return time.monotonic() + self._offset_s

    def advance(self, seconds: float) -> None:
        self._offset_s += seconds


@dataclass
class Deployment:
    """The service and the provider."""

    url: str
    core: Core
    database: Database
    clock: OffsetClock
    provider: Provider

    async def check_sessions(self) -> None:
        """Advance the clock until all sessions are due for a check, and check them."""
        self.clock.advance(VERIFY_EVERY.total_seconds())
        await check_sessions(self.core)

    def audit_log(self) -> list[tuple[str, str]]:
        query = select(AuditEntry.operation, AuditEntry.detail).order_by(AuditEntry.position)
        rows = self.database.read(lambda session: session.execute(query).all())
        return [(operation, detail) for operation, detail in rows]

    def refresh_tokens(self) -> list[str | None]:
        query = select(SignInSession.refresh_token)
        return self.database.read(lambda session: list(session.scalars(query)))


@asynccontextmanager
async def _deployment(folder: Path, *, issues_refresh_tokens: bool) -> AsyncIterator[Deployment]:
    listener = bind("127.0.0.1", 0)
    url = url_of(listener)
    async with running_provider(
        folder, url + CALLBACK, issues_refresh_tokens=issues_refresh_tokens
    ) as provider:
        provider.set_groups(GROUPS)
        database, clock = Database(str(folder / "service.db")), OffsetClock()
        core = Core(
            database,
            Settings(rate_per_s=0),
            clock,
            monotonic=clock.monotonic,
            identity_providers=read_providers(_provider_file(folder, provider.issuer)),
        )
        config = uvicorn.Config(build_app(core), log_config=None, access_log=False, lifespan="off")
        server = uvicorn.Server(config)
        task = asyncio.create_task(server._serve(sockets=[listener]))
        try:
            yield Deployment(url, core, database, clock, provider)
        finally:
            server.should_exit = True
            await asyncio.wait_for(task, SHUTDOWN_TIMEOUT_S)
            listener.close()
            core.close()
            database.close()


def _provider_file(folder: Path, issuer: str) -> Path:
    (folder / "contoso.secret").write_text(CLIENT_SECRET)
    file = folder / "providers.toml"
    roles = "".join(
        f'[[provider.roles]]\norganization = "{DEFAULT_ORGANIZATION}"\n'
        f'group = "venue-{role}s"\nrole = "{role}"\n'
        for role in ("owner", "viewer")
    )
    file.write_text(
        f'[[provider]]\nid = "contoso"\nlabel = "Contoso"\nissuer = "{issuer}"\n'
        f'client_id = "{CLIENT_ID}"\nclient_secret_file = "contoso.secret"\n'
        f'domains = ["contoso.example"]\n{roles}'
    )
    return file


@pytest.fixture(params=[True, False], ids=["with-refresh-tokens", "without-refresh-tokens"])
async def deployment(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Deployment]:
    async with _deployment(tmp_path, issues_refresh_tokens=request.param) as running:
        yield running


class _Page(HTMLParser):
    """The links and the first form of a page."""

    def __init__(self, reply: httpx2.Response) -> None:
        super().__init__()
        self.links: dict[str, str] = {}
        self.action = ""
        self.fields: dict[str, str] = {}
        self._link = ""
        self.feed(reply.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.action = self.action or values["action"]
        elif tag == "input":
            self.fields[values["name"]] = values.get("value", "")
        elif tag == "a":
            self._link = values["href"]

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._link = ""

    def handle_data(self, data: str) -> None:
        if self._link:
            self.links[data.strip()] = self._link


class Visitor:
    """A browser without JavaScript."""

    def __init__(self, deployment: Deployment, http: httpx2.AsyncClient) -> None:
        self._deployment = deployment
        self._http = http
        self.follows_redirects = True

    async def get(self, address: str) -> httpx2.Response:
        address = urljoin(self._deployment.url, address)
        return await self._http.get(address, follow_redirects=self.follows_redirects)

    async def submit(self, page: httpx2.Response, **fields: str) -> httpx2.Response:
        """Submit the first form of a page, as a browser does."""
        form = _Page(page)
        assert form.action, page.text
        address = urljoin(str(page.url), form.action)
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(str(page.url)))
        return await self._http.post(
            address,
            data=form.fields | fields,
            headers={"origin": origin},
            follow_redirects=self.follows_redirects,
        )

    async def open_provider(self) -> httpx2.Response:
        """Follow the link on the sign-in page. Return the provider's page."""
        page = await self.get("/sign-in")
        reply = await self.get(_Page(page).links["Sign in with Contoso"])
        assert str(reply.url).startswith(self._deployment.provider.issuer), reply.text
        return reply

    async def sign_in(self, user: str) -> httpx2.Response:
        """Sign in and consent at the provider. Return the service's page."""
        page = await self.open_provider()
        page = await self.submit(page, login=user, password="any")
        assert "Authorize" in page.text, page.text
        return await self.submit(page)

    async def call(self, path: str, body: dict[str, Any] | None = None) -> httpx2.Response:
        """Call an operation of the console."""
        headers = {"origin": self._deployment.url}
        return await self._http.post(self._deployment.url + path, json=body or {}, headers=headers)


@asynccontextmanager
async def _visitor(deployment: Deployment) -> AsyncIterator[Visitor]:
    async with httpx2.AsyncClient(trust_env=False) as http:
        yield Visitor(deployment, http)


@asynccontextmanager
async def _signed_in(deployment: Deployment, user: str) -> AsyncIterator[Visitor]:
    async with _visitor(deployment) as visitor:
        page = await visitor.sign_in(user)
        assert (page.status_code, str(page.url)) == (200, deployment.url + "/"), page.text
        yield visitor


async def test_groups_give_roles_until_the_user_signs_out(deployment: Deployment) -> None:
    async with _signed_in(deployment, "ada") as ada, _signed_in(deployment, "vera") as vera:
        for visitor, role, status in ((ada, "owner", 200), (vera, "viewer", 403)):
            page = await visitor.get("/sign-in")
            assert f"{role} of" in page.text
            assert (await visitor.call(OVERVIEW)).status_code == 200
            assert (await visitor.call(CREATE_KEY, NEW_KEY)).status_code == status
        page = await ada.submit(await ada.get("/sign-in"))
        assert "Sign in with Contoso" in page.text
        assert (await ada.call(OVERVIEW)).status_code == 401
        assert (await vera.call(OVERVIEW)).status_code == 200


async def test_user_without_a_mapped_group_is_refused(deployment: Deployment) -> None:
    async with _visitor(deployment) as visitor:
        page = await visitor.sign_in("norman")
        assert page.status_code == 403
        assert "None of your groups at Contoso may use this service" in page.text
        assert (await visitor.call(OVERVIEW)).status_code == 401
    query = select(User)
    assert deployment.database.read(lambda session: session.scalars(query).all()) == []


async def test_user_who_cancels_is_not_signed_in(deployment: Deployment) -> None:
    async with _visitor(deployment) as visitor:
        page = await visitor.open_provider()
        page = await visitor.get(urljoin(str(page.url), _Page(page).links["[ Cancel ]"]))
        assert page.status_code == 403
        assert "The provider refused, or you cancelled" in page.text


async def test_sign_in_that_another_browser_began_is_refused(deployment: Deployment) -> None:
    async with _visitor(deployment) as attacker, _visitor(deployment) as victim:
        page = await attacker.submit(await attacker.open_provider(), login="ada", password="any")
        attacker.follows_redirects = False
        reply = await attacker.submit(page)
        while not (callback_url := reply.headers["location"]).startswith(deployment.url):
            reply = await attacker.get(callback_url)
        await victim.open_provider()
        page = await victim.get(callback_url)
        assert page.status_code == 403
        assert "does not belong to this browser" in page.text
        assert (await victim.call(OVERVIEW)).status_code == 401


async def test_provider_requires_the_code_challenge_that_the_service_sends(
    deployment: Deployment,
) -> None:
    async with _visitor(deployment) as visitor:
        visitor.follows_redirects = False
        location = (await visitor.get("/api/auth/oidc/contoso")).headers["location"]
        query = {name: value[0] for name, value in parse_qs(urlsplit(location).query).items()}
        assert query["code_challenge_method"] == "S256"
        del query["code_challenge"], query["code_challenge_method"]
        reply = await visitor.get(f"{location.partition('?')[0]}?{urlencode(query)}")
        assert "error=invalid_request" in reply.headers["location"]


async def test_session_continues_while_the_provider_confirms_the_user(
    deployment: Deployment,
) -> None:
    async with _signed_in(deployment, "ada") as ada:
        [token] = deployment.refresh_tokens()
        assert (token is not None) == deployment.provider.issues_refresh_tokens
        for _ in range(4):
            await deployment.check_sessions()
            assert (await ada.call(OVERVIEW)).status_code == 200


async def test_sign_in_and_sessions_continue_after_the_provider_has_replaced_its_key(
    deployment: Deployment,
) -> None:
    async with _signed_in(deployment, "ada") as ada, _visitor(deployment) as vera:
        key_id = await deployment.provider.replace_key()
        async with httpx2.AsyncClient(trust_env=False) as http:
            keys = (await http.get(f"{deployment.provider.issuer}/jwks")).json()["keys"]
        assert [each["kid"] for each in keys] == [key_id]
        deployment.clock.advance(KEYS_REFETCH_S)
        assert (await vera.sign_in("vera")).status_code == 200
        for _ in range(2):
            await deployment.check_sessions()
            for visitor in (ada, vera):
                assert (await visitor.call(OVERVIEW)).status_code == 200


async def test_removed_group_ends_the_session_and_the_key(deployment: Deployment) -> None:
    async with _signed_in(deployment, "ada") as ada, _signed_in(deployment, "vera") as vera:
        key = (await ada.call(CREATE_KEY, NEW_KEY)).json()["secret"]
        deployment.provider.set_groups({**GROUPS, "ada": ["all-staff"]})
        await deployment.check_sessions()
        assert (await ada.call(OVERVIEW)).status_code == 401
        assert (await vera.call(OVERVIEW)).status_code == 200
        assert ("member.remove", "groups at Contoso") in deployment.audit_log()
        async with httpx2.AsyncClient(trust_env=False) as http:
            headers = {"authorization": f"Bearer {key}"}
            reply = await http.post(deployment.url + OVERVIEW, json={}, headers=headers)
        assert reply.status_code == 401


async def test_changed_group_changes_the_role(deployment: Deployment) -> None:
    async with _signed_in(deployment, "ada") as ada:
        deployment.provider.set_groups({**GROUPS, "ada": ["venue-viewers"]})
        await deployment.check_sessions()
        assert (await ada.call(CREATE_KEY, NEW_KEY)).status_code == 403
        assert "viewer of" in (await ada.get("/sign-in")).text


async def test_deleted_user_is_signed_out(deployment: Deployment) -> None:
    async with _signed_in(deployment, "ada") as ada:
        deployment.provider.set_groups({"vera": ["venue-viewers"]})
        await deployment.check_sessions()
        assert (await ada.call(OVERVIEW)).status_code == 401
        assert deployment.audit_log()[-1][0] == "session.end"
