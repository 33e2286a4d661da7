"""Tests of incidents in submitted reports: what is stored, corrected and listed."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, func, select
from sqlalchemy.orm import Session

from agent.wire.codec import to_plain
from agent.wire.payloads.history import Cause, History, Incident
from controlplane.devices.incidents.listing import incidents
from controlplane.devices.incidents.records import IncidentsRequest
from controlplane.devices.incidents.storing import INCIDENTS_MAX
from controlplane.devices.retention import delete_old_monitoring
from controlplane.merchant.locations import name_location
from controlplane.operation.context import RequestContext
from controlplane.storage.report_tables import DeviceIncident, RecordPeriod
from tests.fixtures.payloads import application_snapshot, with_record
from tests.unit.controlplane.devices.test_newest_reports import call_console, enroll
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.simulated_device import SimulatedDevice

SNAPSHOT = application_snapshot()
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def incident(
    began_at: datetime, seconds: int | None = 95, cause: Cause = "gateway-silent", count: int = 1
) -> Incident:
    """Create an incident. If ``seconds`` is None, it has not ended."""
    ended_at = None if seconds is None else began_at + timedelta(seconds=seconds)
    return Incident(cause, began_at, ended_at, seconds or 0, f"evidence of {cause}", count)


async def submit(
    device: SimulatedDevice,
    incidents: Sequence[Incident],
    finished_at: datetime,
    *,
    is_clock_right: bool = False,
    lines: Sequence[str] | None = None,
) -> None:
    """Submit a report with these incidents. ``lines`` replaces the lines of its record."""
    record = History(finished_at - timedelta(days=5), tuple(incidents))
    payload = with_record(SNAPSHOT, record, finished_at, is_clock_right=is_clock_right)
    report = to_plain(payload)
    if lines is not None:
        fields = report["snapshot"]["fields"]
        next(each for each in fields if each["key"] == "history.recent")["value"] = list(lines)
    reply = await device.submit(report, kind="application")
    assert reply.status_code == 200, reply.text


async def list_incidents(
    service: RunningService, key: str | None = None, **filters: Any
) -> list[Any]:
    return list((await call_console(service, "incidents", key, **filters))["incidents"])


async def enroll_ten_hours_ago(
    service: RunningService, names: Sequence[str], location: str = "loc-0001"
) -> list[SimulatedDevice]:
    """Enroll devices, and advance the clock by ten hours."""
    devices = [await enroll(service, name, location) for name in names]
    service.clock.advance(36_000)
    return devices


def utc_time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


async def test_devices_that_lost_the_gateway_together_are_one_entry(
    service: RunningService,
) -> None:
    tills = await enroll_ten_hours_ago(service, [f"till-{number}" for number in range(6)])
    now = service.clock()
    service.database.write(
        lambda session: name_location(session, ("org-0001", "loc-0001"), "Harbour", now)
    )
    for number, till in enumerate(tills):
        record = [incident(now - HOUR + number * timedelta(seconds=9))] if number else []
        await submit(till, record, now)
    (entry,) = await list_incidents(service)
    assert (entry["deviceCount"], entry["observerCount"]) == (5, 6)
    assert (entry["locationName"], entry["cause"]) == ("Harbour", "gateway-silent")
    assert (entry["loss"], entry["suspect"]) == ("lost the gateway", "the router, not the tills")
    assert utc_time(entry["beganAt"]) == now - HOUR + timedelta(seconds=9)
    assert utc_time(entry["endedAt"]) == now - HOUR + timedelta(seconds=5 * 9 + 95)
    assert [each["name"] for each in entry["incidents"]] == [f"till-{n}" for n in range(1, 6)]
    assert await list_incidents(service, shared=True) == [entry]
    assert await list_incidents(service, location="loc-0002") == []
    for till, shared in ((tills[0], []), (tills[1], [entry])):
        page = await call_console(service, "device", instanceId=till.instance_id)
        assert page["incidents"] == shared


async def test_the_end_of_an_incident_is_kept_in_any_order_of_the_reports(
    service: RunningService,
) -> None:
    (till,) = await enroll_ten_hours_ago(service, ["till"])
    now = service.clock()
    unfinished, finished = incident(now - HOUR, None), incident(now - HOUR, 240)
    await submit(till, [unfinished], now - HOUR, is_clock_right=True)
    (entry,) = await list_incidents(service)
    assert entry["endedAt"] is None
    for record in ([finished], [unfinished], [finished]):
        await submit(till, record, now, is_clock_right=True)
        (entry,) = await list_incidents(service)
        assert utc_time(entry["endedAt"]) == now - HOUR + timedelta(seconds=240)
        assert entry["incidents"][0]["downtimeSeconds"] == 240


async def test_a_joined_incident_replaces_the_incidents_that_it_joins(
    service: RunningService,
) -> None:
    (till,) = await enroll_ten_hours_ago(service, ["till"])
    now = service.clock()
    parts = [incident(now - HOUR + number * 5 * MINUTE) for number in range(4)]
    joined = incident(now - HOUR, 20 * 60, count=4)
    for record in (parts, [joined], parts):
        await submit(till, record, now)
    (entry,) = await list_incidents(service)
    assert entry["incidents"][0]["count"] == 4


async def test_the_cause_of_an_incident_that_has_not_ended_can_change(
    service: RunningService,
) -> None:
    (till,) = await enroll_ten_hours_ago(service, ["till"])
    now = service.clock()
    unfinished = incident(now - HOUR, None, "provider-down")
    for record in ([unfinished], [incident(now - HOUR)], [unfinished]):
        await submit(till, record, now)
    assert [each["cause"] for each in await list_incidents(service)] == ["gateway-silent"]


async def test_times_of_a_wrong_clock_are_corrected_and_the_correction_is_listed(
    service: RunningService,
) -> None:
    fast, slow, right = await enroll_ten_hours_ago(service, ["fast", "slow", "right"])
    now = service.clock()
    for device, offset in ((fast, 3 * HOUR), (slow, -2 * HOUR), (right, -MINUTE)):
        await submit(device, [incident(now - HOUR + offset)], now + offset)
    (entry,) = await list_incidents(service)
    corrections = {
        each["name"]: (utc_time(each["beganAt"]), each["clockCorrectionSeconds"])
        for each in entry["incidents"]
    }
    assert corrections == {
        "fast": (now - HOUR, -3 * 3600),
        "slow": (now - HOUR, 2 * 3600),
        "right": (now - HOUR - MINUTE, 0),
    }


async def test_late_reports_are_not_corrected_once_the_clock_is_known_to_be_right(
    service: RunningService,
) -> None:
    known, unknown = await enroll_ten_hours_ago(service, ["known", "unknown"])
    now = service.clock()
    lost_gateway = incident(now - HOUR)
    await submit(known, [lost_gateway], now - HOUR / 2, is_clock_right=True)
    await submit(unknown, [lost_gateway], now - HOUR / 2)
    corrections = {
        entry["incidents"][0]["name"]: entry["incidents"][0]["clockCorrectionSeconds"]
        for entry in await list_incidents(service)
    }
    assert corrections == {"known": 0, "unknown": 1800}
    # The first of these reports is not late, which shows that the clock is right. The second is
    # late, and does not change this.
    for late in (timedelta(), HOUR / 2):
        await submit(unknown, [lost_gateway], now - late)
        (entry,) = await list_incidents(service)
        assert entry["deviceCount"] == 2


async def test_an_incident_belongs_to_the_location_of_its_time(service: RunningService) -> None:
    (till,) = await enroll_ten_hours_ago(service, ["till"], "loc-0001")
    moved_at = service.clock()
    till.binding_id = (await till.enroll(locationId="loc-0002")).json()["bindingId"]
    service.clock.advance(7200)
    now = service.clock()
    record = [incident(moved_at - 11 * HOUR), incident(moved_at - HOUR), incident(moved_at + HOUR)]
    await submit(till, record, now)
    entries = [
        (each["locationId"], utc_time(each["beganAt"])) for each in await list_incidents(service)
    ]
    # Eleven hours before the move, the device was not enrolled.
    assert entries == [("loc-0002", moved_at + HOUR), ("loc-0001", moved_at - HOUR)]
    restricted = service.make_key(can_write=False, locations=["loc-0002"])
    assert [each["locationId"] for each in await list_incidents(service, restricted)] == [
        "loc-0002"
    ]


async def test_a_page_never_divides_a_shared_incident(service: RunningService) -> None:
    first_till, second_till = await enroll_ten_hours_ago(service, ["first", "second"])
    now = service.clock()
    # Each incident begins less than a minute after the previous one, for twenty minutes.
    begins = [now - 2 * HOUR + number * timedelta(seconds=45) for number in range(28)]
    record = [incident(began_at, 1, "link-down") for began_at in begins]
    await submit(first_till, record[::2], now)
    await submit(second_till, record[1::2], now)
    whole = await list_incidents(service, size=500)
    assert [each["deviceCount"] for each in whole] == [2] * 14
    for size in (1, 3, 5):
        pages: list[Any] = []
        cursor: dict[str, str] = {}
        while True:
            page = await call_console(service, "incidents", size=size, **cursor)
            pages += page["incidents"]
            if page["nextCursor"] is None:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert pages == whole


async def test_invalid_lines_are_left_out_and_evidence_is_cleaned(service: RunningService) -> None:
    (till,) = await enroll_ten_hours_ago(service, ["till"])
    now = service.clock()
    began = f"{now - HOUR:%Y-%m-%dT%H:%M:%SZ}"
    soon_after = f"{now - HOUR + MINUTE / 2:%Y-%m-%dT%H:%M:%SZ}"
    lines = [
        f"{began}/.. gateway-silent 5 s: a\x00b\u202ec" + "d" * 900,
        f"{now + HOUR:%Y-%m-%dT%H:%M:%SZ}/.. gateway-silent 5 s: in the future",
        "0001-01-01T00:00:00Z/9999-12-31T23:59:59Z gateway-silent 999999999 s x999999: all times",
        "9999-12-31T23:59:59Z/.. link-down 5 s: never",
        "<script>",
        f"{soon_after}/9999-12-31T23:59:59Z no-address 5 s: ends in the future",
    ]
    await submit(till, (), now, lines=lines)
    (entry,) = await list_incidents(service, days=30)
    evidence, other = (each["evidence"] for each in entry["incidents"])
    assert evidence.startswith("a\N{REPLACEMENT CHARACTER}b")
    assert len(evidence) == 300
    assert other == "ends in the future"
    assert [each["endedAt"] and utc_time(each["endedAt"]) for each in entry["incidents"]] == [
        None,
        now,
    ]


async def test_incidents_are_limited_in_number_and_deleted_after_thirty_days(
    service: RunningService,
) -> None:
    (till,) = await enroll_ten_hours_ago(service, ["till"])
    now = service.clock()
    causes: tuple[Cause, ...] = ("link-down", "no-address")
    for part in range(INCIDENTS_MAX // 32 + 1):
        begins = [now - HOUR + timedelta(seconds=3 * (32 * part + n)) for n in range(32)]
        record = [incident(began_at, 1, causes[n % 2]) for n, began_at in enumerate(begins)]
        await submit(till, record, now)
    counts = [select(func.count()).select_from(table) for table in (DeviceIncident, RecordPeriod)]
    assert service.database.read(lambda session: session.scalar(counts[0])) == INCIDENTS_MAX
    service.clock.advance(31 * 86_400)
    later = service.clock()
    service.database.write(lambda session: delete_old_monitoring(session, later))
    row_counts = service.database.read(lambda session: [session.scalar(each) for each in counts])
    assert row_counts == [0, 0]


async def test_the_list_reads_only_indexes(service: RunningService) -> None:
    if service.database.postgresql is not None:
        pytest.skip("PostgreSQL does not use the indexes of an almost empty table")
    tills = await enroll_ten_hours_ago(service, ["one", "other"])
    for till in tills:
        await submit(till, [incident(service.clock() - HOUR)], service.clock())
    caller = service.caller(service.write_key)
    now, settings = service.clock(), service.core.settings

    def plans(session: Session) -> list[str]:
        statements: list[tuple[str, Any]] = []
        connection = session.connection()
        event.listen(
            connection,
            "before_cursor_execute",
            lambda *call: statements.append((call[2], call[3])),
        )
        context = RequestContext(session, caller, now, settings, b"k" * 32)
        for filters in ({}, {"shared": True}, {"location": "loc-0001"}):
            assert incidents(context, IncidentsRequest.model_validate(filters)).incidents
        reads = [each for each in statements if "device_incidents" in each[0]]
        assert len(reads) == 6
        rows = (connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", p) for sql, p in reads)
        return [str(step[3]) for row in rows for step in row]

    steps = service.database.read(plans)
    assert [each for each in steps if "SCAN" in each or "TEMP B-TREE" in each] == []
    assert any("COVERING INDEX device_incidents_by_time" in each for each in steps)
