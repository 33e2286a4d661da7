from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from collectors.network.mdns.announcers import LinkRecords
from collectors.network.mdns.records import (
    ADDRESSES_PER_HOST_MAX,
    ENUMERATION,
    TYPES_MAX,
    Quota,
    parse_txt,
    service_type_of,
)
from collectors.network.mdns.services import open_questions, select_services
from collectors.network.mdns.wire import (
    AddressRecord,
    PointerRecord,
    Question,
    Record,
    ServiceRecord,
    TextRecord,
)
from collectors.network.observations import MdnsService

INSTANCE = "Kitchen._ipp._tcp.local"
ZERO_WIDTH_JOINER = "\u200d"  # kept, although Python does not count it as printable


class OneDeviceRecords(LinkRecords):
    """The records of one link. By default, one device announces them all."""

    def services(self) -> list[MdnsService]:
        return select_services([self], self.quota)[0]

    def receive(self, records: Iterable[Record], source: str = "10.0.0.9") -> bool:
        return self.add(source, records)


def new_link(limit: int = 10) -> OneDeviceRecords:
    return OneDeviceRecords("eth0", Quota(limit))


def test_records_are_joined_regardless_of_order_and_case():
    link = new_link()
    addresses = [AddressRecord("BRN1.local", "fe80::1"), AddressRecord("brn1.local", "10.0.0.9")]
    assert link.receive(addresses)
    assert link.receive([TextRecord(INSTANCE.upper(), b"\x07ty=X 42\x04rp=a")])
    assert link.receive([ServiceRecord(INSTANCE, "brn1.local", 631)])
    assert not link.receive([PointerRecord("_IPP._tcp.local", INSTANCE)])
    (service,) = link.services()
    assert (service.instance, service.type, service.port) == ("Kitchen", "_ipp._tcp", 631)
    assert (service.hostname, service.interface_name) == ("brn1.local", "eth0")
    assert service.addresses == ("10.0.0.9", "fe80::1")
    assert service.txt == (("ty", "X 42"), ("rp", "a"))


def test_known_records_are_not_new():
    link = new_link()
    records = [
        PointerRecord("_ipp._tcp.local", INSTANCE),
        ServiceRecord(INSTANCE, "h.local", 631),
    ]
    assert link.receive(records)
    assert not link.receive(records)


def test_only_missing_records_are_queried():
    link = new_link()
    link.receive([PointerRecord("_ipp._tcp.local", INSTANCE)])
    own = ("Kitchen", "_ipp", "_tcp", "local")
    assert list(open_questions(link)) == [Question(own, "SRV"), Question(own, "TXT")]
    link.receive([ServiceRecord(INSTANCE, "h.local", 631), TextRecord(INSTANCE, b"")])
    assert list(open_questions(link)) == [
        Question(("h", "local"), "A"),
        Question(("h", "local"), "AAAA"),
    ]
    link.receive([AddressRecord("h.local", "10.0.0.9")])
    assert list(open_questions(link)) == []


def test_interfaces_share_the_quota_and_count_dropped_records():
    quota = Quota(1)
    first, second = OneDeviceRecords("eth0", quota), OneDeviceRecords("wlan0", quota)
    first.receive([PointerRecord("_ipp._tcp.local", INSTANCE)])
    second.receive(
        [
            PointerRecord("_ipp._tcp.local", INSTANCE),
            PointerRecord("_ipp._tcp.local", INSTANCE),
        ]
    )
    services, dropped = select_services([first, second], quota)
    assert ([service.interface_name for service in services], dropped.total()) == (["eth0"], 1)


def test_types_from_the_enumeration_are_bounded():
    link = new_link()
    link.receive([PointerRecord(ENUMERATION, f"_t{number}._tcp.local") for number in range(400)])
    link.receive([PointerRecord(ENUMERATION, "no-type.local")])
    assert len(link.types) == TYPES_MAX


def test_addresses_of_one_host_are_bounded():
    link = new_link()
    link.receive([AddressRecord("h.local", f"10.0.0.{number}") for number in range(100)])
    link.receive(
        [
            PointerRecord("_ipp._tcp.local", INSTANCE),
            ServiceRecord(INSTANCE, "h.local", 1),
        ]
    )
    (service,) = link.services()
    assert len(service.addresses) == ADDRESSES_PER_HOST_MAX


def test_a_record_that_replaces_another_takes_no_more_memory():
    link = new_link()
    link.receive([PointerRecord("_ipp._tcp.local", INSTANCE), TextRecord(INSTANCE, bytes(1000))])
    (book,) = link.books
    size_before = book.size_bytes
    for number in range(1, 20):
        link.receive([TextRecord(INSTANCE, bytes([number]) * 1000)])
    assert book.size_bytes == size_before


def test_hostile_names_are_cleaned():
    link = new_link()
    label = "<b>\x1b[31m\u202eevil\x00\r\n 🖨"
    link.receive([PointerRecord("_ipp._tcp.local", f"{label}._ipp._tcp.local")])
    (service,) = link.services()
    assert service.instance == "<b> [31m evil 🖨"


def test_the_first_value_of_a_txt_key_is_used():
    text = b"\x05a=one\x05A=two\x04flag\x03b==\x00\x02=x\xffshort"
    assert parse_txt(text) == (("a", "one"), ("flag", ""), ("b", "="))


def test_service_types_are_parsed_from_names():
    assert service_type_of("_ipp._tcp.local") == "_ipp._tcp"
    assert service_type_of("_universal._sub._ipp._tcp.local") is None
    assert service_type_of("host.local") is None
    assert service_type_of("_ipp._tcp.example.com") is None


@given(st.binary(max_size=2000))
def test_keys_and_values_of_any_txt_are_clean_and_bounded(text: bytes):
    for key, value in parse_txt(text):
        assert key
        assert (key + value).replace(ZERO_WIDTH_JOINER, "").isprintable()
        assert len(value) <= 1024
