"""Records the traffic to a simulated LAN: packets by kind of device and protocol, and requests.

If the environment variable ``HARM_RECORD`` names a directory, each simulated LAN writes its record
there (`make harm-record`). With or without the variable, forbidden traffic fails the test.
"""

import json
import os
import re
import socket
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from collectors.network.questions.questions import ALLOWED
from controlplane.demo.lan import frames
from controlplane.demo.lan.plan import LanHost, LanPlan
from controlplane.demo.lan.tap import mac_bytes
from tests.lab.tap.counters import PRINT_PORTS

VARIABLE: Final = "HARM_RECORD"
PERMITTED: Final = frozenset(
    {"HTTP GET", "IPP Get-Printer-Attributes", "SNMP get", "TLS handshake"}
)
"""The requests that the collector may send. Any other request fails the test that sent it."""
CONTENT: Final = frozenset(
    {f"TCP {port}" for port in ALLOWED} | {"UDP 5353", "UDP 161", "UDP 53", "IPv6", "IGMP", "ICMP"}
)
"""The protocols that may carry content. With any other protocol, the collector may only open
connections or send empty datagrams.
"""
TERMINAL, EXCLUDED, ALL = "payment terminal", "excluded device", "all devices"
_PERMITTED_AT_TERMINALS: Final = frozenset({"ARP", "UDP 9"})

_METHOD: Final = re.compile(rb"([A-Z]{3,10}) \S+ HTTP/1\.[01]\r\n")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_IPP: Final = {0x0002: "Print-Job", 0x000B: "Get-Printer-Attributes", 0x000A: "Get-Jobs"}
_SNMP: Final = {0xA0: "get", 0xA1: "get-next", 0xA3: "set", 0xA5: "get-bulk"}
_SNMP_PORT, _IPP_PORT = 161, 631
_ETHERTYPE_IPV6, _IPV6_HEADER, _IPV6_MULTICAST = 0x86DD, 40, b"\x33\x33"
_MULTICAST, _BROADCAST = range(224, 240), b"\xff\xff\xff\xff"
_IP_NAMES: Final = {1: "ICMP", 2: "IGMP"}
_TLS_HANDSHAKE = 0x16
_UDP_HEADER = 8
_STREAM_MAX = 1 << 16
"""Maximum number of bytes of a connection that are stored. A request whose head is cut off there is
counted as unknown bytes. Later requests are not counted."""

Connection = tuple[bytes, int, int]
"""The address of the host, its port, and the port of the agent's machine."""


class Traffic:
    """Packets and payload bytes by kind of device and protocol, and requests by kind of device."""

    def __init__(self, terminals: Iterable[str], excluded: Iterable[str]) -> None:
        self.packets: Counter[tuple[str, str]] = Counter()
        self.payload: Counter[tuple[str, str]] = Counter()
        self._terminals = set(map(mac_bytes, terminals))
        self._excluded = set(map(socket.inet_aton, excluded))
        self._excluded_macs: set[bytes] = set()
        self._kinds_by_address: dict[bytes, str] = {}
        self._next_sequence: dict[Connection, int] = {}
        self._streams: defaultdict[Connection, bytearray] = defaultdict(bytearray)
        self._kinds_by_connection: dict[Connection, str] = {}
        self._snmp_requests: Counter[tuple[str, str]] = Counter()

    def use_plan(self, plan: LanPlan) -> None:
        """Store the kind of each device of ``plan``."""
        self._kinds_by_address = {
            socket.inet_aton(h.address): self._kind_of_host(h, plan) for h in plan.hosts
        }
        self._excluded_macs = {
            mac_bytes(h.mac) for h in plan.hosts if socket.inet_aton(h.address) in self._excluded
        }

    def _kind_of_host(self, host: LanHost, plan: LanPlan) -> str:
        if mac_bytes(host.mac) in self._terminals:
            return TERMINAL
        if host.address == plan.gateway:
            return "gateway"
        ports = {*host.open_ports, *host.filtered_ports}
        return "printer" if ports & PRINT_PORTS else "other device"

    def check_frame(self, raw: bytes) -> None:
        """Count a frame that the machine of the agent sent."""
        frame = frames.read_ethernet(raw)
        if frame.kind == frames.ETHERTYPE_ARP:
            request = frames.read_arp_request(frame.body)
            kind = self._kind_of_receiver(frame, request.target) if request else ALL
            self._count(kind, "ARP", 0)
        elif frame.kind == frames.ETHERTYPE_IPV4 and (packet := frames.read_ipv4(frame.body)):
            self._check_packet(self._kind_of_receiver(frame, packet.destination), packet)
        elif frame.kind == _ETHERTYPE_IPV6 and (kind := self._ipv6_kind(frame.destination)):
            self._count(kind, "IPv6", max(0, len(frame.body) - _IPV6_HEADER))
        else:
            self._count("no device", f"frames of type {frame.kind:04x}", 0)

    def _kind_of_receiver(self, frame: frames.Ethernet, address: bytes) -> str:
        if frame.destination in self._terminals:
            return TERMINAL
        if address in self._excluded:
            return EXCLUDED
        if address[0] in _MULTICAST or address == _BROADCAST:
            return ALL
        return self._kinds_by_address.get(address, "no device")

    def _ipv6_kind(self, mac: bytes) -> str | None:
        """Return who gets an IPv6 packet that was sent to a MAC: all devices, a payment terminal or
        an excluded device. Returns None if the MAC belongs to none of these.
        """
        if mac.startswith(_IPV6_MULTICAST):
            return ALL
        if mac in self._terminals:
            return TERMINAL
        return EXCLUDED if mac in self._excluded_macs else None

    def _check_packet(self, kind: str, packet: frames.Ipv4) -> None:
        if packet.protocol == frames.TCP and (segment := frames.read_tcp(packet.body)):
            self._count(kind, f"TCP {segment.destination_port}", len(segment.payload))
            self._read_stream(kind, packet.destination, segment)
        elif packet.protocol == frames.UDP:
            port = int.from_bytes(packet.body[2:4], "big")
            payload = packet.body[_UDP_HEADER:]
            self._count(kind, f"UDP {port}", len(payload))
            if port == _SNMP_PORT:
                self._snmp_requests[kind, f"SNMP {snmp_request(payload)}"] += 1
        else:
            name = _IP_NAMES.get(packet.protocol, f"IP protocol {packet.protocol}")
            self._count(kind, name, len(packet.body))

    def _count(self, kind: str, protocol: str, size_bytes: int) -> None:
        self.packets[kind, protocol] += 1
        self.payload[kind, protocol] += size_bytes

    def _read_stream(self, kind: str, address: bytes, segment: frames.Tcp) -> None:
        """Append the payload of a segment to its stream. Repeated segments are ignored."""
        connection = address, segment.destination_port, segment.source_port
        if segment.flags & frames.SYN:
            self._next_sequence[connection] = segment.sequence + 1 & 0xFFFFFFFF
        if not segment.payload or self._next_sequence.get(connection) != segment.sequence:
            return
        self._next_sequence[connection] = segment.sequence + len(segment.payload) & 0xFFFFFFFF
        self._kinds_by_connection[connection] = kind
        stream = self._streams[connection]
        stream += segment.payload[: _STREAM_MAX - len(stream)]

    def requests(self) -> Counter[tuple[str, str]]:
        """Return the number of requests by kind of device and request."""
        counts = Counter(self._snmp_requests)
        for connection, stream in self._streams.items():
            for request in requests_in(bytes(stream), connection[1]):
                counts[self._kinds_by_connection[connection], request] += 1
        return counts

    def forbidden(self) -> dict[str, int]:
        """Return how many bytes, packets or requests of each forbidden kind were sent."""
        counts: Counter[str] = Counter()
        for (kind, request), count in self.requests().items():
            if request not in PERMITTED:
                counts[f"{request} to {_plural(kind)}"] += count
        for (kind, protocol), count in self.packets.items():
            size = self.payload[kind, protocol]
            if kind == EXCLUDED or (kind == TERMINAL and protocol not in _PERMITTED_AT_TERMINALS):
                counts[f"packets of {protocol} to {_plural(kind)}"] += count
            if size and (protocol not in CONTENT or kind == TERMINAL):
                counts[f"bytes of {protocol} to {_plural(kind)}"] += size
        return dict(counts)

    def store(self) -> None:
        """Write the record, if `make harm-record` runs this LAN."""
        if folder := os.environ.get(VARIABLE):
            record = {
                "test": os.environ.get("PYTEST_CURRENT_TEST", ""),
                "traffic": [[*k, n, self.payload[k]] for k, n in sorted(self.packets.items())],
                "requests": [[*k, n] for k, n in sorted(self.requests().items())],
                "forbidden": self.forbidden(),
            }
            (Path(folder) / f"{uuid.uuid4()}.json").write_text(json.dumps(record))


def _plural(kind: str) -> str:
    return kind if kind == ALL else f"{kind}s"


def requests_in(stream: bytes, port: int) -> list[str]:
    """Return the requests in the bytes that were sent over a connection."""
    if not stream:
        return []
    if stream[0] == _TLS_HANDSHAKE:
        return ["TLS handshake"]
    requests = []
    while stream:
        method = _METHOD.match(stream)
        head, end, rest = stream.partition(b"\r\n\r\n")
        if method is None or not end:
            return [*requests, f"unknown bytes to port {port}"]
        length = _LENGTH.search(head)
        body = rest[: int(length[1])] if length else b""
        stream = rest[len(body) :]
        name = method[1].decode()
        requests.append(f"IPP {ipp_operation(body)}" if port == _IPP_PORT else f"HTTP {name}")
    return requests


def ipp_operation(body: bytes) -> str:
    """Return the name of an operation (RFC 8011, section 5.4.15)."""
    number = int.from_bytes(body[2:4], "big")
    return _IPP.get(number, f"operation {number:#06x}")


def snmp_request(payload: bytes) -> str:
    """Return the type of an SNMP request. It follows the version and the community (RFC 1157,
    section 4).
    """
    try:
        at = 2 + (payload[1] & 0x7F if payload[1] & 0x80 else 0)
        for _ in ("version", "community"):
            at += 2 + payload[at + 1]
        return _SNMP.get(payload[at], f"type {payload[at]:#x}")
    except IndexError:
        return "damaged"
