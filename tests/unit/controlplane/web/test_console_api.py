"""Tests of operations under ``/console/api/``: access, order of devices, and changes."""

import asyncio
import json
import unicodedata
from collections.abc import AsyncIterator, Collection
from contextlib import ExitStack, aclosing
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.orm import Session

from agent.wire import routes
from agent.wire.codec import encode
from controlplane.accounts.keys.key_store import revoke_key
from controlplane.devices.liveness import update_liveness
from controlplane.devices.locations.locations import add_maintenance, schedules
from controlplane.devices.locations.status import Maintenance
from controlplane.devices.overview import console_feeds, polling, summaries
from controlplane.devices.overview.console_feeds import ConsoleFeeds, Snapshot
from controlplane.devices.overview.listing import filter_conditions
from controlplane.devices.overview.polling import ConsolePoller
from controlplane.devices.overview.records import ChangesRequest, OverviewRequest, Row
from controlplane.devices.overview.searching import WORDS_MAX
from controlplane.devices.overview.summaries import Summary, summary_of
from controlplane.devices.priority import HEALTHS
from controlplane.operation.bodies import parse_body
from controlplane.operation.errors import Refusal, unavailable
from controlplane.storage.tables import Device
from controlplane.web.console_api import ChangesEndpoint
from controlplane.web.core import Core
from tests.fixtures.payloads import bare_report, hostile_network, small_venue
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.simulated_device import SimulatedDevice

BROKEN_REPORT = json.loads(encode(small_venue()))
HEALTHY_REPORT = json.loads(encode(bare_report()))
CALLS = ("overview", "summary", "device", "changes")
TIMEOUT_S = 300


async def mark_offline(core: Core) -> None:
    """Mark devices without recent heartbeats as offline. Alert rules are not evaluated."""
    now, window = core.clock(), core.settings.offline_window
    changed = await core.write(
        lambda session: update_liveness(session, schedules(session, now), now, window)
    )
    for organization_id, positions in changed.items():
        core.console_feeds.notify(organization_id, positions, is_reordered=True)


async def call_console(
    service: RunningService, call: str, key: str | None = None, **body: Any
) -> Any:
    reply = await service.post(f"/console/api/{call}", json.dumps(body), api_key=key)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def list_names(service: RunningService, key: str | None = None, **filters: Any) -> list[str]:
    """Return the names of the listed devices in order. The list is read in pages of two."""
    names, cursor = list[str](), dict[str, str]()
    while True:
        page = await call_console(service, "overview", key, size=2, **filters, **cursor)
        names += [row["device"]["legacyInstallId"] for row in page["devices"]]
        if page["nextCursor"] is None:
            return names
        cursor = {"cursor": page["nextCursor"]}


async def enroll(service: RunningService, name: str, **changes: Any) -> SimulatedDevice:
    device = service.device(location_id=changes.pop("location", "loc-0001"))
    reply = await device.enroll(legacyInstallId=name, **changes)
    assert reply.status_code == 200, reply.text
    device.binding_id = reply.json()["bindingId"]
    return device


async def enroll_in_each_state(service: RunningService) -> dict[str, SimulatedDevice]:
    """Enroll a device for each state. Return the devices by their names.

    The device ``gone`` is offline, and ``never`` has sent no heartbeat.
    """
    devices = {
        "never": await enroll(service, "never", platform="windows"),
        "gone": await enroll(service, "gone", location="loc-0002"),
        "revoked": await enroll(service, "revoked"),
    }
    service.clock.advance(1)
    await devices["gone"].heartbeat()
    service.clock.advance(service.core.settings.online_window_s + 1)
    devices["healthy"] = await enroll(service, "healthy", appVersion="0.2.0")
    devices["broken"] = await enroll(service, "broken", location="loc-0002")
    assert (await devices["broken"].submit(BROKEN_REPORT)).status_code == 200
    reply = await devices["healthy"].call(routes.REVOKE, instanceId=devices["revoked"].instance_id)
    assert reply.status_code == 200
    await mark_offline(service.core)
    return devices


async def test_devices_with_problems_are_listed_first(service: RunningService) -> None:
    await enroll_in_each_state(service)
    assert await list_names(service) == ["gone", "never", "broken", "healthy", "revoked"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"state": "offline"}, ["gone"]),
        ({"state": "never-connected"}, ["never"]),
        ({"state": "broken"}, ["broken"]),
        ({"state": "warning"}, []),
        ({"state": "healthy"}, ["healthy"]),
        ({"state": "online"}, ["broken", "healthy"]),
        ({"state": "busy"}, []),
        ({"state": "revoked"}, ["revoked"]),
        ({"location": "loc-0002"}, ["gone", "broken"]),
        ({"platform": "windows"}, ["never"]),
        ({"version": "0.2.0"}, ["healthy"]),
        ({"version": ""}, []),
        ({"search": "OK en"}, ["broken"]),
        ({"search": "loc-0002 gon"}, ["gone"]),
        ({"search": "%"}, []),
        ({"search": "_"}, []),
        ({"search": "0.2"}, ["healthy"]),
        ({"search": "Kitchen moved"}, ["broken"]),
        ({"search": "laser"}, ["broken"]),
        ({"search": "offline"}, ["gone"]),
        ({"state": "online", "location": "loc-0002"}, ["broken"]),
    ],
    ids=str,
)
async def test_filters_select_devices(
    service: RunningService, filters: Any, expected: list[str]
) -> None:
    await enroll_in_each_state(service)
    assert await list_names(service, **filters) == expected


async def test_devices_are_searched_by_id_prefix(service: RunningService) -> None:
    devices = await enroll_in_each_state(service)
    for word in (
        devices["healthy"].instance_id[:8],
        devices["healthy"].instance_id.upper(),
    ):
        assert await list_names(service, search=word) == ["healthy"]


async def test_requests_of_another_organization_are_hidden(
    service: RunningService,
) -> None:
    device = await enroll(service, "till")
    other = service.device(service.make_key(organization_id="org-0002"))
    other.instance_id = device.instance_id
    await (await other.enrolled()).create_request()
    assert await list_names(service, state="busy") == []
    await device.create_request()
    assert await list_names(service, state="busy") == ["till"]


async def test_each_count_of_the_summary_equals_the_number_of_filtered_devices(
    service: RunningService,
) -> None:
    devices = await enroll_in_each_state(service)
    await devices["healthy"].create_request()
    result = await call_console(service, "summary")
    for state, count in result["states"].items():
        expected = await list_names(service, **({} if state == "all" else {"state": state}))
        assert len(expected) == count, state
    assert result["states"]["busy"] == 1
    assert sum(result["states"][health] for health in HEALTHS) == result["states"]["all"] == 5
    assert {(version["value"], version["count"]) for version in result["versions"]} == {
        ("0.1.0", 3),
        ("0.2.0", 1),
    }
    assert [report["name"] for report in result["reports"]] == ["broken"]


async def test_a_row_has_its_times_reports_and_requests(service: RunningService) -> None:
    device = await enroll(service, "till")
    assert (await device.submit(HEALTHY_REPORT)).status_code == 200
    service.clock.advance(1)
    assert (await device.submit(kind="application")).status_code == 200
    request_id = await device.create_request()
    await device.acknowledge(request_id, "running")
    (row,) = (await call_console(service, "overview"))["devices"]
    assert row["state"] == "online"
    assert row["severity"] == "bad"
    network, application = row["reports"]
    assert (network["kind"], application["kind"]) == ("network", "application")
    assert network["headline"]
    assert application["headline"] == "The device could not report anything."
    (request,) = row["requests"]
    assert (request["id"], request["status"], request["requestedBy"]) == (
        request_id,
        "running",
        "test",
    )
    assert request["startedAt"] is not None


async def test_a_newer_report_replaces_an_older_report_in_the_overview(
    service: RunningService,
) -> None:
    device = await enroll(service, "till")
    await device.submit()
    assert (await call_console(service, "summary"))["states"]["broken"] == 1
    await device.submit(HEALTHY_REPORT)
    (row,) = (await call_console(service, "overview"))["devices"]
    assert len(row["reports"]) == 1
    assert row["severity"] == row["reports"][0]["severity"] != "bad"
    assert (await call_console(service, "summary"))["states"]["broken"] == 0


async def test_a_returning_device_is_sorted_among_the_online_devices(
    service: RunningService,
) -> None:
    devices = await enroll_in_each_state(service)
    await devices["gone"].heartbeat()
    assert await list_names(service, state="offline") == []
    assert await list_names(service, state="online") == ["broken", "gone", "healthy"]


async def test_the_overview_lists_only_devices_at_the_locations_of_the_key(
    service: RunningService,
) -> None:
    await enroll_in_each_state(service)
    second = service.make_key(can_write=False, locations=["loc-0002"])
    assert await list_names(service, second) == ["gone", "broken"]
    assert await list_names(service, second, location="loc-0001") == []
    summary = await call_console(service, "summary", second)
    assert summary["states"]["all"] == 2
    assert summary["canWrite"] is False
    foreign = service.make_key(organization_id="org-0002")
    assert await list_names(service, foreign) == []
    assert (await call_console(service, "summary", foreign))["reports"] == []


@pytest.mark.parametrize("call", CALLS)
async def test_each_console_call_requires_a_key(service: RunningService, call: str) -> None:
    reply = await service.post(f"/console/api/{call}", authorization="")
    assert reply.status_code == 401
    assert (await service.http.get(f"/console/api/{call}")).status_code == 405


@pytest.mark.parametrize(
    "body",
    [
        {"search": "\0"},
        {"location": "\ud800"},
        {"size": 0},
        {"size": 201},
        {"state": "x"},
        {"cursor": "x"},
        {"search": "x" * 1025},
        {"x": 1},
    ],
    ids=str,
)
async def test_invalid_filters_are_refused(service: RunningService, body: Any) -> None:
    reply = await service.post("/console/api/overview", json.dumps(body))
    assert reply.status_code == 400


@given(st.text(max_size=300))
def test_search_text_is_accepted_unless_it_has_control_characters_or_surrogates(text: str) -> None:
    body = json.dumps({"search": text}).encode()
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in text):
        with pytest.raises(Refusal):
            parse_body(OverviewRequest, body)
        return
    filters = parse_body(OverviewRequest, body)
    conditions = filter_conditions(filters, datetime.now(UTC), "org-0001")
    query = select(Device.position).where(*conditions)
    # A word is compared with three columns of the device, the names of locations, and the texts of
    # the newest reports.
    assert str(query).count("LIKE") == 5 * min(len(text.split()), WORDS_MAX)


def test_the_summary_of_a_report_that_cannot_be_summarized_is_a_fixed_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(summaries, "headline_of", lambda _: 1 / 0)
    assert summary_of(bare_report()) == Summary("This report cannot be summarized.", "muted")


@pytest.mark.medium
async def test_a_device_has_a_line_for_each_report(service: RunningService) -> None:
    device = await enroll(service, "till")
    request_id = await device.create_request()
    await device.submit(BROKEN_REPORT, requestId=request_id)
    await device.submit(json.loads(encode(hostile_network())))
    detail = await call_console(service, "device", instanceId=device.instance_id)
    assert {line["reportId"] for line in detail["lines"]} == {
        report["reportId"] for report in detail["detail"]["reports"]
    }
    (request,) = detail["detail"]["requests"]
    assert detail["requesters"] == {request["requestedById"]: "test"}
    key_of_other_location = service.make_key(locations=["loc-0002"])
    body = json.dumps({"instanceId": device.instance_id})
    reply = await service.post("/console/api/device", body, api_key=key_of_other_location)
    assert reply.status_code == 403


# ---------------------------------------------------------------------------- changes


class EventReader:
    """Reads the events of a stream directly from the endpoint, without a connection."""

    def __init__(self, events: AsyncIterator[bytes]) -> None:
        self._events = events

    async def next_event(self) -> tuple[str, Any]:
        """Return the name and the data of the next event.

        Raises:
            EOFError: the stream has ended.
        """
        async with asyncio.timeout(TIMEOUT_S):
            async for chunk in self._events:
                if chunk.startswith(b"event: "):
                    name, data = chunk.decode().removeprefix("event: ").split("\ndata: ", 1)
                    return name, json.loads(data)
        raise EOFError

    async def next_row_with(self, **expected: Any) -> Any:
        """Return the next row whose request or device has these values."""
        while True:
            name, row = await self.next_event()
            values = {**row.get("device", {}), **(row.get("requests") or [{}])[0]}
            if name == "device" and expected.items() <= values.items():
                return row


@pytest.fixture(autouse=True)
def _stream_without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_feeds, "SETTLE_S", 0.0)
    monkeypatch.setattr(console_feeds, "POLL_S", 0.05)


@pytest.fixture
async def stream_and_device(
    service: RunningService,
) -> AsyncIterator[tuple[EventReader, SimulatedDevice]]:
    device = await enroll(service, "till")
    positions = service.database.read(
        lambda session: session.scalars(select(Device.position)).all()
    )
    caller = service.caller(service.write_key)
    feeds = service.core.console_feeds
    with feeds.open(caller.organization_id, caller.key_id, positions) as feed:
        events = ChangesEndpoint(service.core)._events(feed)
        async with aclosing(events):
            stream = EventReader(events)
            await stream.next_row_with(legacyInstallId="till")
            yield stream, device


async def test_a_heartbeat_a_request_and_a_report_are_streamed(
    service: RunningService, stream_and_device: tuple[EventReader, SimulatedDevice]
) -> None:
    stream, device = stream_and_device
    service.clock.advance(5)
    received = (await device.heartbeat()).json()["lastSeenAt"]
    await stream.next_row_with(lastSeenAt=received)
    request_id = await device.create_request()
    await stream.next_row_with(id=request_id, status="queued")
    await device.acknowledge(request_id, "running")
    await stream.next_row_with(id=request_id, status="running")
    await device.submit(BROKEN_REPORT, requestId=request_id)
    row = await stream.next_row_with(legacyInstallId="till")
    assert row["requests"] == []
    assert row["reports"][0]["requestId"] == request_id
    assert await stream.next_event() == ("reload", {})


async def test_a_new_device_is_streamed(
    service: RunningService, stream_and_device: tuple[EventReader, SimulatedDevice]
) -> None:
    stream, _ = stream_and_device
    await enroll(service, "another")
    assert await stream.next_event() == ("reload", {})


async def test_an_offline_device_is_streamed(
    service: RunningService, stream_and_device: tuple[EventReader, SimulatedDevice]
) -> None:
    stream, _ = stream_and_device
    service.clock.advance(service.core.settings.online_window_s + 1)
    await mark_offline(service.core)
    row = await stream.next_row_with(legacyInstallId="till")
    assert row["state"] == "never-connected"
    assert await list_names(service, state="never-connected") == ["till"]


async def test_changes_of_another_process_are_streamed(
    service: RunningService, stream_and_device: tuple[EventReader, SimulatedDevice]
) -> None:
    stream, device = stream_and_device
    service.core.console_feeds.notify = lambda *_, **__: None  # type: ignore[method-assign]
    request_id = await device.create_request()
    await stream.next_row_with(id=request_id, status="queued")


async def test_the_stream_ends_when_its_key_is_revoked(
    service: RunningService, stream_and_device: tuple[EventReader, SimulatedDevice]
) -> None:
    stream, _ = stream_and_device
    key_id = service.caller(service.write_key).key_id
    service.database.write(lambda session: revoke_key(session, key_id, service.clock()))
    with pytest.raises(EOFError):
        await stream.next_event()


async def test_the_stream_ends_when_the_service_stops(
    service: RunningService, stream_and_device: tuple[EventReader, SimulatedDevice]
) -> None:
    stream, _ = stream_and_device
    service.core.close_feeds()
    with pytest.raises(EOFError):
        await stream.next_event()


async def test_only_devices_at_the_locations_of_the_caller_are_streamed(
    service: RunningService,
) -> None:
    hidden = await enroll(service, "till")
    own = await enroll(service, "bar", location="loc-0002")
    caller = service.caller(service.make_key(locations=["loc-0002"]))
    body = ChangesRequest(instance_ids=(UUID(hidden.instance_id), UUID(own.instance_id)))
    endpoint = ChangesEndpoint(service.core)
    positions = service.database.read(partial(endpoint._positions, caller, body))
    is_own = Device.instance_id == UUID(own.instance_id)
    assert positions == service.database.read(
        lambda session: session.scalars(select(Device.position).where(is_own)).all()
    )


class CountingPoller:
    """Polls as the service does. While ``is_failing`` is True, the polls fail.

    ``polls`` contains, for each poll, the numbers of changed devices, displayed devices and keys.
    """

    def __init__(self, service: RunningService) -> None:
        self._read_snapshot = service.core._poll_console
        self.polls: list[tuple[int, int, int]] = []
        self.is_failing = False

    async def __call__(
        self, changed: Collection[int], displayed: Collection[int], keys: Collection[UUID]
    ) -> Snapshot:
        self.polls.append((len(changed), len(displayed), len(keys)))
        if self.is_failing:
            raise unavailable("the database is not available")
        return await self._read_snapshot(changed, displayed, keys)


async def test_one_poll_serves_all_consoles(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No regular poll is due during this test, so that only notifications cause polls.
    monkeypatch.setattr(console_feeds, "POLL_S", 2 * TIMEOUT_S)
    await enroll(service, "till")
    other = await enroll(service, "other", location="loc-0002")
    polls = CountingPoller(service)
    feeds = ConsoleFeeds(polls)
    positions = service.database.read(
        lambda session: session.scalars(select(Device.position).order_by(Device.position)).all()
    )
    callers = [
        service.caller(key) for key in (service.write_key, service.make_key(locations=["loc-0002"]))
    ]
    async with asyncio.timeout(TIMEOUT_S):
        with ExitStack() as stack:
            streams = [
                stack.enter_context(feeds.open(caller.organization_id, caller.key_id, positions))
                for caller in callers * 10
            ]
            changes = [await stream.next(TIMEOUT_S) for stream in streams]
            assert polls.polls[0] == (2, 0, 2)
            # A key of one location receives only devices of that location.
            assert {len(rows) for rows, _ in changes[0::2]} == {2}
            assert {len(rows) for rows, _ in changes[1::2]} == {1}
            polls_before = len(polls.polls)
            service.clock.advance(5)
            await other.heartbeat()
            feeds.notify(callers[0].organization_id, positions[1:], is_reordered=False)
            for stream in streams:
                ((row,), _) = await stream.next(TIMEOUT_S)
                assert json.loads(row)["device"]["instanceId"] == other.instance_id
            assert len([poll for poll in polls.polls[polls_before:] if poll[0]]) == 1
        await feeds.wait_for_poll()


async def test_console_streams_continue_after_a_failure_of_the_database(
    service: RunningService,
) -> None:
    await enroll(service, "till")
    polls = CountingPoller(service)
    polls.is_failing = True
    feeds = ConsoleFeeds(polls)
    caller = service.caller(service.write_key)
    async with asyncio.timeout(TIMEOUT_S):
        with feeds.open(caller.organization_id, caller.key_id, (1,)) as stream:
            while len(polls.polls) < 2:
                assert await stream.next(0.01) == ((), False)
            polls.is_failing = False
            while not (await stream.next(0.01))[0]:
                assert not stream.is_ended
        await feeds.wait_for_poll()


async def test_a_console_that_connects_while_the_last_console_disconnects_is_served(
    service: RunningService,
) -> None:
    await enroll(service, "till")
    caller = service.caller(service.write_key)
    subscription = caller.organization_id, caller.key_id, (1,)
    async with asyncio.timeout(TIMEOUT_S):
        for _ in range(3):
            with service.core.console_feeds.open(*subscription) as stream:
                assert len((await stream.next(TIMEOUT_S))[0]) == 1
        with service.core.console_feeds.open(*subscription):
            pass
        with service.core.console_feeds.open(*subscription) as stream:
            assert len((await stream.next(TIMEOUT_S))[0]) == 1


async def test_unchanged_devices_are_not_read_again(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = await enroll(service, "till")
    poller = ConsolePoller(service.core.settings)
    positions_read = list[list[int]]()

    def rows_at(session: Session, positions: list[int], *_: object) -> dict[int, Row]:
        positions_read.append(positions)
        return {}

    monkeypatch.setattr(polling, "rows_at", rows_at)

    def polled_positions() -> list[list[int]]:
        positions_read.clear()
        service.database.read(lambda session: poller.poll(session, service.clock(), (), (1,), ()))
        return list(positions_read)

    # After each change, only the first of two polls reads the device.
    assert (polled_positions(), polled_positions()) == ([[1]], [])
    await device.heartbeat()
    service.clock.advance(1)
    await device.heartbeat()
    assert (polled_positions(), polled_positions()) == ([[1]], [])
    await device.create_request()
    assert (polled_positions(), polled_positions()) == ([[1]], [])
    # A pending request is created, extended and cancelled, and maintenance starts. Nothing notifies
    # the poller of these changes, as if they were made by another process.
    for days in (1, 2):
        until = (service.clock() + timedelta(days=days)).isoformat()
        pending = {"kind": "network", "until": until, "instanceIds": [device.instance_id]}
        reply = await call_console(service, "pending-requests", **pending)
        assert (polled_positions(), polled_positions()) == ([[1]], [])
    (pending_id,) = reply["pendingRequests"]
    await call_console(service, "pending-requests/cancel", pendingRequestId=pending_id)
    assert (polled_positions(), polled_positions()) == ([[1]], [])
    for instance_id in (None, UUID(device.instance_id)):
        now = service.clock()
        window = Maintenance(instance_id, now, now + timedelta(days=1))
        location_key = service.caller(service.write_key).organization_id, "loc-0001"
        service.database.write(
            partial(add_maintenance, location_key=location_key, window=window, reason="")
        )
        assert (polled_positions(), polled_positions()) == ([[1]], [])
    # Nothing happens except that time passes: the request expires, and the device goes offline.
    service.clock.advance(service.core.settings.request_ttl_s + 1)
    assert (polled_positions(), polled_positions()) == ([[1]], [])
