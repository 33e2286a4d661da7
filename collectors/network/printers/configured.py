"""Reads the printers in the agent's configuration."""

from collectors.contract import ConfiguredPrinter
from collectors.network.observations import KnownPrinter
from collectors.network.printers.userinfo import without_userinfo
from collectors.shared.addresses import normal_mac, split_host_port
from collectors.shared.text import clean_text

_ID_MAX = 1024


def configured_printer(entry: ConfiguredPrinter) -> KnownPrinter:
    """Convert a ``[[printers]]`` entry. Its address is host:port, a host, a MAC or a path."""
    address = clean_text(entry.address or "") or None
    if address and entry.transport == "network":
        address = without_userinfo(address) or None
    mac = normal_mac(address)
    host, port = None, None
    if address and mac is None and entry.transport == "network":
        host, port = split_host_port(address)
    return KnownPrinter(
        id=clean_text(entry.id, _ID_MAX),
        name=clean_text(entry.name),
        transport=entry.transport,
        source="config",
        address=address,
        host=host,
        port=port,
        mac_address=mac,
    )
