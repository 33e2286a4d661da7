from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.rules.time_jump import SLEEP_MIN_S, STEP_MIN_S, ClockReading, TimeJump, jump_between

BEFORE = ClockReading(datetime(2026, 11, 20, 19, 0, tzinfo=UTC), 5000.0)
PLANNED_S = 15.0
ROUNDING_S = 0.01


def reading_after(passed_s: float, stepped_s: float = 0.0) -> ClockReading:
    wall = BEFORE.wall + timedelta(seconds=passed_s + stepped_s)
    return ClockReading(wall, BEFORE.monotonic_s + passed_s)


@pytest.mark.parametrize(
    ("passed_s", "stepped_s", "expected"),
    [
        (15, 0, None),
        (16, 0.4, None),
        (44, 4.9, None),
        (44, -4.9, None),
        (45, 0, TimeJump(slept_s=30)),
        (28_815, 0, TimeJump(slept_s=28_800)),
        (15, 5, TimeJump(stepped_s=5)),
        (15, -5, TimeJump(stepped_s=-5)),
        (15, -86_400, TimeJump(stepped_s=-86_400)),
        (3615, 86_400, TimeJump(slept_s=3600, stepped_s=86_400)),
    ],
)
def test_sleep_and_clock_steps_are_time_jumps(
    passed_s: float, stepped_s: float, expected: TimeJump | None
) -> None:
    assert jump_between(BEFORE, reading_after(passed_s, stepped_s), planned_s=PLANNED_S) == expected


@given(st.floats(0, 1e8), st.floats(-1e8, 1e8))
def test_a_time_jump_is_at_least_as_long_as_the_threshold(
    passed_s: float, stepped_s: float
) -> None:
    jump = jump_between(BEFORE, reading_after(passed_s, stepped_s), planned_s=PLANNED_S)

    if jump is None:
        assert passed_s < PLANNED_S + SLEEP_MIN_S + ROUNDING_S
        assert abs(stepped_s) < STEP_MIN_S + ROUNDING_S
    else:
        assert jump.slept_s == 0 or jump.slept_s >= SLEEP_MIN_S
        assert jump.stepped_s == 0 or abs(jump.stepped_s) >= STEP_MIN_S


@pytest.mark.parametrize(
    ("jump", "description"),
    [
        (TimeJump(slept_s=3600.4), "this machine slept for 3600 s"),
        (TimeJump(stepped_s=90), "the clock was set forward by 90 s"),
        (TimeJump(60, -7.2), "this machine slept for 60 s and the clock was set back by 7 s"),
    ],
)
def test_time_jump_is_described(jump: TimeJump, description: str) -> None:
    assert jump.describe() == description
