"""Tests of long calls: they run in separate processes, and other calls do not wait for them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.wire import routes
from controlplane.analytics import operations
from controlplane.analytics import routes as figures
from controlplane.devices import reading
from controlplane.operation.errors import Refusal, not_found
from controlplane.operation.niceness import NICENESS
from controlplane.sandbox.loading import load
from controlplane.sandbox.plan import Plan
from controlplane.settings import Settings
from controlplane.storage.database import Database
from controlplane.web.background import poll_changes
from controlplane.web.long_calls import Answer, LongCalls
from tests.unit.controlplane.running_service import FakeClock, RunningService, service_on
from tests.unit.controlplane.test_workers import is_running
from tests.unit.controlplane.web.long_calls import functions
from tests.unit.controlplane.web.long_calls.functions import ONE_PROCESS, call

TIMEOUT_S = 30.0
UNKNOWN_ID = str(uuid.UUID(int=7))
NOW = FakeClock().now
DASHBOARD = json.dumps({"locationId": "loc-0001", "locationMode": "all"})
CALL_A_TOOL = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "business_context"}}
)
SETTINGS = Settings(rate_per_s=0, refusal_delay_s=0)


class TestWaiting:
    @pytest.fixture
    def settings(self) -> Settings:
        return SETTINGS

    @pytest.fixture
    def blocked_dashboards(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
        """Let each dashboard run until the event is set. Then the dashboard is refused."""
        event = threading.Event()

        def wait(*_arguments: object) -> None:
            event.wait(TIMEOUT_S)
            raise not_found("location")

        monkeypatch.setattr(operations, "resolve_query", wait)
        yield event
        event.set()

    @pytest.fixture
    def blocked_lists(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
        """Let each list of devices run until the event is set."""
        event, page = threading.Event(), reading.page

        def wait(*arguments: Any, **options: Any) -> Any:
            event.wait(TIMEOUT_S)
            return page(*arguments, **options)

        monkeypatch.setattr(reading, "page", wait)
        yield event
        event.set()

    async def test_heartbeats_of_other_organizations_do_not_wait_for_figures(
        self, service: RunningService, blocked_dashboards: threading.Event
    ) -> None:
        other = service.make_key(organization_id="org-0002")
        device = await service.device(other).enrolled()
        viewer = service.make_key(can_write=False)
        blocked_calls = [
            asyncio.create_task(service.post(figures.DASHBOARD, DASHBOARD, api_key=viewer))
            for _ in range(service.core.settings.calls_at_once)
        ]
        async with asyncio.timeout(TIMEOUT_S / 2):
            # These calls are admitted before, between and after the dashboards.
            for _ in range(3):
                assert (await device.heartbeat()).status_code == 200
                assert (await service.http.get("/readyz")).status_code == 200
        blocked_dashboards.set()
        replies = await asyncio.gather(*blocked_calls)
        statuses = Counter(reply.status_code for reply in replies)
        # One dashboard ran. The next ones filled the queue of the organization. The queue then
        # refused the last ones.
        waiting_max = service.core.settings.organization_long_calls_max
        assert statuses == {404: 1 + waiting_max, 429: len(replies) - 1 - waiting_max}
        refused = next(reply for reply in replies if reply.status_code == 429)
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json()["code"] == "rate_limited"

    @pytest.mark.parametrize("path", [routes.HEARTBEAT, routes.CURRENT, "/readyz"])
    async def test_calls_of_other_organizations_do_not_wait_for_lists(
        self, service: RunningService, blocked_lists: threading.Event, path: str
    ) -> None:
        device = await service.device(service.make_key(organization_id="org-0002")).enrolled()
        viewers = [service.make_key(can_write=False) for _ in range(3)]
        for api_key in (device.api_key, *viewers):
            await service.post(routes.CURRENT, api_key=api_key)
        blocked_calls = [
            asyncio.create_task(service.post(routes.LIST_DEVICES, api_key=viewer))
            for viewer in viewers
            for _ in range(10)
        ]
        await asyncio.sleep(0)
        async with asyncio.timeout(TIMEOUT_S / 2):
            if path == routes.HEARTBEAT:
                reply = await device.heartbeat()
            elif path == routes.CURRENT:
                reply = await device.call(routes.CURRENT)
            else:
                reply = await service.http.get(path)
        assert reply.status_code == 200
        blocked_lists.set()
        replies = await asyncio.gather(*blocked_calls)
        assert {reply.status_code for reply in replies} == {200}

    async def test_figures_of_other_organizations_do_not_wait_for_a_full_queue(
        self, service: RunningService, blocked_dashboards: threading.Event
    ) -> None:
        viewer = service.make_key(can_write=False)
        blocked_calls = [
            asyncio.create_task(service.post(figures.DASHBOARD, DASHBOARD, api_key=viewer))
            for _ in range(20)
        ]
        other = service.make_key(can_write=False, organization_id="org-0002")
        async with asyncio.timeout(TIMEOUT_S / 2):
            # The fixture does not block this operation.
            body = json.dumps({"locationId": "loc-0001"})
            reply = await service.post(figures.VENUE_FINANCIAL_PULSE, body, api_key=other)
        assert reply.status_code == 404
        blocked_dashboards.set()
        await asyncio.gather(*blocked_calls)


class TestCharging:
    """The fake clock of the threads measures half a second of processor time for each call."""

    CALL_S = 0.5

    @pytest.fixture
    async def service(self, database: Database) -> AsyncIterator[RunningService]:
        settings = Settings(
            refusal_delay_s=0,
            call_share=0.1,
            call_burst_s=2,
            organization_call_share=0.1,
            organization_call_burst_s=3,
        )
        readings: Iterator[float] = iter(index * self.CALL_S for index in range(100_000))
        lock = threading.Lock()

        def thread_time() -> float:
            with lock:
                return next(readings)

        async with service_on(database, settings, FakeClock(), thread_time=thread_time) as running:
            yield running

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            (routes.CURRENT, "{}"),
            (routes.LIST_DEVICES, "{}"),
            (routes.HEARTBEAT, json.dumps({"bindingId": UNKNOWN_ID, "foreground": False})),
            (routes.ON_COMMANDS, "{}"),
            (figures.DASHBOARD, DASHBOARD),
            ("/console/api/overview", "{}"),
            ("/console/report", json.dumps({"reportId": UNKNOWN_ID})),
            ("/api/mcp/v1", CALL_A_TOOL),
        ],
    )  # fmt: skip
    async def test_each_call_is_charged_to_its_key_and_its_organization(
        self, service: RunningService, path: str, body: str
    ) -> None:
        organization_id = f"org-{uuid.uuid4()}"
        keys = [service.make_key(organization_id=organization_id) for _ in range(6)]
        replies = [(await service.post(path, body, api_key=keys[0])).status_code for _ in range(20)]
        assert 429 in replies
        # The bucket of the first key is empty. The calls of the other keys empty the bucket of the
        # organization.
        other_replies = [
            await service.post(path, body, api_key=api_key) for api_key in keys[1:] * 4
        ]
        assert {reply.status_code for reply in other_replies[-len(keys) :]} == {429}
        assert int(other_replies[-1].headers["retry-after"]) >= 1
        other_organization = service.make_key(organization_id=f"org-{uuid.uuid4()}")
        assert (await service.post(path, body, api_key=other_organization)).status_code != 429

    async def test_read_only_keys_at_their_limit_do_not_block_the_devices_of_their_organization(
        self, service: RunningService
    ) -> None:
        organization_id = f"org-{uuid.uuid4()}"
        device = await service.device(service.make_key(organization_id=organization_id)).enrolled()
        for _ in range(12):
            viewer = service.make_key(can_write=False, organization_id=organization_id)
            reply = await service.post(figures.DASHBOARD, DASHBOARD, api_key=viewer)
        assert reply.status_code == 429
        # The enrollment used up the limit of the device's first key.
        device.api_key = service.make_key(organization_id=organization_id)
        assert (await device.heartbeat()).status_code == 200


@pytest.fixture(scope="module")
def shared_process(database: Database) -> Iterator[LongCalls]:
    """A running process, shared by all tests that do not kill the process."""
    long_calls = LongCalls.in_processes(url_of(database), ONE_PROCESS)
    asyncio.run(long_calls.run(call(functions.describe_process)))
    yield long_calls
    long_calls.close()


@pytest.mark.medium
@pytest.mark.skipif(sys.platform != "linux", reason="the test reads /proc")
class TestProcesses:
    @pytest.fixture
    def long_calls(self, database: Database) -> Iterator[LongCalls]:
        long_calls = LongCalls.in_processes(url_of(database), ONE_PROCESS)
        yield long_calls
        long_calls.close()

    async def test_calls_run_in_a_process_with_lower_priority(
        self, shared_process: LongCalls
    ) -> None:
        pid, niceness, result = (await shared_process.run(call(functions.describe_process))).result
        assert pid != os.getpid()
        least_urgent = 19
        assert niceness == min(os.nice(0) + NICENESS, least_urgent)
        assert result == 7

    async def test_an_error_of_a_long_call_is_returned_with_its_processor_time(
        self, shared_process: LongCalls
    ) -> None:
        refused = await shared_process.run(call(functions.refuse))
        assert isinstance(refused.error, Refusal)
        assert refused.error.code == "location_not_found"
        assert refused.processor_s > 0
        failed: Answer = await shared_process.run(call(functions.fail))
        assert isinstance(failed.error, ZeroDivisionError)

    async def test_a_process_that_was_killed_is_replaced(
        self, long_calls: LongCalls, tmp_path: Path
    ) -> None:
        answer = await long_calls.run(call(functions.kill_process_once, tmp_path / "killed"))
        assert answer.error is None
        assert (await long_calls.run(call(functions.describe_process))).result[0] == answer.result

    async def test_a_call_that_kills_its_process_is_refused(self, long_calls: LongCalls) -> None:
        with pytest.raises(Refusal) as refused:
            await long_calls.run(call(functions.kill_process))
        assert (refused.value.status, refused.value.code) == (503, "unavailable")
        calls = [
            call(functions.describe_process, organization_id=organization_id)
            for organization_id in ("org-1", "org-2")
        ]
        assert len(await asyncio.gather(*map(long_calls.run, calls))) == 2

    async def test_a_process_and_a_thread_return_the_same_figures(self, tmp_path: Path) -> None:
        file = tmp_path / "service.db"
        database = Database(str(file))
        plan = Plan(locations=2, days=9, sales_per_day=6, goods=6, until=NOW.date())
        database.write(lambda session: load(session, plan, NOW))
        tool = {"name": "query_sales", "arguments": {"period": "last7", "groupBy": ["day"]}}
        query = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}
        calls = [
            (figures.DASHBOARD, json.dumps({"locationId": "loc-0001", "period": "last7"})),
            (figures.SALES, json.dumps({"locationId": "loc-0001"})),
            (figures.VENUE_FINANCIAL_PULSE, json.dumps({"locationId": "loc-0001"})),
            ("/api/mcp/v1", json.dumps(query)),
            ("/console/report", json.dumps({"reportId": str(uuid.uuid4())})),
        ]
        replies = []
        try:
            for long_calls in (None, LongCalls.in_processes(str(file), ONE_PROCESS)):
                async with service_on(
                    database, SETTINGS, FakeClock(), long_calls=long_calls
                ) as service:
                    await poll_changes(service.core)
                    replies.append([await service.post(*arguments) for arguments in calls])
        finally:
            database.close()
        assert [reply.status_code for reply in replies[0]] == [200, 200, 200, 200, 404]
        for in_thread, in_process in zip(*replies, strict=True):
            assert without_trace(in_process.json()) == without_trace(in_thread.json())

    def test_the_process_of_long_calls_ends_with_a_killed_service(self, tmp_path: Path) -> None:
        command = (sys.executable, "-c", PARENT, str(tmp_path / "service.db"))
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == -signal.SIGKILL, result.stderr
        while is_running(int(result.stdout)):
            pass


PARENT = """
import asyncio, os, sys
from controlplane.web.long_calls import LongCalls
from tests.unit.controlplane.web.long_calls import functions
from tests.unit.controlplane.web.long_calls.functions import ONE_PROCESS, call
if __name__ == "__main__":
    async def main():
        long_calls = LongCalls.in_processes(sys.argv[1], ONE_PROCESS)
        print((await long_calls.run(call(functions.describe_process))).result[0], flush=True)
        os.kill(os.getpid(), 9)
    asyncio.run(main())
"""
"""A program that prints the id of its process for long calls, and then kills itself."""


def url_of(database: Database) -> str:
    return database._engine.url.render_as_string(hide_password=False)


def without_trace(reply: dict[str, Any]) -> dict[str, Any]:
    return reply | {"trace_id": ""}
