"""The figures of a sandbox merchant's locations in the console."""

import base64
import json
import re
from typing import Any, Final

import httpx2

from controlplane.clock import system_clock
from controlplane.sandbox.loading import load
from controlplane.sandbox.plan import Plan
from controlplane.storage.database import Database
from tests.fakes.console.page import Page
from tests.fakes.console.play import SAVED, set_connected

PLAN: Final = {"locations": 6, "days": 14, "sales_per_day": 20, "is_awkward": True}
"""The parameters of the merchant. The first six locations of an awkward sandbox are in time zones
around the world, so some of them have sales today at each time of the day. Some sales and refunds
have missing data.
"""
YESTERDAY: Final = "a[href$='period=yesterday']"
LOW_HEIGHT: Final = 400
"""Height in pixels of a window that is too low for most of a location's page."""
PATH: Final = "/api/public/v1/"
CARDS: Final = (
    "[...document.querySelectorAll('.venues:not(#total) > li')].map((each) => "
    "[each.querySelector('.name').textContent, each.querySelector('.nets').innerText])"
)
TOTALS: Final = (
    "Object.fromEntries([...document.querySelectorAll('.totals > li')].map((each) => "
    "[each.id, each.innerText]))"
)
HOURS: Final = (
    "[...document.querySelector('[id^=hours-]').querySelectorAll('tbody tr')].map((each) => "
    "[...each.children].map((cell) => cell.textContent))"
)
MISPLACED_TEXTS: Final = """[...document.querySelectorAll("svg.chart")].flatMap((svg) => {
  const boxes = [...svg.querySelectorAll("text")].map((each) =>
    [each.textContent, each.getBoundingClientRect()]);
  const { left, right } = svg.getBoundingClientRect();
  return boxes.flatMap(([text, box], index) => [
    ...(box.left < left - 1 || box.right > right + 1 ? [`${text} leaves`] : []),
    ...boxes.slice(index + 1).filter(([, other]) => box.left < other.right - 1 &&
      other.left < box.right - 1 && box.top < other.bottom - 1 && other.top < box.bottom - 1)
      .map(([other]) => `${text} touches ${other}`)]);
})"""
"""Texts of charts that touch another text, or extend beyond the chart."""
SMALLEST_FONT_PX: Final = (
    "Math.min(...[...document.querySelectorAll('svg.chart text')].map((each) => "
    "parseFloat(getComputedStyle(each).fontSize) * "
    "each.ownerSVGElement.getBoundingClientRect().width / "
    "each.ownerSVGElement.viewBox.baseVal.width))"
)
"""The smallest font size of a text in a chart, in pixels of the window."""


def create_merchant(file: str, **parameters: Any) -> None:
    """Create a merchant with sales until now. ``parameters`` are those of the sandbox's `Plan`."""
    now = system_clock()
    plan = Plan(until=now.date(), **parameters)
    database = Database(file)
    database.write(lambda session: load(session, plan, now))
    database.close()


async def figures(
    page: Page, http: httpx2.AsyncClient, url: str, key: str, outsider: str
) -> dict[str, Any]:
    """Run the act `figures` (`tests.fakes.console`): use the pages of the figures as a user does.

    Returns the content of the pages at each step. ``outsider`` is an API key of an organization
    without a merchant.
    """
    results: dict[str, Any] = {}
    await page.open(url)
    await page.open_key_field()
    await _use_key_without_a_merchant(page, results, outsider)
    await page.type(key)
    await page.press("Enter")
    await page.until("!document.querySelector('#nav-figures').hidden")
    await page.tab_to("#nav-figures")
    await page.press("Enter")
    results["cards"] = await page.until(f"({CARDS}).length === {PLAN['locations']} && {CARDS}")
    await page.check_view("figures")
    results["total"] = await page.run(
        "[...document.querySelectorAll('#total .name, #total .sub')].map((e) => e.textContent)"
    )
    await _show_all_locations(page, results)
    await page.tab_to(".venues:not(#total) a.name")
    await page.press("Enter")
    results["opened location"] = await page.until(
        "document.querySelector('#venue h1')?.textContent"
    )
    await _show_yesterday(page, results, http, key)
    await page.run("document.querySelector(\"a[href$='period=last7']\").click()")
    await _wait_for_period(page, "last7")
    results["kept open"] = await page.run("document.querySelector('[id^=hours-]').open")
    results["misplaced chart texts"] = await page.run(MISPLACED_TEXTS)
    results["smallest chart text px"] = await page.run(SMALLEST_FONT_PX)
    results["charts"] = await page.run(
        "[...document.querySelectorAll('svg.chart')].map((each) => "
        "[each.role || each.getAttribute('role'), each.querySelector('title').textContent])"
    )
    await page.run(
        "document.querySelectorAll('#activity, [id^=hours-]')"
        ".forEach((each) => { each.open = true; })"
    )
    await page.check_view("figures-week")
    results["document scrolls"] = await _document_scrolls(page)
    await _leave_and_return(page)
    await _go_offline_and_back(page, results)
    await page.go("#/figures/nowhere")
    results["unknown location"] = await page.until(
        "document.querySelector('#view .problem')?.textContent"
    )
    results["wrong"] = await page.run("window.wrong")
    return results


async def _use_key_without_a_merchant(page: Page, results: dict[str, Any], outsider: str) -> None:
    await page.type(outsider)
    await page.press("Enter")
    await page.until("document.querySelector('#home')")
    await page.go("#/figures")
    results["text without access"] = await page.until(
        "document.querySelector('#figures .empty')?.textContent"
    )
    results["is figures link hidden"] = await page.run(
        "document.querySelector('#nav-figures').hidden"
    )
    await page.go("#/")
    await page.until("document.querySelector('#home')")
    await page.click("#sign-out")


async def _show_yesterday(
    page: Page, results: dict[str, Any], http: httpx2.AsyncClient, key: str
) -> None:
    location_id = (await page.run("location.hash")).rpartition("/")[2]
    await page.tab_to("a[href$='period=yesterday']")
    await page.press("Enter")
    await _wait_for_period(page, "yesterday")
    results["focus"] = await page.run("document.activeElement.textContent")
    results["totals"] = await page.run(TOTALS)
    results["printed"] = await _count_printed_pages(page)
    await page.tab_to("[id^=hours-] summary")
    await page.press("Enter")
    await page.until("document.querySelector('[id^=hours-]').open")
    results["hours"] = await page.run(HOURS)
    reply = await http.post(
        f"{PATH}reports/financialSummary",
        json={"locationId": location_id, "period": "yesterday"},
        headers={"Authorization": f"Bearer {key}"},
    )
    results["reply of the service"] = reply.json()


async def _show_all_locations(page: Page, results: dict[str, Any]) -> None:
    """Open the total with the keyboard, read it for today and yesterday, and save its sales."""
    await page.tab_to("#total a.name")
    await page.press("Enter")
    await page.until("document.querySelector('#venue h1')?.textContent === 'All locations'")
    await _wait_for_period(page, "today")
    results["today at all locations"] = await page.run(TOTALS)
    await page.run(f"document.querySelector({json.dumps(YESTERDAY)}).click()")
    await _wait_for_period(page, "yesterday")
    await page.check_view("figures-all")
    results["locations of the total"] = await page.run(
        "[...document.querySelectorAll('[id^=locations-] tbody th')].map((e) => e.textContent)"
    )
    results["saved"] = await page.run(SAVED % json.dumps("save-sales"))
    await page.go("#/figures")
    await page.until("document.querySelector('#total')")


async def _count_printed_pages(page: Page) -> tuple[int, int]:
    """Return the number of printed pages, and the number of currencies on the console's page."""
    await page.send_command("Emulation.setEmulatedMedia", media="")
    paper = await page.send_command("Page.printToPDF", preferCSSPageSize=True)
    pages = len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(paper["data"])))
    return pages, int(await page.run("document.querySelectorAll('.currency').length"))


async def _document_scrolls(page: Page) -> bool:
    """Return whether the whole document scrolls in a low window, not only one of its elements."""
    await page.send_command(
        "Emulation.setDeviceMetricsOverride",
        width=await page.run("innerWidth"), height=LOW_HEIGHT, deviceScaleFactor=1, mobile=False,
    )  # fmt: skip
    return bool(await page.run("document.documentElement.scrollHeight > innerHeight"))


async def _go_offline_and_back(page: Page, results: dict[str, Any]) -> None:
    """Select a period while the browser is offline, and another when it is online again."""
    await set_connected(page, is_connected=False)
    await page.go((await page.run("location.hash")).replace("last7", "today"))
    results["connection state"] = await page.until(
        "document.querySelector('#live.bad')?.textContent"
    )
    results["is saving off"] = await page.until(
        "document.querySelector('#save-sales').ariaDisabled === 'true'"
    )
    results["has totals"] = await page.run("Boolean(document.querySelector('.totals'))")
    await set_connected(page, is_connected=True)
    await page.go((await page.run("location.hash")).replace("today", "yesterday"))
    await _wait_for_period(page, "yesterday")
    results["back"] = await page.until("document.querySelector('#live:not(.bad)')?.textContent")


async def _leave_and_return(page: Page) -> None:
    """Open another page and return. The console must not draw charts after their page was left."""
    fragment = await page.run("location.hash")
    await page.go("#/figures")
    await page.until("document.querySelector('.venues')")
    # The observer of the charts is called after the layout of the next frame.
    await page.run("new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))")
    await page.go(fragment)
    await _wait_for_period(page, "last7")


async def _wait_for_period(page: Page, period: str) -> None:
    await page.until(
        f"document.querySelector('.periods a[aria-current]')?.href.endsWith('{period}') && "
        "document.querySelector('.totals')"
    )
