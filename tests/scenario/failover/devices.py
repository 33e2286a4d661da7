"""Simulated devices whose calls go to two hosts of the service, as if a load balancer distributed
them.

Each device keeps a command stream open and submits reports. It selects a host at random for each
call, and tries again after an error. Like the agent, it submits a report again until the report is
accepted, each time with the same report id.
"""

import asyncio
import contextlib
import json
import random
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import httpx2

from agent.wire import routes
from agent.wire.codec import encode
from tests.bench.fleet.fleet import Member
from tests.fixtures.payloads import small_venue

STREAM_SILENT_S = 45.0
"""A stream without data for this time has ended. The service sends a comment every 20 s."""
CALL_S = 5.0
"""Time-out of a call."""
RETRY_S = 1.0
"""Maximum time between a failed call and the next one."""
PAUSE_S = 0.5
"""Time between the acceptance of a report and the next report of the same device."""
REPORT: dict[str, Any] = json.loads(encode(small_venue()))


@dataclass(slots=True)
class Record:
    """What all devices have sent and received.

    Attributes:
        submitted: ids of reports that a device has begun to submit.
        accepted: ids of reports that the service accepted.
        created: ids of requests that the service has created.
        arrived: ids of requests that a stream has delivered.
        failures: number of failed attempts to submit a report.
    """

    submitted: set[str] = field(default_factory=set)
    accepted: set[str] = field(default_factory=set)
    created: set[str] = field(default_factory=set)
    arrived: set[str] = field(default_factory=set)
    failures: int = 0


class FailoverDevice:
    """A simulated device that can call each of the hosts.

    ``streams_at`` is the address of the host to which the stream is open, or None.
    """

    def __init__(self, member: Member, addresses: list[str], record: Record) -> None:
        self.member = member
        self.streams_at: str | None = None
        self.reported_s = 0.0
        """When the last report was accepted, by `time.monotonic`."""
        self._addresses = addresses
        self._record = record
        self._headers = {"Authorization": f"Bearer {member.api_key}"}

    async def run(self) -> None:
        """Call the service until cancelled."""
        async with (
            httpx2.AsyncClient(timeout=CALL_S, headers=self._headers) as http,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(self._stream(http))
            group.create_task(self._report(http))

    async def create_request(self, http: httpx2.AsyncClient, address: str) -> str:
        """Create a request for this device at the host ``address``. Raises httpx2.HTTPError."""
        body = {"instanceId": str(self.member.instance_id), "kind": "network"}
        reply = await http.post(address + routes.CREATE_REQUEST, json=body, headers=self._headers)
        reply.raise_for_status()
        request_id = str(reply.json()["requestId"])
        self._record.created.add(request_id)
        return request_id

    async def _stream(self, http: httpx2.AsyncClient) -> None:
        while True:
            for address in self._shuffled():
                with contextlib.suppress(httpx2.HTTPError):
                    await self._read_stream(http, address)
                self.streams_at = None
                await asyncio.sleep(random.uniform(0, RETRY_S))

    async def _read_stream(self, http: httpx2.AsyncClient, address: str) -> None:
        headers = self._headers | {"Accept": "text/event-stream"}
        timeout = httpx2.Timeout(CALL_S, read=STREAM_SILENT_S)
        async with http.stream(
            "POST", address + routes.ON_COMMANDS, json={}, headers=headers, timeout=timeout
        ) as stream:
            stream.raise_for_status()
            self.streams_at = address
            async for line in stream.aiter_lines():
                if line.startswith("id: "):
                    self._record.arrived.add(line.removeprefix("id: "))

    async def _report(self, http: httpx2.AsyncClient) -> None:
        while True:
            report_id = str(uuid.uuid4())
            self._record.submitted.add(report_id)
            while not await self._submit(http, report_id):  # noqa: ASYNC110 - each try is a call
                await asyncio.sleep(random.uniform(0, RETRY_S))
            self._record.accepted.add(report_id)
            self.reported_s = time.monotonic()
            await asyncio.sleep(PAUSE_S)

    async def _submit(self, http: httpx2.AsyncClient, report_id: str) -> bool:
        body = {
            "bindingId": str(self.member.binding_id),
            "reportId": report_id,
            "kind": "network",
            "outcome": "completed",
            "report": REPORT | {"reportId": report_id},
        }
        try:
            address = random.choice(self._addresses)
            reply = await http.post(address + routes.SUBMIT_RESULT, json=body)
        except httpx2.HTTPError:
            self._record.failures += 1
            return False
        self._record.failures += reply.status_code != 200
        return reply.status_code == 200

    def _shuffled(self) -> list[str]:
        return random.sample(self._addresses, len(self._addresses))
