"""Printers named in the agent's own configuration."""

import ipaddress

from collectors.contract import ConfiguredPrinter
from collectors.network.matching.identity import normal_mac
from collectors.network.observations import KnownPrinter
from collectors.network.printers.userinfo import without_userinfo
from collectors.shared.text import clean_text

_PORT_MAX = 65535


def configured_printer(entry: ConfiguredPrinter) -> KnownPrinter:
    """Read a ``[[printers]]`` entry: its address is host:port, a host, a MAC or a device path."""
    address = clean_text(entry.address or "") or None
    if address and entry.transport == "network":
        address = without_userinfo(address) or None
    mac = normal_mac(address)
    host, port = None, None
    if address and mac is None and entry.transport == "network":
        host, port = split_host_port(address)
    return KnownPrinter(
        id=clean_text(entry.id, 1024),
        name=clean_text(entry.name),
        transport=entry.transport,
        source="config",
        address=address,
        host=host,
        port=port,
        mac_address=mac,
    )


def split_host_port(text: str) -> tuple[str | None, int | None]:
    """Split ``host:port``, ``host``, ``[v6]:port`` or a bare IPv6 address."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host or None, _port(rest.removeprefix(":"))
    if _is_ipv6(text) or ":" not in text:
        return text, None
    host, _, port = text.rpartition(":")
    return host or None, _port(port)


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


def _port(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_PORT_MAX))
    return int(text) if is_number and 0 < int(text) <= _PORT_MAX else None
