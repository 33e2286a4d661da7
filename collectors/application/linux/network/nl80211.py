"""Reads the Wi-Fi connections of the Linux kernel by generic netlink (linux/nl80211.h).

The requests need no privileges and start no scan. Only the network to which an interface is
connected is read.
"""

import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from collectors.application.readers.network.interfaces import SIGNALS_DBM
from collectors.shared.addresses import mac_text
from collectors.shared.linux.netlink import parse_attributes, unsigned, write_attribute
from collectors.shared.linux.netlink_socket import NETLINK_GENERIC, dump, open_netlink
from collectors.shared.text import decode_text

_GENERIC_HEADER: Final = struct.Struct("=BBxx")  # struct genlmsghdr: command, version
_U32: Final = struct.Struct("=I")

# linux/genetlink.h
_ID_CONTROL: Final = 16
_GET_FAMILY, _NEW_FAMILY = 3, 1
_FAMILY_ID, _FAMILY_NAME = 1, 2
_NAME: Final = b"nl80211\0"

# linux/nl80211.h
_GET_INTERFACE, _NEW_INTERFACE, _GET_STATION, _NEW_STATION = 5, 7, 17, 19
_IFINDEX, _IFNAME, _IFTYPE, _MAC, _STATION, _FREQUENCY, _SSID = 3, 4, 5, 6, 21, 38, 52
_CLIENTS: Final = frozenset({2, 8})
"""Interface types that connect to an access point: station, and P2P client. For an interface of
another type, such as an access point, the kernel lists other users' devices as stations. They are
not read."""
_SIGNAL, _SENT_RATE = 7, 8
_RATE_16, _RATE_32 = 1, 5
_SSID_MAX_BYTES: Final = 32

Query = Callable[[int, bytes, int], list[bytes]]
"""Sends a dump request to the kernel. The arguments are the type and the body of the request, and
the type of the replies. Returns the bodies of the replies."""


@dataclass(frozen=True, slots=True)
class Interface:
    """A Wi-Fi interface. ``is_client`` is True if its type is one of `_CLIENTS`."""

    index: int
    name: str
    is_client: bool
    ssid: str | None
    frequency_mhz: int | None


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection to an access point, whose address is ``access_point``.

    ``rate_megabits`` is the rate at which this machine sends, in megabits per second.
    """

    access_point: str | None
    signal_dbm: int | None
    rate_megabits: float | None


WifiInterfaces = dict[str, tuple[Interface, Connection | None]]
"""The Wi-Fi interfaces by name. The connection is None if there is no access point."""


def read_wifi() -> WifiInterfaces:
    """Return all Wi-Fi interfaces. Raises OSError. Returns {} if the kernel has no nl80211."""
    with open_netlink(NETLINK_GENERIC) as connection:
        return wifi_of(partial(dump, connection))


def wifi_of(query: Query) -> WifiInterfaces:
    family = _family(query)
    if family is None:
        return {}
    bodies = query(family, _request(_GET_INTERFACE), family)
    interfaces = [entry for body in bodies if (entry := parse_interface(body)) is not None]
    return {
        interface.name: (interface, _connection(query, family, interface))
        for interface in interfaces
    }


def parse_interface(body: bytes) -> Interface | None:
    """Parse an NL80211_CMD_NEW_INTERFACE message. Returns None if it has no network interface."""
    attributes = _attributes(body, _NEW_INTERFACE)
    index, name = unsigned(attributes.get(_IFINDEX, b"")), attributes.get(_IFNAME, b"")
    text = decode_text(name.split(b"\0")[0])
    if not index or not text:
        return None
    return Interface(
        index,
        text,
        unsigned(attributes.get(_IFTYPE, b"")) in _CLIENTS,
        decode_text(attributes.get(_SSID, b"")[:_SSID_MAX_BYTES]) or None,
        unsigned(attributes.get(_FREQUENCY, b"")),
    )


def parse_station(body: bytes) -> Connection | None:
    """Parse an NL80211_CMD_NEW_STATION message of a client. The station is the access point."""
    attributes = _attributes(body, _NEW_STATION)
    if _MAC not in attributes:
        return None
    station = parse_attributes(attributes.get(_STATION, b""))
    raw = station.get(_SIGNAL, b"")
    signal = int.from_bytes(raw, "little", signed=True) if len(raw) == 1 else 0
    rate = parse_attributes(station.get(_SENT_RATE, b""))
    # The unit is 100 kbit/s. The older attribute has 16 bits and is missing for high rates.
    units = unsigned(rate.get(_RATE_32, b"")) or unsigned(rate.get(_RATE_16, b""))
    return Connection(
        mac_text(attributes[_MAC]),
        signal if signal in SIGNALS_DBM else None,
        units / 10 if units else None,
    )


def _family(query: Query) -> int | None:
    """Return the number that the kernel gave to nl80211 (GENL_ID_CTRL)."""
    for body in query(_ID_CONTROL, _request(_GET_FAMILY), _ID_CONTROL):
        attributes = _attributes(body, _NEW_FAMILY)
        if attributes.get(_FAMILY_NAME) == _NAME:
            return unsigned(attributes.get(_FAMILY_ID, b""))
    return None


def _connection(query: Query, family: int, interface: Interface) -> Connection | None:
    if not interface.is_client:
        return None
    index = write_attribute(_IFINDEX, _U32.pack(interface.index))
    with suppress(OSError):  # the interface was removed in the meantime
        for body in query(family, _request(_GET_STATION) + index, family):
            if (connection := parse_station(body)) is not None:
                return connection
    return None


def _request(command: int) -> bytes:
    return _GENERIC_HEADER.pack(command, 1)


def _attributes(body: bytes, command: int) -> dict[int, bytes]:
    """Return the attributes of a generic netlink message, or {} if it has another command."""
    if len(body) < _GENERIC_HEADER.size or body[0] != command:
        return {}
    return parse_attributes(body[_GENERIC_HEADER.size :])
