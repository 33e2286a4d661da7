"""Tests the states of watched devices, which follow from the MACs that answer ARP, and the resolver
that sends the ARP requests.
"""

import sys
from collections.abc import Mapping
from contextlib import closing

import pytest

from collectors.contract import LearnedPrinter, WatchedDevice
from collectors.shared.arp.resolver import Resolver, SystemArpNetwork
from collectors.shared.watched_devices import (
    Answers,
    Expectation,
    expectations,
    learned_identity,
    state_of,
    terminals_of,
)
from tests.unit.collectors.watched_venues import LanDevice, SimulatedKernel

HOME, AWAY, THIRD = "10.0.0.4", "10.0.0.7", "10.0.0.9"
MAC, OTHER = "00:11:22:00:00:01", "00:11:22:00:00:02"
RANDOM, NEXT_RANDOM = "02:11:22:00:00:01", "02:11:22:00:00:02"


def expectation(address: str | None, mac: str | None, learned: str | None = None) -> Expectation:
    device = WatchedDevice("Bar", "payment-terminal", address, mac)
    setup = " ".join(filter(None, (address, mac)))
    known = LearnedPrinter("device:Bar", setup, address=HOME, mac_address=learned)
    (expected,) = expectations((device,), (known,) if learned else ())
    return expected


# BOTH: address and MAC are configured. LEARNED: only the address is configured, and the MAC was
# learned. ONLY_MAC: only the MAC is configured, and the address HOME was learned.
BOTH, ONLY_ADDRESS = expectation(HOME, MAC), expectation(HOME, None)
LEARNED, ONLY_MAC = expectation(HOME, None, MAC), expectation(None, MAC, MAC)


@pytest.mark.parametrize(
    ("expected", "macs", "state", "address"),
    [
        (BOTH, {HOME: MAC}, "present", HOME),
        (BOTH, {HOME: MAC, AWAY: MAC}, "present", HOME),
        (BOTH, {AWAY: MAC, THIRD: MAC}, "moved", AWAY),
        (BOTH, {HOME: OTHER, AWAY: MAC}, "moved", AWAY),
        (BOTH, {HOME: OTHER}, "replaced", HOME),
        (BOTH, {HOME: OTHER, AWAY: OTHER}, "unknown", HOME),
        (BOTH, {HOME: None}, "present", HOME),
        (BOTH, {}, "absent", HOME),
        (ONLY_ADDRESS, {HOME: OTHER}, "present", HOME),
        (LEARNED, {AWAY: MAC}, "moved", AWAY),
        (LEARNED, {AWAY: MAC, THIRD: MAC}, "absent", HOME),
        (LEARNED, {HOME: OTHER}, "replaced", HOME),
        (expectation(HOME, None, RANDOM), {HOME: NEXT_RANDOM}, "unknown", HOME),
        (expectation(HOME, RANDOM), {HOME: NEXT_RANDOM}, "replaced", HOME),
        (expectation(None, MAC), {AWAY: MAC}, "present", AWAY),
        (ONLY_MAC, {AWAY: MAC}, "moved", AWAY),
        (ONLY_MAC, {HOME: OTHER}, "absent", HOME),
    ],
)
def test_the_state_of_a_device_follows_from_the_macs_that_answer(
    expected: Expectation, macs: Mapping[str, str | None], state: str, address: str
) -> None:
    answers = Answers(macs, {HOME} - macs.keys())
    actual = state_of(expected, answers)
    assert (actual.state, actual.address) == (state, address)
    assert (actual.moved_from == HOME) is (state == "moved")


def test_a_device_that_could_not_be_checked_is_unknown() -> None:
    for known in (BOTH, ONLY_ADDRESS, ONLY_MAC):
        actual = state_of(known, Answers({}, is_whole=False, reason="no time"))
        assert (actual.state, actual.reason) == ("unknown", "no time")


def test_a_changed_configuration_makes_a_learned_mac_invalid() -> None:
    learned = LearnedPrinter("device:Bar", HOME, address=HOME, mac_address=MAC)
    (same,) = expectations((WatchedDevice("Bar", address=HOME),), (learned,))
    (other,) = expectations((WatchedDevice("Bar", address=AWAY),), (learned,))
    assert (same.mac_address, other.mac_address) == (MAC, None)


def test_only_payment_terminals_are_protected_from_connections() -> None:
    scale = Expectation(WatchedDevice("Deli", "scale", AWAY, OTHER))
    known = terminals_of((LEARNED, scale))
    assert (HOME, None) in known
    assert (AWAY, MAC) in known
    assert (AWAY, OTHER) not in known


def test_a_mac_of_several_addresses_is_not_learned() -> None:
    answers = Answers({HOME: MAC})
    own, _ = learned_identity(ONLY_ADDRESS, state_of(ONLY_ADDRESS, answers), answers)
    assert own is not None
    assert (own.id, own.setup, own.mac_address) == ("device:Bar", HOME, MAC)
    behind_a_repeater = Answers({HOME: MAC}, table={AWAY: MAC})
    own, _ = learned_identity(
        ONLY_ADDRESS, state_of(ONLY_ADDRESS, behind_a_repeater), behind_a_repeater
    )
    assert own is not None
    assert own.mac_address is None


def test_another_device_is_learned_as_a_replacement_unless_the_mac_is_configured() -> None:
    answers = Answers({HOME: OTHER})
    own, replacement = learned_identity(LEARNED, state_of(LEARNED, answers), answers)
    assert own is None
    assert replacement is not None
    assert replacement.mac_address == OTHER
    assert learned_identity(BOTH, state_of(BOTH, answers), answers) == (None, None)


@pytest.mark.parametrize(
    ("now", "stale", "answer", "seconds"),
    [
        ({HOME: LanDevice(MAC)}, {}, MAC, 1),
        ({}, {}, None, 3),
        ({HOME: LanDevice(MAC)}, {HOME: MAC}, MAC, 6),
        ({HOME: LanDevice(OTHER)}, {HOME: MAC}, OTHER, 9),
        ({}, {HOME: MAC}, None, 11),
    ],
    ids=["present", "absent", "older entry", "address taken over", "device left"],
)
def test_an_address_is_resolved_in_the_time_that_the_kernel_needs(
    now: dict[str, LanDevice], stale: dict[str, str], answer: str | None, seconds: int
) -> None:
    kernel = SimulatedKernel(now, stale)
    resolver = Resolver(kernel)
    resolver.add([HOME])
    while not resolver.is_done:
        resolver.step()
        kernel.wait()
    assert resolver.answers.get(HOME) == answer
    assert (HOME in resolver.silent) is (answer is None)
    assert kernel.now() - 100 <= seconds  # the simulated clock starts at 100


@pytest.mark.parametrize(("tries", "answers"), [(1, {}), (2, {HOME: MAC})])
def test_a_silent_address_is_tried_as_often_as_requested(
    tries: int, answers: dict[str, str]
) -> None:
    kernel = SimulatedKernel({}, {})
    resolver = Resolver(kernel)
    resolver.add([HOME], tries)
    while not resolver.is_done:
        if kernel.now() > 103:
            kernel.lan[HOME] = LanDevice(MAC)  # the device wakes up after the first try
        resolver.step()
        kernel.wait()
    assert resolver.answers == answers


def test_an_entry_of_a_table_without_states_is_accepted_after_a_second() -> None:
    kernel = SimulatedKernel({HOME: LanDevice(MAC)}, {HOME: MAC}, has_states=False)
    resolver = Resolver(kernel)
    resolver.add([HOME])
    while not resolver.is_done:
        resolver.step()
        kernel.wait()
    assert resolver.answers == {HOME: MAC}
    assert kernel.now() - 100 < 2


def test_the_neighbour_table_of_macos_has_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with closing(SystemArpNetwork()) as network:
        assert network.has_states


def test_a_confirmed_address_gets_no_datagram() -> None:
    kernel = SimulatedKernel({HOME: LanDevice(MAC)}, {})
    kernel.prime(HOME)
    kernel.wait()
    resolver = Resolver(kernel)
    resolver.add([HOME])
    resolver.step()
    assert resolver.answers == {HOME: MAC}
    assert kernel.sent == [HOME]  # only the datagram of `kernel.prime` above
