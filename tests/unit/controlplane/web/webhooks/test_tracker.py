"""Tests of the webhook that the service calls for each report."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx2
import pytest

from agent.wire import routes
from controlplane.settings import Settings
from controlplane.web.webhooks.sending import BATCH, backoff_s, send_due
from controlplane.web.webhooks.tracker import TrackerOutbox
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.simulated_device import SimulatedDevice

URL = "http://tracker.invalid/hook"


class Webhook:
    """A webhook that returns the given answers in order, and then repeats the last answer.

    ``headers`` are the headers of each reply.
    """

    def __init__(self, *answers: int | Exception) -> None:
        self.answers = list(answers)
        self.headers: dict[str, str] = {}
        self.received: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.received.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx2.Response(answer, headers=self.headers)


@pytest.fixture
def settings() -> Settings:
    return Settings(rate_per_s=0, tracker_url=URL, tracker_attempts_max=3)


@asynccontextmanager
async def client(
    webhook: Callable[[httpx2.Request], httpx2.Response],
) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(webhook)) as http:
        yield http


async def tracker_state(device: SimulatedDevice, report_id: str) -> tuple[str, int]:
    detail = (await device.call(routes.REPORT_DETAIL, reportId=report_id)).json()
    return detail["trackerStatus"], detail["trackerAttempts"]


async def submit_report(service: RunningService) -> tuple[SimulatedDevice, str]:
    device = await service.device().enrolled()
    reply = (await device.submit()).json()
    assert reply["trackerStatus"] == "pending"
    return device, reply["reportId"]


async def test_a_report_is_sent_once(service: RunningService) -> None:
    device, report_id = await submit_report(service)
    webhook = Webhook(204)
    async with client(webhook) as http:
        assert await send_due(service.core, http, TrackerOutbox(service.core.settings)) == 1
        service.clock.advance(86400)
        assert await send_due(service.core, http, TrackerOutbox(service.core.settings)) == 0
    assert await tracker_state(device, report_id) == ("sent", 1)
    (request,) = webhook.received
    event = json.loads(request.content)
    assert (str(request.url), event["reportId"]) == (URL, report_id)
    assert request.headers["idempotency-key"] == event["eventId"]
    (summary,) = (await device.detail())["reports"]
    assert summary["trackerEventId"] == event["eventId"]
    assert "payload" not in event


async def test_a_failed_attempt_is_repeated_after_the_time_that_the_tracker_requests(
    service: RunningService,
) -> None:
    await submit_report(service)
    webhook = Webhook(503, 204)
    webhook.headers["Retry-After"] = "60"
    async with client(webhook) as http:
        assert await send_due(service.core, http, TrackerOutbox(service.core.settings)) == 1
        service.clock.advance(59)
        assert await send_due(service.core, http, TrackerOutbox(service.core.settings)) == 0
        service.clock.advance(2)
        assert await send_due(service.core, http, TrackerOutbox(service.core.settings)) == 1


async def test_a_failed_attempt_is_repeated_later_with_the_same_event(
    service: RunningService,
) -> None:
    device, report_id = await submit_report(service)
    webhook = Webhook(500, httpx2.ConnectError("refused"), 200)
    async with client(webhook) as http:
        await send_due(service.core, http, TrackerOutbox(service.core.settings))
        assert await send_due(service.core, http, TrackerOutbox(service.core.settings)) == 0
        assert await tracker_state(device, report_id) == ("pending", 1)
        service.clock.advance(backoff_s(1))
        await send_due(service.core, http, TrackerOutbox(service.core.settings))
        assert await tracker_state(device, report_id) == ("pending", 2)
        service.clock.advance(backoff_s(2))
        await send_due(service.core, http, TrackerOutbox(service.core.settings))
    assert await tracker_state(device, report_id) == ("sent", 3)
    assert len({request.headers["idempotency-key"] for request in webhook.received}) == 1


async def test_the_number_of_attempts_is_limited(service: RunningService) -> None:
    device, report_id = await submit_report(service)
    webhook = Webhook(503)
    async with client(webhook) as http:
        for _ in range(6):
            await send_due(service.core, http, TrackerOutbox(service.core.settings))
            service.clock.advance(3600)
    assert await tracker_state(device, report_id) == ("failed", 3)
    assert len(webhook.received) == 3


async def test_an_attempt_that_ends_with_a_crash_is_counted(service: RunningService) -> None:
    device, report_id = await submit_report(service)

    async def crash(request: httpx2.Request) -> httpx2.Response:
        raise RuntimeError("the process dies here")

    async with client(crash) as http:  # type: ignore[arg-type]
        for _ in range(3):
            with pytest.raises(ExceptionGroup):
                await send_due(service.core, http, TrackerOutbox(service.core.settings))
            service.clock.advance(3600)
    assert await tracker_state(device, report_id) == ("pending", 3)
    async with client(Webhook(200)) as http:
        assert await send_due(service.core, http, TrackerOutbox(service.core.settings)) == 0
    assert await tracker_state(device, report_id) == ("failed", 3)


async def test_an_attempt_ends_if_the_webhook_does_not_answer_in_time(
    service: RunningService,
) -> None:
    device, report_id = await submit_report(service)
    service.core.settings = replace(service.core.settings, delivery_timeout_s=0.01)

    async def never_answer(request: httpx2.Request) -> httpx2.Response:
        await asyncio.Event().wait()
        return httpx2.Response(204)

    async with client(never_answer) as http:  # type: ignore[arg-type]
        assert await send_due(service.core, http, TrackerOutbox(service.core.settings)) == 1
    assert await tracker_state(device, report_id) == ("pending", 1)


async def test_reports_are_sent_in_bounded_batches(service: RunningService) -> None:
    device = await service.device().enrolled()
    for _ in range(BATCH + 1):
        await device.submit()
    async with client(Webhook(200)) as http:
        assert await send_due(service.core, http, TrackerOutbox(service.core.settings)) == BATCH
        assert await send_due(service.core, http, TrackerOutbox(service.core.settings)) == 1


def test_waits_between_attempts_grow_up_to_a_limit() -> None:
    waits = [backoff_s(attempt) for attempt in range(1, 20)]
    assert waits[:4] == [5, 10, 20, 40]
    assert waits == sorted(waits)
    assert waits[-1] == 600
