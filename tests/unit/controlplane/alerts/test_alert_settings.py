"""Tests of alert rules, inhibition and silences, from the operations to the notifications."""

from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from agent.wire.payloads.history import Cause
from controlplane.alerts.rule import check_argument, parse_version
from controlplane.settings import Settings
from controlplane.storage.audit_tables import AuditEntry
from controlplane.storage.report_tables import DeviceFinding, DeviceIncident
from controlplane.storage.tables import Device
from tests.unit.controlplane.alerts.fleet_of_routes import (
    PREFIX,
    RULE,
    SETTINGS,
    SILENCE,
    Json,
    RoutedFleet,
    routed_fleet,
)
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.simulated_device import SimulatedDevice

pytestmark = pytest.mark.medium


@pytest.fixture
def settings() -> Settings:
    return SETTINGS


@pytest.fixture
async def fleet(service: RunningService) -> RoutedFleet:
    fleet = await routed_fleet(service)
    await fleet.set_route()
    return fleet


def events(bodies: list[Json]) -> list[tuple[str, str]]:
    return [(each["type"].removeprefix("alert."), each["condition"]) for each in bodies]


def row_of(session: Session, device: SimulatedDevice) -> Device:
    query = select(Device).where(Device.legacy_install_id == "till-01")
    return next(d for d in session.scalars(query) if str(d.instance_id) == device.instance_id)


def add_finding(fleet: RoutedFleet, device: SimulatedDevice) -> None:
    def work(session: Session) -> None:
        row, now = row_of(session, device), fleet.service.clock()
        finding = DeviceFinding(
            organization_id=row.organization_id, location_id=row.location_id, device=row.position,
            kind="network", rule="queue-stopped", severity="bad", sentence="Queue bar is stopped.",
            since=now, last_seen=now, report=1,
        )  # fmt: skip
        session.add(finding)

    fleet.service.database.write(work)


def delete_rows(fleet: RoutedFleet, table: Any) -> None:
    fleet.service.database.write(
        lambda session: [session.delete(row) for row in session.scalars(select(table))]
    )


async def test_an_organization_without_rules_of_its_own_has_the_default_rules(
    fleet: RoutedFleet,
) -> None:
    reply = await fleet.call("/rules")
    assert [
        (each["name"], each["severity"], each["forMinutes"], each["enabled"], each["isDefault"])
        for each in reply["rules"]
    ] == [
        ("broken", "warning", None, True, True),
        ("offline", "warning", None, True, True),
        ("site_outage", "critical", None, True, True),
    ]


async def test_a_rule_of_a_location_replaces_the_rule_of_the_organization(
    fleet: RoutedFleet,
) -> None:
    near, *_ = await fleet.add(3)
    far, *_ = await fleet.add(3, "loc-0002")
    await fleet.set_rule(forMinutes=20)
    await fleet.set_rule(locationId="loc-0002", severity="info", forMinutes=10)
    await fleet.run(5)
    fleet.offline = {near, far}
    (first,) = await fleet.run_and_receive(16)
    assert (first["locationId"], first["severity"]) == ("loc-0002", "info")
    (second,) = await fleet.run_and_receive(10)
    assert (second["locationId"], second["severity"]) == ("loc-0001", "warning")


async def test_a_disabled_rule_fires_no_alert_and_its_firing_alerts_resolve(
    fleet: RoutedFleet,
) -> None:
    device, other, *_ = await fleet.add(4)
    fleet.offline = {device}
    assert events(await fleet.run_and_receive(12)) == [("firing", "offline")]
    await fleet.set_rule(enabled=False)
    assert events(await fleet.run_and_receive(1)) == [("resolved", "offline")]
    fleet.offline = {device, other}
    assert await fleet.run_and_receive(15) == []
    await fleet.call("/rules/remove", {"name": "offline", "locationId": None})
    assert events(await fleet.run_and_receive(15)) == [
        ("firing", "offline"),
        ("firing", "offline"),
    ]


async def test_a_finding_fires_and_resolves_its_rule(fleet: RoutedFleet) -> None:
    device, *_ = await fleet.add(3)
    await fleet.set_rule(condition="finding", argument="queue-stopped", severity="critical")
    await fleet.set_rule(condition="finding", argument="other-finding")
    add_finding(fleet, device)
    (firing,) = await fleet.run_and_receive(10)
    assert (firing["condition"], firing["argument"], firing["severity"]) == (
        "finding", "queue-stopped", "critical",
    )  # fmt: skip
    assert "has had the finding queue-stopped since" in firing["text"]
    assert firing["text"].endswith(": Queue bar is stopped.")
    assert firing["url"] == f"http://service/#/alerts/{firing['alertId']}"
    delete_rows(fleet, DeviceFinding)
    (resolved,) = await fleet.run_and_receive(10)
    assert "no longer has the finding queue-stopped" in resolved["text"]


async def test_an_incident_without_an_end_fires_its_rule(fleet: RoutedFleet) -> None:
    device, *_ = await fleet.add(3)
    cause: Cause = "name-servers-silent"
    await fleet.set_rule(condition="incident", argument=cause)

    def work(session: Session) -> None:
        row, began_s = row_of(session, device), int(fleet.service.clock().timestamp())
        for ended_s, incident_cause in ((began_s + 5, "link-down"), (None, cause)):
            incident = DeviceIncident(
                organization_id=row.organization_id, location_id=row.location_id,
                device=row.position, cause=incident_cause, reported_s=began_s,
                began_s=began_s, ended_s=ended_s, downtime_s=0, count=1, evidence="",
                correction_s=0,
            )  # fmt: skip
            session.add(incident)

    fleet.service.database.write(work)
    (firing,) = await fleet.run_and_receive(10)
    assert (firing["condition"], firing["argument"]) == ("incident", "name-servers-silent")
    delete_rows(fleet, DeviceIncident)
    assert events(await fleet.run_and_receive(10)) == [("resolved", "incident")]


def test_a_rule_for_incidents_cannot_have_a_local_fault_as_its_cause() -> None:
    with pytest.raises(ValueError, match="set a rule for a finding"):
        check_argument("incident", "page-missing")


async def test_an_old_version_fires_its_rule(fleet: RoutedFleet) -> None:
    old, new, unknown = await fleet.add(3)

    def work(session: Session) -> None:
        for device, version in ((old, "1.9.3"), (new, "1.10.0"), (unknown, None)):
            row_of(session, device).app_version = version

    fleet.service.database.write(work)
    await fleet.set_rule(condition="version_older_than", argument="1.10", forMinutes=0)
    (firing,) = await fleet.run_and_receive(1)
    assert firing["instanceId"] == old.instance_id
    assert firing["detail"] == "version 1.9.3, older than 1.10"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("1.2.0", (1, 2)), ("1.2rc1", (1, 2)), ("1.10", (1, 10)), ("x", ()), ("", ()), ("0.0", (0,))],
)
def test_a_version_is_compared_by_its_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert parse_version(text) == numbers


async def test_a_device_without_a_report_fires_its_rule_unless_it_is_offline(
    fleet: RoutedFleet,
) -> None:
    without_report, offline, reporting = await fleet.add(3)
    await fleet.set_rule(condition="no_report_for", argument="1", forMinutes=0)
    fleet.offline = {offline}
    assert events(await fleet.run_and_receive(50)) == [("firing", "offline")]
    assert (await reporting.submit()).status_code == 200
    bodies = await fleet.run_and_receive(30)
    missing = [each for each in bodies if each["condition"] == "no_report_for"]
    assert [each["instanceId"] for each in missing] == [without_report.instance_id]
    # The device is online again and has still sent no report.
    fleet.offline = set()
    bodies = await fleet.run_and_receive(15)
    assert sorted(events(bodies)) == [
        ("firing", "no_report_for"),
        ("resolved", "offline"),
    ]


async def test_a_site_outage_inhibits_the_alerts_of_its_devices(fleet: RoutedFleet) -> None:
    devices = await fleet.add(4)
    await fleet.set_rule(condition="finding", argument="queue-stopped", forMinutes=10)
    await fleet.set_rule(condition="no_report_for", argument="1", forMinutes=0)
    add_finding(fleet, devices[0])
    fleet.offline = set(devices)
    assert events(await fleet.run_and_receive(90)) == [("firing", "site_outage")]
    fleet.offline = set()
    notifications = events(await fleet.run_and_receive(10))
    assert sorted(notifications) == [
        *[("firing", "finding")], *[("firing", "no_report_for")] * 4, ("resolved", "site_outage"),
    ]  # fmt: skip


async def test_a_silenced_alert_causes_a_notification_when_the_silence_ends(
    fleet: RoutedFleet,
) -> None:
    device, other, *_ = await fleet.add(5)
    body = SILENCE | {"instanceId": device.instance_id, "until": "2026-11-20T13:00"}
    silence = await fleet.call("/silences/add", body)
    assert (silence["locationId"], silence["createdBy"]) == ("loc-0001", "ada@example.com")
    fleet.offline = {device, other}
    (firing,) = await fleet.run_and_receive(20)
    assert firing["instanceId"] == other.instance_id
    listed = await fleet.call("", {"open": True})
    assert {each["instanceId"]: each["silenced"] for each in listed["alerts"]} == {
        device.instance_id: True, other.instance_id: False,
    }  # fmt: skip
    (late,) = await fleet.run_and_receive(60)
    assert (late["type"], late["instanceId"]) == ("alert.firing", device.instance_id)


async def test_an_alert_that_resolves_in_its_silence_causes_no_notification(
    fleet: RoutedFleet,
) -> None:
    device, other, *_ = await fleet.add(5)
    silence = await fleet.call("/silences/add", SILENCE | {"rule": "offline"})
    fleet.offline = {device}
    assert await fleet.run_and_receive(20) == []
    fleet.offline = set()
    assert await fleet.run_and_receive(20) == []
    await fleet.call("/silences/end", {"silenceId": silence["id"]})
    assert (await fleet.call("/silences"))["silences"] == []
    fleet.offline = {other}
    assert events(await fleet.run_and_receive(20)) == [("firing", "offline")]
    await fleet.call("/silences/add", SILENCE | {"locationId": "loc-0001"})
    fleet.offline = set()
    # Before the silence began, the receivers were notified that this alert fires. Therefore they
    # are also notified that it has resolved.
    assert events(await fleet.run_and_receive(20)) == [("resolved", "offline")]


async def test_an_acknowledged_alert_names_the_user_who_acknowledged_it(fleet: RoutedFleet) -> None:
    device, *_ = await fleet.add(3)
    fleet.offline = {device}
    (firing,) = await fleet.run_and_receive(15)
    for _ in range(2):
        alert = await fleet.call("/acknowledge", {"alertId": firing["alertId"]})
        assert alert["acknowledgedBy"] == "ada@example.com"
    (listed,) = (await fleet.call("", {"id": firing["alertId"]}))["alerts"]
    assert listed["acknowledgedAt"] == alert["acknowledgedAt"]
    unknown = {"alertId": "00000000-0000-4000-8000-000000000000"}
    assert await fleet.refusal("/acknowledge", unknown) == (404, "alert_not_found")


async def test_each_change_is_in_the_audit_log_once(fleet: RoutedFleet) -> None:
    device, *_ = await fleet.add(3)
    fleet.offline = {device}
    (firing,) = await fleet.run_and_receive(15)
    await fleet.set_rule(forMinutes=30)
    await fleet.call("/rules/remove", {"name": "offline", "locationId": None})
    silence = await fleet.call("/silences/add", SILENCE)
    for _ in range(2):
        await fleet.call("/acknowledge", {"alertId": firing["alertId"]})
        await fleet.call("/silences/end", {"silenceId": silence["id"]})
    route = (await fleet.call("/routes"))["routes"][0]
    await fleet.call("/routes/test", {"routeId": route["id"]})
    await fleet.call("/routes/remove", {"routeId": route["id"]})
    query = select(AuditEntry.operation, AuditEntry.detail).order_by(AuditEntry.position)
    entries = fleet.service.database.read(lambda session: session.execute(query).all())
    changes = [row[0] for row in entries if row[0].startswith(("alert", "silence"))]
    assert changes == [
        "alert_route.set", "alert_rule.set", "alert_rule.remove", "silence.add",
        "alert.acknowledge", "silence.end", "alert_route.test", "alert_route.remove",
    ]  # fmt: skip
    # The path of the webhook is secret, so no entry contains it.
    assert "/in" not in "".join(row[1] for row in entries)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"condition": "finding"}, 400),
        ({"condition": "incident", "argument": "unknown"}, 400),
        ({"condition": "version_older_than", "argument": "new"}, 400),
        ({"condition": "no_report_for", "argument": "0"}, 400),
        ({"condition": "no_report_for", "argument": "9" * 30}, 400),
        ({"condition": "no_report_for", "argument": "000001" + "9" * 30}, 400),
        ({"argument": "x"}, 400),
        ({"locationId": "unknown"}, 404),
        ({"forMinutes": -1}, 400),
        ({"severity": "fatal"}, 400),
        ({"condition": "finding", "argument": "a\u0000b"}, 400),
    ],
)
async def test_an_invalid_rule_is_refused(fleet: RoutedFleet, changes: Json, status: int) -> None:
    assert (await fleet.refusal("/rules/set", RULE | changes))[0] == status


async def test_a_silence_with_an_invalid_start_is_refused_and_the_error_names_the_field(
    fleet: RoutedFleet,
) -> None:
    reply = await fleet.owner.post(f"{PREFIX}/silences/add", SILENCE | {"since": "yesterday"})
    assert list(reply.json()["errors"]) == ["since"]


async def test_a_silence_must_end_in_the_future(fleet: RoutedFleet) -> None:
    for until in ("2026-11-20T11:00", "later"):
        body = SILENCE | {"until": until}
        assert await fleet.refusal("/silences/add", body) == (400, "validation_error")
