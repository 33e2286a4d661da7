"""Helpers that run the service in another process and let simulated devices answer requests."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from agent.wire import routes
from agent.wire.codec import encode
from tests.fixtures.payloads import application_snapshot, small_venue
from tests.unit.controlplane.simulated_device import SimulatedDevice
from tests.unit.controlplane.test_process import start, stop

TIMEOUT_S = 300
REPORTS = {
    "network": json.loads(encode(small_venue())),
    "application": json.loads(encode(application_snapshot())),
}


@dataclass(frozen=True)
class ServiceProcess:
    """How to reach a service that runs in another process."""

    url: str
    api_key: str
    database: str

    def as_environment(self) -> dict[str, str]:
        return {
            "VENUE_CONTROL_URL": self.url,
            "VENUE_CONTROL_API_KEY": self.api_key,
            "VENUE_CONTROL_DATABASE": self.database,
        }


@contextmanager
def service_process(database: Path, *options: str) -> Iterator[ServiceProcess]:
    process = start(str(database), *options)
    try:
        yield ServiceProcess(process.url, process.api_key, process.database)
    finally:
        stop(process)


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run `venue-control` in another process until it ends."""
    return subprocess.run(
        [sys.executable, "-m", "controlplane", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        stdin=subprocess.DEVNULL,
        env=os.environ | environment,
    )


async def run_in_thread(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Call `run` in a thread, so that the event loop continues."""
    return await asyncio.to_thread(lambda: run(*arguments, **environment))


async def enroll(http: httpx2.AsyncClient, key: str, name: str, **changes: Any) -> SimulatedDevice:
    device = SimulatedDevice(http, key, changes.pop("locationId", "loc-0001"))
    fields = {"legacyInstallId": name, "locationId": device.location_id, **changes}
    response = await device.enroll(**fields)
    assert response.status_code == 200, response.text
    device.binding_id = response.json()["bindingId"]
    return device


@asynccontextmanager
async def answering(
    devices: Sequence[SimulatedDevice], outcome: str = "completed"
) -> AsyncIterator[list[str]]:
    """Let the devices answer requests inside the context.

    Yield a list to which the id of each answered request is added.
    """
    answered_ids: list[str] = []
    tasks = [asyncio.create_task(_answer(device, outcome, answered_ids)) for device in devices]
    try:
        yield answered_ids
    finally:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(result, asyncio.CancelledError), result


async def _answer(device: SimulatedDevice, outcome: str, answered_ids: list[str]) -> None:
    """Answer the requests for one device.

    The stream contains the requests for all devices that use the same API key.
    """
    headers = {"Authorization": f"Bearer {device.api_key}", "Accept": "text/event-stream"}
    async with device.http.stream(
        "POST", routes.ON_COMMANDS, json={}, headers=headers, timeout=None
    ) as stream:
        async for line in stream.aiter_lines():
            if not line.startswith("data: "):
                continue
            command = json.loads(line.removeprefix("data: "))
            if command.get("bindingId") == device.binding_id:
                await _serve(device, command, outcome)
                answered_ids.append(command["requestId"])


async def _serve(device: SimulatedDevice, command: dict[str, Any], outcome: str) -> None:
    for status in ("received", "running"):
        await device.acknowledge(command["requestId"], status)
    kind = command["kind"]
    report = None if outcome == "failed" else REPORTS[kind]
    fields: dict[str, Any] = {"requestId": command["requestId"], "outcome": outcome, "kind": kind}
    if outcome == "failed":
        fields["failureReason"] = "collection-failed"
    reply = await device.submit(report, **fields)
    assert reply.status_code == 200, reply.text
