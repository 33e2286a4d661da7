"""Messages of rtnetlink: what the Linux kernel tells about links, addresses, routes, neighbours.

Pure parsing of the bytes of ``rtnetlink(7)`` (structures in linux/rtnetlink.h, if_link.h,
if_addr.h and neighbour.h). Integers are in the machine's own byte order. What does not parse is
skipped: the kernel adds attributes over time, and a cut message carries nothing to rely on.
"""

import ipaddress
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from collectors.contract import InterfaceAddress

NLMSG_ERROR = 2
NLMSG_DONE = 3
RTM_NEWLINK = 16
RTM_GETLINK = 18
RTM_NEWADDR = 20
RTM_GETADDR = 22
RTM_NEWROUTE = 24
RTM_GETROUTE = 26
RTM_NEWNEIGH = 28
RTM_GETNEIGH = 30
RTM_NEWNEIGHTBL = 64
RTM_GETNEIGHTBL = 66

AF_INET = 2
AF_INET6 = 10  # Linux's number: these bytes come from a Linux kernel wherever they are parsed

_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_IFINFOMSG = struct.Struct("=BxHiII")
_IFADDRMSG = struct.Struct("=BBBBI")
_RTMSG = struct.Struct("=BBBBBBBBI")
_RTNEXTHOP = struct.Struct("=HBBi")
_NDMSG = struct.Struct("=BxxxiHBB")
_NDTMSG = struct.Struct("=Bxxx")
_NDT_CONFIG_ENTRIES = struct.Struct("=4xI")
_U32 = struct.Struct("=I")
_BODY_BYTES = {
    RTM_GETLINK: _IFINFOMSG.size,
    RTM_GETADDR: _IFADDRMSG.size,
    RTM_GETROUTE: _RTMSG.size,
    RTM_GETNEIGH: _NDMSG.size,
    RTM_GETNEIGHTBL: _NDTMSG.size,
}
_ATTRIBUTE_TYPE_MASK = 0x3FFF  # without the NLA_F_NESTED and NLA_F_NET_BYTEORDER bits

_ARPHRD_ETHER = 1
_IFF_UP, _IFF_LOOPBACK, _IFF_POINTOPOINT, _IFF_RUNNING, _IFF_NOARP = 0x1, 0x8, 0x10, 0x40, 0x80
_IFLA_ADDRESS, _IFLA_IFNAME = 1, 3
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY, _RTA_MULTIPATH, _RTA_TABLE, _RTA_VIA = 4, 5, 6, 9, 15, 18
_RT_TABLE_MAIN = 254
_RTN_UNICAST = 1
_NDA_DST, _NDA_LLADDR = 1, 2
_NDTA_THRESH3, _NDTA_CONFIG = 4, 5
_MAC_BYTES = 6

NeighbourState = Literal["reachable", "stale", "resolving", "failed"]

_NUD_STATES: dict[int, NeighbourState] = {
    0x01: "resolving",  # NUD_INCOMPLETE
    0x02: "reachable",
    0x04: "stale",
    0x08: "stale",  # NUD_DELAY: stale and in use
    0x10: "stale",  # NUD_PROBE: being asked again
    0x20: "failed",
    0x80: "reachable",  # NUD_PERMANENT
}


@dataclass(frozen=True, slots=True)
class Message:
    """One netlink message without its header."""

    type: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Link:
    """A network device. ``has_arp`` tells an Ethernet-like device that resolves neighbours."""

    index: int
    name: str
    mac_address: str | None
    is_up: bool
    is_loopback: bool
    is_point_to_point: bool
    has_arp: bool


@dataclass(frozen=True, slots=True)
class LinkAddress:
    index: int
    address: InterfaceAddress


@dataclass(frozen=True, slots=True)
class DefaultRoute:
    """A default route of the main table; the lowest ``metric`` is preferred."""

    index: int
    gateway: str
    metric: int


@dataclass(frozen=True, slots=True)
class LinkNeighbour:
    """An entry of the neighbour table. ``mac_address`` is None until it is resolved."""

    index: int
    address: str
    mac_address: str | None
    state: NeighbourState


@dataclass(frozen=True, slots=True)
class NeighbourTableSize:
    """How many entries a neighbour table has, and how many it takes (gc_thresh3), both of the
    whole machine: it is one table for all network namespaces."""

    entries: int
    entries_max: int


def dump_request(message_type: int, family: int, sequence: int) -> bytes:
    """Return the request that dumps all objects of a type; ``family`` 0 is all families."""
    nlm_f_request, nlm_f_dump = 0x1, 0x300
    body = bytes([family]) + bytes(_BODY_BYTES[message_type] - 1)
    length = _HEADER.size + len(body)
    return _HEADER.pack(length, message_type, nlm_f_request | nlm_f_dump, sequence, 0) + body


def parse_messages(data: bytes) -> Iterator[Message]:
    """Split one datagram into messages; ends at the first length that cannot be."""
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, message_type, _flags, _sequence, _pid = _HEADER.unpack_from(data, offset)
        if length < _HEADER.size or offset + length > len(data):
            return
        yield Message(message_type, data[offset + _HEADER.size : offset + length])
        offset += _aligned(length)


def error_number(message: Message) -> int:
    """Return the errno of an NLMSG_ERROR message, 0 for a plain acknowledgement."""
    if len(message.body) < _U32.size:
        return 0
    return -int.from_bytes(message.body[:4], sys.byteorder, signed=True)


def parse_link(body: bytes) -> Link | None:
    if len(body) < _IFINFOMSG.size:
        return None
    _family, kind, index, flags, _change = _IFINFOMSG.unpack_from(body)
    found = _attributes(body, _IFINFOMSG.size)
    name = found.get(_IFLA_IFNAME, b"").split(b"\0")[0].decode("utf-8", "replace")
    if not name:
        return None
    return Link(
        index=index,
        name=name,
        mac_address=mac_text(found.get(_IFLA_ADDRESS, b"")),
        is_up=flags & (_IFF_UP | _IFF_RUNNING) == (_IFF_UP | _IFF_RUNNING),
        is_loopback=bool(flags & _IFF_LOOPBACK),
        is_point_to_point=bool(flags & _IFF_POINTOPOINT),
        has_arp=kind == _ARPHRD_ETHER and not flags & _IFF_NOARP,
    )


def parse_address(body: bytes) -> LinkAddress | None:
    if len(body) < _IFADDRMSG.size:
        return None
    family, prefix_length, _flags, _scope, index = _IFADDRMSG.unpack_from(body)
    found = _attributes(body, _IFADDRMSG.size)
    # On a point-to-point link IFA_ADDRESS is the peer's and IFA_LOCAL is ours.
    text = _address_text(family, found.get(_IFA_LOCAL) or found.get(_IFA_ADDRESS, b""))
    if text is None:
        return None
    name: Literal["ipv4", "ipv6"] = "ipv4" if family == AF_INET else "ipv6"
    return LinkAddress(index, InterfaceAddress(text, name, prefix_length))


def parse_default_routes(body: bytes) -> tuple[DefaultRoute, ...]:
    """Return the default routes of one route message: several for a multipath route."""
    if len(body) < _RTMSG.size:
        return ()
    family, destination_bits, _, _, table, _, _, kind, _flags = _RTMSG.unpack_from(body)
    found = _attributes(body, _RTMSG.size)
    table = _number(found.get(_RTA_TABLE, b"")) or table
    if destination_bits or kind != _RTN_UNICAST or table != _RT_TABLE_MAIN:
        return ()
    metric = _number(found.get(_RTA_PRIORITY, b""))
    hops = [(_number(found.get(_RTA_OIF, b"")), found)]
    hops += _next_hops(found.get(_RTA_MULTIPATH, b""))
    routes = ((index, _gateway(family, attributes)) for index, attributes in hops)
    return tuple(DefaultRoute(index, gateway, metric) for index, gateway in routes if gateway)


def parse_neighbour(body: bytes) -> LinkNeighbour | None:
    if len(body) < _NDMSG.size:
        return None
    family, index, state, _flags, _kind = _NDMSG.unpack_from(body)
    found = _attributes(body, _NDMSG.size)
    text = _address_text(family, found.get(_NDA_DST, b""))
    if text is None or state not in _NUD_STATES:
        return None
    name = _NUD_STATES[state]
    mac = mac_text(found.get(_NDA_LLADDR, b"")) if name in ("reachable", "stale") else None
    return LinkNeighbour(index, text, mac, name)


def mac_text(raw: bytes) -> str | None:
    """Return six bytes as ``aa:bb:cc:dd:ee:ff``; None for another length or all zeros."""
    return raw.hex(":") if len(raw) == _MAC_BYTES and any(raw) else None


def plain_address(value: str | bytes) -> str | None:
    """Return an address in its usual text form; None for what is no address."""
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        return None


def parse_neighbour_table_size(body: bytes) -> NeighbourTableSize | None:
    """Read an RTM_NEWNEIGHTBL body; None where it tells of one device's parameters only."""
    attributes = _attributes(body, _NDTMSG.size)
    limit, config = attributes.get(_NDTA_THRESH3, b""), attributes.get(_NDTA_CONFIG, b"")
    if len(limit) < _U32.size or len(config) < _NDT_CONFIG_ENTRIES.size:
        return None
    (entries,) = _NDT_CONFIG_ENTRIES.unpack_from(config)
    return NeighbourTableSize(entries, _U32.unpack_from(limit)[0])


def _attributes(body: bytes, start: int) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    offset = _aligned(start)
    while offset + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, offset)
        if length < _ATTRIBUTE.size or offset + length > len(body):
            break
        found[kind & _ATTRIBUTE_TYPE_MASK] = body[offset + _ATTRIBUTE.size : offset + length]
        offset += _aligned(length)
    return found


def _next_hops(data: bytes) -> list[tuple[int, dict[int, bytes]]]:
    hops: list[tuple[int, dict[int, bytes]]] = []
    offset = 0
    while offset + _RTNEXTHOP.size <= len(data):
        length, _flags, _weight, index = _RTNEXTHOP.unpack_from(data, offset)
        if length < _RTNEXTHOP.size or offset + length > len(data):
            break
        hops.append((index, _attributes(data[offset : offset + length], _RTNEXTHOP.size)))
        offset += _aligned(length)
    return hops


def _gateway(family: int, attributes: dict[int, bytes]) -> str | None:
    via = attributes.get(_RTA_VIA, b"")  # a gateway of another family: u16 family, address
    if len(via) > 2:
        return _address_text(int.from_bytes(via[:2], sys.byteorder), via[2:])
    return _address_text(family, attributes.get(_RTA_GATEWAY, b""))


def _address_text(family: int, raw: bytes) -> str | None:
    if family == AF_INET and len(raw) == 4:
        return str(ipaddress.IPv4Address(raw))
    if family == AF_INET6 and len(raw) == 16:
        return str(ipaddress.IPv6Address(raw))
    return None


def _number(raw: bytes) -> int:
    return int(_U32.unpack(raw)[0]) if len(raw) == _U32.size else 0


def _aligned(length: int) -> int:
    return (length + 3) & ~3
