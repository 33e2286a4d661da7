"""Tests that all devices reconnect soon after a restart of the service, but not all at once.

The tests run the agent's code in virtual time. `make bench-restart` simulates 10,000 devices.
"""

import pytest

from tests import sizes
from tests.bench.fleet.restart import BACK_WITHIN_S, OUTAGES_S, PEAK_MAX, simulate

DEVICES = 300
CROWD = 34
"""Number of devices that each simulated device represents: about 10,000 in total."""
PEAK_OVER_S = 10
"""Seconds over which the load is averaged to find its peak. With so few devices, a single second
can be busy by chance."""


@pytest.mark.parametrize("outage_s", sizes.large_except({0.0, 60.0}, OUTAGES_S))
def test_fleet_reconnects_soon_with_little_extra_load(outage_s: float) -> None:
    outcome = simulate(DEVICES, outage_s, crowd=CROWD, peak_over_s=PEAK_OVER_S)

    assert outcome.steady == pytest.approx(DEVICES / 60, rel=0.1)
    assert 10 < outcome.back_s <= BACK_WITHIN_S
    assert outcome.peak_ratio <= PEAK_MAX
    assert outcome.refused_calls == outcome.late_calls == 0
    assert (outcome.calls_without_listener > 0) == (outage_s > 0)


def test_small_fleet_reconnects_immediately() -> None:
    assert simulate(20, 5).back_s <= 5
