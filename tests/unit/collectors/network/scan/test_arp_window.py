"""Tests that the ARP window limits the number of unresolved addresses in the neighbour table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.network.scan.arp_window import SLOT_S, ArpWindow
from collectors.network.scan.targets import Target
from collectors.shared.arp.priming import SETTLE_S
from collectors.shared.arp.table_room import UNRESOLVED_MAX, UNRESOLVED_MIN, TableRoom

ACTIONS = ("send", "resolve", "fail", "expire")


def targets(count: int) -> list[Target]:
    return [Target(f"10.0.{i // 250}.{i % 250 + 1}", "arp", "eth0") for i in range(count)]


def send_all(window: ArpWindow, now: float) -> int:
    """Mark requests as sent until the window permits no more. Return their number."""
    count = 0
    while window.next_to_resolve(1):
        window.mark_sent(now)
        count += 1
    return count


def test_the_number_of_unresolved_addresses_is_limited() -> None:
    window = ArpWindow(targets(600), TableRoom(480))
    assert send_all(window, 0.0) == 480
    assert window.mark_resolved("10.0.0.1") is not None
    window.mark_failed("10.0.0.2")
    assert send_all(window, 0.5) == 2


def test_slots_are_freed_after_a_time_without_an_answer() -> None:
    window = ArpWindow(targets(3), TableRoom(2))
    send_all(window, 0.0)
    window.expire(SLOT_S - 0.1)
    assert send_all(window, SLOT_S - 0.1) == 0
    window.expire(SLOT_S)
    assert send_all(window, SLOT_S) == 1


def test_the_arp_window_is_settled_after_the_last_possible_answer() -> None:
    window = ArpWindow(targets(2))
    assert window.settles_at() is None
    send_all(window, 5.0)
    assert not window.is_settled(5.0 + SETTLE_S - 0.01)
    assert window.is_settled(5.0 + SETTLE_S)
    window.mark_resolved("10.0.0.1")
    window.mark_resolved("10.0.0.2")
    assert window.is_settled(5.0)


def test_an_address_is_resolved_once_and_unknown_addresses_are_ignored() -> None:
    window = ArpWindow(targets(1))
    assert window.mark_resolved("10.0.0.1") == targets(1)[0]
    assert window.mark_resolved("10.0.0.1") is None
    assert window.mark_resolved("10.9.9.9") is None
    assert window.unanswered == ()


def test_host_resolved_before_its_request_takes_no_slot() -> None:
    window = ArpWindow(targets(2), TableRoom(1))
    window.mark_resolved("10.0.0.1")
    assert send_all(window, 0.0) == 2
    assert window.done_count(0.0) == 1
    assert window.done_count(SETTLE_S) == 2


@given(steps=st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 29)), max_size=200))
def test_the_limit_of_unresolved_addresses_holds_for_any_sequence_of_events(
    steps: list[tuple[str, int]],
) -> None:
    window = ArpWindow(targets(30), TableRoom(5))
    unresolved: dict[str, float] = {}
    resolved: set[str] = set()
    now = 0.0
    for action, number in steps:
        address = targets(30)[number].address
        now += 0.1
        if action == "send" and (next_targets := window.next_to_resolve(1)):
            window.mark_sent(now)
            if next_targets[0].address not in resolved:
                unresolved[next_targets[0].address] = now
        elif action == "resolve":
            window.mark_resolved(address)
            resolved.add(address)
            unresolved.pop(address, None)
        elif action == "fail":
            window.mark_failed(address)
            unresolved.pop(address, None)
        elif action == "expire":
            window.expire(now)
            unresolved = {a: t for a, t in unresolved.items() if now - t < SLOT_S}
        assert len(unresolved) <= 5


@pytest.mark.parametrize(
    ("entries_max", "occupied", "unresolved"),
    [
        (1024, 0, 614),
        (1024, 100, 514),
        (8192, 100, UNRESOLVED_MAX),
        (256, 10, 143),
        (128, 100, UNRESOLVED_MIN),
        (0, 0, UNRESOLVED_MIN),
    ],
)
def test_unresolved_addresses_use_a_share_of_the_neighbour_table(
    entries_max: int, occupied: int, unresolved: int
) -> None:
    room = TableRoom.in_table(entries_max, occupied)
    assert send_all(ArpWindow(targets(1000), room), 0.0) == unresolved


def test_resolved_hosts_reduce_the_free_entries_of_a_small_table() -> None:
    room = TableRoom.in_table(256, occupied=10)  # 217 entries may be used, of which 10 are in use
    window = ArpWindow(targets(400), room)
    assert send_all(window, 0.0) == 143
    for target in targets(120):
        window.mark_resolved(target.address)
    # 207 entries are free. 120 resolved hosts and the 23 unresolved addresses use some of them.
    assert send_all(window, 0.1) == 207 - 120 - (143 - 120)
    for target in targets(200):
        window.mark_resolved(target.address)
    # Of the 143 + 64 requested addresses, 7 are still unresolved.
    assert send_all(window, 0.2) == UNRESOLVED_MIN - 7


@given(entries_max=st.integers(64, 2048), occupied=st.integers(0, 500), hosts=st.integers(0, 300))
def test_unresolved_addresses_never_fill_the_neighbour_table(
    entries_max: int, occupied: int, hosts: int
) -> None:
    room = TableRoom.in_table(entries_max, occupied)
    left = room.left(0, hosts)
    assert left == UNRESOLVED_MIN or occupied + hosts + left <= entries_max * 0.85
