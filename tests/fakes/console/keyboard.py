"""The main flow of the console, with the keyboard only."""

from typing import Any, Final

import httpx2

from tests.fakes.console.page import Page
from tests.fakes.console.play import BARE, NAMES, NETWORK, TILES, enroll_device

INSERT_ABOVE_FOCUS: Final = """import("/console/elements.js").then(({ element, replace }) => {
  const lines = (count) => [...Array(count)].map(() => element("br", {}));
  const link = () => element("a", { href: "#", id: "below" }, "below");
  const parent = element("div", {}, ...lines(1), link());
  document.body.prepend(parent);
  parent.lastChild.focus();
  replace(parent, ...lines(500), link());
  const { top, bottom } = parent.lastChild.getBoundingClientRect();
  const result = [document.activeElement.id, top >= 0 && bottom <= innerHeight];
  parent.remove();
  return result;
})"""
"""Adds many lines before a focused link. Returns the id of the element that then has the focus, and
whether the link is in the window."""

CLOSE_DIALOG_LATE: Final = """import("/console/dialogs.js").then(({ openDialog }) => {
  const dialog = document.getElementById("confirm");
  const buttons = ["opener", "next"].map((id) =>
    Object.assign(document.createElement("button"), { id }));
  document.body.prepend(...buttons);
  buttons[0].focus();
  return new Promise((done) => {
    openDialog(dialog, () => setTimeout(() => {
      done(document.activeElement.id);
      for (const each of buttons) each.remove();
    }));
    dialog.close();
    buttons[1].focus();
  });
})"""
"""Closes a dialog. Before the close event arrives, moves the focus to the button that follows the
button that opened the dialog. Returns the id of the element that has the focus after the event."""


async def keyboard(page: Page, http: httpx2.AsyncClient, url: str, key: str) -> dict[str, Any]:
    results: dict[str, Any] = {}
    till = await enroll_device(http, key, "till-bar", "harbour-street")
    await enroll_device(http, key, "till-kitchen", "harbour-street")
    await till.submit(BARE)
    await page.open(url)
    await page.open_key_field()
    await page.type(key)
    await page.press("Enter")
    await page.until(TILES)
    await _skip(page, results)
    await _filter_devices(page, results)
    await _request_report(page, results)
    await _use_device_page(page, results, till)
    await _use_report_page(page, results)
    await _revoke(page, results)
    await page.tab_to("#sign-out")
    await page.press("Enter")
    results["signed out"] = await page.until("document.activeElement.id === 'key'")
    results["after growing"] = await page.run(INSERT_ABOVE_FOCUS)
    results["after late close"] = await page.run(CLOSE_DIALOG_LATE)
    return results


async def _skip(page: Page, results: dict[str, Any]) -> None:
    """Press Tab until the link that skips the navigation has the focus, and use the link."""
    await page.tab_to("#skip")
    results["skip link"] = await page.run(
        "document.getElementById('skip').getBoundingClientRect().top >= 0"
    )
    await page.press("Enter")
    results["skipped to"] = await page.run("document.activeElement.id")
    results["hash"] = await page.run("location.hash")


async def _filter_devices(page: Page, results: dict[str, Any]) -> None:
    await page.tab_to("#nav-devices")
    await page.press("Enter")
    await page.until(f"({NAMES}).length === 2")
    results["entered"] = await page.until("document.activeElement.id")
    await page.tab_to("#by-search")
    await page.type("till")
    await page.until("location.hash.includes('till')")
    results["still in"] = await page.run("document.activeElement.id")
    await page.tab_to("#by-state")
    for _ in range(7):  # to the option `online`
        await page.press("ArrowDown")
    results["filtered"] = await page.until("location.hash.match(/state=online/)?.[0]")
    await page.until(f"({NAMES}).length === 2")


async def _request_report(page: Page, results: dict[str, Any]) -> None:
    await page.tab_to("td.choose input")
    await page.press(" ")
    await page.until("!document.querySelector('#request-selected').disabled")
    await page.tab_to("#request-selected", back=True)
    await page.press("Enter")
    await page.until("document.getElementById('request-dialog').open")
    await page.press("Escape")
    results["after escape"] = await page.until(
        "!document.getElementById('request-dialog').open && document.activeElement.id"
    )
    await page.press("Enter")
    await page.until("document.getElementById('request-dialog').open")
    await page.tab_to("#request-dialog input[type=radio]")
    await page.press("ArrowDown")
    results["kind"] = await page.run("document.activeElement.value")
    await page.tab_to("#request-start")
    await page.press("Enter")
    results["result"] = await page.until(
        "document.getElementById('request-start').hidden && "
        "document.getElementById('request-result').textContent"
    )
    results["on close"] = await page.until("document.activeElement.id === 'request-close'")
    await page.press("Enter")
    results["after dialog"] = await page.until(
        "!document.getElementById('request-dialog').open && document.activeElement.id"
    )


async def _use_device_page(page: Page, results: dict[str, Any], till: Any) -> None:
    link = f"td.who a[href='#/device/{till.instance_id}']"
    await page.tab_to(link)
    await page.press("Enter")
    await page.until("document.querySelector('#request-network')")
    await page.tab_to("#request-network")
    await page.press("Enter")
    await page.until("document.querySelector('#request-network').ariaDisabled === 'true'")
    results["after request"] = await page.run("document.activeElement.id")
    request = next(command for command in await till.commands() if command["kind"] == "network")
    results["announcements"] = []
    for status in ("received", "running"):
        await till.acknowledge(request["requestId"], status)
        text = "document.getElementById('announced')"
        results["announcements"].append(
            await page.until(f"{text}.textContent.includes('{status}') && {text}.textContent")
        )
    await till.submit(NETWORK, requestId=request["requestId"])
    results["announcements"].append(
        await page.until(f"{text}.textContent.includes('A new network') && {text}.textContent")
    )
    results["role"] = await page.run(f"{text}.getAttribute('role')")
    results["after report"] = await page.run("document.activeElement.id")


async def _use_report_page(page: Page, results: dict[str, Any]) -> None:
    await page.tab_to("table.history td.headline a")
    await page.press("Enter")
    await page.until("document.querySelector('iframe')")
    await page.tab_to("#saving summary")
    await page.press("Enter")
    await page.until("document.querySelector('#saving').open")
    await page.tab_to("#save-printers")
    await page.press("Escape")
    results["after menu"] = await page.run(
        "!document.querySelector('#saving').open && document.activeElement.textContent"
    )
    # In the forward direction, Tab would first pass all expandable parts of the report.
    await page.tab_to(".report .bar a", back=True)
    await page.press("Enter")
    await page.until("document.querySelector('#revoke')")


async def _revoke(page: Page, results: dict[str, Any]) -> None:
    await page.tab_to("#revoke")
    await page.press("Enter")
    results["first in dialog"] = await page.until(
        "document.getElementById('confirm').open && document.activeElement.value"
    )
    await page.press("Escape")
    results["after keeping"] = await page.until(
        "!document.getElementById('confirm').open && document.activeElement.id"
    )
    await page.press("Enter")
    await page.tab_to("#confirm button.danger")
    await page.press("Enter")
    results["revoked"] = await page.until(
        "document.querySelector('.title .pill').textContent === 'revoked' && "
        "!document.querySelector('#revoke') && document.querySelector('#view h1').textContent"
    )
    results["after revoking"] = await page.run("document.activeElement.id")
