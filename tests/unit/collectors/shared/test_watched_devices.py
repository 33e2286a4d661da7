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

ADDRESS, NEW_ADDRESS, THIRD_ADDRESS = "10.0.0.4", "10.0.0.7", "10.0.0.9"
MAC, OTHER_MAC = "00:11:22:00:00:01", "00:11:22:00:00:02"
RANDOM_MAC, NEXT_RANDOM_MAC = "02:11:22:00:00:01", "02:11:22:00:00:02"


def expectation(address: str | None, mac: str | None, learned: str | None = None) -> Expectation:
    device = WatchedDevice("Bar", "payment-terminal", address, mac)
    setup = " ".join(filter(None, (address, mac)))
    known = LearnedPrinter("device:Bar", setup, address=ADDRESS, mac_address=learned)
    (expected,) = expectations((device,), (known,) if learned else ())
    return expected


# BOTH: address and MAC are configured. LEARNED: only the address is configured, and the MAC was
# learned. ONLY_MAC: only the MAC is configured, and the address ADDRESS was learned.
BOTH, ONLY_ADDRESS = expectation(ADDRESS, MAC), expectation(ADDRESS, None)
LEARNED, ONLY_MAC = expectation(ADDRESS, None, MAC), expectation(None, MAC, MAC)


# ``macs`` has an entry for each address that answers: its MAC, or None if the MAC is not visible.
@pytest.mark.parametrize(
    ("expected", "macs", "state", "address"),
    [
        (BOTH, {ADDRESS: MAC}, "present", ADDRESS),
        (BOTH, {ADDRESS: MAC, NEW_ADDRESS: MAC}, "present", ADDRESS),
        (BOTH, {NEW_ADDRESS: MAC, THIRD_ADDRESS: MAC}, "moved", NEW_ADDRESS),
        (BOTH, {ADDRESS: OTHER_MAC, NEW_ADDRESS: MAC}, "moved", NEW_ADDRESS),
        (BOTH, {ADDRESS: OTHER_MAC}, "replaced", ADDRESS),
        (BOTH, {ADDRESS: OTHER_MAC, NEW_ADDRESS: OTHER_MAC}, "unknown", ADDRESS),
        (BOTH, {ADDRESS: None}, "present", ADDRESS),
        (BOTH, {}, "absent", ADDRESS),
        (ONLY_ADDRESS, {ADDRESS: OTHER_MAC}, "present", ADDRESS),
        (LEARNED, {NEW_ADDRESS: MAC}, "moved", NEW_ADDRESS),
        (LEARNED, {NEW_ADDRESS: MAC, THIRD_ADDRESS: MAC}, "absent", ADDRESS),
        (LEARNED, {ADDRESS: OTHER_MAC}, "replaced", ADDRESS),
        (expectation(ADDRESS, None, RANDOM_MAC), {ADDRESS: NEXT_RANDOM_MAC}, "unknown", ADDRESS),
        (expectation(ADDRESS, RANDOM_MAC), {ADDRESS: NEXT_RANDOM_MAC}, "replaced", ADDRESS),
        (expectation(None, MAC), {NEW_ADDRESS: MAC}, "present", NEW_ADDRESS),
        (ONLY_MAC, {NEW_ADDRESS: MAC}, "moved", NEW_ADDRESS),
        (ONLY_MAC, {ADDRESS: OTHER_MAC}, "absent", ADDRESS),
    ],
)
def test_the_state_of_a_device_follows_from_the_macs_that_answer(
    expected: Expectation, macs: Mapping[str, str | None], state: str, address: str
) -> None:
    answers = Answers(macs, {ADDRESS} - macs.keys())
    actual = state_of(expected, answers)
    assert (actual.state, actual.address) == (state, address)
    assert (actual.moved_from == ADDRESS) is (state == "moved")


def test_a_device_that_could_not_be_checked_is_unknown() -> None:
    for known in (BOTH, ONLY_ADDRESS, ONLY_MAC):
        actual = state_of(known, Answers({}, is_whole=False, reason="no time"))
        assert (actual.state, actual.reason) == ("unknown", "no time")


def test_a_changed_configuration_makes_a_learned_mac_invalid() -> None:
    learned = LearnedPrinter("device:Bar", ADDRESS, address=ADDRESS, mac_address=MAC)
    (same,) = expectations((WatchedDevice("Bar", address=ADDRESS),), (learned,))
    (other,) = expectations((WatchedDevice("Bar", address=NEW_ADDRESS),), (learned,))
    assert (same.mac_address, other.mac_address) == (MAC, None)


def test_only_payment_terminals_are_protected_from_connections() -> None:
    scale = Expectation(WatchedDevice("Deli", "scale", NEW_ADDRESS, OTHER_MAC))
    terminals = terminals_of((LEARNED, scale))
    assert (ADDRESS, None) in terminals
    assert (NEW_ADDRESS, MAC) in terminals  # the MAC of a terminal at another address
    assert (NEW_ADDRESS, OTHER_MAC) not in terminals


def test_a_mac_of_several_addresses_is_not_learned() -> None:
    answers = Answers({ADDRESS: MAC})
    own, _ = learned_identity(ONLY_ADDRESS, state_of(ONLY_ADDRESS, answers), answers)
    assert own is not None
    assert (own.id, own.setup, own.mac_address) == ("device:Bar", ADDRESS, MAC)
    behind_a_repeater = Answers({ADDRESS: MAC}, table={NEW_ADDRESS: MAC})
    own, _ = learned_identity(
        ONLY_ADDRESS, state_of(ONLY_ADDRESS, behind_a_repeater), behind_a_repeater
    )
    assert own is not None
    assert own.mac_address is None


def test_another_device_is_learned_as_a_replacement_unless_the_mac_is_configured() -> None:
    answers = Answers({ADDRESS: OTHER_MAC})
    own, replacement = learned_identity(LEARNED, state_of(LEARNED, answers), answers)
    assert own is None
    assert replacement is not None
    assert replacement.mac_address == OTHER_MAC
    assert learned_identity(BOTH, state_of(BOTH, answers), answers) == (None, None)


@pytest.mark.parametrize(
    ("now", "stale", "answer", "seconds"),
    [
        ({ADDRESS: LanDevice(MAC)}, {}, MAC, 1),
        ({}, {}, None, 3),
        ({ADDRESS: LanDevice(MAC)}, {ADDRESS: MAC}, MAC, 6),
        ({ADDRESS: LanDevice(OTHER_MAC)}, {ADDRESS: MAC}, OTHER_MAC, 9),
        ({}, {ADDRESS: MAC}, None, 11),
    ],
    ids=["present", "absent", "older entry", "address taken over", "device left"],
)
def test_an_address_is_resolved_within_the_time_that_the_kernel_needs(
    now: dict[str, LanDevice], stale: dict[str, str], answer: str | None, seconds: int
) -> None:
    kernel = SimulatedKernel(now, stale)
    resolver = Resolver(kernel)
    resolver.add([ADDRESS])
    while not resolver.is_done:
        resolver.step()
        kernel.wait()
    assert resolver.answers.get(ADDRESS) == answer
    assert (ADDRESS in resolver.silent) is (answer is None)
    assert kernel.now() - 100 <= seconds  # the simulated clock starts at 100


@pytest.mark.parametrize(("tries", "answers"), [(1, {}), (2, {ADDRESS: MAC})])
def test_a_silent_address_is_tried_as_often_as_requested(
    tries: int, answers: dict[str, str]
) -> None:
    kernel = SimulatedKernel({}, {})
    resolver = Resolver(kernel)
    resolver.add([ADDRESS], tries)
    while not resolver.is_done:
        if kernel.now() > 103:
            kernel.lan[ADDRESS] = LanDevice(MAC)  # the device wakes up after the first try
        resolver.step()
        kernel.wait()
    assert resolver.answers == answers


def test_an_entry_of_a_table_without_states_is_accepted_after_a_second() -> None:
    kernel = SimulatedKernel({ADDRESS: LanDevice(MAC)}, {ADDRESS: MAC}, has_states=False)
    resolver = Resolver(kernel)
    resolver.add([ADDRESS])
    while not resolver.is_done:
        resolver.step()
        kernel.wait()
    assert resolver.answers == {ADDRESS: MAC}
    assert kernel.now() - 100 < 2


def test_the_neighbour_table_of_macos_has_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with closing(SystemArpNetwork()) as network:
        assert network.has_states


def test_a_confirmed_address_gets_no_datagram() -> None:
    kernel = SimulatedKernel({ADDRESS: LanDevice(MAC)}, {})
    kernel.prime(ADDRESS)
    kernel.wait()
    resolver = Resolver(kernel)
    resolver.add([ADDRESS])
    resolver.step()
    assert resolver.answers == {ADDRESS: MAC}
    assert kernel.sent == [ADDRESS]  # only the datagram of `kernel.prime` above
