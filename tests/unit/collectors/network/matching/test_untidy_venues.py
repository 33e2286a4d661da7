"""Tests the verdicts in untidy networks, for example with queues that were set up again, slow name
servers, relays and repeaters.
"""

import threading
from dataclasses import replace

import pytest

from collectors.contract import LearnedPrinter, Printer
from collectors.network.correlate import correlate
from collectors.network.matching.learned import with_learned
from collectors.network.matching.machine import find_machine_symptoms
from collectors.network.matching.match import match
from collectors.network.observations import Evidence, KnownPrinter, MdnsService, Observations
from collectors.network.printers.host_names import resolve_hosts
from collectors.network.scan.scan import PortState
from tests.unit.collectors.network.matching.test_scenes import (
    LAN,
    MAC,
    OTHER_MAC,
    TILL,
    UUID,
    announcement,
    match_printers,
    queue,
    scanned_host,
)

REPEATER = "aa:bb:cc:00:00:01"


def observe(*hosts: tuple[str, str | None], **more: object) -> Observations:
    """Return the observations of printers at addresses with MACs."""
    printers = [scanned_host(address, mac, 515, 631, 9100) for address, mac in hosts]
    return correlate(local=TILL, scanned=printers, scanned_networks=LAN, **more)  # type: ignore[arg-type]


def reports(*inputs: tuple[list[KnownPrinter], Observations]) -> list[dict[str, Printer]]:
    """Return the printers of each report by name.

    Each report uses what the earlier reports learned.
    """
    learned: dict[str, LearnedPrinter] = {}
    results = []
    for known, observed in inputs:
        matches = match(with_learned(known, tuple(learned.values())), observed)
        learned |= {printer.id: printer for printer in matches.learned}
        results.append({printer.name: printer for printer in matches.printers})
    return results


# ------------------------------------------------------------------ the recommended repair


@pytest.mark.parametrize("uri", ["socket://192.168.1.20", "ipp://192.168.1.20/ipp/print"])
def test_a_queue_at_the_new_address_is_reachable_and_the_old_queue_names_the_new_queue(uri: str):
    old, new = queue("socket://192.168.1.7", "old"), queue(uri, "new")
    moved = observe(("192.168.1.20", MAC))
    first, *later = reports(
        ([old], observe(("192.168.1.7", MAC))), ([old, new], moved), ([old, new], moved)
    )
    assert first["old"].status == "reachable"
    for report in later:
        assert report["new"].status == "reachable", report["new"].reason
        assert report["old"].status == "unreachable"
        assert (report["old"].reason or "").startswith(
            "Moved to 192.168.1.20:9100 (same MAC); it is already set up there as new; nothing"
            " answers at 192.168.1.7 any more"
        )
    known = with_learned([old, new], match([old, new], moved).learned)
    assert {printer.learned.mac_address for printer in known if printer.learned} == {MAC}


def test_a_queue_by_address_reports_a_move_although_a_queue_by_name_follows_the_printer():
    old, named = queue("socket://192.168.1.7", "old"), queue("socket://bar.lan", "named")
    _, report = reports(
        ([old], observe(("192.168.1.7", MAC))),
        ([old, replace(named, addresses=("192.168.1.20",))], observe(("192.168.1.20", MAC))),
    )
    assert report["named"].status == "reachable"
    assert "Moved to 192.168.1.20:9100 (same MAC); it is already set up there as named" in (
        report["old"].reason or ""
    )


# ------------------------------------------------------------------ names


def test_slow_name_servers_are_reported_as_a_cause():
    now_s = [0.0]

    def resolve(_: str) -> tuple[str, ...]:
        now_s[0] += 5.0  # the first name server does not answer
        return ("192.168.1.50",)

    (known,) = resolve_hosts([queue("socket://bar.lan")], 11.0, resolve, lambda: now_s[0])
    observed = observe(("192.168.1.50", MAC))
    machine = find_machine_symptoms(TILL, [known], observed)
    (result,) = match([known], observed, machine).printers
    assert result.status == "reachable"
    assert "the name servers took 5 seconds to find a printer by its name" in (result.reason or "")


def test_name_without_an_answer_in_time_is_unreachable():
    may_answer = threading.Event()

    def resolve(_: str) -> tuple[str, ...]:
        may_answer.wait(60)
        return ("192.168.1.50",)

    (known,) = resolve_hosts([queue("socket://bar.lan")], 0.0, resolve)
    may_answer.set()
    (result,) = match_printers(known, hosts=(scanned_host("192.168.1.50", MAC, 9100),))
    assert result.status == "unreachable"
    assert "The name servers did not answer for the name bar.lan" in (result.reason or "")


def test_a_name_with_several_addresses_is_matched_at_the_address_that_answers():
    known = replace(queue("socket://bar.lan"), addresses=("fd00::50", "192.168.1.50"))
    (result,) = match_printers(known, hosts=(scanned_host("192.168.1.50", MAC, 9100),))
    assert (result.status, result.matched_endpoint) == ("reachable", "192.168.1.50:9100")


@pytest.mark.parametrize("type_", ["_pdl-datastream._tcp", "_http._tcp"])
def test_a_service_of_another_type_is_not_the_queue(type_: str):
    (result,) = match_printers(
        queue(f"dnssd://Kitchen._ipp._tcp.local/?uuid={UUID}"),
        hosts=(scanned_host("192.168.1.50", MAC, 80, 631, 9100),),
        services=(announcement("192.168.1.50", "Kitchen", "kitchen.local", type_, uuid=UUID),),
    )
    assert result.status == "unreachable"
    assert result.reason == (
        "Kitchen is announced at 192.168.1.50, but not as _ipp._tcp: enable AirPrint (IPP) in its"
        " settings, or set the printer up again"
    )


def test_a_service_with_the_same_name_but_another_uuid_is_not_the_queue():
    (result,) = match_printers(
        queue(f"dnssd://Kitchen._ipp._tcp.local/?uuid={UUID}"),
        hosts=(scanned_host("192.168.1.50", OTHER_MAC, 631),),
        services=(announcement("192.168.1.50", "Kitchen", uuid=UUID.replace("e3", "aa")),),
    )
    assert result.status == "unreachable"
    assert "UUID of Kitchen at 192.168.1.50 differs" in (result.reason or "")


# ------------------------------------------------------------------ relays and repeaters


def test_a_relay_whose_uuid_ends_in_the_mac_of_a_printer_is_not_the_printer():
    known = replace(queue("lpd://BRN001BA9123456"), addresses=("192.168.1.50",))
    (result,) = match_printers(
        known,
        hosts=(
            scanned_host("192.168.1.50", None, 515),
            scanned_host("192.168.1.61", OTHER_MAC, 631),
        ),
        services=(announcement("192.168.1.61", "AirPrint Kitchen", "relay.local", uuid=UUID),),
    )
    assert (result.status, result.matched_endpoint) == ("reachable", "192.168.1.50:515")


def test_the_mac_of_a_repeater_is_no_evidence():
    kitchen = queue("socket://192.168.1.50", "kitchen")
    telephone = replace(scanned_host("192.168.1.70", REPEATER), silent_ports=(631, 9100))
    behind = correlate(
        scanned=[scanned_host("192.168.1.50", REPEATER, 9100), telephone], scanned_networks=LAN
    )
    gone = correlate(scanned=[telephone], scanned_networks=LAN)
    direct = observe(("192.168.1.50", MAC))
    first, repeated, off = reports(([kitchen], direct), ([kitchen], behind), ([kitchen], gone))
    assert (first["kitchen"].status, repeated["kitchen"].status) == ("reachable", "reachable")
    assert off["kitchen"].status == "unreachable"
    assert "moved" not in (off["kitchen"].reason or "").lower()
    _, off = reports(([kitchen], behind), ([kitchen], gone))
    assert "moved" not in (off["kitchen"].reason or "").lower()


def test_a_printer_is_not_moved_to_a_device_of_another_kind():
    kitchen = queue("socket://192.168.1.50", "kitchen")
    camera = correlate(scanned=[scanned_host("192.168.1.70", MAC, 80)], scanned_networks=LAN)
    _, off = reports(([kitchen], observe(("192.168.1.50", MAC))), ([kitchen], camera))
    assert off["kitchen"].reason == "No answer from 192.168.1.50: is it switched on and connected?"


# ------------------------------------------------------------------ two interfaces, IPv6


def test_one_service_at_two_addresses_without_a_uuid_is_one_device():
    hosts = (scanned_host("192.168.1.50", MAC, 631), scanned_host("192.168.1.51", OTHER_MAC, 631))
    services = [announcement(host.address, "Kitchen", "kitchen.local") for host in hosts]
    (result,) = match_printers(
        queue("dnssd://Kitchen._ipp._tcp.local/"), hosts=hosts, services=tuple(services)
    )
    assert (result.status, result.matched_endpoint) == ("reachable", "192.168.1.50:631")
    own = replace(services[0], announcer="192.168.1.50")
    hearsay = replace(own, addresses=("192.168.1.51",), is_hearsay=True)
    lost = queue("socket://192.168.1.99", "lost")
    result, other = match_printers(
        lost, queue("socket://192.168.1.50:631", "q"), hosts=hosts, services=(own, hearsay)
    )
    assert other.status == "reachable"
    assert "192.168.1.51" not in (result.reason or "")


@pytest.mark.parametrize("address", ["2001:db8::21b:a9ff:fe12:3456", "fd00::50"])
@pytest.mark.parametrize("contact", [None, "open", "no-answer"])
def test_a_printer_has_moved_only_if_its_ipv6_address_was_tried_without_an_answer(
    address: str, contact: PortState | None
):
    known = queue(f"socket://[{address}]")
    host = scanned_host(address, None, *((9100,) if contact == "open" else ()))
    observed = correlate(
        local=TILL,
        scanned=[scanned_host("192.168.1.50", MAC, 9100), *([host] if contact == "open" else [])],
        attempts={(address, 9100): (contact,)} if contact else {},
        scanned_networks=LAN,
    )
    learned = LearnedPrinter(known.id, address, "2026-11-01", address, MAC)
    (result,) = match(with_learned([known], [learned]), observed).printers
    expected = {None: "unknown", "open": "reachable", "no-answer": "unreachable"}[contact]
    assert result.status == expected, result.reason
    assert contact == "no-answer" or "moved" not in (result.reason or "").lower()


# ------------------------------------------------------------------ another device at the address


def test_another_device_is_recognised_by_two_names_that_differ():
    kitchen = queue("socket://192.168.1.50", "kitchen")

    def venue(name: str, host: str) -> Observations:
        services: list[MdnsService] = [announcement("192.168.1.50", name, host)]
        return observe(("192.168.1.50", None), services=services)

    _, other, renamed = reports(
        ([kitchen], venue("Kitchen", "kitchen.local")),
        ([kitchen], venue("Bar", "bar.local")),
        ([kitchen], venue("Kitchen 2", "kitchen.local")),
    )
    assert other["kitchen"].status == "unknown"
    assert "another device answers there: bar.local, Bar, while the printer was kitchen.local" in (
        other["kitchen"].reason or ""
    )
    assert renamed["kitchen"].status == "reachable"


def test_a_printer_keeps_its_address_although_a_relay_announces_its_uuid():
    kitchen = queue("ipp://192.168.1.50/ipp/print", "kitchen")
    own = Evidence("192.168.1.50", 631, uuid=UUID)
    relay = announcement("192.168.1.61", "AirPrint", "relay.local", uuid=UUID)
    first, report = reports(
        ([kitchen], observe(("192.168.1.50", None), evidence=[own])),
        (
            [kitchen],
            observe(("192.168.1.50", None), ("192.168.1.61", OTHER_MAC), services=[relay]),
        ),
    )
    assert (first["kitchen"].status, report["kitchen"].status) == ("reachable", "reachable")
