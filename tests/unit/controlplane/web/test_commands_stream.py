"""Tests of `onCommands` as a stream of server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.orm import Session

from agent.wire import routes
from agent.wire.operator_operations import CreateRequestReply, CreateRequestRequest
from controlplane.accounts.keys import key_store
from controlplane.devices.requests.requests import create_request
from controlplane.operation.context import RequestContext
from controlplane.settings import Settings
from controlplane.web.background import background
from controlplane.web.commands import (
    KEEP_ALIVE,
    OPENING,
    RECONNECT_MAX_MS,
    RECONNECT_MIN_MS,
    command_stream,
    prefers_stream,
    reconnect_ms,
)
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.simulated_device import SimulatedDevice

TIMEOUT_S = 300


@pytest.fixture
def settings() -> Settings:
    """Settings with one keep-alive message an hour, so that only new requests wake a stream."""
    return Settings(rate_per_s=0, keep_alive_s=3600)


class Stream:
    """Reads a command stream chunk by chunk."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks

    async def next_chunk(self) -> bytes:
        async with asyncio.timeout(TIMEOUT_S):
            return await anext(self._chunks)

    async def next_request_id(self) -> str:
        lines = (await self.next_chunk()).decode().splitlines()
        assert lines[0] == "event: command"
        command = json.loads(lines[2].removeprefix("data: "))
        assert lines[1] == f"id: {command['requestId']}"
        return str(command["requestId"])

    async def has_ended(self) -> bool:
        """Return True if the stream ends, False if it sends anything but keep-alive messages."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while await self.next_chunk() == KEEP_ALIVE % RECONNECT_MIN_MS:
                    pass
        except StopAsyncIteration:
            return True
        return False


@asynccontextmanager
async def open_stream(service: RunningService, api_key: str) -> AsyncIterator[Stream]:
    with service.core.feeds.open(service.caller(api_key).key_id) as opened:
        stream = Stream(command_stream(service.core, opened))
        assert await stream.next_chunk() == OPENING % RECONNECT_MIN_MS
        yield stream


async def test_a_stream_sends_waiting_requests_first_and_new_requests_at_once(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    first = await device.create_request()
    async with open_stream(service, device.api_key) as stream:
        assert await stream.next_request_id() == first
        waiting = asyncio.create_task(stream.next_request_id())
        second = await device.create_request()
        assert await waiting == second


async def test_a_new_stream_repeats_requests_that_are_not_running(service: RunningService) -> None:
    device = await service.device().enrolled()
    requests = [await device.create_request() for _ in range(3)]
    await device.acknowledge(requests[1], "received")
    await device.acknowledge(requests[2], "running")
    for _ in range(2):
        async with open_stream(service, device.api_key) as stream:
            assert [await stream.next_request_id() for _ in range(2)] == requests[:2]


async def test_a_stream_sends_no_requests_of_devices_of_other_keys(service: RunningService) -> None:
    device = await service.device().enrolled()
    other = await service.device(service.make_key()).enrolled()
    async with open_stream(service, other.api_key) as stream:
        await device.create_request()
        own_request = await other.create_request()
        assert await stream.next_request_id() == own_request


async def test_two_streams_of_one_key_send_the_same_requests(service: RunningService) -> None:
    device = await service.device().enrolled()
    async with (
        open_stream(service, device.api_key) as first,
        open_stream(service, device.api_key) as second,
    ):
        request = await device.create_request()
        assert await first.next_request_id() == await second.next_request_id() == request
        assert service.core.feeds.count == 2
    assert service.core.feeds.count == 0


async def test_a_stream_ends_when_the_service_stops(service: RunningService) -> None:
    async with open_stream(service, service.write_key) as stream:
        ended = asyncio.create_task(stream.has_ended())
        service.core.feeds.close()
        assert await ended


async def test_a_stream_that_opens_while_the_service_stops_ends_at_once(
    service: RunningService,
) -> None:
    service.core.feeds.close()
    async with open_stream(service, service.write_key) as stream:
        assert await stream.has_ended()


def create_request_without_notification(service: RunningService, device: SimulatedDevice) -> str:
    """Create a request in the database without a notification to this process."""
    caller = service.caller(device.api_key)
    body = CreateRequestRequest(instance_id=UUID(device.instance_id), kind="network")

    def work(session: Session) -> CreateRequestReply:
        context = RequestContext(session, caller, service.clock(), service.core.settings)
        return create_request(context, body)

    return str(service.database.write(work).request_id)


class TestQuickPolls:
    """Tests with the background loop that polls for changes that other processes stored."""

    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(
            rate_per_s=0, poll_interval_s=0.01, keep_alive_s=0.03, streams_max=1, refusal_delay_s=0
        )

    @pytest.fixture(autouse=True)
    async def poll_loop(self, service: RunningService) -> AsyncIterator[None]:
        async with background(service.core):
            yield

    async def test_an_idle_stream_is_kept_alive(self, service: RunningService) -> None:
        async with open_stream(service, service.write_key) as stream:
            assert await stream.next_chunk() == KEEP_ALIVE % RECONNECT_MIN_MS
            assert await stream.next_chunk() == KEEP_ALIVE % RECONNECT_MIN_MS

    async def test_more_open_streams_get_a_longer_reconnection_time(
        self, service: RunningService
    ) -> None:
        async with open_stream(service, service.write_key) as stream:
            service.core.feeds.count = 10_000
            assert await stream.next_chunk() == KEEP_ALIVE % 50_000

    async def test_a_request_of_another_process_is_delivered(self, service: RunningService) -> None:
        device = await service.device().enrolled()
        async with open_stream(service, device.api_key) as stream:
            assert await stream.next_chunk() == KEEP_ALIVE % RECONNECT_MIN_MS
            request = create_request_without_notification(service, device)
            while (chunk := await stream.next_chunk()) == KEEP_ALIVE % RECONNECT_MIN_MS:
                pass
            assert request in chunk.decode()

    async def test_a_stream_ends_when_its_key_is_revoked(self, service: RunningService) -> None:
        key = service.make_key()
        key_id = service.caller(key).key_id
        async with open_stream(service, key) as stream:
            service.database.write(
                lambda session: key_store.revoke_key(session, key_id, service.clock())
            )
            assert await stream.has_ended()

    async def test_the_number_of_command_streams_is_limited(self, service: RunningService) -> None:
        with service.core.fairness.stream(service.caller(service.write_key)):
            refused = await service.post(routes.ON_COMMANDS, accept="text/event-stream")
            assert refused.status_code == 503
            reply = await service.post(routes.ON_COMMANDS, accept="application/json")
            assert reply.json() == {"commands": []}


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("text/event-stream", True),
        ("text/event-stream, application/json", True),
        ("application/json, text/event-stream", True),
        ("Text/Event-Stream;q=1", True),
        ("application/json", False),
        ("*/*", False),
        ("", False),
        ("text/event-stream;q=0", False),
        ("application/json, text/event-stream;q=0.5", False),
        ("text/event-stream;q=what", False),
    ],
)
def test_the_accept_header_selects_a_stream_or_a_reply(accept: str, expected: bool) -> None:
    assert prefers_stream(accept) is expected


@given(st.text(max_size=60))
def test_every_accept_header_is_parsed(accept: str) -> None:
    assert prefers_stream(accept) in {True, False}


@pytest.mark.parametrize(
    ("streams", "expected"),
    [(0, RECONNECT_MIN_MS), (600, 3000), (10_000, 50_000), (16_384, RECONNECT_MAX_MS)],
)
def test_the_reconnection_time_grows_with_the_number_of_streams(
    streams: int, expected: int
) -> None:
    assert reconnect_ms(streams) == expected
