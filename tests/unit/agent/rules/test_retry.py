from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.rules import retry
from agent.rules.retry import Backoff

BACKOFFS = (retry.UNAVAILABLE, retry.CREDENTIAL, retry.REVOKED)


@given(st.sampled_from(BACKOFFS), st.integers(-3, 10**6), st.randoms())
def test_a_wait_is_within_its_bounds(backoff: Backoff, attempt: int, rng: Random) -> None:
    ceiling = min(backoff.cap_s, backoff.base_s * 2.0 ** min(max(attempt, 1) - 1, 100))

    assert ceiling / 2 <= backoff.delay_s(attempt, rng) <= ceiling <= backoff.cap_s


def test_waits_grow_to_the_cap() -> None:
    class Longest(Random):
        def uniform(self, a: float, b: float) -> float:
            return b

    waits = [retry.UNAVAILABLE.delay_s(attempt, Longest()) for attempt in range(1, 8)]

    assert waits == [1, 2, 4, 8, 16, 24, 24]


@given(st.sampled_from(BACKOFFS), st.randoms())
def test_a_backoff_allows_at_most_25_attempts_in_three_minutes(
    backoff: Backoff, rng: Random
) -> None:
    at_s, attempts = 0.0, 0
    while at_s <= 180:
        attempts += 1
        at_s += backoff.delay_s(attempts, rng)

    assert attempts <= 25


@pytest.mark.parametrize("attempt", range(1, 8))
def test_jitter_spreads_the_waits_of_a_fleet(attempt: int) -> None:
    waits = [retry.UNAVAILABLE.delay_s(attempt, Random(device)) for device in range(200)]

    assert max(waits) - min(waits) > max(waits) * 0.45


@pytest.mark.parametrize(
    ("requested_s", "least_s", "most_s"),
    [
        (0.0, 2, 2.2),
        (-5.0, 2, 2.2),
        (1.0, 2, 2.2),
        (7.0, 7, 7.7),
        (3600.0, 3600, 3960),
        (1e18, 3600, 3960),
        (float("inf"), 3600, 3960),
    ],
)
def test_retry_after_is_honoured_within_bounds(
    requested_s: float, least_s: float, most_s: float
) -> None:
    for seed in range(20):
        wait_s = retry.throttled_delay_s(requested_s, 1, Random(seed))
        assert least_s <= wait_s <= most_s


@given(st.integers(1, 20), st.integers())
def test_throttling_without_retry_after_uses_the_usual_backoff(attempt: int, seed: int) -> None:
    assert retry.throttled_delay_s(None, attempt, Random(seed)) == retry.UNAVAILABLE.delay_s(
        attempt, Random(seed)
    )


@given(st.floats(allow_nan=False) | st.none(), st.randoms())
def test_no_value_of_retry_after_allows_more_than_30_calls_a_minute(
    requested_s: float | None, rng: Random
) -> None:
    at_s, calls = 0.0, 0
    while at_s <= 60:
        calls += 1
        at_s += retry.throttled_delay_s(requested_s, calls, rng)

    assert calls <= 31  # 30 waits, and the call before the first wait


@pytest.mark.parametrize(("uptime_s", "most_s"), [(0.0, 10.0), (119.9, 10.0), (120.0, 0.0)])
def test_only_a_machine_that_just_booted_waits_before_its_first_contact(
    uptime_s: float, most_s: float
) -> None:
    waits = [retry.first_contact_delay_s(uptime_s, Random(seed)) for seed in range(200)]
    assert all(0.0 <= wait <= most_s for wait in waits)
    assert max(waits) > most_s * 0.9 or most_s == 0.0


@pytest.mark.parametrize(
    ("requested_s", "spread_s"), [(-1.0, 0), (0.0, 0), (3.0, 3), (60.0, 60), (86_400.0, 60)]
)
def test_reconnect_time_is_honoured_within_bounds(requested_s: float, spread_s: float) -> None:
    assert retry.reconnect_spread_s(requested_s) == spread_s


@given(st.integers(1, 20), st.floats(0, 60), st.randoms())
def test_reconnect_delays_are_spread_over_the_requested_time(
    attempt: int, spread_s: float, rng: Random
) -> None:
    wait_s = retry.unavailable_delay_s(attempt, spread_s, rng)

    assert spread_s / 2 <= wait_s <= max(spread_s * 1.5, retry.UNAVAILABLE.cap_s)
