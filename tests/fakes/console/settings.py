"""The first run in the console: Ada adds the first device, and changes settings of locations."""

import re
from typing import Any, Final

import httpx2

from tests.fakes.console.page import Page
from tests.fakes.console.people import ADA, PASSWORD, fill, make_ada, sign_in
from tests.fakes.console.play import enroll_device

FORM_PROBLEM: Final = "document.querySelector('#form .problem')?.textContent"
COMMAND: Final = "document.getElementById('command')?.textContent"
ALERTS: Final = "document.getElementById('alert-route').innerText"
SUGGESTED: Final = """(() => {
  const options = document.querySelectorAll('#form-device-list option');
  return options.length && [...options].map((each) => each.value);
})()"""
LONGEST: Final = "Math.random = () => 0.999;"
"""Makes the random texts in the examples of the OpenAPI viewer as long as they can be."""
ROW: Final = "document.querySelector('#location-list li')?.innerText"


async def settings(page: Page, http: httpx2.AsyncClient, url: str, database: str) -> dict[str, Any]:
    make_ada(database)
    results: dict[str, Any] = {}
    await page.open(url)
    await sign_in(page, ADA, PASSWORD)
    await _add_device(page, results, http)
    await _change_locations(page, results)
    await _set_webhook(page, results)
    await _invite(page, results)
    results["wrong"] = await page.run("window.wrong")
    await _read_documents(page, results, url)
    return results


async def _add_device(page: Page, results: dict[str, Any], http: httpx2.AsyncClient) -> None:
    await page.until("document.getElementById('add-device')")
    results["guide"] = await page.run("location.hash")
    await page.check_view("add-device-empty")
    await page.tab_to("#form-name")
    await page.type("Old harbour")
    await page.tab_to("#create-command")
    await page.press("Enter")
    results["command"] = await page.until(COMMAND)
    results["waiting"] = await page.run("document.getElementById('arrival').innerText")
    await page.check_view("add-device-waiting")
    match = re.search(r"--location '([^']+)'", results["command"])
    assert match is not None
    results["new secret"] = await page.run("document.getElementById('new-secret').value")
    await enroll_device(http, results["new secret"], "till-bar", match[1])
    results["arrived"] = await page.until(
        "document.querySelector('#arrival a') && document.getElementById('arrival').innerText"
    )
    await page.check_view("add-device-arrived")
    await page.click("#arrival a")
    results["device"] = await page.until("document.querySelector('#device-sheet h1')?.textContent")
    await page.go("#/devices")
    results["link"] = await page.until("document.getElementById('add-a-device')?.textContent")
    await page.go("#/")
    await page.until("document.getElementById('home')")
    results["link on home"] = await page.run("Boolean(document.getElementById('add-a-device'))")


async def _change_locations(page: Page, results: dict[str, Any]) -> None:
    await page.go("#/locations")
    results["location"] = await page.until(ROW)
    await page.click("#rename-loc-0001")
    await fill(page, form_name="Quay")
    await page.click("#form-submit")
    await page.until(f"{ROW}.startsWith('Quay')")
    await page.click("#hours-loc-0001")
    await fill(page, form_zone="Europe/Riga", form_hours="9 to 5")
    await page.click("#form-submit")
    results["wrong hours"] = await page.until(FORM_PROBLEM)
    await page.check_view("opening-hours")
    await fill(page, form_hours="Mon-Fri 08:00-22:00")
    await page.click("#form-submit")
    await page.until(f"{ROW}.includes('Open Mon-Fri')")
    await page.click("#maintain-loc-0001")
    await fill(page, form_device="till", form_until="2020-01-01T06:00", form_reason="new cables")
    results["suggested"] = await page.until(SUGGESTED)
    await page.click("#form-submit")
    results["no device"] = await page.until(FORM_PROBLEM)
    await fill(page, form_device="till-bar")
    await page.click("#form-submit")
    results["wrong end"] = await page.until(
        f"({FORM_PROBLEM})?.startsWith('The end') && {FORM_PROBLEM}"
    )
    await page.check_view("maintenance")
    await fill(page, form_until="2099-12-01T06:00")
    await page.click("#form-submit")
    results["changed"] = await page.until(f"{ROW}.includes('new cables') && {ROW}")
    await page.check_view("locations")
    await page.click(".window button")
    await page.click("#confirm-act")
    await page.until("!document.querySelector('.window')")


async def _set_webhook(page: Page, results: dict[str, Any]) -> None:
    """Set and remove the webhook for alerts, on the page of the locations."""
    results["no alerts"] = await page.until(ALERTS)
    await page.click("#set-webhook")
    await fill(page, form_url="https://127.0.0.1/in")
    await page.click("#form-submit")
    results["wrong address"] = await page.until(FORM_PROBLEM)
    await page.check_view("webhook")
    await fill(page, form_url="https://hooks.example.com/services/T0/path")
    await page.click("#form-submit")
    results["webhook secret"] = await page.until("document.getElementById('secret')?.value")
    await page.check_view("webhook-secret")
    await page.click("#secret-done")
    results["alerts"] = await page.until(f"{ALERTS}.includes('hooks.example.com') && {ALERTS}")
    await page.check_view("alerts")
    await page.click("#remove-webhook")
    await page.click("#confirm-act")
    await page.until(f"{ALERTS}.includes('No alerts')")


async def _invite(page: Page, results: dict[str, Any]) -> None:
    await page.go("#/members")
    await page.click("#invite")
    await fill(page, form_email="bob@example.com")
    results["choices"] = await page.until(
        "[...document.querySelectorAll('#form-locations label')]"
        ".map((each) => each.innerText.trim())"
    )
    await page.click("#form-locations input")
    await page.click("#form-submit")
    link = str(await page.until("document.getElementById('secret')?.value"))
    await page.click("#secret-done")
    results["invited"] = await page.until("document.getElementById('invited')?.innerText")
    await page.open("about:blank")
    await page.open(link)
    await page.until("document.getElementById('join-description').textContent")
    await fill(page, join_name="Bob", join_password="short")
    await page.click("#join")
    results["short password"] = await page.until(
        "document.getElementById('sign-in-problem').textContent"
    )
    await page.check_view("join-refused")


async def _read_documents(page: Page, results: dict[str, Any], url: str) -> None:
    """Read the OpenAPI documents, with the keyboard only."""
    await page.send_command("Page.addScriptToEvaluateOnNewDocument", source=LONGEST)
    for api, query in (("facade", ""), ("retail", "?api=retail")):
        await page.open(f"{url}/docs{query}")
        results[f"{api} title"] = await page.until(
            "document.querySelector('.opblock') && document.querySelector('#viewer h1').innerText"
        )
        results[f"{api} operations"] = await page.run(
            "document.querySelectorAll('.opblock').length"
        )
        await page.check_view(f"docs-{api}")
        await page.tab_to(".opblock-summary-control")
        await page.press("Enter")
        await page.until("Boolean(document.querySelector('.opblock.is-open .responses-wrapper'))")
        await page.check_view(f"docs-{api}-operation")
        results[f"{api} wrong"] = await page.run("window.wrong")
