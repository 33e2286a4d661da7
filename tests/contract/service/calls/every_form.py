"""Calls whose replies contain each field in each form, such as null, that the contract permits.

They create and read devices, requests and reports. docs/service.md does not print these calls as
examples, but a test compares the forms in their replies with the contract (`coverage.reply_forms`).
Payloads are generated at random from the schemas that were transcribed from the contract.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx2

from agent.wire import routes
from controlplane.settings import Settings
from controlplane.web.webhooks.sending import send_due
from controlplane.web.webhooks.tracker import TrackerOutbox
from tests.contract.service.calls.recorder import Recorder
from tests.fakes.remote_control.random_documents import random_document
from tests.fakes.schemas.contract import (
    APPLICATION_PAYLOAD,
    BROWSER_AVAILABLE,
    BROWSER_NOT_AVAILABLE,
    NETWORK_PAYLOAD,
)
from tests.unit.controlplane.running_service import RunningService, service_on
from tests.unit.controlplane.simulated_device import SimulatedDevice

PAYLOADS: Final = (("network", NETWORK_PAYLOAD), ("application", APPLICATION_PAYLOAD))
OUTCOMES: Final = ("completed", "partial", "failed")
PAYLOAD_COUNT: Final = 40
"""Number of random payloads of each kind that are submitted."""
TRACKER_SETTINGS: Final = Settings(
    rate_per_s=0, tracker_url="http://tracker.invalid/hook", tracker_attempts_max=1
)


async def record(recorder: Recorder) -> None:
    with _recorded(recorder, recorder.service):
        await _call_for_devices(recorder.service)
        await _call_for_requests(recorder.service)
        await _call_for_payloads(recorder.service)
    async with service_on(
        recorder.service.database, TRACKER_SETTINGS, recorder.service.clock
    ) as service:
        with _recorded(recorder, service):
            await _call_with_tracker(service)


@contextmanager
def _recorded(recorder: Recorder, service: RunningService) -> Iterator[None]:
    """Record the replies of ``service`` to all calls as long as the context lasts."""

    async def keep(reply: httpx2.Response) -> None:
        recorder.replies.append(reply)

    hooks = service.http.event_hooks
    service.http.event_hooks = {**hooks, "response": [*hooks["response"], keep]}
    try:
        yield
    finally:
        service.http.event_hooks = hooks


async def _call_for_devices(service: RunningService) -> None:
    key = service.make_key(organization_id="org-0003")
    for platform in ("android", "ios", "macos", "windows", "linux"):
        device = service.device(key, location_id="loc-new")
        body = {
            "instanceId": device.instance_id,
            "publicKey": device.public_key,
            "platform": platform,
            "locationId": "loc-new",
            "legacyInstallId": "till-01",
            "capabilities": [],
        }
        await device.answer(await device.call(routes.CHALLENGE, **body))
        await device.call(routes.CURRENT)
        await device.detail()
    await device.call(routes.REVOKE, instanceId=device.instance_id)
    await device.detail()
    await service.device(service.make_key()).call(routes.CURRENT)
    await service.post(routes.LIST_DEVICES, api_key=key, prefer="maxpagesize=1")


async def _call_for_requests(service: RunningService) -> None:
    """Create requests in every status, and reports of every outcome, with and without a reason."""
    device = await service.device().enrolled()
    await device.create_request()
    service.clock.advance(service.core.settings.request_ttl_s)
    for outcome in OUTCOMES:
        request = await device.create_request()
        await device.submit(_payload("network", 0), requestId=request, outcome=outcome)
    for reason in ("collection-failed", "execution-interrupted"):
        reply = await device.submit(failureReason=reason)
        await device.call(routes.REPORT_DETAIL, reportId=reply.json()["reportId"])
    await device.create_request()
    for status in ("received", "running"):
        await device.acknowledge(await device.create_request(), status)
    await device.detail()
    body = f'{{"instanceId": "{device.instance_id}"}}'
    await service.post(routes.DEVICE_DETAIL, body, prefer="maxpagesize=1")


def _payload(kind: str, seed: int) -> Any:
    return random_document(dict(PAYLOADS)[kind], random.Random(seed))


async def _call_for_payloads(service: RunningService) -> None:
    device = await service.device().enrolled()
    for number, (kind, payload) in enumerate(_random_payloads()):
        reply = await device.submit(payload, kind=kind, outcome=OUTCOMES[number % len(OUTCOMES)])
        assert reply.status_code == 200, reply.text
        detail = await device.call(routes.REPORT_DETAIL, reportId=reply.json()["reportId"])
        assert detail.json()["payload"] == payload


def _random_payloads() -> Iterator[tuple[str, Any]]:
    for kind, _ in PAYLOADS:
        for seed in range(PAYLOAD_COUNT):
            yield kind, _payload(kind, seed)
    rng = random.Random(PAYLOAD_COUNT)
    for entry in (BROWSER_AVAILABLE, BROWSER_NOT_AVAILABLE):
        keys = entry["properties"]["key"]["enum"]
        fields = [random_document(entry, rng) | {"key": key} for key in keys]
        yield "application", _payload("application", PAYLOAD_COUNT) | {"browserFields": fields}


async def _call_with_tracker(service: RunningService) -> None:
    """Submit a report before and after the attempt to send its event to the tracker.

    A repeated submission of a report returns its current tracker status. The tracker accepts the
    event (204), or refuses it (503).
    """
    for answer in (204, 503):
        device = await service.device().enrolled()
        body = {"reportId": f"00000000-0000-4000-8000-000000000{answer}"}
        for _ in range(2):
            await _submit_and_read(device, body)
            transport = httpx2.MockTransport(lambda _: httpx2.Response(answer))  # noqa: B023
            async with httpx2.AsyncClient(transport=transport) as http:
                await send_due(service.core, http, TrackerOutbox(service.core.settings))
        await _submit_and_read(device, body)


async def _submit_and_read(device: SimulatedDevice, body: dict[str, str]) -> None:
    await device.submit(**body)
    await device.detail()
    await device.call(routes.REPORT_DETAIL, **body)
