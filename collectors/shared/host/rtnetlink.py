"""Parses rtnetlink messages of the Linux kernel (rtnetlink(7), linux/rtnetlink.h). Pure.

All functions accept arbitrary bytes. They leave out entries that are incomplete or malformed.
"""

import ipaddress
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from collectors.contract import Interface, InterfaceAddress
from collectors.shared.host.local_network import LocalInterface

NLMSG_ERROR = 2
NLMSG_DONE = 3
RTM_GETLINK = 18
RTM_GETADDR = 22
RTM_GETROUTE = 26
RTM_NEWNEIGH = 28
RTM_GETNEIGH = 30
RTM_GETNEIGHTBL = 66
NEW_FROM_GET = -2
"""The type of the messages in a reply is the type of the request plus this number."""

AF_INET = 2
AF_INET6 = 10  # the number on Linux, because the messages come from a Linux kernel

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
    0x10: "stale",  # NUD_PROBE: the kernel sends ARP requests to confirm it
    0x20: "failed",
    0x80: "reachable",  # NUD_PERMANENT
}


class Message(NamedTuple):
    """One netlink message without its header."""

    type: int
    body: bytes


@dataclass(frozen=True, slots=True)
class DefaultRoute:
    """A default route of the main table. The lowest ``metric`` is preferred.

    A point-to-point link, such as a mobile connection or a tunnel, needs no gateway.
    """

    index: int
    gateway: str | None
    metric: int


@dataclass(frozen=True, slots=True)
class LinkNeighbour:
    """An entry of the neighbour table. ``mac_address`` is None until it is resolved."""

    index: int
    address: str
    mac_address: str | None
    state: NeighbourState


class NeighbourTableSize(NamedTuple):
    """The number of entries in a neighbour table, and its limit (gc_thresh3).

    Both numbers count the whole machine, because all network namespaces share one table.
    """

    entries: int
    entries_max: int


def dump_request(message_type: int, family: int) -> bytes:
    """Return the request that dumps all objects of a type; ``family`` 0 is all families."""
    nlm_f_request, nlm_f_dump = 0x1, 0x300
    body = struct.pack("=B3x", family)  # struct rtgenmsg
    length = _HEADER.size + len(body)
    return _HEADER.pack(length, message_type, nlm_f_request | nlm_f_dump, 1, 0) + body


def parse_messages(data: bytes) -> Iterator[Message]:
    """Split one datagram into messages."""
    return (Message(fields[1], body) for fields, body in _split(data, _HEADER))


def error_number(message: Message) -> int:
    """Return the errno of an NLMSG_ERROR message, 0 for a plain acknowledgement."""
    if len(message.body) < _U32.size:
        return 0
    return -int.from_bytes(message.body[:4], sys.byteorder, signed=True)


def parse_link(body: bytes) -> LocalInterface | None:
    """Parse an RTM_NEWLINK body. The returned interface has no addresses and routes yet."""
    if len(body) < _IFINFOMSG.size:
        return None
    _family, kind, index, flags, _change = _IFINFOMSG.unpack_from(body)
    attributes = _attributes(body[_IFINFOMSG.size :])
    name = attributes.get(_IFLA_IFNAME, b"").split(b"\0")[0].decode("utf-8", "replace")
    if not name:
        return None
    return LocalInterface(
        Interface(name, mac_address=mac_text(attributes.get(_IFLA_ADDRESS, b""))),
        index=index,
        is_up=flags & (_IFF_UP | _IFF_RUNNING) == (_IFF_UP | _IFF_RUNNING),
        is_loopback=bool(flags & _IFF_LOOPBACK),
        is_point_to_point=bool(flags & _IFF_POINTOPOINT),
        has_arp=kind == _ARPHRD_ETHER and not flags & _IFF_NOARP,
    )


def parse_address(body: bytes) -> tuple[int, InterfaceAddress] | None:
    """Parse an RTM_NEWADDR body. Returns the index of the interface, and the address."""
    if len(body) < _IFADDRMSG.size:
        return None
    family, prefix_length, _flags, _scope, index = _IFADDRMSG.unpack_from(body)
    attributes = _attributes(body[_IFADDRMSG.size :])
    # On a point-to-point link IFA_ADDRESS is the peer's address, and IFA_LOCAL is this machine's
    # address.
    text = _address_text(family, attributes.get(_IFA_LOCAL) or attributes.get(_IFA_ADDRESS, b""))
    if text is None:
        return None
    name: Literal["ipv4", "ipv6"] = "ipv4" if family == AF_INET else "ipv6"
    return index, InterfaceAddress(text, name, prefix_length)


def parse_default_routes(body: bytes) -> tuple[DefaultRoute, ...]:
    """Parse an RTM_NEWROUTE body. Returns its default routes; a multipath route has several."""
    if len(body) < _RTMSG.size:
        return ()
    family, destination_bits, _, _, table, _, _, kind, _flags = _RTMSG.unpack_from(body)
    route = _attributes(body[_RTMSG.size :])
    table = _number(route.get(_RTA_TABLE, b"")) or table
    if destination_bits or kind != _RTN_UNICAST or table != _RT_TABLE_MAIN:
        return ()
    metric = _number(route.get(_RTA_PRIORITY, b""))
    hops = [(_number(route.get(_RTA_OIF, b"")), route)]
    for fields, hop in _split(route.get(_RTA_MULTIPATH, b""), _RTNEXTHOP):
        hops.append((fields[3], _attributes(hop)))
    routes = ((index, _gateway(family, attributes)) for index, attributes in hops)
    # A multipath route itself has no interface. Only its hops have one.
    return tuple(DefaultRoute(index, gateway, metric) for index, gateway in routes if index)


def parse_neighbour(body: bytes) -> LinkNeighbour | None:
    """Parse an RTM_NEWNEIGH body."""
    if len(body) < _NDMSG.size:
        return None
    family, index, state, _flags, _kind = _NDMSG.unpack_from(body)
    attributes = _attributes(body[_NDMSG.size :])
    text = _address_text(family, attributes.get(_NDA_DST, b""))
    if text is None or state not in _NUD_STATES:
        return None
    name = _NUD_STATES[state]
    mac = mac_text(attributes.get(_NDA_LLADDR, b"")) if name in ("reachable", "stale") else None
    return LinkNeighbour(index, text, mac, name)


def parse_neighbour_table_size(body: bytes) -> NeighbourTableSize | None:
    """Parse an RTM_NEWNEIGHTBL body. Returns None for the parameters of a single interface."""
    attributes = _attributes(body[_NDTMSG.size :])
    limit, config = attributes.get(_NDTA_THRESH3, b""), attributes.get(_NDTA_CONFIG, b"")
    if len(limit) < _U32.size or len(config) < _NDT_CONFIG_ENTRIES.size:
        return None
    (entries,) = _NDT_CONFIG_ENTRIES.unpack_from(config)
    return NeighbourTableSize(entries, _U32.unpack_from(limit)[0])


def mac_text(raw: bytes) -> str | None:
    """Return six bytes as ``aa:bb:cc:dd:ee:ff``; None for another length or all zeros."""
    return raw.hex(":") if len(raw) == _MAC_BYTES and any(raw) else None


def plain_address(value: str | bytes) -> str | None:
    """Return an address in its usual text form, or None if ``value`` is not an address."""
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        return None


def _split(data: bytes, header: struct.Struct) -> Iterator[tuple[tuple[Any, ...], bytes]]:
    """Yield the header fields and the content of each entry in ``data``.

    Messages, attributes and next hops all begin with the entry's length as the first field of the
    header. Stops at the first length that is impossible.
    """
    offset = 0
    while offset + header.size <= len(data):
        fields = header.unpack_from(data, offset)
        end = offset + fields[0]
        if fields[0] < header.size or end > len(data):
            return
        yield fields, data[offset + header.size : end]
        offset = (end + 3) & ~3


def _attributes(data: bytes) -> dict[int, bytes]:
    return {fields[1] & _ATTRIBUTE_TYPE_MASK: value for fields, value in _split(data, _ATTRIBUTE)}


def _gateway(family: int, attributes: dict[int, bytes]) -> str | None:
    via = attributes.get(_RTA_VIA, b"")  # a gateway of another family: u16 family, address
    if len(via) > 2:
        return _address_text(int.from_bytes(via[:2], sys.byteorder), via[2:])
    return _address_text(family, attributes.get(_RTA_GATEWAY, b""))


def _address_text(family: int, raw: bytes) -> str | None:
    is_address = len(raw) == {AF_INET: 4, AF_INET6: 16}.get(family)
    return plain_address(raw) if is_address else None


def _number(raw: bytes) -> int:
    return int(_U32.unpack(raw)[0]) if len(raw) == _U32.size else 0
