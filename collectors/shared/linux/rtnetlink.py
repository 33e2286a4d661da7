"""Parses rtnetlink messages of the Linux kernel (rtnetlink(7), linux/rtnetlink.h). No I/O.

All functions accept arbitrary bytes. They leave out entries that are incomplete or malformed.
"""

import struct
import sys
from dataclasses import dataclass
from typing import Literal, NamedTuple

from collectors.shared.addresses import mac_text, plain_address
from collectors.shared.linux.netlink import parse_attributes, split_entries

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

_IFINFOMSG = struct.Struct("=BxHiII")
IFADDRMSG = struct.Struct("=BBBBI")
_RTMSG = struct.Struct("=BBBBBBBBI")
_RTNEXTHOP = struct.Struct("=HBBi")
_NDMSG = struct.Struct("=BxxxiHBB")
_NDTMSG = struct.Struct("=Bxxx")
_NDT_CONFIG_ENTRIES = struct.Struct("=4xI")
_U32 = struct.Struct("=I")

_ARPHRD_ETHER = 1
_IFF_UP, _IFF_LOOPBACK, _IFF_POINTOPOINT, _IFF_RUNNING, _IFF_NOARP = 0x1, 0x8, 0x10, 0x40, 0x80
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_STATS64 = 1, 3, 18, 23
_IFLA_INFO_KIND = 1
_ERROR_COUNTS = struct.Struct("=32xQQ")  # rx_errors and tx_errors of struct rtnl_link_stats64
_IFA_ADDRESS, _IFA_LOCAL, _IFA_FLAGS = 1, 2, 8
_IFA_F_TEMPORARY, _IFA_F_DADFAILED, _IFA_F_TENTATIVE = 0x01, 0x08, 0x40
_RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY, _RTA_MULTIPATH, _RTA_TABLE, _RTA_VIA = 4, 5, 6, 9, 15, 18
_RT_TABLE_MAIN = 254
_RTN_UNICAST = 1
_NDA_DST, _NDA_LLADDR = 1, 2
_NDTA_THRESH3, _NDTA_CONFIG = 4, 5

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


@dataclass(frozen=True, slots=True)
class Link:
    """An interface.

    Args:
        index: its number, by which addresses, routes and neighbours refer to it.
        has_carrier: it is up and can transfer data (IFF_RUNNING).
        has_arp: the kernel resolves addresses of this Ethernet-like link by ARP.
        kind: the type of a virtual interface, such as "veth" or "bridge"; "" for hardware.
        errors: packets that it could not receive or send, since it was created; None if not known.
    """

    index: int
    name: str
    mac_address: str | None = None
    has_carrier: bool = True
    is_loopback: bool = False
    is_point_to_point: bool = False
    has_arp: bool = True
    kind: str = ""
    errors: int | None = None


@dataclass(frozen=True, slots=True)
class LinkAddress:
    """An address of an interface.

    ``is_usable``: it is not being checked for duplicates, and no duplicate was detected.
    ``is_duplicate``: another machine uses this IPv6 address (RFC 4862, section 5.4).
    ``is_temporary``: a privacy address of IPv6, which is replaced regularly (RFC 8981).
    """

    index: int
    address: str
    prefix_length: int
    is_usable: bool = True
    is_duplicate: bool = False
    is_temporary: bool = False


@dataclass(frozen=True, slots=True)
class DefaultRoute:
    """A default route of the main table. The lowest ``metric`` is preferred.

    A point-to-point link, such as a mobile connection or a tunnel, needs no gateway.
    """

    index: int
    gateway: str | None
    metric: int
    is_ipv6: bool = False


@dataclass(frozen=True, slots=True)
class LinkNeighbour:
    """An entry of the neighbour table.

    ``index`` is the number of the interface, or 0 if it is not known. ``mac_address`` is None if
    it is not resolved.
    """

    index: int
    address: str
    mac_address: str | None
    state: NeighbourState


class NeighbourTableSize(NamedTuple):
    """The number of entries in a neighbour table, and its limit (gc_thresh3).

    Both numbers are for the whole machine, because all network namespaces share one table.
    """

    entries: int
    entries_max: int


def parse_link(body: bytes) -> Link | None:
    """Parse an RTM_NEWLINK body."""
    if len(body) < _IFINFOMSG.size:
        return None
    _family, hardware, index, flags, _change = _IFINFOMSG.unpack_from(body)
    attributes = parse_attributes(body[_IFINFOMSG.size :])
    name = _string(attributes.get(_IFLA_IFNAME, b""))
    if not name:
        return None
    information = parse_attributes(attributes.get(_IFLA_LINKINFO, b""))
    return Link(
        index,
        name,
        mac_address=mac_text(attributes.get(_IFLA_ADDRESS, b"")),
        has_carrier=flags & (_IFF_UP | _IFF_RUNNING) == (_IFF_UP | _IFF_RUNNING),
        is_loopback=bool(flags & _IFF_LOOPBACK),
        is_point_to_point=bool(flags & _IFF_POINTOPOINT),
        has_arp=hardware == _ARPHRD_ETHER and not flags & _IFF_NOARP,
        kind=_string(information.get(_IFLA_INFO_KIND, b"")),
        errors=_errors(attributes.get(_IFLA_STATS64, b"")),
    )


def parse_address(body: bytes) -> LinkAddress | None:
    """Parse an RTM_NEWADDR body."""
    if len(body) < IFADDRMSG.size:
        return None
    family, prefix_length, flags, _scope, index = IFADDRMSG.unpack_from(body)
    attributes = parse_attributes(body[IFADDRMSG.size :])
    flags |= _number(attributes.get(_IFA_FLAGS, b""))
    # On a point-to-point link IFA_ADDRESS is the peer's address, and IFA_LOCAL is this machine's
    # address.
    text = _address_text(family, attributes.get(_IFA_LOCAL) or attributes.get(_IFA_ADDRESS, b""))
    if text is None:
        return None
    return LinkAddress(
        index,
        text,
        prefix_length,
        is_usable=not flags & (_IFA_F_TENTATIVE | _IFA_F_DADFAILED),
        is_duplicate=bool(flags & _IFA_F_DADFAILED),
        # For IPv4, the same bit is IFA_F_SECONDARY: the address is a secondary one.
        is_temporary=family == AF_INET6 and bool(flags & _IFA_F_TEMPORARY),
    )


def parse_default_routes(body: bytes) -> tuple[DefaultRoute, ...]:
    """Parse an RTM_NEWROUTE body. Returns its default routes; a multipath route has several."""
    if len(body) < _RTMSG.size:
        return ()
    family, destination_bits, _, _, table, _, _, kind, _flags = _RTMSG.unpack_from(body)
    route = parse_attributes(body[_RTMSG.size :])
    table = _number(route.get(_RTA_TABLE, b"")) or table
    if destination_bits or kind != _RTN_UNICAST or table != _RT_TABLE_MAIN:
        return ()
    metric = _number(route.get(_RTA_PRIORITY, b""))
    hops = [(_number(route.get(_RTA_OIF, b"")), route)]
    for fields, hop in split_entries(route.get(_RTA_MULTIPATH, b""), _RTNEXTHOP):
        hops.append((fields[3], parse_attributes(hop)))
    routes = ((index, _gateway(family, attributes)) for index, attributes in hops)
    # A multipath route itself has no interface. Only its hops have one.
    is_ipv6 = family == AF_INET6
    return tuple(
        DefaultRoute(index, gateway, metric, is_ipv6) for index, gateway in routes if index
    )


def parse_neighbour(body: bytes) -> LinkNeighbour | None:
    """Parse an RTM_NEWNEIGH body."""
    if len(body) < _NDMSG.size:
        return None
    family, index, state, _flags, _kind = _NDMSG.unpack_from(body)
    attributes = parse_attributes(body[_NDMSG.size :])
    text = _address_text(family, attributes.get(_NDA_DST, b""))
    if text is None or state not in _NUD_STATES:
        return None
    state_name = _NUD_STATES[state]
    has_mac = state_name in ("reachable", "stale")
    mac_address = mac_text(attributes.get(_NDA_LLADDR, b"")) if has_mac else None
    return LinkNeighbour(index, text, mac_address, state_name)


def parse_neighbour_table_size(body: bytes) -> NeighbourTableSize | None:
    """Parse an RTM_NEWNEIGHTBL body. Returns None for the parameters of a single interface."""
    attributes = parse_attributes(body[_NDTMSG.size :])
    limit, config = attributes.get(_NDTA_THRESH3, b""), attributes.get(_NDTA_CONFIG, b"")
    if len(limit) < _U32.size or len(config) < _NDT_CONFIG_ENTRIES.size:
        return None
    (entries,) = _NDT_CONFIG_ENTRIES.unpack_from(config)
    return NeighbourTableSize(entries, _U32.unpack_from(limit)[0])


def _gateway(family: int, attributes: dict[int, bytes]) -> str | None:
    via = attributes.get(_RTA_VIA, b"")  # a gateway of another family: u16 family, address
    if len(via) > 2:
        return _address_text(int.from_bytes(via[:2], sys.byteorder), via[2:])
    return _address_text(family, attributes.get(_RTA_GATEWAY, b""))


def _address_text(family: int, raw: bytes) -> str | None:
    is_address = len(raw) == {AF_INET: 4, AF_INET6: 16}.get(family)
    return plain_address(raw) if is_address else None


def _errors(statistics: bytes) -> int | None:
    if len(statistics) < _ERROR_COUNTS.size:
        return None
    received, sent = _ERROR_COUNTS.unpack_from(statistics)
    return int(received + sent)


def _string(raw: bytes) -> str:
    """Decode a string that a zero byte ends."""
    return raw.split(b"\0")[0].decode("utf-8", "replace")


def _number(raw: bytes) -> int:
    return int(_U32.unpack(raw)[0]) if len(raw) == _U32.size else 0
