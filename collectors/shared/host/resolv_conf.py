"""Reads which name servers this machine uses (resolv.conf(5))."""

import ipaddress
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

SERVERS_MAX: Final = 16
_FILE_MAX_BYTES: Final = 65_536
_RESOLVED_FILE: Final = "run/systemd/resolve/resolv.conf"
"""Lists the name servers to which the local stub resolver of systemd-resolved sends queries."""


def read_name_servers(root: Path = Path("/")) -> tuple[str, ...]:
    """Return the name servers of resolv.conf(5), or () if the file does not exist.

    If the file lists only loopback addresses, it usually names the local stub resolver of
    systemd-resolved. Then the name servers that systemd-resolved uses are returned, if any are
    listed in its own file. Raises OSError if a file exists but cannot be read.
    """
    servers = parse_resolv_conf(_read(root / "etc/resolv.conf"))
    if servers and all(ipaddress.ip_address(server).is_loopback for server in servers):
        return parse_resolv_conf(_read(root / _RESOLVED_FILE)) or servers
    return servers


def parse_resolv_conf(text: str) -> tuple[str, ...]:
    lines = (line.split() for line in text.splitlines())
    return name_servers(words[1] for words in lines if words[:1] == ["nameserver"] and words[1:])


def name_servers(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each IP address once, with its IPv6 zone, and at most `SERVERS_MAX` addresses.

    Texts that are not IP addresses are left out.
    """
    servers: dict[str, None] = {}
    for text in texts:
        with suppress(ValueError):
            servers[str(ipaddress.ip_address(text))] = None
    return tuple(servers)[:SERVERS_MAX]


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_FILE_MAX_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
