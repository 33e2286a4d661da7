"""Plays the main flow of the console with the mouse: sign-in with an API key, devices, reports."""

import json
from typing import Any, Final

import httpx2

from agent.wire.codec import encode
from tests.fakes.console.interruptions import show_interruptions
from tests.fakes.console.offline_device import show_offline_device
from tests.fakes.console.page import Page
from tests.fixtures.payloads import application_snapshot, bare_report, small_venue
from tests.unit.controlplane.simulated_device import SimulatedDevice

HOSTILE: Final = '<img src=x onerror="document.title=1">'
NAMES: Final = "[...document.querySelectorAll('td.who .name')].map((each) => each.textContent)"
TILES: Final = "[...document.querySelectorAll('.tile')].map((each) => each.innerText).join('|')"
RESULTS: Final = "[...document.querySelectorAll('.results tbody tr')].map((each) => each.innerText)"
PRINTERS: Final = (
    "[...document.querySelectorAll('#printer-rows tbody tr')].map((each) => each.innerText)"
)
BUTTONS_AND_STATE: Final = """({
  buttons: [...document.querySelectorAll('#device-sheet button')].map((each) => each.ariaDisabled),
  state: getComputedStyle(document.querySelector('.title .pill')).color,
})"""
"""Whether each button on the page of a device is disabled, and the colour of the label with the
device's state."""
CSV: Final = """import("/console/downloads.js").then(({ csv }) => csv([{ state: "online",
  health: "healthy", reports: [],
  requests: [], device: { legacyInstallId: '=1+"1"', locationId: "@home", platform: "linux",
  appVersion: null, lastSeenAt: "2026-11-20T12:00:00Z", instanceId: "-1" } }]))"""
"""A list of devices as CSV. A spreadsheet would read some of the device's texts as formulas."""
SAVED: Final = """new Promise((resolve) => {
  const { click } = HTMLAnchorElement.prototype, saved = {};
  const end = () => { if (saved.name && saved.bytes) resolve(saved); };
  URL.createObjectURL = (blob) => {
    blob.arrayBuffer().then((bytes) => { saved.bytes = [...new Uint8Array(bytes)]; end(); });
    return "blob:";
  };
  HTMLAnchorElement.prototype.click = function () {
    HTMLAnchorElement.prototype.click = click; saved.name = this.download; end();
  };
  document.getElementById(%s).click();
})"""
"""Clicks the button with the id ``%s``. Returns the name and the bytes of the saved file."""
NETWORK: Final = json.loads(encode(small_venue()))
SNAPSHOT: Final = json.loads(encode(application_snapshot()))
BARE: Final = json.loads(encode(bare_report()))
EARLIER: Final = json.loads(
    encode(
        small_venue().model_copy(
            update={
                "printers": tuple(
                    printer.model_copy(
                        update={"status": "reachable", "matched_endpoint": printer.address}
                    )
                    for printer in small_venue().printers or ()
                )
            }
        )
    )
)
"""The report ``NETWORK``, but with all printers reachable."""


async def enroll_device(
    http: httpx2.AsyncClient, key: str, name: str, location_id: str
) -> SimulatedDevice:
    device = SimulatedDevice(http, key, location_id)
    reply = await device.enroll(legacyInstallId=name)
    device.binding_id = reply.json()["bindingId"]
    return device


async def play(
    page: Page, http: httpx2.AsyncClient, url: str, key: str, reader: str, *, database: str
) -> dict[str, Any]:
    """Return the content of the pages at each step. ``reader`` is an API key that can only read."""
    results: dict[str, Any] = {}
    await sign_in(page, results, url, key)
    await check_empty_console(page)
    bar = await enroll_device(http, key, "till-bar", "harbour-street")
    kitchen = await enroll_device(http, key, "till-kitchen", "harbour-street")
    await enroll_device(http, key, HOSTILE, "old-market")
    await bar.submit(EARLIER)
    await bar.submit(NETWORK)
    await bar.submit(SNAPSHOT, kind="application")
    await kitchen.submit(BARE)
    await show_home(page, results)
    await search_devices(page, results)
    await request_from_one_device(page, results, kitchen)
    await open_report(page, results)
    await show_changes(page, results, bar)
    await request_from_all_devices(page, results, bar)
    await show_printers(page, results)
    await show_findings(page, results)
    await show_offline_device(page, results, kitchen, database)
    await revoke(page, results, bar)
    await show_errors(page, results, kitchen)
    await use_read_only_key(page, results, reader, kitchen)
    await show_interruptions(page, results, http, key, database=database)
    return results


async def sign_in(page: Page, results: dict[str, Any], url: str, key: str) -> None:
    await page.open(url)
    await page.open_key_field()
    await page.check_view("sign-in-key")
    await page.type("vck_wrong")
    await page.press("Enter")
    results["refused"] = await page.until("document.getElementById('sign-in-problem').textContent")
    await page.check_view("sign-in-refused")
    await page.type(key)
    await page.press("Enter")
    await page.until(TILES)


async def check_empty_console(page: Page) -> None:
    await page.check_view("home-empty")
    await page.go("#/devices")
    await page.until("document.querySelector('#device-rows .empty')")
    await page.check_view("devices-empty")
    await page.go("#/printers")
    await page.until("document.querySelector('#printer-rows .empty')")
    await page.check_view("printers-empty")


async def show_home(page: Page, results: dict[str, Any]) -> None:
    await page.go("#/")
    results["tiles"] = await page.until(f"({TILES}).includes('2\\nHealthy') && {TILES}")
    results["home"] = await page.run("document.querySelector('#home').innerText")
    results["title"] = await page.run("document.title")
    await page.check_view("home")


async def search_devices(page: Page, results: dict[str, Any]) -> None:
    await page.go("#/devices")
    results["names"] = await page.until(f"({NAMES}).length === 3 && {NAMES}")
    await page.check_view("devices")
    await page.run("document.getElementById('by-search').focus()")
    await page.type("paper")
    results["by finding"] = await page.until(f"({NAMES}).length === 1 && {NAMES}")
    await page.run("document.getElementById('by-search').value = ''")
    await page.type("till-kitch")
    results["address"] = await page.until("location.hash.includes('till') && location.hash")
    results["found"] = await page.until(f"({NAMES})[0] === 'till-kitchen' && {NAMES}")
    await page.check_view("devices-found")


async def request_from_one_device(
    page: Page, results: dict[str, Any], kitchen: SimulatedDevice
) -> None:
    await page.click("td.who .name")
    await page.until("document.querySelector('#request-network')")
    results["device title"] = await page.until(
        "document.title.startsWith('till-kitchen') && document.title"
    )
    await page.click("#request-network")
    results["request button"] = await page.until(
        "document.querySelector('#request-network').ariaDisabled === 'true' && "
        "document.querySelector('#request-network').textContent"
    )
    (command,) = await kitchen.commands()
    await kitchen.acknowledge(command["requestId"], "received")
    await kitchen.acknowledge(command["requestId"], "running")
    results["running"] = await page.until(
        "[...document.querySelectorAll('.times .pill')].find((each) => "
        "each.textContent === 'running')?.textContent"
    )
    results["announced"] = await page.until(
        "document.getElementById('announced').textContent.includes('is running') && "
        "document.getElementById('announced').textContent"
    )
    await page.check_view("device-running")
    await kitchen.submit(NETWORK, requestId=command["requestId"])
    results["headline"] = await page.until(
        "document.querySelector('#request-network').ariaDisabled !== 'true' && "
        "document.querySelector('table.history tbody tr:first-child td.headline a span:last-child')"
        ".textContent"
    )
    results["requester"] = await page.run(
        "document.querySelector('table.history td.how').textContent"
    )


async def open_report(page: Page, results: dict[str, Any]) -> None:
    await page.click("table.history td.headline a")
    results["report"] = await page.until("document.querySelector('iframe')?.title")
    results["report title"] = await page.run("document.title")
    results["map"] = await page.run(
        "document.querySelector('iframe').srcdoc.includes('<h2>Network map</h2>')"
    )
    await page.check_view("report-network")
    await page.run("document.querySelector('#saving').open = true")
    await page.check_view("report-saving")
    results["saved"] = await page.run(SAVED % json.dumps("save-printers"))


async def show_changes(page: Page, results: dict[str, Any], bar: SimulatedDevice) -> None:
    await page.go(f"#/device/{bar.instance_id}")
    results["changes"] = await page.until("document.querySelector('#changes')?.innerText")
    await page.check_view("device")
    await page.click("#changes .change .name")
    results["since"] = await page.until(
        "document.querySelector('iframe')?.srcdoc.match(/Since the report of [^<]*/)?.[0]"
    )
    await page.go(f"#/device/{bar.instance_id}")
    await page.until("document.querySelector('#changes')")
    await page.run(
        "[...document.querySelectorAll('table.history tr')].find((each) => "
        "each.innerText.toLowerCase().includes('application')).querySelector('a').click()"
    )
    await page.until("document.querySelector('iframe')?.srcdoc.includes('This machine')")
    await page.check_view("report-application")


async def request_from_all_devices(
    page: Page, results: dict[str, Any], bar: SimulatedDevice
) -> None:
    await page.go("#/devices")
    await page.until(f"({NAMES}).length === 3")
    # A click can replace the rows, for example because a displayed age has changed. Therefore the
    # script finds each box again by its value.
    await page.run(
        "[...document.querySelectorAll('td.choose input')].forEach(({ value }) => "
        "document.querySelector(`td.choose input[value='${value}']`).click())"
    )
    await page.click("#request-selected")
    await page.check_view("request-dialog")
    await page.click("#request-start")
    results["many"] = await page.until(
        "document.getElementById('request-start').hidden && "
        "document.getElementById('request-result').textContent"
    )
    await page.check_view("request-result")
    results["live rows"] = await page.run(RESULTS)
    for command in await bar.commands():
        await bar.submit(NETWORK, requestId=command["requestId"])
    results["arrived"] = await page.until(f"({RESULTS})[0].includes('Kitchen') && {RESULTS}")
    await page.check_view("request-arrived")
    await page.click("#request-close")
    results["all button"] = await page.run("document.getElementById('request-all').textContent")


async def show_printers(page: Page, results: dict[str, Any]) -> None:
    await page.click("#nav-printers")
    results["printers"] = await page.until(f"({PRINTERS}).length === 6 && {PRINTERS}")
    await page.check_view("printers")
    await page.run("document.getElementById('printers-group').click()")
    results["grouped"] = await page.until(
        "document.querySelector('#printer-rows h2') && document.getElementById('view').innerText"
    )
    await page.check_view("printers-grouped")
    await page.go("#/printers?search=nothing-like-this")
    results["no printers"] = await page.until(
        "document.querySelector('#printer-rows .empty')?.textContent"
    )
    await page.check_view("printers-none")


async def show_findings(page: Page, results: dict[str, Any]) -> None:
    rows = "[...document.querySelectorAll('#finding-rows tbody tr')].map((row) => row.innerText)"
    await page.click("#nav-findings")
    results["findings"] = await page.until(f"({rows}).length > 3 && {rows}")
    await page.check_view("findings")
    await page.go("#/findings?rule=printer-moved")
    entries = "[...document.querySelectorAll('.findings li')].map((each) => each.innerText)"
    results["finding"] = await page.until(f"({entries}).length && {entries}")
    await page.check_view("findings-rule")
    await page.go("#/findings?search=nothing-like-this")
    results["no findings"] = await page.until(
        "document.querySelector('#finding-rows .empty')?.textContent"
    )
    await page.check_view("findings-none")


async def revoke(page: Page, results: dict[str, Any], bar: SimulatedDevice) -> None:
    await page.go(f"#/device/{bar.instance_id}")
    await page.click("#revoke")
    results["revoke"] = await page.until("document.getElementById('confirm-title').textContent")
    await page.check_view("revoke")
    await page.click("#confirm button.danger")
    results["revoked"] = await page.until(
        "document.querySelector('.title .pill').textContent === 'revoked' && "
        "!document.querySelector('#revoke') && document.querySelector('#view h1').textContent"
    )
    await page.check_view("device-revoked")


async def set_connected(page: Page, *, is_connected: bool) -> None:
    """Connect the browser with the service or disconnect it, and load the view again."""
    await page.send_command("Network.enable")
    await page.send_command(
        "Network.emulateNetworkConditions",
        offline=not is_connected, latency=0, downloadThroughput=-1, uploadThroughput=-1,
    )  # fmt: skip
    await page.run("document.dispatchEvent(new Event('visibilitychange'))")


RELOAD_AGAIN: Final = (
    "((window.polls = (window.polls ?? 0) + 1) % 30"
    " || document.dispatchEvent(new Event('visibilitychange')))"
)
"""Makes the page load its data again about once a second: `Page.until` evaluates this every 30 ms.
A load that began before the connection was cut can succeed. Without a further load, the page would
then show the outage only after some time."""


async def show_errors(page: Page, results: dict[str, Any], kitchen: SimulatedDevice) -> None:
    await page.go("#/device/00000000-0000-4000-8000-000000000000")
    results["unknown"] = await page.until("document.querySelector('#view .problem')?.textContent")
    await page.check_view("device-unknown")
    await page.go("#/no-such-page")
    results["no page"] = await page.until(
        "document.title === 'Not found · Venue control' && "
        "document.querySelector('#view').innerText"
    )
    await page.check_view("page-unknown")
    await page.click("#view a")
    await page.until("document.querySelector('#home')")
    await page.go(f"#/device/{kitchen.instance_id}")
    await page.until("document.querySelector('#request-network')")
    await set_connected(page, is_connected=False)
    results["outage"] = await page.until(
        f"{RELOAD_AGAIN} && !document.getElementById('outage').hidden"
        " && document.getElementById('outage').textContent"
    )
    results["during outage"] = await page.run(BUTTONS_AND_STATE)
    await page.check_view("device-outage")
    await set_connected(page, is_connected=True)
    results["after outage"] = await page.until(
        f"document.getElementById('outage').hidden && {BUTTONS_AND_STATE}"
    )
    await page.run("window.answering = fetch; window.fetch = () => new Promise(() => {})")
    await page.go("#/printers")
    results["loading"] = await page.until(
        "!document.querySelector('#device-sheet') && document.getElementById('view').innerText"
    )
    await page.run("window.fetch = window.answering")
    await set_connected(page, is_connected=False)
    await page.go("#/devices")
    results["away"] = await page.until(
        "document.querySelector('#live.bad') && !document.querySelector('#device-sheet') && "
        "document.querySelector('#live').textContent"
    )
    await page.check_view("service-away")
    await set_connected(page, is_connected=True)
    results["back"] = await page.until(
        "document.querySelector('#live').textContent === 'Live' && "
        f"({NAMES}).length === 3 && !document.querySelector('#live.bad')"
    )


async def use_read_only_key(
    page: Page, results: dict[str, Any], reader: str, kitchen: SimulatedDevice
) -> None:
    await page.click("#sign-out")
    await page.type(reader)
    await page.press("Enter")
    await page.until(f"({NAMES}).length === 3")
    results["boxes"] = await page.run(
        "document.querySelectorAll('#view input[type=checkbox]').length"
    )
    await page.check_view("devices-read-only")
    await page.go(f"#/device/{kitchen.instance_id}")
    await page.until("document.querySelector('#view h1')?.textContent === 'till-kitchen'")
    results["buttons"] = await page.run(
        "[...document.querySelectorAll('#view button')].map((each) => each.textContent)"
    )
    await page.check_view("device-read-only")
    results["csv"] = await page.run(CSV)
    results["wrong"] = await page.run("window.wrong")
