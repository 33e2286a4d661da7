"""Reads which name servers this machine uses, whether they answer, and its web proxy."""

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, getproxies_environment

from collectors.application.deadline import Deadline
from collectors.application.readers.name_servers import KEY, WAIT_S, answers_field
from collectors.application.source import Fields, absent, either, source, status_of, unsupported
from collectors.contract import Field
from collectors.shared.addresses import is_loopback
from collectors.shared.sysfs import read_text
from collectors.shared.system_proxy import HAS_SETTINGS, script_address

SERVERS_MAX: Final = 16
PROXY_KEYS: Final = ("network.proxy", "network.proxyScript")
SYSTEM_SETTINGS: Final = "system settings"
RESOLVER_S: Final = WAIT_S + 2.0
_STUB_TARGET: Final = "run/systemd/resolve/resolv.conf"

ReadServers = Callable[[Deadline], tuple[str, ...]]


@source(
    "resolver",
    "resolv.conf",
    "network.dnsServers",
    KEY,
    *PROXY_KEYS,
    deadline_s=RESOLVER_S,
)
def read_resolver(
    deadline: Deadline, servers: ReadServers, service_url: str, origin: str = "resolv.conf"
) -> Fields:
    known = servers(deadline)
    return (
        servers_field(known, origin),
        answers_field(known, service_url, deadline),
        *proxy_fields(),
    )


def servers_field(servers: Iterable[str], origin: str) -> Field:
    """Return the name servers, without IPv6 zones."""
    addresses = tuple(dict.fromkeys(each.partition("%")[0] for each in servers))
    reason = "no name server is set"
    return either("network.dnsServers", origin, addresses or None, reason, "not-applicable")


def proxy_fields() -> Fields:
    """Return the proxy that programs of the agent's account use, and the script (PAC)."""
    environment = getproxies_environment()
    source = "environment" if _web_proxy(environment) else SYSTEM_SETTINGS
    return proxy_field(getproxies(), source), _script_field()


def _script_field() -> Field:
    key = "network.proxyScript"
    if not HAS_SETTINGS:
        return unsupported(key, SYSTEM_SETTINGS, "this operating system has no such setting")
    try:
        address = script_address()
    except (OSError, ValueError) as error:
        return absent(key, SYSTEM_SETTINGS, *status_of(error))
    return either(key, SYSTEM_SETTINGS, address, "no script is set", "not-applicable")


def proxy_field(proxies: Mapping[str, str], origin: str) -> Field:
    """Return the proxy for the web as ``host:port``, without the user's name and password."""
    address, reason = host_and_port(_web_proxy(proxies)), "no proxy is set"
    return either("network.proxy", origin, address, reason, "not-applicable")


def _web_proxy(proxies: Mapping[str, str]) -> str:
    return next((proxies[s] for s in ("https", "http", "all") if proxies.get(s)), "")


def host_and_port(url: str) -> str | None:
    """Return ``host:port`` of a proxy's URL, or None if it has no host.

    The URL may have no scheme.
    """
    try:
        # The URL of a proxy has no path, so the text before the last `@` is user and password.
        address = url.rpartition("@")[2]
        parts = urlsplit(address if "://" in address else f"http://{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host:
        return None
    return f"{host}:{port}" if port else host


def servers_of(root: Path, _: Deadline) -> tuple[str, ...]:
    """Return the name servers of resolv.conf(5).

    If it lists only loopback addresses, it names the stub of systemd-resolved. Then return the name
    servers that the stub uses.
    """
    servers = parse_resolv_conf(_read(root / "etc/resolv.conf"))
    if servers and all(is_loopback(server) for server in servers):
        return parse_resolv_conf(_read(root / _STUB_TARGET)) or servers
    return servers


def parse_resolv_conf(text: str) -> tuple[str, ...]:
    lines = (line.split() for line in text.splitlines())
    return name_servers(words[1] for words in lines if words[:1] == ["nameserver"] and words[1:])


def name_servers(written: Iterable[str]) -> tuple[str, ...]:
    """Return each IP address once, with its IPv6 zone, and at most `SERVERS_MAX` addresses.

    Texts that are not IP addresses are left out.
    """
    servers: dict[str, None] = {}
    for text in written:
        with suppress(ValueError):
            servers[str(ipaddress.ip_address(text))] = None
    return tuple(servers)[:SERVERS_MAX]


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        return ""
