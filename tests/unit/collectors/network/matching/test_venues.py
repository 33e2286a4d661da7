"""Tests the sentences about printers of generated venues against the venues' true state."""

import re

import pytest
from hypothesis import given, settings

from collectors.contract import Printer
from collectors.network.matching.learned import with_learned
from collectors.network.matching.match import match
from collectors.shared.addresses import split_host_port
from tests.sizes import examples
from tests.unit.collectors.network.matching.venues import SHARED_UUID, Device, Venue, venues

pytestmark = pytest.mark.medium

VENUES = 500
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+")


@settings(max_examples=examples(VENUES))
@given(venues())
def test_no_other_device_is_reported_as_reachable_or_moved(venue: Venue):
    printers = match(venue.known(), venue.observed()).printers
    for queue, message in zip(venue.queues, printers, strict=True):
        visible = _visible_device(venue, message)
        if visible is None:
            assert message.status != "reachable"
            continue
        truth = venue.current(queue)
        if visible.number != truth.number:
            assert venue.is_beyond_knowledge(queue, visible), (message.reason, queue, truth)


@settings(max_examples=examples(VENUES))
@given(venues())
def test_learned_identity_separates_otherwise_equal_devices(venue: Venue):
    known, before = venue.known(), venue.before()
    learned = {
        each.id: each
        for each in match(known, before.observed()).learned
        if each.mac_address
        in (None, before.queues[int(each.id.removeprefix("cups:q"))].device.mac_address)
    }
    known = list(with_learned(known, tuple(learned.values())))
    printers = match(known, venue.observed()).printers
    for queue, report in zip(venue.queues, printers, strict=True):
        view = _visible_device(venue, report)
        truth = venue.current(queue)
        if view is None or view.number == truth.number:
            continue
        assert venue.is_beyond_knowledge(queue, view), (report.reason, queue, truth)
        is_learned = report.id in learned and learned[report.id].mac_address is not None
        assert not (is_learned and venue.could_be_known(queue, view)), (report.reason, queue)


@settings(max_examples=examples(200))
@given(venues())
def test_no_replacement_is_the_printer_of_another_queue_in_any_venue(venue: Venue):
    known = with_learned(venue.known(), match(venue.known(), venue.before().observed()).learned)
    matches = match(known, venue.observed())
    addresses = {printer.id: printer.addresses for printer in known}
    for result in matches.strangers:
        for matched in matches.printers:
            if split_host_port(matched.matched_endpoint or "")[0] == result.address:
                assert addresses[matched.id] == addresses[result.id], (matched.reason, result)


@settings(max_examples=examples(100))
@given(venues())
def test_a_learned_printer_is_named_at_its_new_address_in_any_venue(venue: Venue):
    before = venue.whole()
    known = list(with_learned(venue.known(), match(venue.known(), before.observed()).learned))
    printers = match(known, venue.observed()).printers
    for queue, printer, matched in zip(venue.queues, known, printers, strict=True):
        truth = venue.current(queue)
        if queue.kind not in ("raw", "ipp") or not truth.is_mac_seen or truth.address is None:
            continue
        assert printer.learned is not None
        assert printer.learned.mac_address == truth.mac_address
        if truth.address == queue.address:
            assert matched.status == "reachable", matched.reason
        else:
            assert (matched.reason or "").startswith(f"Moved to {truth.address}"), matched.reason


@pytest.mark.parametrize("remembers", [False, True])
@settings(max_examples=examples(VENUES))
@given(venue=venues())
def test_no_hint_names_the_printer_of_another_queue_in_any_venue(venue: Venue, remembers: bool):
    known = venue.known()
    if remembers:
        known = list(with_learned(known, match(known, venue.before().observed()).learned))
    printers = match(known, venue.observed()).printers
    held = {
        queue.address: queue.device.number
        for queue in venue.queues
        if queue.address is not None and venue.current(queue).address == queue.address
    }
    for queue, matched in zip(venue.queues, printers, strict=True):
        for address in _ADDRESS.findall(_without_denials(matched.reason or "")):
            if address in held and address != queue.address:
                visible = venue.at(address)
                assert visible is not None
                is_its_own = held[address] == queue.device.number
                assert is_its_own or venue.is_beyond_knowledge(queue, visible), (
                    matched.reason,
                    queue,
                )


@settings(max_examples=examples(100))
@given(venues())
def test_a_queue_by_address_is_reachable_while_nothing_has_happened(venue: Venue):
    before = venue.whole()
    printers = match(before.known(), before.observed()).printers
    for queue, matched in zip(before.queues, printers, strict=True):
        if queue.kind in ("raw", "ipp") or (queue.kind == "ipp-uuid" and queue.uuid != SHARED_UUID):
            assert matched.status == "reachable", matched.reason


def _visible_device(venue: Venue, matched: Printer) -> Device | None:
    """Return the device that the report names as the printer, None if it names none."""
    address = split_host_port(matched.matched_endpoint or "")[0]
    return venue.at(address) if address else None


def _without_denials(reason: str) -> str:
    """Remove the parts of a reason which only state that a device may be a different one."""
    clauses = reason.split("; ")
    denials = ("another", "mbiguous", "has this address now")
    return "; ".join(each for each in clauses if not any(word in each for word in denials))
