"""An offline device: its timeline, and a pending request."""

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from controlplane.clock import system_clock
from controlplane.devices.locations.locations import add_maintenance, set_zone_and_hours
from controlplane.devices.locations.status import Maintenance
from controlplane.devices.priority import Priority
from controlplane.storage.database import Database
from controlplane.storage.monitoring_tables import MonitoringState, OfflineInterval
from controlplane.storage.tables import Device
from tests.fakes.console.page import Page
from tests.unit.controlplane.simulated_device import SimulatedDevice

OFFLINE_INTERVALS: Final = ((20, 14.4), (14, 3), (13, 50), (12.4, 9), (6, 1), (3.2, 0.4))
"""The start of each interval in days before now, and its duration in hours. The first interval is
in a maintenance window."""
HAS_THREE_DEVICES: Final = "document.querySelectorAll('td.who .name').length === 3"


async def show_offline_device(
    page: Page, results: dict[str, Any], device: SimulatedDevice, database: str
) -> None:
    for command in await device.commands():
        if command["bindingId"] == device.binding_id:
            await device.submit(requestId=command["requestId"], kind=command["kind"])
    set_offline(database, device)
    await page.go(f"#/device/{device.instance_id}")
    await page.click("#pending-network")
    results["pending"] = await page.until("document.querySelector('.cards.pending')?.innerText")
    results["days"] = await page.run("document.querySelector('.timeline svg').ariaLabel")
    await page.check_view("device-away")
    await page.go("#/devices")
    results["waiting"] = await page.until(
        "document.querySelector('td[data-label=busy] .pill')?.textContent === 'waiting' && "
        "document.querySelector('td[data-label=busy]').innerText"
    )
    await page.check_view("devices-waiting")
    await page.go(f"#/device/{device.instance_id}")
    await page.click("#cancel-network")
    results["cancelled"] = await page.until(
        "!document.querySelector('.cards.pending') && 'cancelled'"
    )
    await request_unsupported(page, results, device, database)
    await device.heartbeat()
    await page.go("#/devices")
    await page.until(HAS_THREE_DEVICES)


async def request_unsupported(
    page: Page, results: dict[str, Any], device: SimulatedDevice, database: str
) -> None:
    """On the device's page and in the list of devices, request a report that the device does not
    support.
    """
    set_capabilities(database, device, ["application"])
    await page.click("#pending-network")
    results["refused request"] = await page.until(
        "document.querySelector('#device-sheet > .problem')?.textContent"
    )
    await page.go("#/devices")
    box = f"td.choose input[value='{device.instance_id}']"
    await page.until(f'!!document.querySelector("{box}")')
    await page.run(f'document.querySelector("{box}").click()')
    await page.click("#request-selected")
    await page.click("#request-start")
    results["none waits"] = await page.until(
        "document.getElementById('request-start').hidden && "
        "document.getElementById('request-result').textContent"
    )
    results["refused row"] = await page.run(
        "document.querySelector('.results tbody td').textContent"
    )
    await page.click("#request-close")
    set_capabilities(database, device, ["network", "application"])


def set_capabilities(file: str, device: SimulatedDevice, capabilities: list[str]) -> None:
    database = Database(file)
    is_device = Device.instance_id == UUID(device.instance_id)
    database.write(
        lambda session: session.execute(
            update(Device).where(is_device).values(capabilities=capabilities)
        )
    )
    database.close()


def set_offline(file: str, device: SimulatedDevice) -> None:
    """Store a month of liveness of the device, which has been offline for two hours."""
    now = system_clock()
    database = Database(file)

    def work(session: Session) -> None:
        query = select(Device).where(Device.instance_id == UUID(device.instance_id))
        row = session.scalars(query).one()
        row.created_at = row.enrolled_at = now - timedelta(days=26)
        row.last_seen_at, row.priority = now - timedelta(hours=2), Priority.OFFLINE
        monitoring = session.get(MonitoringState, 1)
        assert monitoring is not None
        monitoring.started_at = now - timedelta(days=40)
        session.execute(delete(OfflineInterval).where(OfflineInterval.device == row.position))
        for days, hours in OFFLINE_INTERVALS:
            since = now - timedelta(days=days)
            until = since + timedelta(hours=hours)
            session.add(OfflineInterval(device=row.position, since=since, until=until))
        session.add(OfflineInterval(device=row.position, since=row.last_seen_at, until=None))
        location_key = (row.organization_id, row.location_id)
        set_zone_and_hours(session, location_key, "Europe/Riga", None, now)
        since = now - timedelta(days=20)
        window = Maintenance(None, since, since + timedelta(hours=15))
        add_maintenance(session, location_key, window, "new cables")

    database.write(work)
    database.close()
