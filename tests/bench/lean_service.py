"""A service that needs almost no processor time, to measure the agent.

It implements the contract over plain HTTP, without a database, in a separate process. It creates
each request some time after the previous report arrived, so that the device idles in between. Times
are from CLOCK_MONOTONIC, in seconds. ``requested`` is the time right before the service sends the
command. Each other time is the time at which the service has read a call of the device.

Usage: python -m tests.bench.lean_service REQUESTS RARE. It prints its address, and at the end one
line of JSON with the `RequestTimes` of REQUESTS consecutive requests and of RARE rare requests.
Before each rare request, the device idles until it has released memory.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Any

from agent.app import RELEASE_MEMORY_AFTER_S
from tests.fakes.http_server import Reply, Request
from tests.fakes.strict_service import StrictService

WARM_UP = 5
"""Number of first requests that are not counted, because the agent imports modules for them."""
PAUSE_S = (0.05, 0.15)
"""Shortest and longest pause before a request."""
RARE_PAUSE_S = (RELEASE_MEMORY_AFTER_S + 1.0, RELEASE_MEMORY_AFTER_S + 1.5)
REQUESTS_WITHIN_S = 35.0
KIND = "network"
READY_WITHIN_S = 60.0


@dataclass(slots=True)
class RequestTimes:
    """Times of one request. ``received`` and ``running`` are the times at which the service has
    read the acknowledgement with that status.
    """

    requested: float = 0.0
    received: float = 0.0
    running: float = 0.0
    reported: float = 0.0


class LeanService(StrictService):
    """A service that records the times of the current request."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._times = RequestTimes()

    async def time_request(self) -> RequestTimes:
        """Request one report, and return its times."""
        self._times = RequestTimes()
        reports = len(self.reports)
        await self.request_report(KIND)
        await self.until(lambda: len(self.reports) > reports)
        return self._times

    async def _push(self) -> AsyncIterator[bytes]:
        async for event in super()._push():
            if event.startswith(b"data:"):
                self._times.requested = time.monotonic()
            yield event

    async def _handle(self, request: Request) -> Reply:
        now = time.monotonic()
        if request.path.endswith("/acknowledge"):
            setattr(self._times, json.loads(request.body)["status"], now)
        elif request.path.endswith("/submitResult"):
            self._times.reported = now
        return await super()._handle(request)


async def request_reports(
    service: LeanService, count: int, pause_s: tuple[float, float]
) -> list[dict[str, Any]]:
    """Request ``count`` reports, with a random pause before each. Request fewer if the time limit
    `REQUESTS_WITHIN_S` is reached first.
    """
    rng = random.Random(1)
    until_s = time.monotonic() + REQUESTS_WITHIN_S
    results: list[dict[str, Any]] = []
    while len(results) < count and time.monotonic() < until_s:
        await asyncio.sleep(rng.uniform(*pause_s))
        results.append(asdict(await service.time_request()))
    return results


async def main(requests: int, rare: int) -> None:
    async with LeanService() as service:
        sys.stdout.write(f"listening on {service.base_url}\n")
        sys.stdout.flush()
        await service.until(
            lambda: "onCommands" in service.calls and service.heartbeats > 0, READY_WITHIN_S
        )
        steady = await request_reports(service, WARM_UP + requests, PAUSE_S)
        measured = {
            "steady": steady[WARM_UP:],
            "rare": await request_reports(service, rare, RARE_PAUSE_S),
        }
        if service.violations:
            raise SystemExit(f"the agent violated the contract: {service.violations[0]}")
        sys.stdout.write(json.dumps(measured) + "\n")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
