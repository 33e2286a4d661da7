"""Sign-in with an identity provider and with a second factor, first without JavaScript."""

import json
import time
from pathlib import Path
from typing import Any, Final

import pyotp

from controlplane.accounts import sign_in_policy, users
from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.accounts.passwords import hasher
from controlplane.clock import system_clock
from controlplane.storage.database import Database
from tests.fakes.console.page import Page
from tests.fakes.identity_provider.authorization import CLIENT_ID, CLIENT_SECRET
from tests.fakes.identity_provider.process import ADA, ProviderProcess

EMAIL: Final = "eve@example.com"
PASSWORD: Final = "correct horse battery"
STEP_S: Final = 30
"""Seconds after which the code of an authenticator app changes."""


def make_providers(folder: Path, provider: ProviderProcess) -> Path:
    """Sign Ada in at the provider. Write the service's file of identity providers, and return its
    path."""
    provider.control(claims=ADA, now=int(time.time()))
    (folder / "secret").write_text(CLIENT_SECRET, encoding="utf-8")
    file = folder / "providers.toml"
    file.write_text(
        f'[[provider]]\nid = "contoso"\nlabel = "Contoso"\nissuer = "{provider.issuer}"\n'
        f'client_id = "{CLIENT_ID}"\nclient_secret_file = "secret"\n'
        'domains = ["contoso.example"]\n[[provider.roles]]\n'
        f'organization = "{DEFAULT_ORGANIZATION}"\ngroup = "venue-owners"\nrole = "owner"\n'
    )
    return file


def make_member(file: str) -> None:
    """Create the owner Eve. Her organization requires a second factor."""
    database, now = Database(file), system_clock()

    def work(session: Any) -> None:
        user = users.add_user(
            session, email=EMAIL, name="Eve", password_hash=hasher(8, 1).hash(PASSWORD), now=now
        )
        users.set_membership(
            session, user.id, DEFAULT_ORGANIZATION, role="owner", locations=(), now=now
        )
        _require_factor(session, is_required=True)

    database.write(work)
    database.close()


async def company(page: Page, url: str, database: str, provider: ProviderProcess) -> dict[str, Any]:
    results: dict[str, Any] = {}
    await page.send_command("Emulation.setScriptExecutionDisabled", value=True)
    await page.open(url + "/")
    results["without scripts"] = await page.run("document.querySelector('noscript').innerText")
    codes = await _set_up(page, url, results)
    await _sign_in_with_code(page, url, codes[0], results)
    await _sign_in_with_provider(page, url, provider, results)
    await page.send_command("Emulation.setScriptExecutionDisabled", value=False)
    await _use_console(page, url, codes[1:], results)
    await _change_factor(page, database, codes[2], results)
    results["wrong"] = await page.run("window.wrong")
    return results


async def _set_up(page: Page, url: str, results: dict[str, Any]) -> list[str]:
    """Set up the required factor at sign-in. Return the recovery codes."""
    await page.open(url + "/sign-in")
    await _check_form(page, "form")
    await _enter_password(page)
    await page.arrive("document.querySelector('.qr')?.complete")
    await _check_form(page, "form-set-up")
    secret = await page.run("document.querySelector('code').textContent")
    await _enter_code(page, _current_code(secret))
    await page.arrive("document.querySelector('.codes')")
    await _check_form(page, "form-recovery-codes")
    codes: list[str] = await page.run(
        "[...document.querySelectorAll('.codes code')].map((each) => each.textContent)"
    )
    await page.tab_to("a.button")
    await page.press("Enter")
    await page.arrive("location.pathname === '/'")
    await page.open(url + "/sign-in")
    results["set up"] = await page.run("document.querySelector('main').innerText")
    await _check_form(page, "form-signed-in")
    await _sign_out(page)
    return codes


async def _sign_in_with_code(page: Page, url: str, code: str, results: dict[str, Any]) -> None:
    """Sign in with the password, and then with a wrong code and the recovery code ``code``."""
    await _enter_password(page)
    await page.arrive("location.pathname === '/sign-in/code'")
    await page.arrive("document.querySelector('#code')")
    await _check_form(page, "form-code")
    await _enter_code(page, "000000")
    await page.arrive("document.querySelector('.problem')")
    results["wrong code"] = await page.run("document.querySelector('.problem').textContent")
    await _enter_code(page, code)
    await page.arrive("location.pathname === '/'")
    await page.open(url + "/sign-in")
    results["with code"] = await page.run("document.querySelector('h1').textContent")
    await _sign_out(page)


async def _sign_in_with_provider(
    page: Page, url: str, provider: ProviderProcess, results: dict[str, Any]
) -> None:
    provider.control(now=int(time.time()), claims={**ADA, "groups": []})
    await page.tab_to(".providers a")
    await page.press("Enter")
    await page.arrive("document.querySelector('.problem')")
    results["no group"] = await page.run("document.querySelector('.problem').textContent")
    await _check_form(page, "form-problem")
    provider.control(claims=ADA)
    await page.open(url + "/sign-in")
    await page.tab_to(".providers a")
    await page.press("Enter")
    await page.arrive("location.pathname === '/'")
    await page.open(url + "/sign-in")
    results["by provider"] = await page.run("document.querySelector('main').innerText")
    await _sign_out(page)


async def _use_console(page: Page, url: str, codes: list[str], results: dict[str, Any]) -> None:
    await page.open(url + "/")
    await page.until("document.querySelector('.providers a')")
    results["button"] = await page.run("document.querySelector('.providers a').textContent")
    await page.check_view("sign-in-providers")
    await _enter_password(page)
    await page.arrive("location.pathname === '/sign-in/code' && document.querySelector('#code')")
    await _enter_code(page, codes[0])
    await page.arrive("document.querySelector('#account-name')?.textContent === 'Eve'")
    await page.go("#/profile")
    await page.until("document.querySelector('#new-codes')")
    results["factor"] = await page.run("document.querySelector('#factor').innerText")
    await page.check_view("profile-factor")


async def _change_factor(page: Page, file: str, code: str, results: dict[str, Any]) -> None:
    """Remove the factor with a recovery code, and set it up again in a dialog."""
    database = Database(file)
    database.write(lambda session: _require_factor(session, is_required=False))
    database.close()
    await page.run("location.reload()")
    await page.arrive("document.querySelector('#remove-factor')")
    await page.tab_to("#remove-factor")
    await page.press("Enter")
    await page.until("document.activeElement.id === 'form-code'")
    await page.check_view("factor-removing")
    await page.type(code)
    await page.press("Enter")
    await page.until("document.querySelector('#set-up-factor')")
    await page.tab_to("#set-up-factor")
    await page.press("Enter")
    await page.until("document.querySelector('dialog .qr')?.complete")
    await page.check_view("factor-set-up")
    secret = await page.run("document.querySelector('#factor-key').textContent")
    await page.tab_to("#form-code")
    await page.type(_current_code(secret))
    await page.press("Enter")
    await page.until("document.querySelector('textarea#secret')")
    results["codes"] = await page.run("document.querySelector('#secret').value")
    await page.check_view("factor-codes")


def _require_factor(session: Any, *, is_required: bool) -> None:
    row = sign_in_policy.policy_of(session, DEFAULT_ORGANIZATION)
    row.requires_second_factor = is_required
    sign_in_policy.set_policy(session, row)


def _current_code(secret: str) -> str:
    return pyotp.TOTP(secret.replace(" ", "")).generate_otp(int(time.time()) // STEP_S)


async def _check_form(page: Page, name: str) -> None:
    """Check a page that was loaded without scripts. The checks themselves need scripts."""
    await page.send_command("Emulation.setScriptExecutionDisabled", value=False)
    await page.check_view(name)
    await page.send_command("Emulation.setScriptExecutionDisabled", value=True)


async def _enter_password(page: Page) -> None:
    await page.tab_to("#email")
    await page.type(EMAIL)
    await page.tab_to("#password")
    await page.type(PASSWORD)
    await page.press("Enter")


async def _enter_code(page: Page, code: str) -> None:
    await page.run("window.isOld = true")  # the page that loads next has no such variable
    await page.tab_to("#code")
    await page.type(code)
    await page.press("Enter")
    await page.arrive("!window.isOld && document.readyState === 'complete'")


async def _sign_out(page: Page) -> None:
    await page.tab_to(f"form[action={json.dumps('/sign-in/end')}] button")
    await page.press("Enter")
    await page.arrive("document.querySelector('#password')")
