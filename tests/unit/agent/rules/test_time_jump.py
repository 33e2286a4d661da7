from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.rules.clock_skew import ServiceClock
from agent.rules.time_jump import Look, TimeJump, jump_between

WALL = datetime(2026, 11, 20, 19, 0, tzinfo=UTC)


def later(wall_s: float, monotonic_s: float) -> Look:
    return Look(WALL + timedelta(seconds=wall_s), 100.0 + monotonic_s)


BEFORE = later(0, 0)


@pytest.mark.parametrize(
    ("wall_s", "monotonic_s", "words"),
    [
        (10, 10, None),
        (39, 39, None),
        (40, 40, "this machine slept for 30 s"),
        (3610, 3610, "this machine slept for 3600 s"),
        (14.9, 10, None),
        (15, 10, "the clock was set forward by 5 s"),
        (-3590, 10, "the clock was set back by 3600 s"),
        (0, 100, "this machine slept for 90 s and the clock was set back by 100 s"),
    ],
)
def test_what_happened_between_two_looks(
    wall_s: float, monotonic_s: float, words: str | None
) -> None:
    jump = jump_between(BEFORE, later(wall_s, monotonic_s), meant_s=10)

    assert (None if jump is None else jump.in_words()) == words
    assert jump != TimeJump()


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_the_service_clock_goes_on_whoever_sets_ours(stepped_s: float, passed_s: float) -> None:
    seen = ServiceClock(WALL, shown_at=100.0)
    ours = WALL + timedelta(seconds=passed_s + stepped_s)

    skew = seen.skew(local_time=ours, monotonic_s=100.0 + passed_s)

    shown = skew.service_time(ours)
    assert abs((shown - WALL).total_seconds() - passed_s) <= 2.001
