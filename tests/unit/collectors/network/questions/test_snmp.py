"""Tests SNMP queries of a printer's status, with a simulated printer, Debian's snmpd and random
bytes.
"""

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyasn1.codec.ber import decoder, encoder
from pysnmp.proto import api

from collectors.network.observations import KnownPrinter, SnmpTarget
from collectors.network.questions.snmp import encode_question, parse_answer, query_snmp
from collectors.network.scan.printer_targets import snmp_targets
from collectors.network.scan.scan import ScannedHost
from tests.sizes import examples
from tests.unit.collectors.network.mdns.test_browse import FakeRun

V2C = api.PROTOCOL_MODULES[api.SNMP_VERSION_2C]
# OIDs of the status values of a device (RFC 2790), and of its serial number (RFC 3805).
ERRORS = (1, 3, 6, 1, 2, 1, 25, 3, 5, 1, 2, 1)
STATUS = (1, 3, 6, 1, 2, 1, 25, 3, 5, 1, 1, 1)
DEVICE = (1, 3, 6, 1, 2, 1, 25, 3, 2, 1, 5, 1)
SERIAL = (1, 3, 6, 1, 2, 1, 43, 5, 1, 1, 17, 1)
TARGET = SnmpTarget("127.0.0.1", 9100)
VARBINDS = [
    (ERRORS, V2C.OctetString(hexValue="4804")),  # noPaper, doorOpen and inputTrayEmpty
    (STATUS, V2C.Integer(3)),  # idle
    (DEVICE, V2C.Integer(2)),  # running
    (SERIAL, V2C.OctetString("VBF123456")),
]


def answer_to(question: bytes, varbinds: object) -> bytes:
    """Return a printer's answer to an encoded query, with these OIDs and values."""
    message, _ = decoder.decode(question, asn1Spec=V2C.Message())
    answer = V2C.apiPDU.get_response(V2C.apiMessage.get_pdu(message))
    V2C.apiPDU.set_varbinds(answer, varbinds)
    V2C.apiMessage.set_pdu(message, answer)
    return bytes(encoder.encode(message))


@contextmanager
def simulated_printer(*replies: object) -> Iterator[tuple[int, list[bytes]]]:
    """Run a printer that sends ``replies`` to the first query. Yield its port, and the list of
    queries that it receives. Each reply is either bytes, or values to encode.
    """
    questions: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as printer:
        printer.bind(("127.0.0.1", 0))
        printer.settimeout(60)

        def answer() -> None:
            question, source = printer.recvfrom(4096)
            questions.append(question)
            for reply in replies:
                data = reply if isinstance(reply, bytes) else answer_to(question, reply)
                printer.sendto(data, source)

        thread = threading.Thread(target=answer)
        thread.start()
        yield printer.getsockname()[1], questions
        thread.join()


def test_one_query_returns_state_reasons_state_and_serial_number():
    with simulated_printer(b"noise", VARBINDS) as (port, questions):
        (evidence,) = query_snmp([TARGET], "venue", time.monotonic() + 60, FakeRun(), port=port)
    assert evidence.state_reasons == ("media-empty", "door-open")
    assert (evidence.state, evidence.serial, evidence.port) == ("idle", "VBF123456", 9100)
    assert len(questions) == 1


def test_an_snmp_answer_without_error_state_still_has_the_device_state():
    down = V2C.Integer(5)
    evidence = parse_answer(
        TARGET,
        7,
        answer_to(encode_question("x", 7), [(ERRORS, V2C.NoSuchInstance("")), (DEVICE, down)]),
    )
    assert evidence is not None
    assert (evidence.state, evidence.state_reasons, evidence.serial) == ("stopped", (), None)


def test_an_answer_to_another_snmp_request_is_ignored():
    question = encode_question("venue", 7)
    assert parse_answer(TARGET, 8, answer_to(question, VARBINDS)) is None
    assert parse_answer(TARGET, 7, question) is None


def test_queries_of_a_silent_snmp_device_end_at_the_timeout():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        assert query_snmp([TARGET], "venue", time.monotonic() + 0.1, FakeRun(), port=port) == ()
    assert query_snmp([TARGET], "venue", time.monotonic() + 60, FakeRun(), port=port) == ()


ANSWER = answer_to(encode_question("venue", 7), VARBINDS)


@settings(max_examples=examples(300))
@given(
    st.lists(st.tuples(st.integers(0, len(ANSWER) - 1), st.integers(0, 255)), max_size=5),
    st.integers(0, len(ANSWER)),
)
def test_damaged_answers_are_read_or_ignored(changes: list[tuple[int, int]], length: int):
    data = bytearray(ANSWER)
    for position, value in changes:
        data[position] = value
    for packet in (bytes(data), bytes(data[:length])):
        evidence = parse_answer(TARGET, 7, packet)
        assert evidence is None or len(evidence.serial or "") <= 255


@settings(max_examples=examples(300))
@given(st.binary(max_size=200))
def test_random_bytes_are_ignored(data: bytes):
    assert parse_answer(TARGET, 7, data) is None


def test_a_deeply_nested_snmp_answer_is_refused():
    assert parse_answer(TARGET, 7, b"\x30\x80" * 2000) is None


def test_only_known_printers_with_an_open_print_port_are_queried():
    def known_printer(address: str, port: int | None = 9100) -> KnownPrinter:
        return KnownPrinter("a", "A", "network", "config", addresses=(address,), port=port)

    hosts = [
        ScannedHost("10.0.0.5", open_ports=(80, 9100)),
        ScannedHost("10.0.0.6", open_ports=(631,)),
        ScannedHost("10.0.0.7", open_ports=(80,)),
        ScannedHost("10.0.0.8", open_ports=(9100,)),
    ]
    printers = [known_printer(f"10.0.0.{number}") for number in (5, 6, 7, 9)]
    assert snmp_targets(printers, hosts, ()) == (
        SnmpTarget("10.0.0.5", 9100),
        SnmpTarget("10.0.0.6", 631),
    )
    assert snmp_targets(printers, hosts, {"10.0.0.5", "10.0.0.6"}) == ()


@pytest.mark.medium
@pytest.mark.needs("snmpd")
def test_state_and_serial_number_that_snmpd_reports_are_read(tmp_path: Path):
    configuration = tmp_path / "snmpd.conf"
    configuration.write_text(
        "rocommunity venue 127.0.0.1\n"
        'override .1.3.6.1.2.1.25.3.5.1.2.1 octet_str "0x4804"\n'
        "override .1.3.6.1.2.1.25.3.5.1.1.1 integer 4\n"
        'override .1.3.6.1.2.1.43.5.1.1.17.1 octet_str "VBF123456"\n'
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        "snmpd",
        "-f",
        "-Ln",
        "-C",
        "-c",
        str(configuration),
        "-M",
        "",
        "-m",
        "",
        "-p",
        str(tmp_path / "pid"),
        f"udp:127.0.0.1:{port}",
    ]
    environment = {"PATH": "/usr/sbin:/usr/bin", "SNMP_PERSISTENT_DIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as running:
        try:
            give_up_s = time.monotonic() + 60
            answers = ()
            while not answers and time.monotonic() < give_up_s and running.poll() is None:
                answers = query_snmp([TARGET], "venue", give_up_s, FakeRun(), port=port)
            assert query_snmp([TARGET], "wrong", time.monotonic() + 0.3, FakeRun(), port=port) == ()
        finally:
            running.terminate()
    (printer,) = answers
    assert printer.state_reasons == ("media-empty", "door-open")
    assert (printer.state, printer.serial) == ("processing", "VBF123456")
