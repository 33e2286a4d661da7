"""The agent stores little of the service's replies, and starts again with what it has stored."""

import asyncio
import json
from pathlib import Path

from agent.adapters.service_client import RECORD_MAX_BYTES
from agent.adapters.storage.device_record import MAX_BYTES
from tests.fakes.hostile_service import Exchange, HostileService
from tests.fakes.virtual_clock import VirtualClock, run_in_virtual_time
from tests.scenario.simulated_agent import config_for, simulated_agent


class LongEnrollment(HostileService):
    """A service whose enrollment records have ``size`` bytes. Each reply sets a cookie."""

    def __init__(self, clock: VirtualClock, size: int) -> None:
        super().__init__(clock.true_time)
        self._size = size
        self.cookies: list[str] = []
        """The cookies that the agent has sent back."""
        for operation in ("enroll", "heartbeat", "current"):
            self.faults[operation] = self._answer

    async def _answer(self, x: Exchange) -> None:
        if cookie := x.request.headers.get("cookie"):
            self.cookies.append(cookie)
        body = (await x.execute()).body
        if b"organizationId" in body:
            record = json.loads(body)
            other_bytes = len(body) - len(record["organizationId"])
            record["organizationId"] = "o" * (self._size - other_bytes)
            body = json.dumps(record).encode()
        await x.reply(200, body, Set_Cookie=f"n{len(self.called_at)}=value; Path=/")


async def start_twice(home: Path, size: int) -> tuple[LongEnrollment, list[set[str]]]:
    """Start an agent twice. Return the service, and the conditions of each run."""
    clock = VirtualClock()
    conditions = []
    async with LongEnrollment(clock, size) as service:
        for _ in range(2):
            async with simulated_agent(config_for(home, service.base_url), home, clock) as app:
                await asyncio.sleep(200)
                conditions.append(app.conditions_seen)
    return service, conditions


def test_the_agent_starts_again_after_the_largest_enrollment(memory_home: Path) -> None:
    service, conditions = run_in_virtual_time(start_twice(memory_home, RECORD_MAX_BYTES))
    # The organization's id is too long for a report, but the agent runs.
    assert conditions == [{"identity-too-long"}] * 2
    assert service.calls.count("enroll") == 1
    stored = (memory_home / "state" / "device.json").stat().st_size
    assert RECORD_MAX_BYTES / 2 < stored < MAX_BYTES


def test_a_larger_enrollment_is_refused_and_not_stored(memory_home: Path) -> None:
    _, conditions = run_in_virtual_time(start_twice(memory_home, RECORD_MAX_BYTES + 1))
    assert all("bad-reply" in condition for condition in conditions)
    assert (memory_home / "state" / "device.json").stat().st_size < 1000


def test_cookies_of_the_service_are_not_kept(memory_home: Path) -> None:
    service, _ = run_in_virtual_time(start_twice(memory_home, 1000))
    assert service.heartbeats > 2
    assert service.cookies == []
