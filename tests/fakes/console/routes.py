"""The routes of alerts: using only the keyboard, Ada adds, tests, changes and removes one route of
each kind.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from tests.fakes.console.alerts import FORM_PROBLEM
from tests.fakes.console.page import Page
from tests.fakes.console.people import ADA, PASSWORD, make_ada, sign_in

SMTP: Final = ("--smtp", "127.0.0.1:9", "--smtp-from", "alerts@venue.example")
"""Options of the service. No SMTP server listens at this address."""


@dataclass(frozen=True, slots=True)
class RouteForm:
    """What Ada types for a route.

    ``kind`` is the text of the option that she selects. The service refuses ``wrong_target``.
    ``minutes`` is the group interval.
    """

    kind: str
    wrong_target: str
    target: str
    minutes: str = "15"

    @property
    def name(self) -> str:
        return f"By {self.kind}"


ROUTES: Final = (
    RouteForm("Webhook", "http://hooks.example.com/in", "https://hooks.example.com/in"),
    RouteForm("E-mail", "nobody", "till@venue.example,bar@venue.example"),
    RouteForm("Slack", "https://127.0.0.1/in", "https://slack.example.com/services/T0"),
    RouteForm("Microsoft Teams", "teams", "https://teams.example.com/hook"),
    RouteForm("PagerDuty", "0123", "0123456789abcdef0123456789abcdef", "0"),
)
_ROW: Final = (
    "[...document.querySelectorAll('#alert-routes li')].find((each) =>"
    " each.querySelector('.name').textContent === {})"
)
_DIALOG: Final = "document.querySelector('#form[open]')"
_CONFIRMATION: Final = "document.querySelector('#confirm[open]')"
_FOCUS: Final = "document.activeElement.getAttribute('aria-label')"


async def routes(page: Page, url: str, database: str) -> dict[str, Any]:
    make_ada(database)
    results: dict[str, Any] = {}
    await page.open(url)
    await sign_in(page, ADA, PASSWORD)
    await page.go("#/alerts")
    await page.until("document.getElementById('add-route')")
    for form in ROUTES:
        results[form.kind] = {}
        await _add(page, form, results[form.kind])
    await page.check_view("routes-set")
    for form in ROUTES:
        await _test(page, form, results[form.kind])
        await _change(page, form, results[form.kind])
        await _remove(page, form, results[form.kind])
    results["no routes"] = await page.until(
        "document.querySelector('#alert-routes .empty')?.textContent"
    )
    results["wrong"] = await page.run("window.wrong")
    return results


async def _add(page: Page, form: RouteForm, results: dict[str, Any]) -> None:
    await page.tab_to("#add-route")
    await page.press("Enter")
    await page.until("document.activeElement.id === 'form-name'")
    await page.type(form.name)
    await page.tab_to("#form-kind")
    for _ in range(ROUTES.index(form)):
        await page.press("ArrowDown")
    results["kind"] = await page.run("document.activeElement.selectedOptions[0].textContent")
    await page.tab_to("#form-target")
    await page.type(form.wrong_target)
    await page.press("Enter")
    results["problem"] = await page.until(FORM_PROBLEM)
    # Tab selects the content of a field, so that the typed text replaces it.
    await page.tab_to("#form-minutes")
    await page.type(form.minutes)
    await page.tab_to("#form-target")
    await page.type(form.target)
    await page.press("Enter")
    if form.kind == "Webhook":
        results["secret"] = await page.until("document.getElementById('secret')?.value")
        await page.tab_to("#secret-done")
        await page.press("Enter")
    results["added"] = await _row_of(page, form.name)
    results["focus after adding"] = await page.until(f"!{_DIALOG} && {_FOCUS}")


async def _test(page: Page, form: RouteForm, results: dict[str, Any]) -> None:
    await _press(page, "Test", form.name)
    text = f"This is a test of the route {form.name}."
    results["log"] = await page.until(
        f"[...document.querySelectorAll('#alert-log li')].find("
        f"(each) => each.innerText.startsWith({json.dumps(text)}))?.innerText"
    )


async def _change(page: Page, form: RouteForm, results: dict[str, Any]) -> None:
    await _press(page, "Change", form.name)
    await page.until("document.activeElement.id === 'form-name'")
    results["fields"] = await page.run("[...new FormData(document.querySelector('#form form'))]")
    await page.tab_to("#form-severities [value=critical]")
    await page.press(" ")
    await page.tab_to("#form-enabled")
    await page.press("ArrowDown")
    await page.tab_to("#form-name")
    await page.type(f"{form.name} 2")
    if form is ROUTES[0]:
        await page.check_view("route-change")
    await page.press("Enter")
    results["changed"] = await _row_of(page, f"{form.name} 2")
    results["focus after changing"] = await page.until(f"!{_DIALOG} && {_FOCUS}")


async def _remove(page: Page, form: RouteForm, results: dict[str, Any]) -> None:
    await _press(page, "Remove", f"{form.name} 2")
    results["removing"] = await page.until(f"{_CONFIRMATION} && {_CONFIRMATION}.innerText")
    await page.press("Escape")
    results["focus after keeping"] = await page.until(f"!{_CONFIRMATION} && {_FOCUS}")
    await page.press("Enter")
    await page.until(_CONFIRMATION)
    await page.tab_to("#confirm-act")
    await page.press("Enter")
    await page.until(f"!{_ROW.format(json.dumps(f'{form.name} 2'))}")


async def _press(page: Page, button: str, name: str) -> None:
    """Press a button of the route ``name``."""
    await page.tab_to(f"[aria-label={json.dumps(f'{button} {name}')}]")
    await page.press("Enter")


async def _row_of(page: Page, name: str) -> str:
    return str(await page.until(f"{_ROW.format(json.dumps(name))}?.innerText"))
