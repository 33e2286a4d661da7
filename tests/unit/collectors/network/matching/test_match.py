"""Tests which device a printer is matched with, and the status and reason of the printer."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.contract import Printer
from collectors.network.correlate import correlate
from collectors.network.matching.match import match
from collectors.network.observations import (
    Evidence,
    KnownPrinter,
    MdnsService,
    Observations,
)
from collectors.network.scan.scan import ScannedHost
from tests.sizes import examples

UUID = "e3248000-80ce-11db-8000-001ba9123456"
MAC = "00:1b:a9:12:34:56"
OTHER_UUID = "11111111-2222-4333-8444-555555555555"
LAN = ("192.168.1.0/24",)
QUEUE = KnownPrinter(
    id="cups:kitchen",
    name="kitchen",
    transport="network",
    source="cups",
    address="192.168.1.50:631",
    host="192.168.1.50",
    addresses=("192.168.1.50",),
    port=631,
    queue="ipp/print",
)
# A queue without an address. Tests add a name or an identity.
NAMED = replace(QUEUE, address=None, host=None, addresses=(), port=None, queue=None)


def announcement(
    address: str = "192.168.1.50",
    *,
    port: int = 631,
    name: str = "Kitchen",
    uuid: str | None = None,
    model: str = "",
    host: str = "",
) -> MdnsService:
    txt = [("rp", "ipp/print"), ("ty", model)]
    if uuid:
        txt.append(("uuid", uuid))
    return MdnsService(name, "_ipp._tcp", host, (address,), port, tuple(txt), "eth0")


def host(
    address: str,
    mac_address: str | None = None,
    *,
    opened: tuple[int, ...] = (),
    refused: tuple[int, ...] = (),
    silent: tuple[int, ...] = (),
) -> ScannedHost:
    return ScannedHost(
        address,
        mac_address=mac_address,
        open_ports=opened,
        refused_ports=refused,
        silent_ports=silent,
    )


def one_host(address: str, *ports: int) -> list[ScannedHost]:
    """Return a list with one host, which has these open ports."""
    return [host(address, opened=ports)]


def match_one(printer: KnownPrinter, observed: Observations) -> Printer:
    (result,) = match([printer], observed).printers
    return result


def test_a_match_by_uuid_is_preferred_to_a_match_by_address():
    observed = correlate(
        scanned=one_host("192.168.1.50", 631),
        services=[announcement(uuid=UUID)],
        scanned_networks=LAN,
    )
    result = match_one(replace(QUEUE, uuid=UUID), observed)
    assert (result.status, result.matched_endpoint) == ("reachable", "192.168.1.50:631")
    assert result.reason == "Reachable on port 631, matched by UUID"


def test_a_printer_is_matched_by_a_uuid_from_ipp():
    observed = correlate(
        scanned=one_host("192.168.1.61", 631),
        evidence=[Evidence("192.168.1.61", 631, uuid=UUID)],
        scanned_networks=LAN,
    )
    result = match_one(replace(NAMED, uuid=UUID), observed)
    assert (result.matched_endpoint, result.address) == ("192.168.1.61:631", "192.168.1.61:631")


@pytest.mark.parametrize(
    ("printer", "by"),
    [
        (replace(QUEUE, uuid=UUID), "UUID"),
        (replace(QUEUE, mac_address=MAC), "MAC"),
        (replace(QUEUE, host="BRN001BA9123456"), "MAC"),
        (replace(QUEUE, host="NPI123456"), "MAC"),
        (replace(QUEUE, serial="E7812", uuid=UUID), "UUID"),
    ],
)
def test_a_printer_that_got_another_address_is_reported_as_moved(printer: KnownPrinter, by: str):
    observed = correlate(
        scanned=[host("192.168.1.61", MAC, opened=(631,))],
        services=[announcement("192.168.1.61", uuid=UUID)],
        evidence=[Evidence("192.168.1.61", 631, serial="E7812")],
        scanned_networks=LAN,
    )
    result = match_one(printer, observed)
    assert (result.status, result.matched_endpoint) == ("unreachable", "192.168.1.61:631")
    assert result.reason == (
        f"Moved to 192.168.1.61:631 (same {by}); nothing answers at 192.168.1.50 any more:"
        " set the printer up with its new address, or give it a fixed one"
    )


@pytest.mark.parametrize(
    ("printer", "by"),
    [
        # A UUID that differs is no hint, although it contains the MAC of the device.
        (replace(QUEUE, uuid=UUID.replace("e3", "aa")), None),
        (replace(QUEUE, serial="E7812"), "serial number"),
    ],
)
def test_one_identity_alone_is_only_a_hint(printer: KnownPrinter, by: str | None):
    observed = correlate(
        scanned=[host("192.168.1.61", MAC, opened=(631,))],
        services=[announcement("192.168.1.61", uuid=UUID)],
        evidence=[Evidence("192.168.1.61", 631, serial="E7812")],
        scanned_networks=LAN,
    )
    result = match_one(printer, observed)
    assert (result.status, result.matched_endpoint) == ("unreachable", None)
    reason = result.reason or ""
    if by is None:
        assert "it may be the same printer" not in reason
    else:
        assert (
            f"A device with its {by} was seen at 192.168.1.61: it may be the same printer" in reason
        )


@pytest.mark.parametrize(
    "printer", [replace(QUEUE, dns_sd_name="Kitchen"), replace(QUEUE, name="Kitchen")]
)
def test_a_device_with_the_name_of_a_lost_printer_is_a_hint(printer: KnownPrinter):
    observed = correlate(
        scanned=[host("192.168.1.61", MAC, opened=(631,))],
        services=[announcement("192.168.1.61", uuid=UUID)],
        scanned_networks=LAN,
    )
    result = match_one(printer, observed)
    assert (result.status, result.matched_endpoint) == ("unreachable", None)
    assert result.reason == (
        "No answer from 192.168.1.50: is it switched on and connected? A device with its name was"
        " seen at 192.168.1.61: it may be the same printer"
    )


def test_a_moved_printer_is_matched_although_another_device_has_its_address():
    observed = correlate(
        scanned=[
            host("192.168.1.50", "aa:aa:aa:aa:aa:aa", opened=(80,), refused=(631,)),
            host("192.168.1.61", MAC, opened=(631,)),
        ],
        services=[announcement("192.168.1.61", uuid=UUID)],
        scanned_networks=LAN,
    )
    result = match_one(replace(QUEUE, uuid=UUID), observed)
    assert "another device has 192.168.1.50 now" in (result.reason or "")


def test_a_mac_that_is_only_in_the_neighbour_table_is_not_a_match():
    silent = host("192.168.1.50", MAC, silent=(631,))
    observed = correlate(
        scanned=[silent, host("192.168.1.61", MAC, opened=(631,))],
        scanned_networks=LAN,
    )
    result = match_one(replace(QUEUE, mac_address=MAC), observed)
    assert "Moved to 192.168.1.61:631 (same MAC); nothing answers at 192.168.1.50" in (
        result.reason or ""
    )


def test_a_printer_is_matched_by_address_port_and_queue():
    observed = correlate(scanned=one_host("192.168.1.50", 631), services=[announcement()])
    result = match_one(QUEUE, observed)
    assert result.reason == "Reachable on port 631, matched by address, port and queue"
    observed = correlate(scanned=one_host("192.168.1.50", 631))
    assert match_one(QUEUE, observed).reason == "Reachable on port 631, matched by address and port"


def test_different_uuid_at_the_address_is_reported():
    observed = correlate(
        scanned=one_host("192.168.1.50", 631), services=[announcement(uuid=OTHER_UUID)]
    )
    result = match_one(replace(QUEUE, uuid=UUID.replace("001ba9123456", "abcdefabcdef")), observed)
    assert (result.status, result.matched_endpoint) == ("unknown", None)
    assert result.reason == (
        "192.168.1.50 answers on port 631, but its UUID differs from that of the printer that was"
        " set up, so it may be another device: give the printer a fixed address, or set it up"
        " again if it was replaced"
    )


def test_mdns_resolves_only_names_below_local():
    observed = correlate(
        scanned=one_host("192.168.1.50", 9100),
        services=[announcement(host="Till.local")],
        scanned_networks=LAN,
    )
    for host in ("till.local", "TILL.local", "till.local."):
        printer = replace(NAMED, host=host, port=9100)
        result = match_one(printer, observed)
        assert result.reason == "Reachable on port 9100, matched by host name"
    bare = match_one(replace(NAMED, host="TILL", port=9100), observed)
    assert bare.status == "unreachable"
    assert bare.reason == (
        "No address was found for the name TILL: correct the name in the router or name server, or"
        " set the printer up by its address; a device with its host name was seen at 192.168.1.50:"
        " it may be the same printer"
    )


def test_a_refused_printer_port_is_reported_with_the_open_ports():
    observed = correlate(
        scanned=[host("192.168.1.50", MAC, opened=(9100, 80), refused=(631,))],
        scanned_networks=LAN,
    )
    result = match_one(QUEUE, observed)
    assert (result.status, result.matched_endpoint) == ("unreachable", None)
    assert result.reason == (
        "192.168.1.50 refuses connections on port 631 (matched by address and port);"
        " port 9100 is open for printing instead"
    )


def test_a_printer_whose_port_does_not_answer_is_reported_as_present():
    observed = correlate(
        scanned=[host("192.168.1.50", MAC, refused=(80,), silent=(631,))],
        scanned_networks=LAN,
    )
    result = match_one(QUEUE, observed)
    assert result.reason == (
        "192.168.1.50 is there, but port 631 does not answer (matched by address and port)"
    )


def test_a_printer_without_any_answer_is_unreachable():
    result = match_one(QUEUE, correlate(scanned_networks=LAN))
    assert result.status == "unreachable"
    assert result.reason == "No answer from 192.168.1.50: is it switched on and connected?"
    remembered = correlate(
        scanned=[host("192.168.1.50", MAC, silent=(631,))],
        scanned_networks=LAN,
    )
    assert "only its MAC was seen lately" in (match_one(QUEUE, remembered).reason or "")


def test_reason_of_a_lost_printer_includes_the_spooler_state():
    lost = replace(QUEUE, is_queue_stopped=True, state_reasons=("connecting-to-device",))
    result = match_one(lost, correlate(scanned_networks=LAN))
    assert result.reason == (
        "No answer from 192.168.1.50: is it switched on and connected? The spooler reports: still"
        " trying to connect; its queue is stopped on this machine"
    )


def test_address_that_was_not_scanned_is_unknown():
    observed = correlate(scanned=[host("10.0.0.1")], scanned_networks=("10.0.0.0/24",))
    result = match_one(QUEUE, observed)
    assert result.status == "unknown"
    assert result.reason == "192.168.1.50:631 is not in a network that was scanned"
    blind = match_one(QUEUE, Observations())
    assert (blind.status, blind.reason) == ("unknown", "The network was not examined")


def test_a_printer_that_is_only_announced_has_an_unknown_status():
    result = match_one(replace(QUEUE, uuid=UUID), correlate(services=[announcement(uuid=UUID)]))
    assert result.status == "unknown"
    assert result.matched_endpoint == "192.168.1.50:631"
    assert "not contacted" in (result.reason or "")


def test_a_port_that_was_not_tried_is_unknown():
    observed = correlate(scanned=one_host("192.168.1.50", 80), scanned_networks=LAN)
    result = match_one(replace(QUEUE, port=4000), observed)
    assert result.status == "unknown"
    assert "port 4000 was not tried" in (result.reason or "")


def test_a_queue_whose_name_is_not_announced_is_unreachable():
    result = match_one(replace(NAMED, dns_sd_name="Kitchen"), correlate(scanned_networks=LAN))
    assert result.status == "unreachable"
    assert result.reason == (
        "No device announces the name Kitchen by mDNS: is it switched on and connected?"
    )


def test_a_queue_of_cups_browsed_is_matched_by_the_announced_name():
    observed = correlate(
        scanned=one_host("192.168.1.50", 631),
        services=[announcement(name="Brother HL-L2350DW (bar)")],
    )
    result = match_one(replace(NAMED, dns_sd_name="Brother_HL_L2350DW_bar"), observed)
    assert result.reason == "Reachable on port 631, matched by DNS-SD name"


def test_two_devices_with_the_same_uuid_are_ambiguous():
    services = [announcement("192.168.1.60", uuid=UUID), announcement("192.168.1.61", uuid=UUID)]
    contacts = [*one_host("192.168.1.60", 631), *one_host("192.168.1.61", 631)]
    result = match_one(replace(NAMED, uuid=UUID), correlate(services=services, scanned=contacts))
    assert (result.status, result.matched_endpoint) == ("unknown", None)
    assert result.reason == "Ambiguous between 192.168.1.60 and 192.168.1.61: all have its UUID"


def test_devices_with_the_same_uuid_are_distinguished_by_address_or_model():
    services = [
        announcement("192.168.1.60", uuid=UUID, model="Brother HL-L2350DW"),
        announcement("192.168.1.61", uuid=UUID, model="HP LaserJet"),
    ]
    contacts = [*one_host("192.168.1.60", 631), *one_host("192.168.1.61", 631)]
    observed = correlate(services=services, scanned=contacts)
    by_address = replace(QUEUE, uuid=UUID, addresses=("192.168.1.61",))
    assert match_one(by_address, observed).matched_endpoint == "192.168.1.61:631"
    by_model = replace(NAMED, uuid=UUID, make_model="Brother HL-L2350DW series, driverless")
    assert match_one(by_model, observed).matched_endpoint == "192.168.1.60:631"


def test_the_reason_of_a_lost_printer_mentions_a_device_of_the_same_model():
    observed = correlate(
        scanned=one_host("192.168.1.61", 631),
        services=[announcement("192.168.1.61", name="HL", model="Brother HL-L2350DW")],
        scanned_networks=LAN,
    )
    lost = replace(QUEUE, make_model="Brother HL-L2350DW - IPP Everywhere")
    result = match_one(lost, observed)
    assert result.status == "unreachable"
    assert (result.reason or "").endswith("connected? The same model was seen at 192.168.1.61")
    # There is no hint if the device belongs to another queue of this machine.
    owner = replace(QUEUE, id="cups:other", addresses=("192.168.1.61",), host="192.168.1.61")
    first, _ = match([lost, owner], observed).printers
    assert "same model" not in (first.reason or "").lower()


def test_reason_includes_printer_state_and_stopped_queue():
    observed = correlate(
        scanned=one_host("192.168.1.50", 631),
        evidence=[
            Evidence(
                "192.168.1.50",
                631,
                state="stopped",
                state_reasons=("media-empty-error", "cover-open", "odd-thing-report"),
            )
        ],
    )
    result = match_one(replace(QUEUE, is_queue_stopped=True, state_reasons=("paused",)), observed)
    assert result.reason == (
        "Reachable on port 631, matched by address and port; the printer reports: out of paper,"
        " cover open, odd thing and paused; its queue is stopped on this machine"
    )


def test_state_of_another_printer_on_the_same_port_is_not_reported():
    observed = correlate(
        scanned=one_host("192.168.1.50", 631),
        evidence=[
            Evidence("192.168.1.50", 631, uuid=UUID, state_reasons=("media-empty",)),
            Evidence("192.168.1.50", 631, uuid=OTHER_UUID),
        ],
    )
    result = match_one(replace(QUEUE, uuid=OTHER_UUID), observed)
    assert "paper" not in (result.reason or "")
    result = match_one(QUEUE, observed)
    assert "paper" not in (result.reason or "")
    result = match_one(replace(QUEUE, uuid=UUID), observed)
    assert "out of paper" in (result.reason or "")


def test_matches_list_the_printers_of_each_endpoint():
    observed = correlate(
        scanned=one_host("192.168.1.50", 631, 9100),
        services=[announcement(uuid=UUID)],
    )
    by_uuid = replace(QUEUE, uuid=UUID)
    raw = replace(QUEUE, id="raw", port=9100)
    matches = match([by_uuid, raw], observed)
    assert matches.printer_ids == {
        ("192.168.1.50", 631): ("cups:kitchen",),
        ("192.168.1.50", 9100): ("raw",),
    }
    assert matches.printer_ids.get(("192.168.1.50", 9100)) == ("raw",)
    assert matches.printer_ids.get(("192.168.1.50", 80)) is None


def test_a_device_with_ipv4_and_ipv6_addresses_is_one_device():
    service = replace(announcement(uuid=UUID), addresses=("192.168.1.50", "fd00::50"))
    hosts = [host("192.168.1.50", MAC, opened=(631,)), host("fd00::50", MAC)]
    observed = correlate(scanned=hosts, services=[service])
    result = match_one(replace(NAMED, uuid=UUID), observed)
    assert (result.status, result.matched_endpoint) == ("reachable", "192.168.1.50:631")


@pytest.mark.parametrize("uuid", [UUID, None])
def test_a_printer_that_announces_only_a_link_local_address_is_reachable(uuid: str | None):
    service = replace(announcement(uuid=uuid), addresses=("fe80::21b:a9ff:fe12:3456",))
    stale = replace(host("192.168.1.50", MAC, silent=(631,)), is_confirmed=False)
    for before in ((), (stale,)):  # the printer had another address before
        hosts = [*before, host("192.168.1.61", MAC, opened=(631,))]
        observed = correlate(scanned=hosts, services=[service], scanned_networks=LAN)
        by_name = replace(NAMED, dns_sd_name="Kitchen", dns_sd_type="_ipp._tcp", uuid=UUID)
        result = match_one(by_name, observed)
        assert (result.status, result.matched_endpoint) == ("reachable", "192.168.1.61:631")
        assert "Moved to 192.168.1.61:631" in str(
            match_one(replace(QUEUE, mac_address=MAC, uuid=UUID), observed).reason
        )


def test_many_addresses_with_the_same_mac_are_not_one_device():
    hosts = [
        host(f"192.168.1.{number}", MAC, opened=(631,) if number == 50 else ())
        for number in range(1, 255)
    ]
    observed = correlate(scanned=hosts, scanned_networks=LAN)
    assert match_one(QUEUE, observed).matched_endpoint == "192.168.1.50:631"
    by_mac = replace(NAMED, mac_address=MAC)
    assert match_one(by_mac, observed).matched_endpoint == "192.168.1.50:631"


def test_the_best_open_port_is_matched_for_a_printer_without_a_port():
    observed = correlate(scanned=one_host("192.168.1.50", 80, 515, 9100))
    printer = replace(QUEUE, port=None, queue=None)
    assert match_one(printer, observed).matched_endpoint == "192.168.1.50:9100"
    raw = correlate(scanned=one_host("192.168.1.50", 80, 9103))
    assert match_one(printer, raw).matched_endpoint == "192.168.1.50:9103"
    only_web = correlate(scanned=one_host("192.168.1.50", 80))
    result = match_one(printer, only_web)
    assert (result.status, result.matched_endpoint) == ("unreachable", None)
    assert "no print port was found" in (result.reason or "")


def test_usb_and_bluetooth_printers_have_a_status_and_a_reason():
    usb = KnownPrinter("u", "U", "usb", "usb", present=True, presence_reason="plugged in by USB")
    gone = replace(usb, present=False, presence_reason="no USB printer is plugged in")
    unknown = replace(usb, present=None, presence_reason=None, is_queue_stopped=True)
    ble = replace(usb, transport="ble", present=None)
    result = match([usb, gone, unknown, ble], Observations()).printers
    assert [printer_match.status for printer_match in result] == [
        "reachable",
        "unreachable",
        "unknown",
        "unknown",
    ]
    assert result[2].reason == (
        "This system does not report whether it is plugged in; its queue is stopped on this machine"
    )
    assert result[3].reason == "Bluetooth printers are not contacted"


uuids = st.sampled_from([None, UUID, OTHER_UUID])
addresses = st.sampled_from([f"192.168.1.{n}" for n in range(50, 56)] + ["fd00::1"])
ports = st.sampled_from([80, 631, 9100])
known_printers = st.builds(
    KnownPrinter,
    id=st.text(min_size=1, max_size=4),
    name=st.text(max_size=8),
    transport=st.sampled_from(["network", "network", "usb", "serial", "ble"]),
    source=st.just("config"),
    addresses=st.lists(addresses, max_size=2).map(tuple),
    host=st.sampled_from([None, "till.local", "BRN001BA9123456"]),
    port=st.none() | ports,
    uuid=uuids,
    mac_address=st.sampled_from([None, MAC]),
    dns_sd_name=st.sampled_from([None, "Kitchen", "Bar"]),
    make_model=st.sampled_from([None, "HP LaserJet"]),
    state_reasons=st.lists(st.text(max_size=12), max_size=3).map(tuple),
)
observed_networks = st.builds(
    correlate,
    scanned=st.lists(
        st.builds(
            lambda address, mac, contacts: host(
                address,
                mac,
                opened=tuple(port for port, contact in contacts.items() if contact == "open"),
                refused=tuple(port for port, contact in contacts.items() if contact == "refused"),
                silent=tuple(port for port, contact in contacts.items() if contact == "no-answer"),
            ),
            addresses,
            st.sampled_from([None, MAC]),
            st.dictionaries(ports, st.sampled_from(["open", "refused", "no-answer"])),
        ),
        max_size=6,
        unique_by=lambda scanned: scanned.address,
    ),
    services=st.lists(
        st.builds(
            lambda a, p, n, u: announcement(a, port=p, name=n, uuid=u, model="HP LaserJet"),
            addresses,
            ports,
            st.sampled_from(["Kitchen", "Bar"]),
            uuids,
        ),
        max_size=4,
    ),
    scanned_networks=st.sampled_from([(), LAN]),
)


@settings(max_examples=examples(60))
@given(st.lists(known_printers, max_size=5), observed_networks)
def test_every_printer_has_a_reason_and_every_match_has_an_observed_port(
    known: list[KnownPrinter], observed: Observations
):
    matches = match(known, observed)
    assert [printer.id for printer in matches.printers] == [printer.id for printer in known]
    for result in matches.printers:
        assert result.reason
        if result.status == "reachable" and result.transport == "network":
            assert result.matched_endpoint
    for key, printer_ids in matches.printer_ids.items():
        assert key in observed.ports
        assert printer_ids


def test_a_host_that_answers_is_preferred_to_an_announced_host():
    announcements = [
        announcement("192.168.1.66", uuid=UUID),
        announcement("192.168.1.50", uuid=UUID),
    ]
    by_uuid = replace(NAMED, uuid=UUID)
    by_name = replace(NAMED, dns_sd_name="Kitchen")
    contacts = one_host("192.168.1.50", 631)
    for printer in (by_uuid, by_name):
        result = match_one(printer, correlate(services=announcements, scanned=contacts))
        assert (result.status, result.matched_endpoint) == ("reachable", "192.168.1.50:631")
        without = match_one(printer, correlate(services=announcements))
        assert "ambiguous between" in (without.reason or "").lower()


def test_a_uuid_from_ipp_takes_precedence_over_an_announced_uuid():
    announcements = [
        announcement("192.168.1.66", port=80, uuid=UUID),
        announcement("192.168.1.50", uuid=UUID),
    ]
    observed = correlate(
        services=announcements,
        scanned=[*one_host("192.168.1.66", 80), *one_host("192.168.1.50", 631)],
        evidence=[Evidence("192.168.1.50", 631, uuid=UUID)],
    )
    assert match_one(replace(NAMED, uuid=UUID), observed).matched_endpoint == "192.168.1.50:631"


def test_the_mac_of_a_host_takes_precedence_over_a_mac_in_a_host_name():
    false_announcement = announcement("192.168.1.66", host="BRN001ba9123456.local")
    observed = correlate(
        services=[false_announcement],
        scanned=[
            host("192.168.1.50", MAC, opened=(631,)),
            host("192.168.1.66", "02:00:00:00:00:66", opened=(631,)),
        ],
    )
    assert (
        match_one(replace(NAMED, mac_address=MAC), observed).matched_endpoint == "192.168.1.50:631"
    )


def test_a_uuid_announced_by_another_host_is_no_evidence():
    false_announcement = replace(
        announcement("192.168.1.70", port=80, uuid=UUID, name="X"), is_hearsay=True
    )
    own = announcement("192.168.1.50", uuid=UUID)
    contacts = [*one_host("192.168.1.70", 80), *one_host("192.168.1.50", 631)]
    evidence_list = [Evidence("192.168.1.50", 631, uuid=UUID)]
    printer = replace(NAMED, uuid=UUID)
    for observed in (
        correlate(services=[false_announcement, own], scanned=contacts),
        correlate(services=[false_announcement], scanned=contacts, evidence=evidence_list),
    ):
        assert match_one(printer, observed).matched_endpoint == "192.168.1.50:631"
