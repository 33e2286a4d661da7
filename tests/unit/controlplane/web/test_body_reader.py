"""Tests of the process that parses large bodies."""

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from agent.wire import routes
from controlplane.operation import body_reader
from controlplane.operation.body_reader import LARGE_BYTES, BodyReader
from controlplane.operation.caller import Caller
from controlplane.operation.errors import Refusal
from controlplane.operation.niceness import NICENESS, lower_priority
from controlplane.settings import Settings
from controlplane.web.admission import SHORT_BYTES, parse_charged
from controlplane.web.background import poll_changes
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.simulated_device import SimulatedDevice
from tests.unit.controlplane.test_process import REPORT
from tests.unit.controlplane.test_workers import is_running
from tests.unit.controlplane.web.body_parsers import (
    kill_process,
    niceness,
    own_pid,
    refuse,
    use_processor_time,
)

pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(sys.platform != "linux", reason="the test reads /proc"),
]

TIMEOUT_S = 20.0
LARGE = REPORT | {"limitations": ["x" * 1000] * 100}
START_PROCESS = body_reader._start_process
"""The function with which the service starts the process. A fixture of all tests replaces it."""


@pytest.fixture(autouse=True)
def _spawned_body_parsers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the processes as the service does. Other tests fork them."""
    monkeypatch.setattr(body_reader, "_start_process", START_PROCESS)


@pytest.fixture
def reader() -> Iterator[BodyReader]:
    reader = BodyReader()
    yield reader
    reader.close()


async def test_large_bodies_are_parsed_in_a_process_with_lower_priority(reader: BodyReader) -> None:
    (first, _), (second, _) = await reader.read(own_pid, b""), await reader.read(own_pid, b"")
    assert first == second != os.getpid()
    least_urgent = 19
    assert (await reader.read(niceness, b""))[0] == min(os.nice(0) + NICENESS, least_urgent)


def test_a_refused_lower_priority_raises_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that parses large bodies starts even if its priority cannot be lowered."""

    def refuse(_increment: int) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "nice", refuse)
    lower_priority()


async def test_the_reader_returns_the_duration_of_the_parsing(reader: BodyReader) -> None:
    _, took_s = await reader.read(use_processor_time, b"")
    assert took_s > 0


async def test_a_refusal_of_the_parsing_process_is_returned_unchanged(reader: BodyReader) -> None:
    refusal, _ = await reader.read(refuse, b"is wrong")
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.code) == (HTTPStatus.BAD_REQUEST, "validation_error")
    assert refusal.errors == {"report": ("is wrong",)}


def test_a_pickled_refusal_is_unchanged() -> None:
    original = Refusal(HTTPStatus.CONFLICT, "code", "words", headers={"Retry-After": "1"})
    assert vars(pickle.loads(pickle.dumps(original))) == vars(original)


async def test_a_process_that_was_killed_is_replaced(reader: BodyReader) -> None:
    first, _ = await reader.read(own_pid, b"")
    os.kill(first, signal.SIGKILL)
    second, _ = await reader.read(own_pid, b"")
    assert second != first


async def test_a_body_that_kills_the_parsing_process_is_refused(reader: BodyReader) -> None:
    with pytest.raises(Refusal) as refused:
        await reader.read(kill_process, b"")
    assert refused.value.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert (await reader.read(use_processor_time, b""))[0] > 0


async def test_sigint_and_sigterm_do_not_end_the_body_parser(reader: BodyReader) -> None:
    pid, _ = await reader.read(own_pid, b"")
    os.kill(pid, signal.SIGINT)
    os.kill(pid, signal.SIGTERM)
    assert (await reader.read(own_pid, b""))[0] == pid


PARENT = """
import asyncio, os
from controlplane.operation.body_reader import BodyReader
from tests.unit.controlplane.web.body_parsers import own_pid
if __name__ == "__main__":
    async def main():
        print((await BodyReader().read(own_pid, b""))[0], flush=True)
        os.kill(os.getpid(), 9)
    asyncio.run(main())
"""
"""A program that prints the id of its body parser, and then kills itself."""


def test_the_body_parser_ends_with_a_killed_service() -> None:
    command = (sys.executable, "-c", PARENT)
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == -signal.SIGKILL, result.stderr
    while is_running(int(result.stdout)):
        pass


class TestService:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(rate_per_s=0, processing_share=0)

    async def test_large_and_small_reports_are_stored_unchanged(
        self, service: RunningService
    ) -> None:
        device = await service.device().enrolled()
        for report in (REPORT, LARGE):
            report_id = (await device.submit(report)).json()["reportId"]
            assert await payload_of(device, report_id) == report
        assert service.core.body_reader.is_running

    async def test_no_process_is_started_for_small_bodies(self, service: RunningService) -> None:
        device = await service.device().enrolled()
        await device.submit(REPORT)
        assert not service.core.body_reader.is_running

    async def test_an_invalid_small_body_does_not_wait_for_a_database_thread(
        self, service: RunningService
    ) -> None:
        await poll_changes(service.core)  # the service uses cached keys only after a poll
        assert (await service.post(routes.LIST_DEVICES)).status_code == 200
        release = threading.Event()
        threads = service.core.settings.worker_threads
        blocking_calls = [
            service.core.run(lambda _transact: release.wait(TIMEOUT_S)) for _ in range(threads)
        ]
        waiting = asyncio.gather(*blocking_calls)
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(TIMEOUT_S / 2):
                refused = await service.post(routes.LIST_DEVICES, b'{"colour": "red"}')
        finally:
            release.set()
            await waiting
        assert (refused.status_code, refused.json()["code"]) == (400, "validation_error")

    @pytest.mark.parametrize(
        ("size", "is_on_event_loop"),
        [(SHORT_BYTES, True), (SHORT_BYTES + 1, False), (LARGE_BYTES, False)],
    )
    async def test_only_a_short_body_is_parsed_on_the_event_loop(
        self, service: RunningService, size: int, is_on_event_loop: bool
    ) -> None:
        caller = Caller(uuid.uuid4(), "org-0001", can_write=True)

        def thread_of(_body: bytes) -> int:
            return threading.get_ident()

        thread = await parse_charged(service.core, caller, thread_of, b"x" * size)
        assert (thread == threading.get_ident()) is is_on_event_loop
        assert not service.core.body_reader.is_running

    async def test_concurrent_large_reports_are_all_accepted(self, service: RunningService) -> None:
        device = await service.device().enrolled()
        replies = await asyncio.gather(*(device.submit(LARGE) for _ in range(8)))
        assert {reply.status_code for reply in replies} == {200}

    @pytest.mark.parametrize("path", ["heartbeat", "onCommands", "listDevices"])
    async def test_a_large_invalid_body_gets_the_same_reply_as_a_small_invalid_body(
        self, service: RunningService, path: str
    ) -> None:
        replies = [
            await service.post(f"/api/public/v1/remoteControl/{path}", body)
            for body in (b'{"x":"' + b"y" * size + b'"}' for size in (1, LARGE_BYTES))
        ]
        small, large = (reply.json() | {"trace_id": ""} for reply in replies)
        assert small == large
        assert service.core.body_reader.is_running


async def payload_of(device: SimulatedDevice, report_id: str) -> object:
    detail = await device.call("/api/public/v1/remoteControl/reportDetail", reportId=report_id)
    return detail.json()["payload"]
