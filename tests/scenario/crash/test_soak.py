"""Runs the test of `make soak` with fewer kills, but with the same network faults and checks."""

from pathlib import Path

from tests import sizes
from tests.scenario.crash.soak import soak

KILLS = sizes.amount(medium=2, large=5)


async def test_no_report_is_lost_or_sent_twice_when_the_agent_is_killed(memory_home: Path) -> None:
    assert await soak(memory_home, KILLS, seed=7, kill_delay_range_s=(0.0, 1.0)) == []
