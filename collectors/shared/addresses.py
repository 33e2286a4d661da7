"""Parses and classifies addresses: ``host:port``, MACs, loopback, private and scannable ranges."""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the idle daemon imports this module, but not collectors.contract
    from collectors.contract import InterfaceAddress

Network = IPv4Network | IPv6Network

LINK_LOCAL = IPv4Network("169.254.0.0/16")  # RFC 3927

OWN_RANGES = (
    IPv4Network("10.0.0.0/8"),  # RFC 1918
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.168.0.0/16"),
    LINK_LOCAL,
)
"""A network of this machine in these ranges is scanned without being named in the configuration."""

SCANNABLE_RANGES = (
    *OWN_RANGES,
    IPv4Network("100.64.0.0/10"),  # RFC 6598
    IPv4Network("127.0.0.0/8"),
)
"""A subnet in the configuration must be in one of these ranges."""

_UNIQUE_LOCAL = IPv6Network("fc00::/7")  # RFC 4193

IPP_PORT = 631
RAW_PRINT_PORTS = range(9100, 9117)
PRINT_PORTS = (IPP_PORT, 9100, 515, *RAW_PRINT_PORTS[1:])
"""Ports for printing, the most useful one first: IPP also identifies the printer."""

_PORT_MAX = 65535
_MAC_BYTES = 6
_HEX_PAIR = r"[0-9a-fA-F]{2}"
_MAC = re.compile(rf"{_HEX_PAIR}([:-]){_HEX_PAIR}(?:\1{_HEX_PAIR}){{4}}")
_BARE_MAC = re.compile(r"[0-9a-fA-F]{12}")


def split_host_port(text: str) -> tuple[str | None, int | None]:
    """Split ``host:port``, ``host``, ``[v6]:port`` or a bare IPv6 address into host and port.

    A part that is missing or invalid is None.
    """
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host or None, _port(rest.removeprefix(":"))
    if text.count(":") != 1:
        return text or None, None
    host, _, port = text.partition(":")
    return host or None, _port(port)


def ipv4_host(text: str | None) -> str | None:
    """Return the IPv4 address in ``host:port`` or ``host``; None if the host is not one."""
    host, _ = split_host_port(text or "")
    try:
        return str(IPv4Address((host or "").strip()))
    except ValueError:
        return None


def join_host_port(host: str, port: int | None) -> str:
    """Return ``192.168.1.50:9100`` or ``[fd00::50]:9100``; without a port, only the host."""
    literal = f"[{host}]" if ":" in host else host
    return literal if port is None else f"{literal}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether an IP address or the host of a URL is this machine's loopback."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_mdns_name(host: str) -> bool:
    """Return whether a host name is resolved by multicast DNS (RFC 6762, section 3)."""
    return host.lower().rstrip(".").endswith(".local")


def is_private(address: str) -> bool:
    """Return whether an address is private: IPv4 in a scannable range except loopback, or IPv6
    unique local or link-local."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv4Address):
        return not parsed.is_loopback and any(parsed in known for known in SCANNABLE_RANGES)
    return parsed.is_link_local or parsed in _UNIQUE_LOCAL


def mac_text(raw: bytes) -> str | None:
    """Return six bytes as ``aa:bb:cc:dd:ee:ff``; None for another length or all zeros."""
    return raw.hex(":") if len(raw) == _MAC_BYTES and any(raw) else None


def plain_address(value: str | bytes) -> str | None:
    """Return an address in its usual text form, or None if ``value`` is not an address."""
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        return None


def normal_mac(text: str | None) -> str | None:
    """Return a MAC as ``aa:bb:cc:dd:ee:ff``. ``text`` may have colons, dashes or no separators.

    Returns None if ``text`` is not a MAC, or if all digits are the same (``00:00:00:00:00:00``).
    """
    mac = (text or "").strip()
    if not (_MAC.fullmatch(mac) or _BARE_MAC.fullmatch(mac)):
        return None
    digits = mac.replace(":", "").replace("-", "").lower()
    if len({*digits}) < 2:
        return None
    return ":".join(digits[i : i + 2] for i in range(0, 12, 2))


def numeric_order(address: str) -> tuple[int, int, str]:
    """Return a sort key, so that all reports have the same order: IPv4 first, then by number."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return (9, 0, address)  # after all addresses
    return (parsed.version, int(parsed), address)


def network_of(address: "InterfaceAddress") -> Network:
    """Return the network that an interface's address is in."""
    return ipaddress.ip_network(f"{address.address}/{address.prefix_length}", strict=False)


def is_outside(address: str, networks: Sequence[Network]) -> bool:
    """Return whether an IPv4 address is outside of all ``networks``.

    Returns False for an IPv6 address, and if ``networks`` is empty.
    """
    is_ipv4 = bool(address) and ":" not in address
    return bool(networks) and is_ipv4 and not is_in_networks(address, networks)


def is_in_networks(address: str, networks: Iterable[Network]) -> bool:
    """Return whether an IP address is in one of the networks. A scope id is ignored."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    return any(parsed in network for network in networks)


def parse_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return the networks in ``texts``; an address is a network, too. Ignores invalid texts."""
    networks: list[Network] = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            continue
    return tuple(networks)


def _port(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_PORT_MAX))
    return int(text) if is_number and 0 < int(text) <= _PORT_MAX else None
