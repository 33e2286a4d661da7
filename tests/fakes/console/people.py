"""The user Ada in the console: sign-in with her password, keys, members, support and audit log."""

import json
from typing import Any, Final

import httpx2
from sqlalchemy import delete
from sqlalchemy.orm import Session

from controlplane.accounts import users
from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.accounts.passwords import hash_password
from controlplane.clock import system_clock
from controlplane.merchant.locations import name_organization
from controlplane.settings import Settings
from controlplane.storage.account_tables import SignInSession
from controlplane.storage.database import Database
from controlplane.support.channels import set_channel
from controlplane.support.links import make_link
from tests.fakes.console.page import Page
from tests.fakes.console.play import TILES, enroll_device

ADA: Final = "ada@example.com"
BOB: Final = "bob@example.com"
PASSWORD: Final = "correct horse battery"
BOBS_PASSWORD: Final = "another horse"
OVERVIEW: Final = "/console/api/overview"
SIGN_IN: Final = "/api/auth/sign-in/email"
PROBLEM: Final = "document.getElementById('sign-in-problem').textContent"
TITLE: Final = "(document.getElementById('form-title')?.textContent ?? '')"
MENU: Final = "[document.getElementById('account').open, document.activeElement.localName]"
"""Whether the account menu is open, and the kind of the focused element."""


def make_ada(file: str) -> None:
    database = Database(file)
    settings = Settings()
    password_hash = hash_password(PASSWORD, settings.argon2_memory_kib, settings.argon2_passes)

    def work(session: Session) -> None:
        now = system_clock()
        name_organization(session, DEFAULT_ORGANIZATION, "Harbour Hospitality", now)
        user = users.add_user(
            session, email=ADA, name="Ada Berzina", password_hash=password_hash, now=now
        )
        users.set_membership(
            session, user.id, DEFAULT_ORGANIZATION, role="owner", locations=(), now=now
        )

    database.write(work)
    database.close()


async def people(
    page: Page, http: httpx2.AsyncClient, url: str, key: str, database: str
) -> dict[str, Any]:
    make_ada(database)
    results: dict[str, Any] = {}
    till = await enroll_device(http, key, "till-bar", "harbour-street")
    await _sign_in_after_a_wrong_password(page, results, url)
    await _request_report(page, till.instance_id)
    await _use_profile(page, results, http)
    link = await _invite(page, results)
    await _join(page, results, link)
    await _change_and_remove_member(page, results)
    await _read_audit_log(page, results)
    await _filter_audit_log(page, results)
    await _use_support(page, results, database)
    await _end_sessions(page, results, database)
    await _sign_in_too_often(page, results, http)
    results["wrong"] = await page.run("window.wrong")
    return results


async def _use_support(page: Page, results: dict[str, Any], file: str) -> None:
    database = Database(file)

    def work(session: Session) -> str:
        set_channel(session, kind="email", address="help@example.com", hours="9 to 17")
        link = make_link(session, channel="telegram @venue", requested_by="Eve", now=system_clock())
        return link.token

    token = database.write(work)
    database.close()
    await page.go("#/support")
    results["reached"] = await page.until("document.querySelector('#channels')?.innerText")
    await _submit_token(page, "link", token)
    results["link"] = await page.until(f"{TITLE}.startsWith('Link t') && {TITLE}")
    await page.check_view("linking")
    await page.click("#form-submit")
    results["linked"] = await page.until("document.querySelector('#links li')?.innerText")
    await page.check_view("support")
    await _submit_token(page, "link", token)
    results["used token"] = await page.until("document.querySelector('#form .problem').textContent")
    await page.click("#form .actions button")
    await _submit_token(page, "unlink", token)
    await page.until("!document.querySelector('#links li')")
    results["unlinked"] = await page.run("document.querySelector('#links').innerText")


async def _submit_token(page: Page, button: str, token: str) -> None:
    await page.click(f"#{button}")
    await fill(page, form_token=token)
    await page.click("#form-submit")


async def fill(page: Page, **values: str) -> None:
    for name, value in values.items():
        field = f"document.getElementById({json.dumps(name.replace('_', '-'))})"
        await page.until(f"{field} && !{field}.disabled")
        await page.run(f"{field}.value = {json.dumps(value)}")


async def sign_in(page: Page, email: str, password: str) -> None:
    await page.until("!document.getElementById('password-form').hidden")
    await fill(page, email=email, password=password)
    await page.click("#password-sign-in")


async def _sign_in_after_a_wrong_password(page: Page, results: dict[str, Any], url: str) -> None:
    await page.open(url)
    await page.until("document.activeElement.id === 'email'")
    await page.check_view("sign-in")
    await page.type(ADA)
    await page.press("Tab")
    await page.type("wrong password")
    await page.press("Enter")
    results["refused"] = await page.until(PROBLEM)
    await page.until("!document.getElementById('password-sign-in').disabled")
    # The wrong password is selected, so the new input replaces it.
    await page.type(PASSWORD)
    await page.press("Enter")
    await page.until(f"({TILES}).includes('Healthy')")
    results["name"] = await page.until("document.getElementById('account-name').textContent")
    results["cookies and storage"] = await page.run(
        "[document.cookie, sessionStorage.length, localStorage.length]"
    )


async def _request_report(page: Page, instance_id: str) -> None:
    """Request a report with the session cookie. This requires permission to write."""
    await page.go(f"#/device/{instance_id}")
    await page.click("#request-network")
    await page.until("document.querySelector('#request-network').ariaDisabled === 'true'")


async def _use_profile(page: Page, results: dict[str, Any], http: httpx2.AsyncClient) -> None:
    await page.click("#account summary")
    results["menu"] = await page.run(
        "document.querySelector('#account > div').innerText.split('\\n')"
    )
    results["menu box"] = await page.run(
        "(({ left, right, height }) => [left >= 0, right <= innerWidth, height < innerHeight / 2])"
        "(document.querySelector('#account > div').getBoundingClientRect())"
    )
    await page.check_view("account-menu")
    await page.run("document.activeElement.blur()")
    await page.press("Escape")
    results["menu after Escape"] = await page.run(MENU)
    await page.click("#account summary")
    results["menu again"] = await page.run(MENU)
    await page.click_at(20, 300)
    results["menu after click"] = await page.run(MENU)
    await page.click("#account summary")
    await page.click("#nav-profile")
    results["who"] = await page.until("document.querySelector('#who .lede')?.textContent")
    results["sessions"] = await page.run("document.getElementById('sessions').innerText")
    await page.click("#new-key")
    await fill(page, form_name="till of the bar", form_grant="write")
    await page.click("#form-locations input")
    await page.check_view("new-key")
    await page.click("#form-submit")
    secret = await page.until("document.getElementById('secret')?.value")
    await page.check_view("new-key-shown")
    results["status with the key"] = await _status_with_key(http, secret)
    await page.click("#secret-done")
    results["closed secret"] = await page.until(
        f"!document.documentElement.innerHTML.includes({json.dumps(secret)}) && 'gone'"
    )
    results["key"] = await page.until("document.querySelector('#keys li')?.innerText")
    results["key hint"] = f"…{secret[-4:]}" in results["key"]
    await page.check_view("profile")
    await page.click("#keys button")
    results["dialog"] = await page.until("document.getElementById('confirm-title').textContent")
    await page.click("#confirm-act")
    await page.until("document.querySelector('#keys .empty')")
    await page.click("#change-password")
    await fill(
        page, form_old="not the old one", form_password=BOBS_PASSWORD, form_again=BOBS_PASSWORD
    )
    await page.click("#form-submit")
    results["old"] = await page.until("document.querySelector('#form .problem').textContent")
    await page.check_view("change-password")
    await page.run("document.getElementById('form').close()")


async def _invite(page: Page, results: dict[str, Any]) -> str:
    await page.go("#/members")
    await page.click("#invite")
    await fill(page, form_email=BOB, form_role="manager")
    await page.check_view("inviting")
    await page.click("#form-submit")
    link = str(await page.until("document.getElementById('secret')?.value"))
    await page.click("#secret-done")
    results["invited"] = await page.until("document.getElementById('invited')?.innerText")
    await page.check_view("members")
    return link


async def _join(page: Page, results: dict[str, Any], link: str) -> None:
    await page.open("about:blank")
    await page.open(link)
    results["join"] = await page.until("document.getElementById('join-description').textContent")
    await fill(page, join_name="Bob", join_password=BOBS_PASSWORD)
    await page.check_view("join")
    await page.click("#join")
    await page.until("document.getElementById('account-name').textContent === 'Bob'")
    await page.until("!document.getElementById('account').hidden")
    results["managers menu"] = await page.run("document.getElementById('nav-members').hidden")
    await page.go("#/members")
    results["members as manager"] = await page.until(
        "document.querySelector('#view .problem') && "
        "document.querySelector('#view h1')?.textContent"
    )
    await page.click("#end-session")
    await page.until("!document.getElementById('sign-in').hidden")
    await page.open("about:blank")
    await page.open(link)
    results["used"] = await page.until(PROBLEM)


async def _change_and_remove_member(page: Page, results: dict[str, Any]) -> None:
    await sign_in(page, ADA, PASSWORD)
    await page.until(f"({TILES}).includes('Healthy')")
    await page.go("#/members")
    results["members"] = await page.until(
        "document.querySelectorAll('#member-list li').length === 2 && "
        "[...document.querySelectorAll('#member-list li')].map((each) => each.innerText)"
    )
    results["buttons"] = await page.run("document.querySelectorAll('#member-list button').length")
    await page.click("[id^=change-]")
    await fill(page, form_role="viewer")
    await page.click("#form-locations input")
    await page.click("#form-submit")
    results["changed"] = await page.until(
        "document.querySelector('#member-list').innerText.includes('at harbour-street') && "
        "document.querySelectorAll('#member-list li')[1].innerText"
    )
    await page.check_view("members-two")
    await page.click("[id^=remove-]")
    results["removing"] = await page.until("document.getElementById('confirm-title').textContent")
    await page.click("#confirm-act")
    await page.until("document.querySelectorAll('#member-list li').length === 1")


async def _read_audit_log(page: Page, results: dict[str, Any]) -> None:
    await page.go("#/audit")
    results["log"] = await page.until(
        "document.querySelectorAll('.log li').length > 8 && "
        "[...document.querySelectorAll('.log li > div')].map((each) => each.innerText)"
    )
    results["credentials"] = await page.run(
        "[...document.querySelectorAll('.log li > p')].map((each) => each.innerText)"
    )
    await page.check_view("audit")


async def _filter_audit_log(page: Page, results: dict[str, Any]) -> None:
    await page.run(
        "{ const field = document.getElementById('audit-by'); field.value = 'bob'; "
        "field.dispatchEvent(new Event('change')); }"
    )
    results["bob"] = await page.until(
        "location.hash.includes('by=bob') && document.querySelectorAll('.log li').length < 8 && "
        "[...document.querySelectorAll('.log li > div')].map((each) => each.innerText)"
    )


async def _end_sessions(page: Page, results: dict[str, Any], file: str) -> None:
    """Delete all sessions in the database while Ada is signed in."""
    database = Database(file)
    database.write(lambda session: session.execute(delete(SignInSession)))
    database.close()
    await page.go("#/devices")
    results["ended"] = await page.until(PROBLEM)
    await page.check_view("session-ended")


async def _sign_in_too_often(page: Page, results: dict[str, Any], http: httpx2.AsyncClient) -> None:
    for _ in range(10):
        await http.post(SIGN_IN, json={"email": ADA, "password": "wrong password"})
    await sign_in(page, ADA, PASSWORD)
    results["too often"] = await page.until(f"({PROBLEM}).startsWith('Too') && {PROBLEM}")


async def _status_with_key(http: httpx2.AsyncClient, key: str) -> int:
    headers = {"Authorization": f"Bearer {key}"}
    return (await http.post(OVERVIEW, json={}, headers=headers)).status_code
