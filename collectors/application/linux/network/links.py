"""Reads the type of each interface, its Wi-Fi network and its DHCP lease.

The facts about the Wi-Fi network come from nl80211. Kernels and drivers without nl80211 have the
wireless extensions (an ioctl and /proc/net/wireless), which have the SSID and the signal. If both
nl80211 and the wireless extensions lack the SSID, NetworkManager is queried for it. None of these
sources needs a privilege.
"""

import re
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from collectors.application.deadline import Deadline
from collectors.application.linux.network import nl80211
from collectors.application.linux.network.dhcp import read_dhcp
from collectors.application.readers.network.interfaces import (
    NOT_CONNECTED,
    Dhcp,
    Links,
    Wireless,
    band_and_channel,
)
from collectors.application.source import Unreadable
from collectors.application.system_bus import Objects, managed_objects
from collectors.shared.linux.wireless import parse_signals
from collectors.shared.sysfs import read_line, read_text, text_or_empty
from collectors.shared.text import clean_text, decode

_LOOPBACK: Final = "772"
_ETHERNET: Final = "1"
_TUNNELS: Final = frozenset({"65534", "768", "769", "776", "778", "512"})
"""ARPHRD_NONE, TUNNEL, TUNNEL6, SIT, IPGRE and PPP of linux/if_arp.h."""
_TYPES_WITHOUT_DHCP: Final = frozenset({"tunnel", "wwan"})
_WITHOUT_DHCP: Final = Dhcp(
    status="not-applicable", reason="a tunnel or mobile connection does not use DHCP"
)
_SIOCGIWESSID: Final = 0x8B1B
_SSID_MAX: Final = 32
_NM: Final = "org.freedesktop.NetworkManager"

ReadSsid = Callable[[str], str | None]
ReadNetworkManager = Callable[[], Objects]


def read_links(root: Path, names: tuple[str, ...], deadline: Deadline) -> Links:
    types = {name: link_type(root / "sys/class/net" / name) for name in names}
    wifi = tuple(name for name, kind in types.items() if kind == "wifi")
    objects = cache(lambda: query_network_manager(deadline))
    wireless = read_wireless(root, wifi, objects) if wifi else {}
    dhcp = {
        name: _WITHOUT_DHCP
        if settings.is_used is False and types[name] in _TYPES_WITHOUT_DHCP
        else settings
        for name, settings in read_dhcp(root, names, objects).items()
    }
    return Links(types, wireless, default_routes(root / "proc/net"), dhcp)


def default_routes(directory: Path) -> frozenset[str] | None:
    """Return the interfaces with a default route, from /proc/net/route and ipv6_route (proc(5)).

    Returns None if neither file can be read.
    """
    ipv4, ipv6 = _lines(directory / "route"), _lines(directory / "ipv6_route")
    if ipv4 is None and ipv6 is None:
        return None
    # In route, column 1 is the name, column 2 the destination and column 8 the netmask. In
    # ipv6_route, column 1 is the destination, column 2 the prefix length and the last one the name.
    names = {row[0] for row in ipv4 or () if len(row) > 7 and row[1] == row[7] == "00000000"}
    rows = (row for row in ipv6 or () if len(row) > 9 and row[:2] == ["0" * 32, "00"])
    return frozenset(names | {row[-1] for row in rows if row[-1] != "lo"})


def _lines(path: Path) -> list[list[str]] | None:
    try:
        return [line.split() for line in read_text(path).splitlines()]
    except OSError:
        return None


def link_type(device: Path) -> str:
    """Return the type of the interface at /sys/class/net/NAME, as one word."""
    if (device / "wireless").exists() or (device / "phy80211").exists():
        return "wifi"
    number = read_line(device / "type")
    if number == _LOOPBACK:
        return "loopback"
    if number in _TUNNELS:
        return "tunnel"
    match = re.search(r"DEVTYPE=(\w{1,32})", read_line(device / "uevent") or "")
    if match:
        return match[1].lower()
    if number != _ETHERNET:
        return "other"
    return "ethernet" if (device / "device").exists() else "virtual"


def read_wireless(
    root: Path,
    names: tuple[str, ...],
    network_manager: ReadNetworkManager,
    read_ssid: ReadSsid | None = None,
    read_wifi: Callable[[], nl80211.WifiInterfaces] | None = None,
) -> Mapping[str, Wireless]:
    try:
        wifi = (read_wifi or nl80211.read_wifi)()
    except OSError:
        wifi = {}
    signals = parse_signals(text_or_empty(root / "proc/net/wireless"))
    wireless_by_name = {}
    for name in names:
        wireless = wireless_of(*wifi[name]) if name in wifi else Wireless()
        # Other sources may have what nl80211 does not report.
        if wireless.status == "unsupported":
            wireless = replace(
                wireless,
                ssid=wireless.ssid
                or (read_ssid or ssid_by_ioctl)(name)
                or parse_network_manager(network_manager()).get(name),
                signal_dbm=wireless.signal_dbm or signals.get(name),
            )
        wireless_by_name[name] = wireless
    return wireless_by_name


def wireless_of(interface: nl80211.Interface, connection: nl80211.Connection | None) -> Wireless:
    if not interface.is_client:
        reason = "the interface is not a client of a network"
        return Wireless(status="not-applicable", reason=reason)
    if connection is None:
        return Wireless(status="not-applicable", reason=NOT_CONNECTED)
    band, channel = band_and_channel(interface.frequency_mhz)
    return Wireless(
        interface.ssid,
        connection.signal_dbm,
        connection.access_point,
        band,
        channel,
        connection.rate_megabits,
        reason="the driver does not report it",
    )


def parse_network_manager(objects: Objects) -> dict[str, str]:
    """Return the SSID of each Wi-Fi device, from NetworkManager's objects."""
    names = {}
    for interfaces in objects.values():
        device = interfaces.get(f"{_NM}.Device", {}).get("Interface")
        point = interfaces.get(f"{_NM}.Device.Wireless", {}).get("ActiveAccessPoint")
        ssid = objects.get(str(point), {}).get(f"{_NM}.AccessPoint", {}).get("Ssid")
        if isinstance(device, str) and (text := _ssid_text(ssid)):
            names[device] = text
    return names


def query_network_manager(deadline: Deadline) -> Objects:
    """Return NetworkManager's objects, or {} if it does not run or does not answer."""
    try:
        return managed_objects(_NM, "/org/freedesktop", deadline.sooner(1.0))
    except (Unreadable, OSError, ValueError):
        return {}


def ssid_by_ioctl(name: str) -> str | None:
    """Return the SSID of an interface (SIOCGIWESSID of wireless(7)), or None if it is unknown."""
    import array  # imported here, because only machines with Wi-Fi need these modules
    import fcntl

    buffer = array.array("B", bytes(_SSID_MAX + 1))
    address, _ = buffer.buffer_info()
    request = struct.pack("16sPHH", name.encode()[:15], address, _SSID_MAX, 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        try:
            answer = fcntl.ioctl(control, _SIOCGIWESSID, request)
        except OSError:
            return None
    length = struct.unpack("16sPHH", answer)[2]
    return clean_text(decode(buffer.tobytes()[: min(length, _SSID_MAX)]), _SSID_MAX) or None


def _ssid_text(value: Any) -> str | None:
    if not isinstance(value, list) or len(value) > _SSID_MAX:
        return None
    if not all(isinstance(byte, int) and 0 <= byte <= 255 for byte in value):
        return None
    return clean_text(decode(bytes(value)), _SSID_MAX) or None
