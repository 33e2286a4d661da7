import struct

from hypothesis import given
from hypothesis import strategies as st
from zeroconf import DNSIncoming  # type: ignore[attr-defined]

from collectors.network.mdns.wire import (
    PACKET_MAX_BYTES,
    AddressRecord,
    PointerRecord,
    Question,
    ServiceRecord,
    TextRecord,
    known_answer_packets,
    parse_response,
    question_packets,
)
from tests.unit.collectors.network.mdns.mdns_answers import (
    AAAA,
    PTR,
    SRV,
    TXT,
    A,
    name,
    record,
    response,
)

IPP = Question(("_ipp", "_tcp", "local"), "PTR")


def test_every_kind_of_record_is_parsed():
    packet = response(
        record(name("_ipp", "_tcp", "local"), PTR, name("Kitchen 4.2", "_ipp", "_tcp", "local")),
        record(
            name("Kitchen 4.2", "_ipp", "_tcp", "local"),
            SRV,
            struct.pack("!HHH", 0, 0, 631) + name("brn1", "local"),
        ),
        record(name("Kitchen 4.2", "_ipp", "_tcp", "local"), TXT, b"\x05ty=HP"),
        record(name("brn1", "local"), A, bytes([10, 0, 0, 9])),
        record(name("brn1", "local"), AAAA, bytes.fromhex("fe80" + "00" * 13 + "09")),
    )
    full_name = "Kitchen 4.2._ipp._tcp.local"
    assert parse_response(packet) == (
        PointerRecord("_ipp._tcp.local", full_name),
        ServiceRecord(full_name, "brn1.local", 631),
        TextRecord(full_name, b"\x05ty=HP"),
        AddressRecord("brn1.local", "10.0.0.9"),
        AddressRecord("brn1.local", "fe80::9"),
    )


def test_goodbyes_and_questions_are_ignored():
    goodbye = response(record(name("brn1", "local"), A, bytes([10, 0, 0, 9]), ttl=0))
    assert parse_response(goodbye) == ()
    assert parse_response(question_packets([IPP])[0]) == ()


def test_an_instance_name_with_dots_is_one_label():
    (packet,) = question_packets([Question(("HP 4.2", "_ipp", "_tcp", "local"), "SRV")])
    assert b"\x06HP 4.2\x04_ipp\x04_tcp\x05local\x00" in packet


def test_questions_request_multicast_answers():
    (packet,) = question_packets([IPP])
    (question,) = DNSIncoming(packet).questions
    assert (question.name, question.type, question.unicast) == ("_ipp._tcp.local.", 12, False)


def test_questions_with_names_that_cannot_be_encoded_are_left_out():
    too_long = Question(("x" * 64, "local"), "A")
    empty = Question(("", "local"), "A")
    huge = Question(tuple(["y" * 60] * 5), "A")
    assert question_packets([too_long, empty, huge]) == ()


def test_many_questions_are_split_into_packets_that_fit():
    questions = [Question((f"host-{number}", "local"), "A") for number in range(500)]
    packets = question_packets(questions)
    assert all(len(packet) <= PACKET_MAX_BYTES for packet in packets)
    names = [question.name for packet in packets for question in DNSIncoming(packet).questions]
    assert names == [f"host-{number}.local." for number in range(500)]


def test_known_answers_follow_the_question_and_all_packets_but_the_last_are_truncated():
    instances = [(f"Printer {number}", "_ipp", "_tcp", "local") for number in range(100)]
    packets = [DNSIncoming(packet) for packet in known_answer_packets(IPP, instances)]
    assert len(packets) > 1
    assert [len(packet.questions) for packet in packets] == [1] + [0] * (len(packets) - 1)
    assert [packet.truncated for packet in packets] == [True] * (len(packets) - 1) + [False]
    answers = [(a.name, a.alias) for packet in packets for a in packet.answers()]
    assert answers == [("_ipp._tcp.local.", f"{i[0]}._ipp._tcp.local.") for i in instances]


@given(st.binary(max_size=600))
def test_any_bytes_are_read_without_an_error(data: bytes):
    parse_response(data)


@given(st.data())
def test_a_damaged_response_is_read_without_an_error(data: st.DataObject):
    packet = bytearray(
        response(
            record(name("_ipp", "_tcp", "local"), PTR, name("K", "_ipp", "_tcp", "local")),
            record(name("K", "_ipp", "_tcp", "local"), SRV, b"\0" * 6 + name("h", "local")),
            record(name("h", "local"), A, b"\x0a\x00\x00\x01"),
        )
    )
    for _ in range(data.draw(st.integers(1, 6))):
        packet[data.draw(st.integers(0, len(packet) - 1))] = data.draw(st.integers(0, 255))
    parse_response(bytes(packet[: data.draw(st.integers(0, len(packet)))]))


@given(st.lists(st.lists(st.text(max_size=70), max_size=6).map(tuple), max_size=40))
def test_questions_with_any_names_give_valid_packets(names: list[tuple[str, ...]]):
    packets = question_packets([Question(name_, "SRV") for name_ in names])
    assert all(len(packet) <= PACKET_MAX_BYTES for packet in packets)
    assert all(DNSIncoming(packet).valid for packet in packets)
