"""Replies whose Date header is at a limit of the calendar do not stop the agent."""

import asyncio
from pathlib import Path

import pytest

from tests.fakes.hostile_service import Exchange, HostileService
from tests.fakes.virtual_clock import VirtualClock, run_in_virtual_time
from tests.scenario.simulated_agent import config_for, simulated_agent

FIRST, LAST = "Mon, 01 Jan 0001 00:00:00 +1400", "Fri, 31 Dec 9999 23:59:59 -1200"
HEARTBEATS = 3


async def play(home: Path, date: str) -> tuple[set[str], int]:
    """Request a report from an agent whose service sends ``date`` with each reply.

    Return the conditions of the agent, and the number of reports.
    """
    clock = VirtualClock()

    async def with_date(x: Exchange) -> None:
        reply = await x.execute()
        await x.reply(reply.status, reply.body, Date=date)

    async with HostileService(clock.true_time) as service:
        for operation in ("challenge", "enroll", "heartbeat", "acknowledge", "submitResult"):
            service.faults[operation] = with_date
        async with simulated_agent(config_for(home, service.base_url), home, clock) as app:
            await asyncio.sleep(10)
            await service.request_report("network", expires_in_s=1e6)
            await service.until(lambda: service.heartbeats >= HEARTBEATS, 600)
            return app.conditions_seen, len(service.reports)


@pytest.mark.parametrize(("date", "reports"), [(FIRST, 1), (LAST, 0)], ids=["year 1", "year 9999"])
def test_an_extreme_date_is_reported_and_decides_whether_a_request_has_expired(
    date: str, reports: int, memory_home: Path
) -> None:
    assert run_in_virtual_time(play(memory_home, date)) == ({"clock-skew"}, reports)
