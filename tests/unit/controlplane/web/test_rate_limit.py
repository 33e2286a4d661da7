"""Tests of the rate limit, which is a token bucket."""

import uuid

import pytest

from controlplane.operation.fairness import BUCKETS_MAX, RateLimit


class FakeMonotonicClock:
    """A clock that moves only when a test changes ``now_s``."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_calls_beyond_the_burst_are_limited_to_the_rate() -> None:
    clock, key = FakeMonotonicClock(), uuid.uuid4()
    limit = RateLimit(0.5, 3, clock)
    assert [limit.take(key) for _ in range(4)] == [0, 0, 0, 2]
    clock.now_s += 2
    assert [limit.take(key) for _ in range(2)] == [0, 2]


def test_keys_do_not_share_a_bucket() -> None:
    limit = RateLimit(1, 1, FakeMonotonicClock())
    assert [limit.take(uuid.uuid4()) for _ in range(3)] == [0, 0, 0]


def test_the_returned_wait_is_long_enough() -> None:
    clock, key = FakeMonotonicClock(), uuid.uuid4()
    limit = RateLimit(0.3, 1, clock)
    limit.take(key)
    wait_s = limit.take(key)
    clock.now_s += wait_s
    assert limit.take(key) == 0


def test_a_clock_that_steps_back_adds_no_tokens() -> None:
    clock, key = FakeMonotonicClock(), uuid.uuid4()
    limit = RateLimit(1, 1, clock)
    limit.take(key)
    clock.now_s -= 50
    assert limit.take(key) == 1


def test_a_rate_of_zero_means_no_limit() -> None:
    limit = RateLimit(0, 1, FakeMonotonicClock())
    key = uuid.uuid4()
    assert {limit.take(key) for _ in range(1000)} == {0}


@pytest.mark.medium
def test_the_number_of_buckets_is_limited_and_a_bucket_in_use_is_kept() -> None:
    limit, busy, idle = RateLimit(0.001, 1, FakeMonotonicClock()), uuid.uuid4(), uuid.uuid4()
    limit.take(busy)
    limit.take(idle)
    for _ in range(BUCKETS_MAX - 1):
        limit.take(uuid.uuid4())
        assert limit.take(busy) > 0
    assert len(limit._buckets) == BUCKETS_MAX
    assert limit.take(idle) == 0  # its bucket was dropped, so the key has a full bucket again
