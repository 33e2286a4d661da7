"""Tests sharing a limited amount: no host can take the shares of the other hosts."""

from hypothesis import given
from hypothesis import strategies as st

from collectors.network.fair_share import FairQueue, Pool, in_turns


def test_a_single_holder_gets_at_most_half_of_a_pool() -> None:
    pool = Pool(100)
    assert sum(pool.take("greedy", 1) for _ in range(1000)) == 50
    assert sum(pool.take("newcomer", 1) for _ in range(1000)) == 25
    assert pool.take("late", 1)


def test_returned_or_refilled_amounts_can_be_taken_again() -> None:
    pool = Pool(10)
    assert pool.take("a", 5)
    assert not pool.take("a", 1)
    pool.give_back("a", 5)
    assert pool.take("a", 5)
    pool.refill()
    assert not pool.take("a", 3)  # after the refill, "a" still holds the 5 that it took before
    assert pool.take("b", 5)


def test_addresses_of_one_device_share_one_part_of_the_pool() -> None:
    pool = Pool(100)
    assert pool.take("10.0.0.1", 30)
    assert pool.take("10.0.0.2", 20)
    pool.hand_over("10.0.0.1", "mac")
    pool.hand_over("10.0.0.2", "mac")
    assert not pool.take("mac", 1)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 40))))
def test_no_holder_has_more_than_the_remaining_amount(takes: list[tuple[str, int]]) -> None:
    pool, held = Pool(100), dict.fromkeys("abcd", 0)
    for holder, amount in takes:
        if pool.take(holder, amount):
            held[holder] += amount
            assert held[holder] <= 100 - sum(held.values())
    assert sum(held.values()) <= 100


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 60))))
def test_a_queue_never_exceeds_its_limits_of_packets_and_bytes(
    packets: list[tuple[str, int]],
) -> None:
    queue, dropped = FairQueue(packets_max=8, bytes_max=100), []
    for owner, size in packets:
        dropped += queue.put(owner, f"source of {owner}", bytes(size))
        assert len(queue) <= 8
        assert queue._total_bytes <= 100
    left = [packet for _, packet in iter(queue.take, None)]
    assert len(left) + len(dropped) == len(packets)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers())))
def test_owners_take_turns_in_round_robin_order(owned: list[tuple[str, int]]) -> None:
    turns = in_turns((owner, (owner, item)) for owner, item in owned)
    assert sorted(turns) == sorted(owned)
    for owner in "abc":
        assert [turn for turn in turns if turn[0] == owner] == [e for e in owned if e[0] == owner]
    owners = [owner for owner, _ in turns]
    for position, owner in enumerate(owners):
        earlier, waiting = owners[:position], set(owners[position:])
        assert all(earlier.count(other) >= earlier.count(owner) for other in waiting)
