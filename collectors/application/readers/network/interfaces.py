"""Reads the network interfaces: state, addresses, counters, DHCP lease and Wi-Fi network."""

import ipaddress
import math
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import psutil

from collectors.application.deadline import Deadline
from collectors.application.readers.resources import PSUTIL
from collectors.application.source import SYSTEM, Fields, Origin, Reading, left_out, source
from collectors.contract import FieldStatus, InterfaceFields
from collectors.shared.host.link_stats import read_link_stats
from collectors.shared.text import clean_text

INTERFACES_MAX: Final = 64
ADDRESSES_MAX: Final = 32

_DUPLEX: Final[Mapping[int, str]] = {psutil.NIC_DUPLEX_FULL: "full", psutil.NIC_DUPLEX_HALF: "half"}
_COUNTERS: Final = (
    ("interface.receivedBytes", "bytes_recv"),
    ("interface.sentBytes", "bytes_sent"),
    ("interface.receivedPackets", "packets_recv"),
    ("interface.sentPackets", "packets_sent"),
    ("interface.receiveErrors", "errin"),
    ("interface.sendErrors", "errout"),
    ("interface.receiveDrops", "dropin"),
    ("interface.sendDrops", "dropout"),
)

DHCP_CLIENT: Final = Origin("DHCP client")
LEASE_KEYS: Final = (
    "interface.dhcpServer",
    "interface.dhcpLeaseObtainedAt",
    "interface.dhcpLeaseExpiresAt",
)
ASSIGNMENT_KEY: Final = "interface.ipv4Assignment"
DHCP_KEYS: Final = (ASSIGNMENT_KEY, *LEASE_KEYS)
INFINITE: Final = 0xFFFFFFFF
"""The duration of a lease that does not expire (RFC 2131, section 3.3)."""
WIFI: Final = (
    ("interface.wifiSsid", "ssid"),
    ("interface.wifiSignalDbm", "signal_dbm"),
    ("interface.wifiAccessPoint", "access_point"),
    ("interface.wifiBand", "band"),
    ("interface.wifiChannel", "channel"),
    ("interface.wifiRateMegabitsPerSecond", "rate_megabits"),
)
"""The keys of the facts about a Wi-Fi network, with the names of their values in `Wireless`."""
NOT_CONNECTED: Final = "the interface is not connected to a network"
SIGNALS_DBM: Final = range(-127, 0)
"""Possible signals. If the signal is unknown, drivers report 0, or a value of -128 or less."""

_BANDS: Final = (
    # Band, its frequencies in MHz, and the frequency of its channel 0 (IEEE 802.11, annex E).
    ("2.4 GHz", range(2412, 2473), 2407),
    ("5 GHz", range(5160, 5896), 5000),
    ("6 GHz", range(5955, 7116), 5950),
)
_CHANNEL_14_MHZ: Final = 2484
_CHANNEL_STEP_MHZ: Final = 5


@dataclass(frozen=True, slots=True)
class Dhcp:
    """What is known about DHCP at an interface.

    Args:
        is_used: Whether DHCP assigned its IPv4 address; None if this is unknown.
        server: The address of the DHCP server.
        obtained_at: When the lease was obtained or last renewed, in seconds since the epoch.
        expires_at: When the lease expires, in seconds since the epoch; infinite if it does not.
        status: The status of the values that are None, explained by ``reason``.
    """

    is_used: bool | None = None
    server: str | None = None
    obtained_at: float | None = None
    expires_at: float | None = None
    status: FieldStatus = "unsupported"
    reason: str = "the system does not report it"


@dataclass(frozen=True, slots=True)
class Wireless:
    """The Wi-Fi network of an interface. ``status`` and ``reason`` explain why a value is None.

    ``access_point`` is the BSSID. ``rate_megabits`` is the rate at which the interface sends.
    """

    ssid: str | None = None
    signal_dbm: int | None = None
    access_point: str | None = None
    band: str | None = None
    channel: int | None = None
    rate_megabits: float | None = None
    status: FieldStatus = "unsupported"
    reason: str = "the system does not report it"


@dataclass(frozen=True, slots=True)
class Links:
    """The facts that each platform reads differently, by interface name.

    ``default_routes`` are the interfaces with a default route; None if this is unknown.
    """

    types: Mapping[str, str]
    wireless: Mapping[str, Wireless]
    default_routes: frozenset[str] | None = None
    dhcp: Mapping[str, Dhcp] = field(default_factory=dict)


ReadLinks = Callable[[tuple[str, ...], Deadline], Links]


@source("interfaces", PSUTIL, "network.interfaceCount")
def read_interfaces(deadline: Deadline, read_links: ReadLinks) -> Reading:
    stats = read_link_stats()
    addresses = psutil.net_if_addrs()
    counters = psutil.net_io_counters(pernic=True)
    names = tuple(sorted(stats))[:INTERFACES_MAX]
    # One entry of each interface is its MAC. The others are IP addresses.
    cut_count = sum(
        max(0, len(address_list) - ADDRESSES_MAX - 1) for address_list in addresses.values()
    )
    links = read_links(names, deadline)
    entries = tuple(
        InterfaceFields(
            clean_text(name, 64),
            (
                *_state(name, stats[name], links),
                *address_fields(addresses.get(name, [])),
                *dhcp_fields(links.dhcp.get(name, Dhcp()), address_texts(addresses.get(name, []))),
                *_counters(counters.get(name)),
                *wireless_fields(links.wireless.get(name)),
            ),
        )
        for name in names
    )
    return Reading(
        fields=(PSUTIL.available("network.interfaceCount", len(stats)),),
        interfaces=entries,
        limitations=(
            *left_out(len(stats), INTERFACES_MAX, "interfaces"),
            *left_out(ADDRESSES_MAX + cut_count, ADDRESSES_MAX, "addresses of interfaces"),
        ),
    )


def _state(name: str, stats: "psutil._ntp.snicstats", links: Links) -> Fields:
    not_reported = "the driver does not report it"
    # Drivers report 0 and 65535 for an unknown speed.
    speed = stats.speed if 0 < stats.speed < 2**31 and stats.speed != 65535 else None
    routes = links.default_routes
    has_route = None if routes is None else name in routes
    yield SYSTEM.fact("interface.type", links.types.get(name), "the system does not report it")
    yield PSUTIL.available("interface.up", stats.isup)
    yield PSUTIL.fact("interface.speedMegabitsPerSecond", speed, not_reported)
    yield PSUTIL.fact("interface.duplex", _DUPLEX.get(stats.duplex), not_reported)
    yield PSUTIL.fact("interface.mtu", stats.mtu or None, not_reported)
    yield SYSTEM.fact("interface.defaultRoute", has_route, "the system does not report it")


def address_fields(addresses: "list[psutil._ntp.snicaddr]") -> Fields:
    """Yield the MAC address, and the IP addresses with their prefix lengths."""
    macs = [entry.address for entry in addresses if entry.family == psutil.AF_LINK]
    mac = macs[0].lower().replace("-", ":") if macs else None
    known_mac = None if mac == "00:00:00:00:00:00" else mac
    yield PSUTIL.fact("interface.macAddress", known_mac, "it has no MAC", "not-applicable")
    yield PSUTIL.available("interface.addresses", address_texts(addresses))


def address_texts(addresses: "list[psutil._ntp.snicaddr]") -> tuple[str, ...]:
    """Return the IP addresses with their prefix lengths, at most `ADDRESSES_MAX`."""
    texts = (
        with_prefix(entry.address, entry.netmask)
        for entry in addresses
        if entry.family in {socket.AF_INET, socket.AF_INET6}
    )
    return tuple(text for text in texts if text is not None)[:ADDRESSES_MAX]


def with_prefix(address: str, netmask: str | None) -> str | None:
    """Return ``192.0.2.1/24`` for ``192.0.2.1`` and ``255.255.255.0``."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
        if netmask is None:
            return str(ip)
        prefix = int(ipaddress.ip_address(netmask)).bit_count()
    except ValueError:
        return None
    return f"{ip}/{prefix}"


def _counters(counters: "psutil._ntp.snetio | None") -> Fields:
    return tuple(
        PSUTIL.fact(key, getattr(counters, name, None), "the system does not count it")
        for key, name in _COUNTERS
    )


def dhcp_fields(dhcp: Dhcp, addresses: Iterable[str]) -> Fields:
    """Return the fields of `DHCP_KEYS`. ``addresses`` are the IP addresses of the interface."""
    own_addresses = [ipaddress.ip_interface(text).ip for text in addresses]
    ipv4 = [address for address in own_addresses if address.version == 4]
    if not ipv4:
        return DHCP_CLIENT.all_absent(DHCP_KEYS, "not-applicable", "it has no IPv4 address")
    if all(address.is_loopback for address in ipv4):
        return DHCP_CLIENT.all_absent(DHCP_KEYS, "not-applicable", "it is the loopback interface")
    if all(address.is_link_local for address in ipv4):
        return _without_lease("link-local")
    if dhcp.is_used is None:
        return DHCP_CLIENT.all_absent(DHCP_KEYS, dhcp.status, dhcp.reason)
    if not dhcp.is_used:
        return _without_lease("static")
    server, obtained, expires = LEASE_KEYS
    return (
        DHCP_CLIENT.available(ASSIGNMENT_KEY, "DHCP"),
        DHCP_CLIENT.fact(server, dhcp.server, dhcp.reason, dhcp.status),
        DHCP_CLIENT.fact(obtained, _timestamp(dhcp.obtained_at), dhcp.reason, dhcp.status),
        DHCP_CLIENT.not_applicable(expires, "the lease does not expire")
        if dhcp.expires_at == math.inf
        else DHCP_CLIENT.fact(expires, _timestamp(dhcp.expires_at), dhcp.reason, dhcp.status),
    )


def _without_lease(assignment: str) -> Fields:
    reason = "no DHCP server assigned its address"
    return (
        DHCP_CLIENT.available(ASSIGNMENT_KEY, assignment),
        *DHCP_CLIENT.all_absent(LEASE_KEYS, "not-applicable", reason),
    )


def _timestamp(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return None


def wireless_fields(wireless: Wireless | None) -> Fields:
    if wireless is None:
        return SYSTEM.all_absent((key for key, _ in WIFI), "not-applicable", "it is not Wi-Fi")
    return tuple(
        SYSTEM.fact(key, getattr(wireless, name), wireless.reason, wireless.status)
        for key, name in WIFI
    )


def band_and_channel(frequency_mhz: int | None) -> tuple[str | None, int | None]:
    """Return the band and channel of a centre frequency. Both are None if no band contains it."""
    if frequency_mhz == _CHANNEL_14_MHZ:
        return "2.4 GHz", 14
    for band, frequencies, start in _BANDS:
        if frequency_mhz is not None and frequency_mhz in frequencies:
            return band, (frequency_mhz - start) // _CHANNEL_STEP_MHZ
    return None, None
