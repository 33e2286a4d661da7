"""Tests of what the service reads from the newest reports: health, printers, search, headlines."""

import json
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from agent.presentation.severity import SEVERITY_ORDER
from agent.wire import routes
from agent.wire.codec import encode, to_plain
from controlplane.devices.liveness import update_liveness
from controlplane.devices.locations.locations import add_maintenance, schedules
from controlplane.devices.locations.status import Maintenance
from controlplane.devices.overview.report_contents import TEXT_MAX, content_of
from controlplane.devices.overview.summaries import store_old_contents
from controlplane.devices.priority import HEALTHS, Priority, has_health, health_of
from controlplane.merchant.locations import name_location
from controlplane.storage.report_tables import DevicePrinter, ReportText
from controlplane.storage.tables import Device
from tests.fixtures.payloads import application_snapshot, small_venue
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.simulated_device import SimulatedDevice

NETWORK_REPORT = json.loads(encode(small_venue()))
APPLICATION_REPORT = json.loads(encode(application_snapshot()))


def with_printers(**reasons: str) -> Any:
    """Return a report in which all printers are reachable.

    ``reasons`` maps a printer id to the warning of that printer.
    """
    report = json.loads(json.dumps(NETWORK_REPORT))
    for printer in report["printers"]:
        reason = reasons.get(printer["id"], "")
        printer |= {"status": "reachable", "matchedEndpoint": None, "reason": reason}
    return report


async def call_console(
    service: RunningService, call: str, key: str | None = None, **body: Any
) -> Any:
    reply = await service.post(f"/console/api/{call}", json.dumps(body), api_key=key)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def enroll(service: RunningService, name: str, location: str = "loc-0001") -> SimulatedDevice:
    device = service.device(location_id=location)
    reply = await device.enroll(legacyInstallId=name)
    device.binding_id = reply.json()["bindingId"]
    return device


async def list_printers(
    service: RunningService, key: str | None = None, **filters: Any
) -> list[Any]:
    """Return the device, the id and the state of each printer. The list is read in pages of two."""
    rows, cursor = list[Any](), dict[str, str]()
    while True:
        page = await call_console(service, "printers", key, size=2, **filters, **cursor)
        rows += [
            (printer["device"]["legacyInstallId"], printer["id"], printer["state"])
            for printer in page["printers"]
        ]
        if page["nextCursor"] is None:
            return rows
        cursor = {"cursor": page["nextCursor"]}


async def find_devices(service: RunningService, search: str) -> list[str]:
    page = await call_console(service, "overview", search=search)
    return [row["device"]["legacyInstallId"] for row in page["devices"]]


async def test_every_device_has_exactly_one_health(service: RunningService) -> None:
    await enroll(service, "till")

    def check_all_combinations(session: Session) -> None:
        for priority in Priority:
            for severity in (None, *SEVERITY_ORDER):
                session.execute(update(Device).values(priority=priority, severity=severity))
                healths = [
                    health
                    for health in HEALTHS
                    if session.scalar(select(Device.position).where(has_health(health)))
                ]
                assert healths == [health_of(priority, severity)]

    service.database.write(check_all_combinations)


async def test_maintenance_does_not_change_the_health_of_a_device(service: RunningService) -> None:
    device = await enroll(service, "till")
    now = service.clock()

    def add_window(session: Session) -> None:
        row = session.scalars(select(Device)).one()
        location = (row.organization_id, row.location_id)
        add_maintenance(session, location, Maintenance(None, now, now + timedelta(days=1)), "works")

    service.database.write(add_window)
    service.clock.advance(service.core.settings.online_window_s + 1)
    await refresh_liveness(service)
    (row,) = (await call_console(service, "overview"))["devices"]
    assert (row["health"], row["state"]) == ("never-connected", "maintenance")
    await device.heartbeat()
    service.clock.advance(service.core.settings.online_window_s + 1)
    await refresh_liveness(service)
    (row,) = (await call_console(service, "overview"))["devices"]
    assert (row["health"], row["state"]) == ("healthy", "maintenance")


async def refresh_liveness(service: RunningService) -> None:
    now, window = service.clock(), service.core.settings.offline_window
    await service.core.write(
        lambda session: update_liveness(session, schedules(session, now), now, window)
    )


async def test_printers_are_listed_broken_first_with_their_counts(service: RunningService) -> None:
    bar, office = await enroll(service, "bar"), await enroll(service, "office", "loc-0002")
    await bar.submit(with_printers(bar="The printer reports: out of paper."))
    await office.submit(NETWORK_REPORT)
    assert await list_printers(service) == [
        ("office", "kitchen", "broken"),
        ("office", "office", "broken"),
        ("bar", "bar", "warning"),
        ("bar", "kitchen", "healthy"),
        ("bar", "office", "healthy"),
        ("office", "bar", "healthy"),
    ]
    states = (await call_console(service, "printers"))["states"]
    assert states == {"broken": 2, "warning": 1, "unknown": 0, "healthy": 3}
    for state, count in states.items():
        assert len(await list_printers(service, state=state)) == count
    assert {row[0] for row in await list_printers(service, location="loc-0002")} == {"office"}
    assert await list_printers(service, search="paper") == [("bar", "bar", "warning")]
    assert len(await list_printers(service, search="office 9100")) == 2
    restricted = service.make_key(can_write=False, locations=["loc-0002"])
    assert {row[0] for row in await list_printers(service, restricted)} == {"office"}
    states = (await call_console(service, "printers", restricted))["states"]
    assert sum(states.values()) == 3


async def test_the_field_since_is_the_time_of_the_first_report_with_the_current_state(
    service: RunningService,
) -> None:
    till = await enroll(service, "till")
    times = []
    for report in (NETWORK_REPORT, NETWORK_REPORT, with_printers(), None):
        service.clock.advance(60)
        await till.submit(report)
        (kitchen,) = (await call_console(service, "printers", search="kitchen"))["printers"]
        times.append((kitchen["state"], kitchen["since"]))
    broken, still_broken, healthy, not_checked = times
    assert broken == still_broken
    # A report without content does not change the state of a printer.
    assert healthy == not_checked
    assert (broken[0], healthy[0]) == ("broken", "healthy")
    assert broken[1] < healthy[1]


async def test_removed_printers_and_printers_of_revoked_devices_are_not_listed(
    service: RunningService,
) -> None:
    till = await enroll(service, "till")
    await till.submit(NETWORK_REPORT)
    fewer = NETWORK_REPORT | {"printers": NETWORK_REPORT["printers"][:1]}
    await till.submit(fewer)
    assert await list_printers(service) == [("till", "bar", "healthy")]
    await till.call(routes.REVOKE, instanceId=till.instance_id)
    assert await list_printers(service) == []


async def test_the_search_reads_locations_and_newest_reports(service: RunningService) -> None:
    bar = await enroll(service, "bar")
    await enroll(service, "empty")
    await bar.submit(NETWORK_REPORT)
    await bar.submit(APPLICATION_REPORT, kind="application")
    location = ("org-0001", "loc-0001")
    now = service.clock()
    service.database.write(lambda session: name_location(session, location, "Harbour Street", now))
    for search, names in (
        ("MOVED", ["bar"]),
        ("192.168.1.61:9100", ["bar"]),
        ("stuck paper", ["bar"]),
        ("harbour", ["bar", "empty"]),
        ("harbour laser", ["bar"]),
        ("debian", ["bar"]),
        ("100%", []),  # "%" is not a wildcard
    ):
        assert await find_devices(service, search) == names, search
    await bar.submit(NETWORK_REPORT | {"printers": [], "networkMap": None})
    assert await find_devices(service, "moved") == []


async def test_reports_that_an_older_release_stored_are_read_once(service: RunningService) -> None:
    bar = await enroll(service, "bar")
    await bar.submit(NETWORK_REPORT)
    await bar.submit(APPLICATION_REPORT, kind="application")
    before = await list_printers(service)

    def remove_contents(session: Session) -> None:
        session.execute(delete(DevicePrinter))
        session.execute(update(ReportText).values(text=None))

    service.database.write(remove_contents)
    assert await find_devices(service, "laser") == []
    step = partial(store_old_contents, now=service.clock())
    assert service.database.write(step) == 2
    assert service.database.write(step) == 0
    assert await find_devices(service, "laser") == ["bar"]
    assert await list_printers(service) == before


async def test_reports_of_the_fleet_are_listed_with_their_headlines(
    service: RunningService,
) -> None:
    bar, office = await enroll(service, "bar"), await enroll(service, "office", "loc-0002")
    await bar.submit(NETWORK_REPORT)
    service.clock.advance(60)
    await office.submit(APPLICATION_REPORT, kind="application")
    first = await call_console(service, "reports", size=1)
    second = await call_console(service, "reports", size=1, cursor=first["nextCursor"])
    assert second["nextCursor"] is None
    newest, oldest = *first["reports"], *second["reports"]
    assert (newest["name"], newest["kind"]) == ("office", "application")
    assert oldest["headline"].startswith("Kitchen printer has moved")
    for filters, names in (
        ({"kind": "network"}, ["bar"]),
        ({"instanceId": office.instance_id}, ["office"]),
        ({"since": newest["createdAt"]}, ["office"]),
    ):
        reports = (await call_console(service, "reports", **filters))["reports"]
        assert [report["name"] for report in reports] == names


async def test_healths_are_listed_page_by_page(service: RunningService) -> None:
    bar, office = await enroll(service, "bar"), await enroll(service, "office")
    await bar.submit(NETWORK_REPORT)
    first = await call_console(service, "healths", size=1)
    second = await call_console(service, "healths", size=1, cursor=first["nextCursor"])
    assert second["nextCursor"] is None
    assert [
        (device["instanceId"], device["health"]) for device in first["devices"] + second["devices"]
    ] == [
        (bar.instance_id, "broken"),
        (office.instance_id, "healthy"),
    ]
    (only,) = (await call_console(service, "healths", search="laser"))["devices"]
    assert only["instanceId"] == bar.instance_id


async def test_a_count_includes_the_devices_of_other_pages(service: RunningService) -> None:
    bar, *_ = [await enroll(service, name) for name in ("bar", "kitchen", "office")]
    await bar.call(routes.REVOKE, instanceId=bar.instance_id)
    for size in (1, 50):
        page = await call_console(service, "overview", size=size, count=True)
        assert (page["total"], page["requestable"]) == (3, 2)
    assert (await call_console(service, "overview"))["total"] is None


def test_the_text_of_a_report_is_limited() -> None:
    name = "a long name of a printer " * 40
    (printer, *_) = small_venue().printers or ()
    many = tuple(printer.model_copy(update={"id": f"p{n}", "name": name}) for n in range(64))
    payload = small_venue().model_copy(update={"printers": many})
    assert len(content_of(payload, "headline", ()).text) == TEXT_MAX


async def test_a_device_that_moves_to_another_location_loses_its_severity_and_report(
    service: RunningService,
) -> None:
    device = await enroll(service, "bar")
    await device.submit(to_plain(small_venue()))
    query = select(Device.severity, Device.network_report)
    assert service.database.read(lambda session: session.execute(query).one())[0] == "bad"
    device.location_id = "loc-0002"
    await device.enroll(legacyInstallId="bar")
    moved = service.database.read(lambda session: session.execute(query).one())
    assert tuple(moved) == (None, None)
