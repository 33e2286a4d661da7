"""Tests of the limits on the total size of the reports of one day."""

import asyncio
import json
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select

from agent.config.model import Limits
from agent.errors import Throttled
from agent.rules.replies import error_of
from agent.rules.retry import RETRY_AFTER_MAX_S
from agent.wire.codec import encode
from controlplane.remote_control.report_volume import ROW_BYTES, delete_old_volumes
from controlplane.settings import Settings
from controlplane.storage.tables import ReportVolume
from tests.fixtures.payloads import small_venue
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.simulated_device import SimulatedDevice

REPORT: dict[str, Any] = json.loads(encode(small_venue()))
SIZE = len(json.dumps(REPORT, separators=(",", ":"), ensure_ascii=False).encode()) + ROW_BYTES
"""The number of bytes that ``REPORT`` uses of a limit."""
DAY_S = 86_400
MINUTES_A_DAY = 24 * 60


class TestDeviceLimit:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(rate_per_s=0, refusal_delay_s=0, device_report_bytes=2 * SIZE)

    async def test_a_report_refused_above_the_limit_is_accepted_on_the_next_day(
        self, service: RunningService
    ) -> None:
        device, other = [await service.device().enrolled() for _ in range(2)]
        for _ in range(2):
            assert (await device.submit(REPORT)).status_code == 200
        request_id = await device.create_request()
        await device.acknowledge(request_id, "running")
        ids = {"reportId": str(uuid.uuid4()), "requestId": request_id}
        refused = await device.submit(REPORT, **ids)
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        assert refused.json()["detail"].startswith("this device has sent its ")
        assert await device.status_of(request_id) == "running"
        assert (await other.submit(REPORT)).status_code == 200
        service.clock.advance(DAY_S)
        assert (await device.submit(REPORT, **ids)).status_code == 200
        assert await device.status_of(request_id) == "completed"

    async def test_the_agent_accepts_the_wait_that_the_refusal_requires(
        self, service: RunningService
    ) -> None:
        device = await service.device().enrolled()
        replies = [await device.submit(REPORT) for _ in range(3)]
        headers = {name.lower(): value for name, value in replies[-1].headers.items()}
        error = error_of(replies[-1].status_code, headers, replies[-1].content, datetime.now(UTC))
        assert isinstance(error, Throttled)
        assert error.retry_after_s is not None
        assert 0 < error.retry_after_s <= RETRY_AFTER_MAX_S

    async def test_the_wait_ends_soon_after_midnight(self, service: RunningService) -> None:
        service.clock.advance(DAY_S / 2 - 60)  # from noon to one minute before midnight
        device = await service.device().enrolled()
        replies = [await device.submit(REPORT) for _ in range(3)]
        assert 60 <= int(replies[-1].headers["retry-after"]) <= 120

    async def test_a_repeated_report_counts_only_once(self, service: RunningService) -> None:
        device = await service.device().enrolled()
        repeated = {"reportId": str(uuid.uuid4())}
        for _ in range(5):
            assert (await device.submit(REPORT, **repeated)).status_code == 200
        assert (await device.submit(REPORT)).status_code == 200
        assert (await device.submit(REPORT)).status_code == 429
        assert (await device.submit(REPORT, **repeated)).status_code == 200

    async def test_concurrent_reports_do_not_exceed_the_limit(
        self, service: RunningService
    ) -> None:
        device = await service.device().enrolled()
        replies = await asyncio.gather(*(device.submit(REPORT) for _ in range(8)))
        assert sorted(reply.status_code for reply in replies) == [200] * 2 + [429] * 6

    async def test_a_report_without_content_counts_too(self, service: RunningService) -> None:
        device = await service.device().enrolled()
        replies = [await device.submit() for _ in range(2 * SIZE // ROW_BYTES + 2)]
        assert replies[-1].status_code == 429

    async def test_the_first_report_of_a_day_can_be_larger_than_the_limit(
        self, service: RunningService
    ) -> None:
        device = await service.device().enrolled()
        large = REPORT | {"limitations": ["x" * 1000] * (2 * SIZE // 1000)}
        assert (await device.submit(large)).status_code == 200
        assert (await device.submit(REPORT)).status_code == 429


class TestOrganizationLimit:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(rate_per_s=0, refusal_delay_s=0, organization_report_bytes=3 * SIZE)

    async def test_new_devices_and_keys_share_the_limit_of_their_organization(
        self, service: RunningService
    ) -> None:
        async def submit(**organization: str) -> int:
            device = await service.device(service.make_key(**organization)).enrolled()
            return (await device.submit(REPORT)).status_code

        assert [await submit() for _ in range(5)] == [200, 200, 200, 429, 429]
        assert await submit(organization_id="org-0002") == 200

    async def test_the_sizes_of_past_days_are_deleted(
        self, service: RunningService, settings: Settings
    ) -> None:
        device: SimulatedDevice = await service.device().enrolled()
        await device.submit(REPORT)
        service.clock.advance(DAY_S)
        await device.submit(REPORT)
        service.database.write(lambda session: delete_old_volumes(session, service.clock()))
        rows = service.database.read(lambda session: session.scalars(select(ReportVolume)).all())
        assert [row.stored_bytes for row in rows] == [SIZE, SIZE]
        assert {row.instance for row in rows} == {"", device.instance_id}


class TestDefaults:
    def test_no_agent_reaches_the_limit_of_a_device(self) -> None:
        """A cron expression allows at most one report of each kind per minute."""
        largest = Limits().max_report_bytes + ROW_BYTES
        assert 2 * MINUTES_A_DAY * largest < Settings().device_report_bytes
        assert Settings().device_report_bytes < Settings().organization_report_bytes

    def test_ten_thousand_devices_do_not_reach_the_limit_of_an_organization(self) -> None:
        """A usual report has 20 KiB. A device sends one every half hour, and six more each day."""
        usual = 20 * 1024 + ROW_BYTES
        assert 10_000 * (48 + 6) * usual < Settings().organization_report_bytes


class TestNoLimit:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(rate_per_s=0, device_report_bytes=0, organization_report_bytes=0)

    async def test_zero_means_no_limit(self, service: RunningService) -> None:
        device = await service.device().enrolled()
        for _ in range(3):
            assert (await device.submit(REPORT)).status_code == 200
