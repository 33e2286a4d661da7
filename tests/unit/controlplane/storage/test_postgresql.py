"""Tests of what is particular to PostgreSQL: notifications between two services on one database,
shared transactions, and JIT compilation."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from controlplane.devices.liveness import update_liveness
from controlplane.devices.locations.locations import schedules
from controlplane.devices.priority import ONLINE
from controlplane.settings import Settings
from controlplane.storage.database import Database
from controlplane.storage.monitoring_tables import OfflineInterval
from controlplane.storage.notifications import parse_notification
from controlplane.storage.statements import disable_jit
from controlplane.storage.tables import Device
from controlplane.web.background import background
from controlplane.web.commands import OPENING, RECONNECT_MIN_MS, command_stream
from tests.postgresql import is_transaction_waiting, new_database
from tests.unit.controlplane.running_service import RunningService, service_on

TIMEOUT_S = 300
FROM_LISTENERS = (
    "FROM pg_stat_activity WHERE query LIKE 'LISTEN %' AND state = 'idle'"
    " AND datname = current_database()"
)
LISTENERS = text(f"SELECT pid {FROM_LISTENERS}")
END_LISTENERS = text(f"SELECT pg_terminate_backend(pid) {FROM_LISTENERS}")


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with new_database() as url:
        opened = Database(url)
        yield opened
        opened.close()


@pytest.fixture
def settings() -> Settings:
    """Settings with one poll an hour, so that services receive changes only by notifications."""
    return Settings(rate_per_s=0, keep_alive_s=3600, poll_interval_s=3600)


@asynccontextmanager
async def second_service(service: RunningService) -> AsyncIterator[RunningService]:
    """Run a second service on the same database. Yield it when it can be notified."""
    settings, clock = service.core.settings, service.clock
    async with (
        service_on(service.database, settings, clock) as other,
        background(other.core),
        asyncio.timeout(TIMEOUT_S),
    ):
        while not await other.core.read(lambda session: session.scalars(LISTENERS).all()):
            pass
        yield other


@asynccontextmanager
async def open_command_stream(
    service: RunningService, api_key: str
) -> AsyncIterator[AsyncIterator[bytes]]:
    with service.core.feeds.open(service.caller(api_key).key_id) as stream:
        chunks = command_stream(service.core, stream)
        assert await anext(chunks) == OPENING % RECONNECT_MIN_MS
        yield chunks


@pytest.mark.needs("postgresql")
async def test_a_request_created_at_one_service_is_streamed_by_the_other_service_at_once(
    service: RunningService,
) -> None:
    async with second_service(service) as other:
        device = await service.device().enrolled()
        async with open_command_stream(other, device.api_key) as chunks:
            request_id = await device.create_request()
            assert request_id in (await anext(chunks)).decode()


@pytest.mark.needs("postgresql")
class TestLostNotifications:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(rate_per_s=0, keep_alive_s=3600, poll_interval_s=0.05)

    async def test_a_request_without_a_notification_is_delivered(
        self, service: RunningService, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with second_service(service) as other:
            device = await service.device().enrolled()
            async with open_command_stream(other, device.api_key) as chunks:
                terminated = await other.core.write(
                    lambda session: session.scalars(END_LISTENERS).all()
                )
                assert terminated == [True]
                request_id = await device.create_request()
                assert request_id in (await anext(chunks)).decode()
            # The service reconnects by itself.
            while not await other.core.read(lambda session: session.scalars(LISTENERS).all()):
                pass
        assert "cannot receive messages of the other processes" in caplog.text


@pytest.mark.needs("postgresql")
async def test_a_heartbeat_during_the_evaluation_of_its_device_ends_its_offline_interval(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    await device.heartbeat()
    window = service.core.settings.offline_window
    service.clock.advance(window.total_seconds() + 1)
    with Session(service.database._engine) as session, session.begin():
        by_location = schedules(session, service.clock())
        assert update_liveness(session, by_location, service.clock(), window)
        heartbeat = asyncio.create_task(device.heartbeat())
        while not await asyncio.to_thread(service.database.read, is_transaction_waiting):
            assert not heartbeat.done()
    assert (await heartbeat).status_code == 200
    priority, open_intervals = service.database.read(
        lambda session: (
            session.scalars(select(Device.priority)).one(),
            session.scalars(select(OfflineInterval).where(OfflineInterval.until.is_(None))).all(),
        )
    )
    assert priority in ONLINE
    assert not open_intervals


@pytest.mark.needs("postgresql")
async def test_concurrent_heartbeats_share_a_transaction(service: RunningService) -> None:
    devices = [await service.device().enrolled() for _ in range(20)]

    def now() -> datetime:
        service.clock.advance(0.001)
        return service.clock()

    service.core.clock = now  # each transaction reads the time once
    answers = await asyncio.gather(*(device.heartbeat() for device in devices))
    assert {answer.status_code for answer in answers} == {200}
    transaction_times = {answer.json()["lastSeenAt"] for answer in answers}
    assert len(transaction_times) <= 3


@given(st.text(max_size=200))
def test_any_text_is_parsed_as_a_notification_without_an_error(payload: str) -> None:
    assert isinstance(parse_notification(payload, "me"), tuple)


def test_a_process_ignores_its_own_notifications() -> None:
    key = UUID("0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10")
    assert parse_notification(f"me {key.hex}", "me") == ()
    assert parse_notification(f"another {key.hex}", "me") == (key,)


@pytest.mark.needs("postgresql")
def test_jit_compilation_is_disabled_for_one_transaction(database: Database) -> None:
    def read_setting(session: Session) -> str:
        return str(session.scalar(text("SHOW jit")))

    def disable_and_read_setting(session: Session) -> str:
        disable_jit(session)
        return read_setting(session)

    assert database.read(read_setting) == "on"
    assert database.read(disable_and_read_setting) == "off"
    assert database.read(read_setting) == "on"
