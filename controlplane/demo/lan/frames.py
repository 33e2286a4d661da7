"""Reads and writes Ethernet frames: ARP, IPv4, ICMP, UDP, TCP.

IPv4 addresses are four bytes, MAC addresses six. On the wire, numbers are in network byte order.
Sources: RFC 826 (ARP), 791 (IPv4), 792 (ICMP), 768 (UDP), 9293 (TCP).
"""

import struct
from dataclasses import dataclass

ETHERTYPE_IPV4 = 0x0800
ETHERTYPE_ARP = 0x0806
ICMP, TCP, UDP = 1, 6, 17
FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10

_ARP = struct.Struct("!HHBBH6s4s6s4s")
_IPV4 = struct.Struct("!BBHHHBBH4s4s")
_TCP = struct.Struct("!HHIIBBHHH")
_UDP = struct.Struct("!HHHH")
_MSS_OPTION = b"\x02\x04\x05\xb4"


@dataclass(frozen=True, slots=True)
class Ethernet:
    """An Ethernet frame. ``kind`` is its EtherType."""

    destination: bytes
    source: bytes
    kind: int
    body: bytes


@dataclass(frozen=True, slots=True)
class ArpRequest:
    """An ARP request. ``sender`` and ``target`` are IPv4 addresses."""

    sender_mac: bytes
    sender: bytes
    target: bytes


@dataclass(frozen=True, slots=True)
class Ipv4:
    source: bytes
    destination: bytes
    protocol: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Tcp:
    """A TCP segment. ``options`` is only set for a received segment."""

    source_port: int
    destination_port: int
    sequence: int
    acknowledgement: int
    flags: int
    payload: bytes = b""
    options: bytes = b""


def read_ethernet(frame: bytes) -> Ethernet:
    return Ethernet(frame[:6], frame[6:12], int.from_bytes(frame[12:14], "big"), frame[14:])


def read_arp_request(body: bytes) -> ArpRequest | None:
    if len(body) < _ARP.size:
        return None
    _, _, _, _, operation, mac, sender, _, target = _ARP.unpack_from(body)
    return ArpRequest(mac, sender, target) if operation == 1 else None


def read_ipv4(body: bytes) -> Ipv4 | None:
    if len(body) < _IPV4.size or body[0] >> 4 != 4:
        return None
    header_bytes = (body[0] & 15) * 4
    total_bytes = int.from_bytes(body[2:4], "big")
    return Ipv4(body[12:16], body[16:20], body[9], body[header_bytes:total_bytes])


def read_tcp(body: bytes) -> Tcp | None:
    if len(body) < _TCP.size:
        return None
    source, destination, sequence, acknowledgement, offset, flags, _, _, _ = _TCP.unpack_from(body)
    end = (offset >> 4) * 4
    options, payload = body[_TCP.size : end], body[end:]
    return Tcp(source, destination, sequence, acknowledgement, flags, payload, options)


def ethernet_frame(destination: bytes, source: bytes, kind: int, body: bytes) -> bytes:
    return destination + source + kind.to_bytes(2, "big") + body


def arp_reply(request: ArpRequest, mac: bytes) -> bytes:
    body = _ARP.pack(
        1, ETHERTYPE_IPV4, 6, 4, 2, mac, request.target, request.sender_mac, request.sender
    )
    return ethernet_frame(request.sender_mac, mac, ETHERTYPE_ARP, body)


def ipv4_packet(
    source: bytes, destination: bytes, protocol: int, body: bytes, ttl: int = 64
) -> bytes:
    length = _IPV4.size + len(body)
    header = _IPV4.pack(0x45, 0, length, 0, 0, ttl, protocol, 0, source, destination)
    return header[:10] + checksum(header).to_bytes(2, "big") + header[12:] + body


def tcp_packet(source: bytes, destination: bytes, segment: Tcp) -> bytes:
    """Return an IPv4 packet with a segment. A SYN segment gets the option MSS 1460."""
    options = _MSS_OPTION if segment.flags & SYN else b""
    data = (
        _TCP.pack(
            segment.source_port,
            segment.destination_port,
            segment.sequence & 0xFFFFFFFF,
            segment.acknowledgement & 0xFFFFFFFF,
            (_TCP.size + len(options)) // 4 << 4,  # the header's length, in units of four bytes
            segment.flags,
            65535,  # the receive window
            0,  # the checksum, which is inserted below
            0,
        )
        + options
        + segment.payload
    )
    pseudo_header = source + destination + struct.pack("!HH", TCP, len(data))
    data_checksum = checksum(pseudo_header + data).to_bytes(2, "big")
    return ipv4_packet(source, destination, TCP, data[:16] + data_checksum + data[18:])


def udp_packet(
    source: bytes, destination: bytes, source_port: int, destination_port: int, payload: bytes
) -> bytes:
    """Return an IPv4 packet with a UDP datagram.

    The TTL is 255, as mDNS requires. The UDP checksum, which is optional in IPv4, is omitted.
    """
    header = _UDP.pack(source_port, destination_port, _UDP.size + len(payload), 0)
    return ipv4_packet(source, destination, UDP, header + payload, ttl=255)


def echo_reply(packet: Ipv4) -> bytes:
    return _icmp_reply(packet, b"\0\0\0\0" + packet.body[4:])


def port_unreachable(packet: Ipv4) -> bytes:
    """Return the ICMP error. It quotes the header of ``packet`` and 8 bytes of its body."""
    quoted_bytes = ipv4_packet(packet.source, packet.destination, packet.protocol, packet.body)[:28]
    return _icmp_reply(packet, b"\x03\x03\0\0\0\0\0\0" + quoted_bytes)


def _icmp_reply(packet: Ipv4, body: bytes) -> bytes:
    """Return an ICMP reply to a packet. Adds the checksum, which must be 0 in ``body``."""
    body = body[:2] + checksum(body).to_bytes(2, "big") + body[4:]
    return ipv4_packet(packet.destination, packet.source, ICMP, body)


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF
