"""Interruptions that the devices of a location share, on the overview and on a device's page."""

from datetime import datetime, timedelta
from typing import Any, Final

import httpx2
from sqlalchemy import update

from agent.wire.codec import to_plain
from agent.wire.payloads.history import Cause, History, Incident
from controlplane.clock import system_clock
from controlplane.storage.database import Database
from controlplane.storage.tables import Binding
from tests.fakes.console.page import Page
from tests.fixtures.payloads import application_snapshot, with_record
from tests.unit.controlplane.simulated_device import SimulatedDevice

HOSTILE: Final = '<img src=x onerror="document.title=1">'
NAMES: Final = ("till-bar", "till-kitchen", "till-terrace", HOSTILE, "kiosk-entrance", "office")
TEXT: Final = "document.querySelector('#interruptions')?.innerText"
DAY: Final = timedelta(days=1)


async def show_interruptions(
    page: Page, results: dict[str, Any], http: httpx2.AsyncClient, key: str, *, database: str
) -> None:
    """Submit the records of six devices: five lost the gateway, and three lost their link."""
    devices = [SimulatedDevice(http, key, "loc-harbour") for _ in NAMES]
    for device, name in zip(devices, NAMES, strict=True):
        reply = await device.enroll(legacyInstallId=name)
        device.binding_id = reply.json()["bindingId"]
    now = system_clock()
    set_binding_time = update(Binding).values(created_at=now - DAY)
    store = Database(database)
    try:
        store.write(lambda session: session.execute(set_binding_time))
    finally:
        store.close()
    for number, device in enumerate(devices):
        incidents = []
        if number:
            incidents.append(
                _incident("gateway-silent", now - timedelta(minutes=50, seconds=number))
            )
        if number < 3:
            incidents.insert(0, _incident("link-down", now - timedelta(hours=9, seconds=number)))
        # The clock of the second device is two hours ahead.
        clock_ahead = timedelta(hours=2 if number == 1 else 0)
        shifted_incidents = [
            Incident(
                incident.cause,
                incident.began_at + clock_ahead,
                (incident.ended_at or now) + clock_ahead,
                95,
                "x",
            )
            for incident in incidents
        ]
        record = History(now - DAY + clock_ahead, tuple(shifted_incidents))
        report = to_plain(with_record(application_snapshot(), record, now + clock_ahead))
        reply = await device.submit(report, kind="application")
        reply.raise_for_status()
    await page.go("#/")
    results["interruptions"] = await page.until(f"{TEXT}?.includes('switch') && {TEXT}")
    await page.check_view("home-interrupted")
    await page.go(f"#/device/{devices[1].instance_id}")
    results["shared"] = await page.until(TEXT)
    await page.check_view("device-interrupted")
    results["wrong"] += await page.run("window.wrong")


def _incident(cause: Cause, began_at: datetime) -> Incident:
    return Incident(cause, began_at, began_at + timedelta(seconds=95), 95, "evidence")
