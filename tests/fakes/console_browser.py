"""A stage for the console: a real service, devices that are played, and Chromium in between.

Run as a program inside a network namespace of its own (tests.lab.namespaces):
`python -m tests.fakes.console_browser CHROMIUM [PICTURES [SCRIPT]]`. Prints one JSON object: what
the browser showed at each step. With a folder it takes pictures; a SCRIPT (axe-core's, say) is run
on each view, and what its `axe.run()` finds is printed too.
"""

import asyncio
import json
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import httpx2
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from agent.wire.codec import encode
from controlplane.accounts.key_store import DEFAULT_ORGANIZATION, create_key
from controlplane.clock import system_clock
from controlplane.remote_control.overview.priority import Priority
from controlplane.remote_control.presence.places import add_maintenance, set_location
from controlplane.remote_control.presence.standing import Maintenance
from controlplane.storage.database import Database
from controlplane.storage.tables import Device
from controlplane.storage.watch_tables import Gap, Listened
from tests.bench.fleet.service import service
from tests.fixtures.payloads import application_snapshot, bare_report, small_venue
from tests.scenario.pictures.browser import Browser
from tests.scenario.pictures.browser import browser as chromium
from tests.unit.controlplane.simulated_device import SimulatedDevice

WITHIN_S: Final = 15
HOSTILE: Final = '<img src=x onerror="document.title=1">'
WATCH: Final = """
window.wrong = [];
addEventListener("error", (event) => wrong.push(String(event.message)));
addEventListener("unhandledrejection", (event) => wrong.push(String(event.reason)));
addEventListener("securitypolicyviolation", (event) => wrong.push(event.violatedDirective));
"""
OVERFLOWS: Final = """[...document.querySelectorAll("body, #view, #view *")].filter((each) =>
  each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((each) => each.tagName + "." + each.className).slice(0, 5)"""
NAMES: Final = "[...document.querySelectorAll('td.who .name')].map((each) => each.textContent)"
VIEWPORTS: Final = {"narrow": (360, 740), "wide": (1440, 900)}


class Console:
    """The page. Each method waits for what it names, or raises."""

    def __init__(self, tab: Browser, pictures: Path | None, script: str) -> None:
        self._tab = tab
        self._script = script
        self.pictures = pictures
        self.layouts: dict[str, Any] = {}

    async def run(self, expression: str) -> Any:
        found = await self.tell(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {json.dumps(found)[:600]}")
        return found["result"].get("value")

    async def until(self, expression: str) -> Any:
        """Return the first value of the expression that is true."""
        return await self.run(
            "new Promise((found, lost) => { const end = Date.now() + "
            f"{WITHIN_S * 1000}; const look = () => {{ let value; "
            f"try {{ value = ({expression}); }} catch (error) {{ value = null; }} "
            "if (value) found(value); else if (Date.now() > end) "
            "lost(document.body.innerText); else setTimeout(look, 30); }; look(); })"
        )

    async def tell(self, method: str, **params: Any) -> dict[str, Any]:
        return await asyncio.to_thread(self._tab.call, method, **params)

    async def click(self, selector: str) -> None:
        await self.until(
            f"document.querySelector({json.dumps(selector)})?.disabled === false "
            f"|| document.querySelector({json.dumps(selector)})?.href"
        )
        await self.run(f"document.querySelector({json.dumps(selector)}).click()")

    async def type(self, text: str, key: str = "") -> None:
        await self.tell("Input.insertText", text=text)
        if key:
            for kind in ("keyDown", "keyUp"):
                code = {"Enter": 13, "Tab": 9}[key]
                await self.tell(
                    "Input.dispatchKeyEvent", type=kind, key=key, code=key,
                    windowsVirtualKeyCode=code, text="\r" if key == "Enter" else "",
                )  # fmt: skip

    async def go(self, path: str) -> None:
        await self.run(f"location.hash = {json.dumps(path)}")

    async def look(self, name: str) -> None:
        """Note what does not fit into either width, and take pictures."""
        for width, (across, down) in VIEWPORTS.items():
            await asyncio.to_thread(self._tab.look, across, down, "light")
            self.layouts[f"{name} {width}"] = await self.until(f"({OVERFLOWS}).join() || 'fits'")
            for scheme in ("light", "dark") if self.pictures else ():
                assert self.pictures is not None
                await asyncio.to_thread(self._tab.look, across, down, scheme)
                file = self.pictures / f"{name}-{width}-{scheme}.png"
                await asyncio.to_thread(self._tab.shoot, file)
                if self._script:
                    await self.run(self._script)
                    self.layouts[f"axe {name} {width} {scheme}"] = await self.run(AXE)
        await asyncio.to_thread(self._tab.look, *VIEWPORTS["wide"], "light")


AXE: Final = """axe.run(document, { iframes: false }).then((found) => found.violations.map((each) =>
  `${each.impact} ${each.id}: ${each.nodes.map((node) => node.target).join(" ")}`))"""


CSV: Final = """import("/console/saving.js").then(({ csv }) => csv([{ state: "online", reports: [],
  requests: [], device: { legacyInstallId: '=1+"1"', locationId: "@home", platform: "linux",
  appVersion: null, lastSeenAt: "2026-11-20T12:00:00Z", instanceId: "-1" } }]))"""


async def main() -> int:
    pictures = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    script = Path(sys.argv[3]).read_text() if len(sys.argv) > 3 else ""
    with tempfile.TemporaryDirectory() as home:
        database = str(Path(home) / "service.db")
        keys = make_keys(database)
        with (
            service(database) as served,
            chromium(sys.argv[1], Path(home) / "profile") as tab,
        ):
            url = f"http://127.0.0.1:{served.port}"
            browser = Console(tab, pictures, script)
            async with httpx2.AsyncClient(base_url=url, timeout=WITHIN_S) as http:
                told = await play(browser, http, url, *keys, database=database)
    sys.stdout.write(json.dumps({**told, "layouts": browser.layouts}))
    return 0


def make_keys(file: str) -> tuple[str, str]:
    """Return one that writes and one that reads."""
    database = Database(file)
    keys = [
        database.write(
            lambda session, can_write=can_write: create_key(
                session, name="rollout" if can_write else "reader", can_write=can_write,
                locations=(), organization_id=DEFAULT_ORGANIZATION, now=system_clock(),
            )
        )[1]
        for can_write in (True, False)
    ]  # fmt: skip
    database.close()
    return keys[0], keys[1]


async def enrolled(http: httpx2.AsyncClient, key: str, name: str, where: str) -> SimulatedDevice:
    device = SimulatedDevice(http, key, where)
    reply = await device.enroll(legacyInstallId=name)
    device.binding_id = reply.json()["bindingId"]
    return device


async def play(
    browser: Console, http: httpx2.AsyncClient, url: str, key: str, reader: str, *, database: str
) -> dict[str, Any]:
    told: dict[str, Any] = {}
    bar = await enrolled(http, key, "till-bar", "harbour-street")
    kitchen = await enrolled(http, key, "till-kitchen", "harbour-street")
    await enrolled(http, key, HOSTILE, "old-market")
    await bar.submit(json.loads(encode(small_venue())))
    await bar.submit(json.loads(encode(application_snapshot())), kind="application")
    await kitchen.submit(json.loads(encode(bare_report())))
    await sign_in(browser, told, url, key)
    await find(browser, told)
    await ask_one(browser, told, kitchen)
    await ask_many(browser, told)
    await when_back(browser, told, kitchen, database)
    await revoke(browser, told, bar)
    await read_only(browser, told, reader, kitchen)
    return told


async def sign_in(browser: Console, told: dict[str, Any], url: str, key: str) -> None:
    await browser.tell("Page.enable")
    await browser.tell("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
    await browser.tell("Page.navigate", url=url)
    await browser.until("document.activeElement.id === 'key'")
    if browser.pictures:
        await browser.look("sign-in")
    await browser.type(key, "Enter")
    told["tiles"] = await browser.until(
        "[...document.querySelectorAll('.tile')].map((each) => each.innerText).join('|')"
    )
    told["home"] = await browser.run("document.querySelector('#home').innerText")
    told["title"] = await browser.run("document.title")
    await browser.look("home")


async def find(browser: Console, told: dict[str, Any]) -> None:
    await browser.go("#/devices")
    told["names"] = await browser.until(f"({NAMES}).length === 3 && {NAMES}")
    await browser.look("devices")
    await browser.run("document.getElementById('by-search').focus()")
    await browser.type("kitch")
    told["found"] = await browser.until(f"({NAMES}).length === 1 && {NAMES}")
    told["address"] = await browser.until("location.hash.includes('search') && location.hash")


async def ask_one(browser: Console, told: dict[str, Any], kitchen: SimulatedDevice) -> None:
    await browser.click("td.who .name")
    await browser.until("document.querySelector('#ask-network')")
    told["device title"] = await browser.until(
        "document.title.startsWith('till-kitchen') && document.title"
    )
    await browser.click("#ask-network")
    told["asked"] = await browser.until(
        "document.querySelector('#ask-network').disabled && "
        "document.querySelector('#ask-network').textContent"
    )
    (command,) = await kitchen.commands()
    await kitchen.acknowledge(command["requestId"], "received")
    await kitchen.acknowledge(command["requestId"], "running")
    told["running"] = await browser.until(
        "[...document.querySelectorAll('.times .pill')].find((each) => "
        "each.textContent === 'running')?.textContent"
    )
    await browser.look("device")
    await kitchen.submit(json.loads(encode(small_venue())), requestId=command["requestId"])
    told["line"] = await browser.until(
        "!document.querySelector('#ask-network').disabled && document.querySelector("
        "'table.history tbody tr:first-child td.says a span:last-child').textContent"
    )
    told["who"] = await browser.run("document.querySelector('table.history td.how').textContent")
    await browser.click("table.history td.says a")
    told["report"] = await browser.until("document.querySelector('iframe')?.title")
    told["report title"] = await browser.run("document.title")
    await browser.look("report")


async def ask_many(browser: Console, told: dict[str, Any]) -> None:
    await browser.go("#/devices")
    await browser.until(f"({NAMES}).length === 3")
    await browser.click("#choose-all")
    await browser.click("#ask-selected")
    await browser.click("#ask-start")
    told["many"] = await browser.until(
        "document.getElementById('ask-start').hidden && "
        "document.getElementById('ask-result').textContent"
    )
    if browser.pictures:
        await browser.look("asking")
    await browser.click("#ask-close")


async def when_back(
    browser: Console, told: dict[str, Any], kitchen: SimulatedDevice, database: str
) -> None:
    """A device that has been away for two hours, after a month of coming and going."""
    for command in await kitchen.commands():
        if command["bindingId"] == kitchen.binding_id:
            await kitchen.submit(requestId=command["requestId"], kind=command["kind"])
    put_away(database, kitchen)
    await browser.go(f"#/device/{kitchen.instance_id}")
    await browser.click("#wish-network")
    told["wished"] = await browser.until(
        "document.querySelector('.wishes .pill')?.textContent && "
        "document.querySelector('#wish-network').disabled && "
        "document.querySelector('.wishes').innerText"
    )
    told["days"] = await browser.run("document.querySelector('.strip svg').ariaLabel")
    await browser.look("away")
    await browser.go("#/devices")
    told["waiting"] = await browser.until(
        "document.querySelector('td[data-label=working] .pill')?.textContent === 'waiting' && "
        "document.querySelector('td[data-label=working]').innerText"
    )
    await browser.look("waiting")
    await browser.go(f"#/device/{kitchen.instance_id}")
    await browser.click("#cancel-network")
    told["cancelled"] = await browser.until("!document.querySelector('.wishes') && 'cancelled'")
    await kitchen.heartbeat()
    await browser.go("#/devices")
    await browser.until(f"({NAMES}).length === 3")


def put_away(file: str, device: SimulatedDevice) -> None:
    """Write what a month would have: silences, hours, and that it is not heard now."""
    now = system_clock()
    database = Database(file)

    def work(session: Session) -> None:
        row = session.scalars(
            select(Device).where(Device.instance_id == UUID(device.instance_id))
        ).one()
        ago = lambda **by: now - timedelta(**by)  # noqa: E731
        row.created_at = row.enrolled_at = ago(days=26)
        row.last_seen_at, row.priority = ago(hours=2), Priority.OFFLINE
        session.execute(delete(Gap).where(Gap.device == row.position))
        noted = session.get(Listened, 1)
        assert noted is not None
        noted.began_at = ago(days=40)
        silences = [(20, 20), (14, 3), (13, 50), (12.4, 9), (6, 1), (3.2, 0.4)]
        for days, hours in silences:
            since = ago(days=days)
            gap = Gap(device=row.position, since=since, until=since + timedelta(hours=hours))
            session.add(gap)
        session.add(Gap(device=row.position, since=ago(hours=2), until=None))
        at = (row.organization_id, row.location_id)
        set_location(session, at, "Europe/Riga", None)
        worked_on = Maintenance(None, ago(days=20), ago(days=19.4))
        add_maintenance(session, at, worked_on, "new cables")

    database.write(work)
    database.close()


async def revoke(browser: Console, told: dict[str, Any], bar: SimulatedDevice) -> None:
    await browser.go(f"#/device/{bar.instance_id}")
    await browser.click("#revoke")
    told["revoke"] = await browser.until("document.getElementById('confirm-title').textContent")
    await browser.click("#confirm button.danger")
    told["revoked"] = await browser.until(
        "document.querySelector('.title .pill').textContent === 'revoked' && "
        "!document.querySelector('#revoke') && document.querySelector('#view h1').textContent"
    )


async def read_only(
    browser: Console, told: dict[str, Any], reader: str, kitchen: SimulatedDevice
) -> None:
    await browser.click("#sign-out")
    await browser.type(reader, "Enter")
    await browser.until("document.querySelector('.title .pill')")
    await browser.go(f"#/device/{kitchen.instance_id}")
    await browser.until("document.querySelector('#view h1')?.textContent === 'till-kitchen'")
    told["buttons"] = await browser.run(
        "[...document.querySelectorAll('#view button')].map((each) => each.textContent)"
    )
    told["csv"] = await browser.run(CSV)
    told["wrong"] = await browser.run("window.wrong")


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
