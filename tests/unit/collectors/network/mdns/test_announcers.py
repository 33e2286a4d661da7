"""Tests that announcers on a link cannot change or displace the records of others."""

import ipaddress
from collections.abc import Iterator

import pytest

from collectors.network.mdns.announcers import (
    NO_HOST,
    PARSED_MAX_BYTES,
    QUESTIONS_MAX,
    QUEUED_MAX,
    SOURCES_MAX,
    LinkRecords,
)
from collectors.network.mdns.records import (
    DROPPED_BYTES,
    ENUMERATION,
    RECORDS_MAX_BYTES,
    TYPES_MAX,
    Quota,
)
from collectors.network.mdns.services import (
    QUESTIONS_PER_HOST_MAX,
    open_questions,
    open_questions_of_host,
    select_services,
)
from collectors.network.mdns.wire import (
    AddressRecord,
    PointerRecord,
    Record,
    ServiceRecord,
    TextRecord,
)
from collectors.network.observations import MdnsService, PrinterIdentifiers
from collectors.shared.linux.rtnetlink import LinkNeighbour

HONEST, FORGER = "10.0.0.9", "10.0.0.66"
MAC = "02:00:00:00:00:66"


def service_records(
    label: str, address: str, host: str = "h.local", port: int = 631
) -> list[Record]:
    name = f"{label}._ipp._tcp.local"
    return [
        PointerRecord("_ipp._tcp.local", name),
        ServiceRecord(name, host, port),
        TextRecord(name, b""),
        AddressRecord(host, address),
    ]


def link_records(limit: int = 100, identifiers: PrinterIdentifiers | None = None) -> LinkRecords:
    return LinkRecords("eth0", Quota(limit, lambda: identifiers or PrinterIdentifiers()))


def listed_services(records: LinkRecords) -> list[MdnsService]:
    return select_services([records], records.quota)[0]


def services_of(records: LinkRecords) -> set[tuple[str, tuple[str, ...], str]]:
    """Return the instance, the addresses and the announcer of each listed service."""
    return {
        (record.instance, record.addresses, record.announcer) for record in listed_services(records)
    }


def test_records_of_another_announcer_do_not_change_a_service() -> None:
    records = link_records()
    records.add(HONEST, service_records("Kitchen", HONEST))
    records.add(FORGER, service_records("Kitchen", FORGER, port=80))
    assert services_of(records) == {("Kitchen", (HONEST,), HONEST), ("Kitchen", (FORGER,), FORGER)}
    assert {(s.announcer, s.port) for s in listed_services(records)} == {
        (HONEST, 631),
        (FORGER, 80),
    }


def test_forged_addresses_do_not_displace_the_address_of_a_host() -> None:
    records = link_records()
    records.add(FORGER, [AddressRecord("h.local", f"10.0.1.{n}") for n in range(200)])
    records.add(HONEST, service_records("Kitchen", HONEST))
    assert services_of(records) == {("Kitchen", (HONEST,), HONEST)}


def test_a_service_without_a_pointer_is_known_by_its_srv_record() -> None:
    records = link_records()
    records.add(FORGER, [PointerRecord("_ipp._tcp.local", "A. b._ipp._tcp.local")])
    records.add(HONEST, service_records("A. b", HONEST)[1:])
    assert services_of(records) == {("A. b", (HONEST,), HONEST)}


def test_a_full_list_is_shared_between_announcers() -> None:
    records = link_records(limit=10)
    for n in range(50):
        records.add(FORGER, service_records(f"Forged {n}", FORGER))
    for n in range(4):
        records.add(f"10.0.0.{n}", service_records(f"Printer {n}", f"10.0.0.{n}"))
    names = [record.instance for record in listed_services(records)]
    assert len(names) == 10
    assert {f"Printer {n}" for n in range(4)} <= set(names)


def test_services_of_printers_are_cut_last() -> None:
    records = link_records(
        limit=10, identifiers=PrinterIdentifiers(frozenset({"kitchen"}), frozenset({"10.0.9.9"}))
    )
    records.add(FORGER, service_records("Kitchen", FORGER))
    for n in range(10):
        records.add(f"10.0.1.{n}", service_records(f"Only {n}", f"10.0.1.{n}"))
    records.add(HONEST, service_records("Kitchen", HONEST))
    records.add("10.0.9.9", service_records("Bar", "10.0.9.9"))
    records.add("10.0.0.8", service_records("Unknown", "10.0.0.8"))
    services = services_of(records)
    assert len(services) == 10
    assert {("Kitchen", (HONEST,), HONEST), ("Bar", ("10.0.9.9",), "10.0.9.9")} <= services
    assert not any(name == "Unknown" for name, *_ in services)


def test_an_announcer_of_a_printers_name_gets_no_more_than_its_share() -> None:
    records = link_records(limit=200, identifiers=PrinterIdentifiers(frozenset({"kitchen"})))
    records.add(HONEST, [r for n in range(150) for r in service_records(f"Queue {n}", HONEST)])
    forged = [PointerRecord(f"_t{n}._tcp.local", f"kitchen._t{n}._tcp.local") for n in range(500)]
    records.add(FORGER, forged)
    kept = [record.announcer for record in listed_services(records)]
    assert len(kept) == 200
    assert kept.count(HONEST) >= 99


def test_many_announcers_of_a_printers_name_overload_the_link() -> None:
    """The link must count as overloaded. Only then is each host queried directly for the name."""
    records = link_records(limit=100, identifiers=PrinterIdentifiers(frozenset({"kitchen"})))
    names = [f"_t{n}._tcp.local" for n in range(60)]
    forged = [PointerRecord(name, f"kitchen.{name}") for name in names]
    for n in range(10):
        records.add(f"10.0.1.{n}", forged)
    assert records.is_overloaded


def test_addresses_of_one_mac_are_one_announcer() -> None:
    records = link_records(limit=12)
    for n in range(12):
        records.add(f"10.0.1.{n}", service_records(f"Only {n}", f"10.0.1.{n}"))
    records.identify([LinkNeighbour(2, f"10.0.1.{n}", MAC, "stale") for n in range(12)])
    records.add(HONEST, service_records("Kitchen", HONEST))
    assert ("Kitchen", (HONEST,), HONEST) in services_of(records)
    assert records.describe(MAC) == f"10.0.1.0 (MAC {MAC})"


def test_addresses_without_an_arp_answer_are_one_announcer() -> None:
    records = link_records(limit=12)
    records.identify([LinkNeighbour(2, f"10.0.1.{n}", None, "failed") for n in range(12)])
    for n in range(12):
        records.add(f"10.0.1.{n}", service_records(f"Only {n}", f"10.0.1.{n}"))
    records.add(HONEST, service_records("Kitchen", HONEST))
    assert ("Kitchen", (HONEST,), HONEST) in services_of(records)
    assert records.describe(NO_HOST) == NO_HOST


def test_addresses_of_other_networks_are_one_announcer() -> None:
    """Devices with link-local addresses or addresses of other networks are listed, up to a limit
    for all of them together.
    """
    records = LinkRecords("eth0", Quota(12), (ipaddress.ip_network("10.0.0.0/8"),))
    for n in range(12):
        records.add(f"169.254.1.{n}", service_records(f"Only {n}", f"169.254.1.{n}"))
    records.add(HONEST, service_records("Kitchen", HONEST))
    assert ("Kitchen", (HONEST,), HONEST) in services_of(records)
    assert any(label.startswith("Only") for label, *_ in services_of(records))


def test_an_address_that_answers_arp_replaces_an_unverified_address_at_the_limit() -> None:
    records = link_records(limit=5000)
    records.identify([LinkNeighbour(2, HONEST, MAC, "reachable")])
    for n in range(SOURCES_MAX):
        records.add(f"fe80::{n:x}", service_records(f"Six {n}", f"fe80::{n:x}"))
    assert not records.add("fe80::ffff", service_records("One more", "fe80::ffff"))
    assert records.add(HONEST, service_records("Kitchen", HONEST))
    assert ("Kitchen", (HONEST,), HONEST) in services_of(records)
    assert len(records) == SOURCES_MAX
    assert records.rejected == 2
    assert records.is_overloaded


def test_packets_of_the_announcers_are_read_in_turns() -> None:
    records = link_records()
    for n in range(3):
        records.put(FORGER, b"forged %d" % n)
    records.put(HONEST, b"own")
    read = list(iter(records.next_packet, None))
    assert read == [
        (FORGER, b"forged 0"),
        (HONEST, b"own"),
        (FORGER, b"forged 1"),
        (FORGER, b"forged 2"),
    ]
    assert not records.has_queued_packets


def test_a_flood_of_one_announcer_does_not_displace_packets_of_others() -> None:
    records = link_records()
    packet = bytes(8700)
    for _ in range(3 * PARSED_MAX_BYTES // len(packet)):
        records.put(FORGER, packet)
        list(iter(records.next_packet, None))
    assert records.dropped_packets[FORGER] > PARSED_MAX_BYTES // len(packet)
    records.put(HONEST, packet)
    assert records.next_packet() == (HONEST, packet)
    records.next_round()
    records.put(FORGER, packet)
    assert records.has_queued_packets


def test_unread_packets_are_bounded_and_those_of_the_largest_sender_are_dropped() -> None:
    records = link_records()
    records.put(HONEST, b"own")
    for n in range(QUEUED_MAX + 100):
        records.put(FORGER, b"forged %d" % n)
    read = list(iter(records.next_packet, None))
    assert len(read) == QUEUED_MAX
    assert (HONEST, b"own") in read
    assert records.dropped_packets == {FORGER: 101}


def test_records_of_one_announcer_use_at_most_half_of_the_memory() -> None:
    records = link_records(limit=100_000)
    text = b"\xfa" + b"x" * 250
    for n in range(10_000):
        records.add(FORGER, [TextRecord(f"Forged {n}._ipp._tcp.local", text * 20)])
    assert records.is_overloaded
    assert records.add(HONEST, service_records("Kitchen", HONEST))
    kept = sum(book.size_bytes for book in records.books)
    assert RECORDS_MAX_BYTES // 3 < kept <= RECORDS_MAX_BYTES // 2 + 10_000


@pytest.mark.medium
def test_dropped_services_of_one_announcer_use_at_most_half_of_the_memory() -> None:
    records = link_records(limit=500)
    for source in range(200):
        names = (f"Forged {source}-{n}._ipp._tcp.local" for n in range(1500))
        forged = [PointerRecord("_ipp._tcp.local", name) for name in names]
        records.identify([LinkNeighbour(2, f"10.1.0.{source}", MAC, "stale")])
        records.add(f"10.1.0.{source}", forged)
    counted = sum(len(book.dropped) for book in records.books)
    assert 0 < counted * DROPPED_BYTES <= RECORDS_MAX_BYTES // 2
    assert records.add(HONEST, service_records("Kitchen", HONEST))


def test_announcers_share_the_limits_of_types_and_questions() -> None:
    records = link_records(limit=20_000)
    records.add(FORGER, [PointerRecord(ENUMERATION, f"_t{n}._tcp.local") for n in range(400)])
    records.add(HONEST, [PointerRecord(ENUMERATION, "_odd._tcp.local")])
    assert "_odd._tcp" in records.types
    assert len(records.types) == TYPES_MAX + 1  # the share of FORGER, and the type of HONEST
    forged = [PointerRecord("_ipp._tcp.local", f"L{n}._ipp._tcp.local") for n in range(6000)]
    records.add(FORGER, forged)
    records.add(HONEST, [PointerRecord("_ipp._tcp.local", "Kitchen._ipp._tcp.local")])
    questions = open_questions(records)
    assert [question.labels[0] for question in questions][:2] == ["L0", "Kitchen"]
    permitted = [
        question for question, announcer in questions.items() if records.take_question(announcer)
    ]
    assert sum(q.labels[0].startswith("L") for q in permitted) <= QUESTIONS_MAX // 2
    assert sum(q.labels[0] == "Kitchen" for q in permitted) == 2


def test_direct_answers_replace_earlier_records_of_an_address() -> None:
    records = link_records(limit=5)
    for n in range(5):
        records.add(HONEST, service_records(f"False {n}", HONEST))  # forged source address
    records.add_verified(HONEST, service_records("Kitchen", HONEST)[:2])
    assert [question.type for question in open_questions_of_host(records, HONEST)] == [
        "A",
        "AAAA",
        "TXT",
    ]
    records.add_verified(HONEST, service_records("Kitchen", HONEST)[2:])
    assert services_of(records) == {("Kitchen", (HONEST,), HONEST)}
    assert open_questions_of_host(records, HONEST) == []
    assert open_questions_of_host(records, FORGER) == []


def test_direct_answers_are_stored_beside_many_forged_addresses() -> None:
    records = link_records(limit=SOURCES_MAX)
    for n in range(SOURCES_MAX):
        records.add(f"fe80::{n:x}", service_records(f"Six {n}", f"fe80::{n:x}"))
    records.add_verified(HONEST, service_records("Kitchen", HONEST))
    assert ("Kitchen", (HONEST,), HONEST) in services_of(records)


def test_a_forged_service_is_not_listed_if_the_host_confirms_another_service_on_its_port() -> None:
    records = link_records()
    records.add(HONEST, service_records("False", HONEST, "false.local"))  # forged source address
    records.add(HONEST, service_records("Other", HONEST, "other.local", port=80))
    records.add(HONEST, service_records("Kitchen", HONEST))
    records.add(FORGER, service_records("Forged", FORGER))
    assert records.addresses_with_several_names() == {HONEST}
    assert len(listed_services(records)) == 4
    records.confirm(HONEST, service_records("Kitchen", HONEST))
    # A second program of the host may have announced "Other", so it is listed, but not first.
    assert [s.instance for s in listed_services(records)] == ["Kitchen", "Forged", "Other"]


def test_services_that_a_host_did_not_confirm_are_listed_if_their_host_name_is_confirmed() -> None:
    records = link_records()
    for label in ("Kitchen", "Bar"):
        records.add(HONEST, service_records(label, HONEST))
    records.confirm(HONEST, service_records("Kitchen", HONEST)[:1])
    assert services_of(records) == {
        ("Kitchen", (HONEST,), HONEST),
        ("Bar", (HONEST,), HONEST),
    }


def test_confirmed_services_use_no_more_memory_than_the_stored_services() -> None:
    records = link_records(limit=100)
    records.add(HONEST, service_records("Kitchen", HONEST))
    pointers = (PointerRecord("_ipp._tcp.local", f"P{n}._ipp._tcp.local") for n in range(5000))
    records.confirm(HONEST, pointers)
    (book,) = records.books
    assert 1 < len(book.confirmed) < len(book.instances) < 500


def test_a_relay_of_services_of_other_hosts_does_not_announce_several_names_of_its_own() -> None:
    records = link_records()
    for n, host in enumerate(("a.local", "b.local")):
        records.add(FORGER, service_records(f"P{n}", f"10.0.0.{n}", host))
    assert records.addresses_with_several_names() == set()


def test_direct_queries_per_host_are_bounded() -> None:
    records = link_records(limit=1000)
    pointers = (PointerRecord("_ipp._tcp.local", f"P{n}._ipp._tcp.local") for n in range(500))
    records.add_verified(HONEST, pointers)
    assert len(open_questions_of_host(records, HONEST)) == QUESTIONS_PER_HOST_MAX


def kitchen_services(
    *records_by_source: tuple[str, tuple[str, ...]],
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the announcer and the addresses of each listed service.

    Each source announces the service Kitchen with its addresses.
    """
    records = link_records()
    for source, addresses in records_by_source:
        records.add(source, service_records("Kitchen", addresses[0]))
        records.add(source, [AddressRecord("h.local", address) for address in addresses])
    return ((record.announcer, record.addresses) for record in listed_services(records))


def test_services_of_one_device_over_ipv4_and_ipv6_are_joined() -> None:
    both = (HONEST, "fe80::9")
    assert list(kitchen_services((HONEST, both), ("fe80::9", ("fe80::9",)))) == [(HONEST, both)]
    assert list(kitchen_services((HONEST, (HONEST,)), ("fe80::9", both))) == [(HONEST, both)]
    assert list(kitchen_services((HONEST, (HONEST,)), ("fe80::9", ("fe80::9",)))) == [
        (HONEST, both)
    ]


def test_the_same_service_of_another_device_is_not_joined() -> None:
    services = list(
        kitchen_services(
            (HONEST, (HONEST,)), (FORGER, (FORGER, HONEST)), ("fe80::66", ("fe80::66",))
        )
    )
    assert (HONEST, (HONEST,)) in services
    assert len(services) == 3
