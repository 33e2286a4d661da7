"""Tests that a report learns the identities of printers, and that the next report uses them."""

from dataclasses import replace

import pytest

from collectors.contract import LearnedPrinter, Printer
from collectors.network.correlate import correlate
from collectors.network.matching.learned import with_learned
from collectors.network.matching.match import match
from collectors.network.observations import Evidence, KnownPrinter, MdnsService, Observations
from collectors.network.scan.scan import ScannedHost

KITCHEN_MAC, BAR_MAC, STRANGER_MAC = "00:1b:a9:00:00:01", "00:1b:a9:00:00:02", "00:1b:a9:00:00:03"
LAN = ("192.168.1.0/24",)


def queue(name: str, address: str) -> KnownPrinter:
    return KnownPrinter(
        id=f"cups:{name}",
        name=name,
        transport="network",
        source="cups",
        address=f"{address}:9100",
        host=address,
        addresses=(address,),
        port=9100,
        make_model="Local Raw Printer",
    )


KITCHEN, BAR = queue("kitchen", "192.168.1.50"), queue("bar", "192.168.1.51")


def observe(
    *addresses: tuple[str, str | None], evidence: tuple[Evidence, ...] = ()
) -> Observations:
    hosts = [ScannedHost(a, mac_address=mac, open_ports=(9100,)) for a, mac in addresses]
    return correlate(scanned=hosts, evidence=evidence, scanned_networks=LAN)


FIRST = observe(("192.168.1.50", KITCHEN_MAC), ("192.168.1.51", BAR_MAC))


def match_again(
    first: Observations, second: Observations, *printers: KnownPrinter
) -> list[Printer]:
    """Learn printers from ``first`` and return the printers matched with ``second``."""
    learned = match(printers, first).learned
    return list(match(with_learned(printers, learned), second).printers)


def test_swapped_identical_printers_are_recognised_by_mac():
    swapped = observe(("192.168.1.51", KITCHEN_MAC), ("192.168.1.50", BAR_MAC))
    kitchen, bar = match_again(FIRST, swapped, KITCHEN, BAR)
    assert (kitchen.status, kitchen.matched_endpoint) == ("unreachable", "192.168.1.51:9100")
    assert (bar.status, bar.matched_endpoint) == ("unreachable", "192.168.1.50:9100")
    assert "Moved to 192.168.1.51:9100 (same MAC); another device has 192.168.1.50 now" in (
        kitchen.reason or ""
    )
    assert "Moved to 192.168.1.50:9100 (same MAC)" in (bar.reason or "")


def test_swapped_printers_are_not_detected_without_learned_details():
    swapped = observe(("192.168.1.51", KITCHEN_MAC), ("192.168.1.50", BAR_MAC))
    assert {p.status for p in match([KITCHEN, BAR], swapped).printers} == {"reachable"}


def test_a_printer_with_a_new_dhcp_address_is_recognised_by_mac():
    (kitchen,) = match_again(FIRST, observe(("192.168.1.77", KITCHEN_MAC)), KITCHEN)
    assert kitchen.reason == (
        "Moved to 192.168.1.77:9100 (same MAC); nothing answers at 192.168.1.50 any more: set"
        " the printer up with its new address, or give it a fixed one"
    )


def test_a_learned_printer_that_has_not_moved_is_reachable():
    known = with_learned([KITCHEN], match([KITCHEN], FIRST).learned)
    matches = match(known, FIRST)
    assert matches.printers[0].status == "reachable"
    assert matches.strangers == ()


def test_another_device_at_the_address_of_a_printer_is_reported_and_never_reachable():
    stranger = observe(("192.168.1.50", STRANGER_MAC))
    known = with_learned([KITCHEN], match([KITCHEN], FIRST).learned)
    matches = match(known, stranger)
    (kitchen,) = matches.printers
    (result,) = matches.strangers
    assert matches.learned == ()
    assert (result.id, result.mac_address) == (KITCHEN.id, STRANGER_MAC)
    assert kitchen.status == "unknown"
    assert kitchen.matched_endpoint is None
    assert f"another device answers there: MAC {STRANGER_MAC}" in (kitchen.reason or "")
    assert f"while the printer had MAC {KITCHEN_MAC} on 20" in (
        kitchen.reason or ""  # followed by the rest of a date
    )
    assert "if it has replaced the printer: venue-agent printers forget cups:kitchen" in (
        kitchen.reason or ""
    )


def test_the_printer_of_another_queue_is_not_a_replacement():
    known = with_learned([KITCHEN, BAR], match([KITCHEN, BAR], FIRST).learned)
    matches = match(known, observe(("192.168.1.50", BAR_MAC)))
    kitchen, bar = matches.printers
    assert bar.matched_endpoint == "192.168.1.50:9100"
    assert (kitchen.status, matches.strangers) == ("unknown", ())
    assert "the printer bar (same MAC) has this address now" in (kitchen.reason or "")
    assert "forget" not in (kitchen.reason or "")


def test_the_replacement_of_a_printer_with_two_queues_is_reported_for_both_queues():
    named = replace(KITCHEN, id="cups:k2", host=None, addresses=(), dns_sd_name="Kitchen")
    named = replace(named, dns_sd_type="_pdl-datastream._tcp")
    txt = (("rp", "ipp/print"),)

    def venue(mac: str) -> Observations:
        address = "192.168.1.50"
        service = MdnsService("Kitchen", "_pdl-datastream._tcp", "", (address,), 9100, txt, "e")
        host = ScannedHost(address, mac_address=mac, open_ports=(9100,))
        return correlate(scanned=[host], services=[service], scanned_networks=LAN)

    known = with_learned([KITCHEN, named], match([KITCHEN, named], venue(KITCHEN_MAC)).learned)
    strangers = match(known, venue(STRANGER_MAC)).strangers
    assert [(stranger.id, stranger.mac_address) for stranger in strangers] == [
        (KITCHEN.id, STRANGER_MAC),
        (named.id, STRANGER_MAC),
    ]


def test_the_reason_of_a_replaced_printer_contains_the_date_of_the_replacement():
    (learned,) = match([KITCHEN], FIRST).learned
    known = with_learned([KITCHEN], [replace(learned, replaced_at="2026-11-20T12:00:00+00:00")])
    (kitchen,) = match(known, FIRST).printers
    assert kitchen.status == "reachable"
    assert "since 2026-11-20 it is a different device" in (kitchen.reason or "")


def test_a_printer_recognised_by_its_mac_is_learned_with_its_new_address():
    known = with_learned([KITCHEN], match([KITCHEN], FIRST).learned)
    (learned,) = match(known, observe(("192.168.1.77", KITCHEN_MAC))).learned
    assert (learned.address, learned.mac_address) == ("192.168.1.77", KITCHEN_MAC)


def test_a_reconfigured_queue_has_no_learned_printer():
    learned = match([KITCHEN], FIRST).learned
    reconfigured = replace(KITCHEN, host="192.168.1.60", addresses=("192.168.1.60",))
    assert [p.learned for p in with_learned([reconfigured, KITCHEN], learned)] == [None, *learned]


def answer(address: str, serial: str, uuid: str | None = None) -> Evidence:
    return Evidence(address, 9100, serial=serial, uuid=uuid, make_model="EPSON TM-m30")


UUID = "d4d1e202-baff-3fff-46ff-3ab6db000001"
SHARED_UUID = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
"""A UUID that several printers have."""


def test_a_printer_without_a_visible_mac_is_matched_by_serial_number_and_uuid():
    device = answer("192.168.1.50", "X3B7001", UUID)
    first = observe(("192.168.1.50", None), evidence=(device,))
    moved = replace(device, address="192.168.1.77")
    (kitchen,) = match_again(first, observe(("192.168.1.77", None), evidence=(moved,)), KITCHEN)
    assert "Moved to 192.168.1.77:9100 (same UUID)" in (kitchen.reason or "")


@pytest.mark.parametrize(
    ("serial", "uuid", "by"), [("X3B7001", None, "serial number"), ("", UUID, "UUID")]
)
def test_a_single_matching_identity_is_only_a_hint(serial: str, uuid: str | None, by: str):
    device = answer("192.168.1.50", serial, uuid)
    first = observe(("192.168.1.50", None), evidence=(device,))
    moved = replace(device, address="192.168.1.77")
    (kitchen,) = match_again(first, observe(("192.168.1.77", None), evidence=(moved,)), KITCHEN)
    assert kitchen.matched_endpoint is None
    expected = f"a device with its {by} was seen at 192.168.1.77: it may be the same printer"
    assert expected.lower() in (kitchen.reason or "").lower()


def test_a_printer_moved_from_cable_to_wifi_is_recognised_by_uuid_and_serial_number():
    device = answer("192.168.1.50", "X3B7001", UUID)
    first = observe(("192.168.1.50", KITCHEN_MAC), evidence=(device,))
    wifi = observe(("192.168.1.77", BAR_MAC), evidence=(replace(device, address="192.168.1.77"),))
    (kitchen,) = match_again(first, wifi, KITCHEN)
    assert "Moved to 192.168.1.77:9100 (same UUID)" in (kitchen.reason or "")
    (kitchen,) = match_again(first, observe(("192.168.1.50", BAR_MAC), evidence=(device,)), KITCHEN)
    assert kitchen.status == "reachable"


@pytest.mark.parametrize("uuid", [SHARED_UUID, None])
def test_one_uuid_or_serial_number_does_not_outweigh_a_different_mac(uuid: str | None):
    evidence = answer("192.168.1.50", "" if uuid else "SN77777B", uuid)
    first = observe(("192.168.1.50", KITCHEN_MAC), evidence=(evidence,))
    other = observe(
        ("192.168.1.77", BAR_MAC), evidence=(replace(evidence, address="192.168.1.77"),)
    )
    (kitchen,) = match_again(first, other, KITCHEN)
    assert "moved" not in (kitchen.reason or "").lower()
    assert kitchen.matched_endpoint is None


def test_a_printer_with_a_shared_uuid_is_recognised_by_mac():
    kitchen, bar = (replace(printer, uuid=SHARED_UUID) for printer in (KITCHEN, BAR))
    moved = observe(
        ("192.168.1.77", KITCHEN_MAC), evidence=(answer("192.168.1.77", "", SHARED_UUID),)
    )
    printer, _ = match_again(FIRST, moved, kitchen, bar)
    assert "Moved to 192.168.1.77:9100 (same MAC)" in (printer.reason or "")


def test_a_serial_number_or_mac_of_two_devices_is_not_learned():
    addresses = (("192.168.1.50", KITCHEN_MAC), ("192.168.1.51", KITCHEN_MAC))
    both = tuple(answer(address, "SN77777B") for address, _ in addresses)
    (learned,) = match([KITCHEN], observe(*addresses, evidence=both)).learned
    assert (learned.mac_address, learned.serial) == (None, None)
    assert learned.model == "EPSON TM-m30"


def test_the_reason_mentions_a_device_that_had_the_name_of_the_queue():
    named = replace(
        KITCHEN, address=None, host=None, addresses=(), port=None, dns_sd_name="Kitchen"
    )

    def observe_announcement(name: str, address: str, mac: str) -> Observations:
        service = MdnsService(name, "_ipp._tcp", "", (address,), 631, (("rp", "ipp/print"),), "e")
        host = ScannedHost(address, mac_address=mac, open_ports=(631,))
        return correlate(scanned=[host], services=[service], scanned_networks=LAN)

    first = observe_announcement("Kitchen", "192.168.1.50", KITCHEN_MAC)
    (printer,) = match_again(
        first, observe_announcement("Kitchen", "192.168.1.50", STRANGER_MAC), named
    )
    assert printer.status == "unknown"
    assert "another device answers there" in (printer.reason or "")
    (printer,) = match_again(first, observe_announcement("Bar", "192.168.1.77", KITCHEN_MAC), named)
    assert printer.reason == (
        "No device announces the name Kitchen by mDNS; the device that had this name is at"
        " 192.168.1.77 (same MAC): was it renamed? Set the printer up again, or restore its name"
    )
    assert printer.status == "unreachable"
    (printer,) = match_again(
        first, observe_announcement("Kitchen", "192.168.1.77", KITCHEN_MAC), named
    )
    assert printer.status == "reachable"


def test_learned_printer_keeps_address_and_identity():
    (learned,) = match([KITCHEN], FIRST).learned
    assert learned == LearnedPrinter(
        id="cups:kitchen",
        setup="192.168.1.50",
        seen_at=learned.seen_at,
        address="192.168.1.50",
        mac_address=KITCHEN_MAC,
    )


def test_an_unreachable_printer_is_not_learned():
    assert match([KITCHEN], observe(("192.168.1.51", BAR_MAC))).learned == ()
