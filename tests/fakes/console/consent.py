"""The OAuth pages: a user grants access to one client, revokes it, and denies it to a second."""

import json
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2

from controlplane.accounts import users
from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.accounts.passwords import hasher
from controlplane.clock import system_clock
from controlplane.storage.database import Database
from tests.fakes.console.page import Page
from tests.unit.controlplane.accounts.oauth.program import BASE, VERIFIER, challenge

EMAIL: Final = "ada@example.com"
PASSWORD: Final = "correct horse battery"
REDIRECT: Final = "https://agent.example/callback"
LONG: Final = "Quarterly-Business-Review-Assistant-For-Hospitality-Venues " + "W" * 60


def make_user(file: str) -> None:
    """Create a user who is a member of two organizations."""
    database, now = Database(file), system_clock()
    password_hash = hasher(8, 1).hash(PASSWORD)

    def work(session: Any) -> None:
        user = users.add_user(
            session, email=EMAIL, name="Ada", password_hash=password_hash, now=now
        )
        for organization_id in (DEFAULT_ORGANIZATION, "org-harbour-hospitality"):
            users.set_membership(
                session, user.id, organization_id, role="owner", locations=(), now=now
            )

    database.write(work)
    database.close()


async def consent(page: Page, http: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    results: dict[str, Any] = {}
    # No server listens at this address: only the URL to which the browser is redirected is checked.
    loopback = "http://127.0.0.1:9/callback"
    client_id = await _register(http, "Sales assistant", loopback)
    await page.open(_authorization_url(url, client_id, loopback))
    await page.until("document.querySelector('#email')")
    await page.tab_to("#email")
    await page.type(EMAIL)
    await page.tab_to("#password")
    await page.type("not this one, no")
    await page.press("Enter")
    await page.arrive("document.querySelector('.problem')")
    results["refused"] = await page.run("document.querySelector('.problem').textContent")
    results["e-mail after refusal"] = await page.run("document.querySelector('#email').value")
    await page.check_view("sign-in")
    await page.tab_to("#password")
    await page.type(PASSWORD)
    await page.press("Enter")
    await page.arrive("document.querySelector('h1 .supplied')")
    results["client name"] = await page.run("document.querySelector('h1 .supplied').textContent")
    await page.check_view("consent")
    await page.tab_to("button.primary")
    await page.press("Enter")
    results["answer"] = await _answer(page)
    tokens = await _exchange(http, client_id, loopback, results["answer"].get("code", ""))
    results["token"] = sorted(tokens)
    results["status before revocation"] = await _ping_status(http, tokens.get("access_token", ""))
    await _revoke_grant(page, results, url)
    results["status after revocation"] = await _ping_status(http, tokens.get("access_token", ""))
    long_named_client_id = await _register(http, LONG, REDIRECT)
    await page.open(_authorization_url(url, long_named_client_id, REDIRECT))
    await page.until("document.querySelector('h1 .supplied')")
    results["host"] = await page.run("document.querySelector('form p strong').textContent")
    await page.check_view("consent-long")
    await page.click("button[value=deny]")
    results["denied"] = await _answer(page)
    await page.open(_authorization_url(url, client_id, "https://evil.example/"))
    results["wrong address"] = await page.until("document.querySelector('.problem')?.textContent")
    await page.check_view("refused")
    results["framed"] = await _can_be_framed(
        page, url, _authorization_url(url, client_id, loopback)
    )
    return results


async def _revoke_grant(page: Page, results: dict[str, Any], url: str) -> None:
    """List the user's grants in the console, and revoke one of them."""
    await page.open(f"{url}/#/profile")
    first_grant = "document.querySelector('#grants li')"
    results["listed"] = await page.until(f"{first_grant}?.innerText")
    await page.check_view("grants")
    await page.click("#grants button")
    results["dialog"] = await page.until(
        "document.querySelector('#confirm[open] #confirm-title')?.textContent"
    )
    await page.click("#confirm-act")
    await page.until(f"!{first_grant}")
    results["none"] = await page.run("document.querySelector('#grants').innerText")


async def _ping_status(http: httpx2.AsyncClient, token: str) -> int:
    call = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    return (await http.post("/api/mcp/v1", json=call, headers=headers)).status_code


async def _register(http: httpx2.AsyncClient, name: str, redirect_uri: str) -> str:
    body = {"client_name": name, "redirect_uris": [redirect_uri]}
    reply = await http.post(f"{BASE}/register", json=body)
    client_id: str = reply.json()["client_id"]
    return client_id


async def _exchange(
    http: httpx2.AsyncClient, client_id: str, redirect_uri: str, code: str
) -> dict[str, str]:
    form = {
        "grant_type": "authorization_code",
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "code": code,
        "code_verifier": VERIFIER,
    }
    tokens: dict[str, str] = (await http.post(f"{BASE}/token", data=form)).json()
    return tokens


def _authorization_url(url: str, client_id: str, redirect_uri: str) -> str:
    parameters = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "state": "abc",
        "code_challenge": challenge(),
        "code_challenge_method": "S256",
    }
    return f"{url}{BASE}/authorize?{urlencode(parameters)}"


async def _answer(page: Page) -> dict[str, str]:
    """Return the parameters of the unreachable URL to which the browser was redirected.

    ``at`` is the URL without its parameters. The URL comes from the history of the browser.
    """
    await page.arrive("location.href.startsWith('chrome-error:')")
    history = await page.send_command("Page.getNavigationHistory")
    url = history["entries"][history["currentIndex"]]["url"]
    parts = urlsplit(url)
    parameters = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return parameters | {"at": f"{parts.scheme}://{parts.netloc}{parts.path}"}


async def _can_be_framed(page: Page, url: str, address: str) -> bool:
    """Return whether a page of the same origin can show the consent page in a frame.

    The outer page has no Content Security Policy, so only the consent page itself can prevent this.
    """
    await page.open(f"{url}/healthz")
    output: bool = await page.run(
        "new Promise((resolve) => { const frame = document.createElement('iframe'); "
        "frame.onload = () => resolve(Boolean(frame.contentDocument?.querySelector('form'))); "
        f"frame.src = {json.dumps(address)}; document.body.append(frame); }})"
    )
    return output
