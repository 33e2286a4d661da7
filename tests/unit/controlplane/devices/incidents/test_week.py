"""Tests that the service lists the incidents of a planned week, in whatever order the reports
arrive.
"""

import uuid
from datetime import timedelta
from itertools import pairwise

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.devices.incidents.contents import record_content_of
from controlplane.devices.incidents.listing import incidents, shared_incidents_of
from controlplane.devices.incidents.records import IncidentRecord, IncidentsRequest
from controlplane.devices.incidents.storing import store_record
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.settings import Settings
from controlplane.storage.tables import Binding, Device
from tests import sizes
from tests.fixtures.payloads import application_snapshot, with_record
from tests.unit.controlplane.devices.incidents.planned_week import (
    MONDAY,
    SUNDAY,
    ExpectedEntry,
    PlannedDevice,
    arrivals,
    expected_entries,
    plan_week,
)
from tests.unit.controlplane.running_service import RunningService

ORGANIZATION = "org-0001"
LOCATIONS = sizes.amount(medium=5, large=50)
SNAPSHOT = application_snapshot()


async def test_the_list_of_a_simulated_week_equals_the_plan(service: RunningService) -> None:
    plan = plan_week(LOCATIONS, seed=29)
    service.database.write(lambda session: store(session, plan))
    service.database.read(lambda session: check_lists(session, plan))


def check_lists(session: Session, plan: list[PlannedDevice]) -> None:
    caller = Caller(uuid.uuid4(), ORGANIZATION, can_write=False)
    context = RequestContext(session, caller, SUNDAY, Settings(), b"k" * 32)
    expected = expected_entries(plan)
    shared_entries = [each for each in expected if len({name for name, *_ in each.members}) > 1]
    assert len(shared_entries) >= 2 * LOCATIONS
    assert in_order(list_entries(context)) == in_order(expected)
    assert in_order(list_entries(context, shared=True)) == in_order(shared_entries)
    location = expected[0].location
    of_location = [each for each in expected if each.location == location]
    assert in_order(list_entries(context, location=location)) == in_order(of_location)
    sampled_devices = session.scalars(select(Device)).all()[:: len(plan) // 10]
    for device in sampled_devices:
        shared = [as_expected(each) for each in shared_incidents_of(context, device)]
        name = device.legacy_install_id
        entries_of_device = [
            each for each in shared_entries if name in [member[0] for member in each.members]
        ]
        # The page of a device lists at most eight shared incidents.
        assert in_order(shared) == in_order(entries_of_device[:8])


def list_entries(context: RequestContext, **filters: object) -> list[ExpectedEntry]:
    """Return the entries of all pages, and check that the newest are first."""
    entries: list[IncidentRecord] = []
    cursor = None
    while True:
        body = {"days": 30, "size": 7, "cursor": cursor, **filters}
        page = incidents(context, IncidentsRequest.model_validate(body))
        entries += page.incidents
        cursor = page.next_cursor
        if cursor is None:
            assert all(newer.began_at >= older.began_at for newer, older in pairwise(entries))
            return [as_expected(each) for each in entries]


def as_expected(record: IncidentRecord) -> ExpectedEntry:
    members = (
        (
            each.name,
            each.cause,
            round((each.began_at - MONDAY).total_seconds()),
            each.ended_at and round((each.ended_at - each.began_at).total_seconds()),
        )
        for each in record.incidents
    )
    return ExpectedEntry(
        record.location_id, record.cause, tuple(sorted(members)), record.observer_count
    )


def in_order(entries: list[ExpectedEntry]) -> list[ExpectedEntry]:
    """Sort the entries. The service may return incidents of the same second in any order."""
    return sorted(entries, key=lambda each: (each.location, each.members))


def store(session: Session, plan: list[PlannedDevice]) -> None:
    """Store all reports in the order of their arrival."""
    devices = {each.name: add_device(session, each) for each in plan}
    session.flush()
    for planned, report in arrivals(plan):
        payload = with_record(
            SNAPSHOT,
            planned.record_at(report),
            planned.clock_time(report.finished_s),
            is_clock_right=planned.is_clock_right,
        )
        content = record_content_of(payload)
        assert content is not None
        arrived_at = MONDAY + timedelta(seconds=report.arrived_s)
        store_record(session, devices[planned.name], content, arrived_at)
        session.flush()


def add_device(session: Session, planned: PlannedDevice) -> Device:
    instance_id, binding_id = uuid.uuid4(), uuid.uuid4()
    for index, (began_s, location_id) in enumerate(planned.stays):
        is_last = index == len(planned.stays) - 1
        ended_at = None if is_last else MONDAY + timedelta(seconds=planned.stays[index + 1][0])
        session.add(
            Binding(
                id=binding_id if is_last else uuid.uuid4(),
                instance_id=instance_id,
                organization_id=ORGANIZATION,
                location_id=location_id,
                created_at=MONDAY + timedelta(seconds=began_s),
                ended_at=ended_at,
            )
        )
    device = Device(
        instance_id=instance_id, binding_id=binding_id, key_id=uuid.uuid4(),
        organization_id=ORGANIZATION, location_id=planned.stays[-1][1],
        legacy_install_id=planned.name, capabilities=[], platform="linux", public_key="",
        user_id="", foreground=False, created_at=MONDAY, enrolled_at=MONDAY, last_seen_at=SUNDAY,
    )  # fmt: skip
    session.add(device)
    return device
