"""The window of unresolved addresses."""

from hypothesis import given
from hypothesis import strategies as st

from collectors.network.scan.arp_window import SETTLE_S, SLOT_S, ArpWindow
from collectors.network.scan.targets import Target


def targets(count: int) -> list[Target]:
    return [Target(f"10.0.{i // 250}.{i % 250 + 1}", "arp", "eth0") for i in range(count)]


def ask_all(window: ArpWindow, now: float) -> int:
    asked = 0
    while window.next_to_ask(1):
        window.asked(now)
        asked += 1
    return asked


def test_no_more_than_the_limit_is_unresolved() -> None:
    window = ArpWindow(targets(600), limit=480)
    assert ask_all(window, 0.0) == 480
    assert window.resolved("10.0.0.1") is not None
    window.failed("10.0.0.2")
    assert ask_all(window, 0.5) == 2


def test_slots_are_freed_when_the_kernel_says_nothing() -> None:
    window = ArpWindow(targets(3), limit=2)
    ask_all(window, 0.0)
    window.expire(SLOT_S - 0.1)
    assert ask_all(window, SLOT_S - 0.1) == 0
    window.expire(SLOT_S)
    assert ask_all(window, SLOT_S) == 1


def test_it_settles_after_the_last_answer_can_come() -> None:
    window = ArpWindow(targets(2))
    assert window.settles_at() is None
    ask_all(window, 5.0)
    assert not window.is_settled(5.0 + SETTLE_S - 0.01)
    assert window.is_settled(5.0 + SETTLE_S)
    window.resolved("10.0.0.1")
    window.resolved("10.0.0.2")
    assert window.is_settled(5.0)


def test_an_address_resolves_once_and_strangers_never() -> None:
    window = ArpWindow(targets(1))
    assert window.resolved("10.0.0.1") == targets(1)[0]
    assert window.resolved("10.0.0.1") is None
    assert window.resolved("10.9.9.9") is None
    assert window.unanswered == ()


def test_what_resolved_before_it_was_asked_for_takes_no_slot() -> None:
    window = ArpWindow(targets(2), limit=1)
    window.resolved("10.0.0.1")
    assert ask_all(window, 0.0) == 2
    assert window.done_count(0.0) == 1
    assert window.done_count(SETTLE_S) == 2


@given(steps=st.lists(st.tuples(st.sampled_from("arfe"), st.integers(0, 29)), max_size=200))
def test_the_limit_holds_whatever_happens(steps: list[tuple[str, int]]) -> None:
    window = ArpWindow(targets(30), limit=5)
    unresolved: dict[str, float] = {}
    resolved: set[str] = set()
    now = 0.0
    for action, number in steps:
        address = targets(30)[number].address
        now += 0.1
        if action == "a" and (nexts := window.next_to_ask(1)):
            window.asked(now)
            if nexts[0].address not in resolved:
                unresolved[nexts[0].address] = now
        elif action == "r":
            window.resolved(address)
            resolved.add(address)
            unresolved.pop(address, None)
        elif action == "f":
            window.failed(address)
            unresolved.pop(address, None)
        elif action == "e":
            window.expire(now)
            unresolved = {a: t for a, t in unresolved.items() if now - t < SLOT_S}
        assert len(unresolved) <= 5
