"""Tests that docs/harm-record.md has no forbidden traffic, and that the lab recognises each
forbidden request.
"""

import re
from typing import Final

import pytest

from controlplane.demo.lan import frames
from controlplane.demo.lan.plan import LanHost, LanPlan
from controlplane.demo.lan.tap import mac_bytes
from tests.lab.tap import harm_document
from tests.lab.tap.traffic import CONTENT, PERMITTED, Traffic, requests_in, snmp_request

ETHERTYPE_IPV6: Final = 0x86DD
TEXT: Final = harm_document.DOCUMENT.read_text(encoding="utf-8")
ROW: Final = re.compile(r"^\| ((?:TCP|UDP|ARP|I)[\w, ]*) \| ([\d,]+) \| ([\d,]+) \|", re.MULTILINE)


def test_the_record_contains_no_forbidden_traffic() -> None:
    kinds = harm_document.Totals(()).forbidden()
    assert kinds
    for kind in kinds:
        assert f"| {kind} | 0 |" in TEXT


def test_only_protocols_with_content_have_bytes() -> None:
    rows = ROW.findall(TEXT)
    assert len(rows) > 20
    for protocols, packets, size in rows:
        assert packets != "0"
        assert size == "0" or protocols in CONTENT, protocols


def test_payment_terminals_got_arp_and_empty_datagrams_only() -> None:
    (part,) = re.findall(r"## Payment terminals\n(.*?)\n## ", TEXT, re.DOTALL)
    protocols = {row[0] for row in ROW.findall(part)}
    assert protocols
    assert protocols <= harm_document.PERMITTED_TO_A_TERMINAL


def test_the_purpose_of_each_protocol_is_stated() -> None:
    assert "|  |" not in TEXT
    assert set(CONTENT) <= harm_document.MEANINGS.keys()


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (7, "7"), (99, "99"), (104, "100"), (105, "110"), (51816, "52,000")],
)
def test_numbers_are_rounded_to_two_significant_digits(number: int, text: str) -> None:
    assert harm_document.rounded(number) == text


# ------------------------------------------------------------------ recognising requests

IPP_HEAD = b"POST /ipp/print HTTP/1.1\r\nContent-Length: 8\r\n\r\n"


def ipp(operation: int) -> bytes:
    return IPP_HEAD + b"\x02\x00" + operation.to_bytes(2, "big") + b"\0\0\0\1"


@pytest.mark.parametrize(
    ("stream", "port", "requests"),
    [
        (b"", 80, []),
        (b"GET / HTTP/1.1\r\n\r\n", 80, ["HTTP GET"]),
        (b"GET / HTTP/1.1\r\n\r\nDELETE /x HTTP/1.1\r\n\r\n", 80, ["HTTP GET", "HTTP DELETE"]),
        (ipp(0x000B), 631, ["IPP Get-Printer-Attributes"]),
        (ipp(0x000B) + ipp(0x0002), 631, ["IPP Get-Printer-Attributes", "IPP Print-Job"]),
        (ipp(0x0005), 631, ["IPP operation 0x0005"]),
        (ipp(0x0002), 80, ["HTTP POST"]),
        (b"\x16\x03\x01 hello", 443, ["TLS handshake"]),
        (b"\x1b%-12345X@PJL", 9100, ["unknown bytes to port 9100"]),
        (b"GET / HTTP/1.1\r\nno end", 80, ["unknown bytes to port 80"]),
    ],
)
def test_requests_of_a_connection_are_recognised(
    stream: bytes, port: int, requests: list[str]
) -> None:
    assert requests_in(stream, port) == requests


@pytest.mark.parametrize(
    ("pdu", "name"), [(0xA0, "get"), (0xA1, "get-next"), (0xA3, "set"), (0xA4, "type 0xa4")]
)
def test_snmp_requests_are_recognised(pdu: int, name: str) -> None:
    # An SNMPv1 message with the community "public"
    message = bytes((0x30, 13, 2, 1, 0, 4, 6, *b"public", pdu, 0))
    assert snmp_request(message) == name
    assert snmp_request(message[:5]) == "damaged"
    long_form = bytes((0x30, 0x81, 13, *message[2:]))
    assert snmp_request(long_form) == name


OWN, PRINTER, TERMINAL, EXCLUDED = (f"10.0.0.{n}" for n in (2, 9, 10, 11))
PRINTER_MAC, TERMINAL_MAC, EXCLUDED_MAC = (f"02:00:00:00:00:{n}" for n in ("09", "10", "11"))
PLAN = LanPlan(
    "10.0.0.0/24", OWN, "10.0.0.1",
    (
        LanHost(PRINTER, PRINTER_MAC, (80, 9100)),
        LanHost(TERMINAL, TERMINAL_MAC, (80,)),
        LanHost(EXCLUDED, EXCLUDED_MAC, (80,)),
    ),
)  # fmt: skip


def frames_with_payload(mac: str, address: str, port: int, payload: bytes) -> list[bytes]:
    """Return the frames of a connection that sends a payload twice, as after a lost packet."""
    source, target = bytes((10, 0, 0, 2)), bytes(map(int, address.split(".")))
    segments = [
        frames.Tcp(40000, port, 7, 0, frames.SYN),
        *[frames.Tcp(40000, port, 8, 1, frames.ACK, payload)] * 2,
    ]
    own_mac = mac_bytes("02:00:00:00:00:02")
    return [
        frames.ethernet_frame(
            mac_bytes(mac),
            own_mac,
            frames.ETHERTYPE_IPV4,
            frames.tcp_packet(source, target, segment),
        )
        for segment in segments
    ]


@pytest.mark.parametrize(
    ("mac", "address", "port", "payload", "forbidden"),
    [
        (PRINTER_MAC, PRINTER, 80, b"GET / HTTP/1.1\r\n\r\n", {}),
        (PRINTER_MAC, PRINTER, 9100, b"", {}),
        (PRINTER_MAC, PRINTER, 80, b"PUT / HTTP/1.1\r\n\r\n", {"HTTP PUT to printers": 1}),
        (
            PRINTER_MAC, PRINTER, 9100, b"x",
            {"bytes of TCP 9100 to printers": 2, "unknown bytes to port 9100 to printers": 1},
        ),
        (TERMINAL_MAC, TERMINAL, 80, b"", {"packets of TCP 80 to payment terminals": 3}),
    ],
)  # fmt: skip
def test_forbidden_traffic_is_counted_by_kind_of_device(
    mac: str, address: str, port: int, payload: bytes, forbidden: dict[str, int]
) -> None:
    traffic = Traffic([TERMINAL_MAC], [])
    traffic.use_plan(PLAN)
    for frame in frames_with_payload(mac, address, port, payload):
        traffic.check_frame(frame)
    assert traffic.forbidden() == forbidden
    if not forbidden:
        assert all(request in PERMITTED for _, request in traffic.requests())


@pytest.mark.parametrize(
    ("mac", "forbidden"),
    [
        (
            TERMINAL_MAC,
            {
                "packets of IPv6 to payment terminals": 1,
                "bytes of IPv6 to payment terminals": 1,
            },
        ),
        (EXCLUDED_MAC, {"packets of IPv6 to excluded devices": 1}),
        (PRINTER_MAC, {}),
        ("33:33:00:00:00:fb", {}),
    ],
)
def test_ipv6_to_terminals_and_excluded_devices_is_forbidden(
    mac: str, forbidden: dict[str, int]
) -> None:
    traffic = Traffic([TERMINAL_MAC], [EXCLUDED])
    traffic.use_plan(PLAN)
    packet = bytes(40) + b"x"
    traffic.check_frame(
        frames.ethernet_frame(
            mac_bytes(mac), mac_bytes("02:00:00:00:00:02"), ETHERTYPE_IPV6, packet
        )
    )
    assert traffic.forbidden() == forbidden
