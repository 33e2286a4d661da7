"""Tests that all lists of findings equal an independent evaluation of all newest reports."""

import uuid
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from controlplane.devices.findings.counting import symbols
from controlplane.devices.findings.listing import finding_devices, findings
from controlplane.devices.findings.records import (
    FindingDevicesRequest,
    FindingEntry,
    FindingRecord,
    FindingsRequest,
)
from controlplane.devices.findings.rules import ANY, DEVICE, PROBLEM, rule_of
from controlplane.devices.findings.sums import Sums, SumsOfMost, quickest_sums
from controlplane.devices.priority import ONLINE, Priority
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.settings import Settings
from controlplane.storage.report_tables import CountedDevice, DeviceFinding, FindingCount
from controlplane.storage.tables import Device
from tests import sizes
from tests.unit.controlplane.devices.findings.fleet import BEGIN, DAYS, ORGANIZATION, Fleet
from tests.unit.controlplane.devices.findings.oracle import Oracle
from tests.unit.controlplane.running_service import RunningService

DEVICES = sizes.amount(medium=140, large=500)
LOCATIONS = 12
DevicePredicate = Callable[[Device], bool]
Filter = tuple[dict[str, Any], DevicePredicate]
ONLINE_FILTER: Filter = ({"state": "online"}, lambda device: device.priority in ONLINE)
FILTERS: list[Filter] = [
    ({}, lambda device: True),
    ({"location": "loc-0003"}, lambda device: device.location_id == "loc-0003"),
    ({"platform": "windows"}, lambda device: device.platform == "windows"),
    ({"version": "0.3.0"}, lambda device: device.app_version == "0.3.0"),
    (
        {"platform": "linux", "location": "loc-0005"},
        lambda device: device.platform == "linux" and device.location_id == "loc-0005",
    ),
    ONLINE_FILTER,
    ({"state": "offline"}, lambda device: device.priority == Priority.OFFLINE),
    (
        {"state": "broken", "platform": "windows"},
        lambda device: device.priority == Priority.BROKEN and device.platform == "windows",
    ),
    (
        {"state": "online", "location": "loc-0003"},
        lambda device: device.priority in ONLINE and device.location_id == "loc-0003",
    ),
    (
        {"state": "online", "search": "0.2.0"},
        lambda device: device.priority in ONLINE and device.app_version == "0.2.0",
    ),
    ({"search": "till-01"}, lambda device: device.legacy_install_id.startswith("till-01")),
    (
        {"search": "0.2.0 loc-0002"},
        lambda device: device.app_version == "0.2.0" and device.location_id == "loc-0002",
    ),
]


@pytest.mark.medium
async def test_lists_equal_the_evaluation_of_all_newest_reports(service: RunningService) -> None:
    fleet = Fleet(29, DEVICES, LOCATIONS)

    def simulate(session: Session) -> None:
        for device in fleet.devices:
            fleet.enroll(session, device)
        fleet.simulate(session, DAYS)
        every_third_online = (Device.position % 3 == 0, Device.priority.in_(ONLINE))
        session.execute(update(Device).where(*every_third_online).values(priority=Priority.OFFLINE))

    service.database.write(simulate)
    service.database.read(check_all_lists)


def check_all_lists(session: Session) -> None:
    oracle, now = Oracle(session), BEGIN + timedelta(days=DAYS) - timedelta(seconds=1)
    check_rows(session, oracle)
    check_sums(session, oracle, now)
    assert any(each.revoked_at is not None for each in oracle.devices)
    assert len(oracle.bindings) > len(oracle.devices)
    for filters, is_matching in FILTERS:
        devices = [each for each in oracle.bound_devices() if is_matching(each)]
        assert devices
        context = context_of(session, now)
        check_counts(context, oracle, filters, devices)
        check_entries(context, oracle, filters, devices)
    allowed = ("loc-0001", "loc-0004")
    context = context_of(session, now, allowed)
    for filters, is_matching in FILTERS[0], ONLINE_FILTER:
        visible = [each for each in oracle.bound_devices() if each.location_id in allowed]
        devices = [each for each in visible if is_matching(each)]
        check_counts(context, oracle, filters, devices)
        check_entries(context, oracle, filters, devices)
    check_trend(context_of(session, now), oracle)
    most, few = (
        quickest_sums(context, FindingsRequest(state=state)) for state in ("online", "offline")
    )
    assert isinstance(most, SumsOfMost)
    assert isinstance(few, Sums)


def context_of(session: Session, now: datetime, locations: tuple[str, ...] = ()) -> RequestContext:
    caller = Caller(uuid.uuid4(), ORGANIZATION, can_write=False, locations=frozenset(locations))
    return RequestContext(session, caller, now, Settings(), b"k" * 32)


def check_rows(session: Session, oracle: Oracle) -> None:
    """Check each stored finding: since when it exists, its newest report, and its location."""
    devices_by_position = {each.position: each for each in oracle.bound_devices()}
    rows = session.scalars(select(DeviceFinding)).all()
    stored = {(row.device, row.kind, row.rule) for row in rows}
    expected = set()
    for device in oracle.bound_devices():
        newest = {each.kind: each for each in oracle.reports[device.binding_id]}
        for each in newest.values():
            expected |= {(device.position, each.kind, code) for code in each.codes}
    assert stored == expected
    assert len(rows) == len(stored) > DEVICES
    for row in rows:
        device = devices_by_position[row.device]
        reports_of_kind = [
            each for each in oracle.reports[device.binding_id] if each.kind == row.kind
        ]
        assert row.location_id == device.location_id
        assert row.last_seen == reports_of_kind[-1].at
        assert row.since == oracle.begin(device.binding_id, row.kind, row.rule)


def check_sums(session: Session, oracle: Oracle, now: datetime) -> None:
    """Compare the subjects of each `CountedDevice`, and the numbers of devices in `FindingCount`,
    with a recount.
    """
    characters = symbols(session)
    assert len(set(characters.values())) == len(characters)
    counted = {row.device: row for row in session.scalars(select(CountedDevice))}
    counts = Counter[tuple[str, ...]]()
    for device in oracle.devices:
        row = counted.pop(device.position)
        expected = Counter[str]()
        if device.revoked_at is None:
            reports = oracle.newest(device.binding_id, now)
            codes = {code for each in reports for code in each.codes}
            expected = Counter({DEVICE, *codes, *(each.kind for each in reports)})
            expected[ANY] += bool(reports)
            expected[PROBLEM] = sum(rule_of(each).severity in ("bad", "warn") for each in codes)
        assert Counter(row.subjects) == +expected
        assert device.symbols == "".join(characters[each] for each in row.subjects)
        for location in ("", device.location_id):
            for subject in expected.elements():
                counts[location, subject, device.platform, device.app_version or ""] += 1
    assert not counted
    rows = session.scalars(select(FindingCount).where(FindingCount.devices != 0))
    stored = {
        (row.location_id, row.subject, row.platform, row.version): row.devices for row in rows
    }
    assert stored == counts


def expected_counts(context: RequestContext, oracle: Oracle, devices: list[Device]) -> Counter[str]:
    counts = Counter[str]()
    for device in devices:
        counts.update(oracle.findings(device.binding_id, context.now))
    return counts


def check_counts(
    context: RequestContext, oracle: Oracle, filters: dict[str, Any], devices: list[Device]
) -> None:
    reply = findings(context, FindingsRequest(**filters))
    expected = expected_counts(context, oracle, devices)
    assert {
        each.rule: each.device_count for each in reply.findings if each.device_count
    } == expected
    assert reply.device_count == len(devices)
    problems = [code for code in expected if rule_of(code).severity in ("bad", "warn")]
    for groups in (reply.locations, reply.platforms, reply.versions):
        assert sum(each.count for each in groups) == sum(expected[code] for code in problems)
    newest_reports = [oracle.newest(each.binding_id, context.now) for each in devices]
    assert reply.unknown_count == sum(not reports for reports in newest_reports)
    for each in reply.findings:
        kinds = rule_of(each.rule).kinds
        unknown = sum(not any(r.kind in kinds for r in reports) for reports in newest_reports)
        assert each.unknown_count == unknown, each.rule
        check_new(context, oracle, devices, each)
    rule = max(expected, key=lambda code: expected[code])
    reply = findings(context, FindingsRequest(rule=rule, **filters))
    for groups, attribute in (
        (reply.locations, "location_id"),
        (reply.platforms, "platform"),
        (reply.versions, "app_version"),
    ):
        counts = Counter(
            getattr(device, attribute)
            for device in devices
            if rule in oracle.findings(device.binding_id, context.now)
        )
        totals = Counter(getattr(device, attribute) for device in devices)
        assert {each.value: each.count for each in groups if each.count} == counts
        assert {each.value for each in groups} == set(totals)


def check_new(
    context: RequestContext, oracle: Oracle, devices: list[Device], record: FindingRecord
) -> None:
    """Check how many devices have had the finding of ``record`` for at most a day."""
    yesterday = context.now - timedelta(days=1)
    new_count = 0
    for device in devices:
        begins = [
            oracle.begin(device.binding_id, each.kind, record.rule)
            for each in oracle.newest(device.binding_id, context.now)
            if record.rule in each.codes
        ]
        new_count += bool(begins) and min(begins) >= yesterday
    assert record.new_count == new_count, record.rule


def check_entries(
    context: RequestContext, oracle: Oracle, filters: dict[str, Any], devices: list[Device]
) -> None:
    entries = all_entries(context, filters)
    expected = {
        (code, device.location_id, device.instance_id)
        for device in devices
        for code in oracle.findings(device.binding_id, context.now)
    }
    devices_of_entries = [
        (entry.rule, entry.location_id, each.instance_id)
        for entry in entries
        for each in entry.devices
    ]
    assert len(devices_of_entries) == len(set(devices_of_entries))
    assert set(devices_of_entries) == expected
    assert all(entry.device_count == len(entry.devices) for entry in entries)
    assert len({(entry.rule, entry.location_id) for entry in entries}) == len(entries)


def all_entries(context: RequestContext, filters: dict[str, Any]) -> list[FindingEntry]:
    entries: list[FindingEntry] = []
    cursor = None
    while True:
        body = FindingDevicesRequest(size=7, devices=500, cursor=cursor, **filters)
        page = finding_devices(context, body)
        entries += page.entries
        cursor = page.next_cursor
        if cursor is None:
            return entries


def check_trend(context: RequestContext, oracle: Oracle) -> None:
    """Check the numbers of devices at the end of each of the last thirty days."""
    for location in (None, "loc-0003"):
        reply = findings(context, FindingsRequest(location=location))
        trends = {each.rule: each.trend or () for each in reply.findings}
        for days_ago in range(30):
            counts = oracle.count(context.now - timedelta(days=days_ago), location)
            trend_values = {
                rule: trend[-1 - days_ago] for rule, trend in trends.items() if trend[-1 - days_ago]
            }
            assert trend_values == counts, (location, days_ago)
