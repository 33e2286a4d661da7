"""Reads which name servers this machine uses, whether they answer, and its web proxy."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies

from collectors.application.deadline import Deadline
from collectors.application.readers.name_servers import KEY, WAIT_S, answers_field
from collectors.application.source import Fields, either, source
from collectors.contract import Field
from collectors.shared.resolv_conf import read_name_servers

RESOLVER_S: Final = WAIT_S + 2.0

ReadServers = Callable[[Deadline], tuple[str, ...]]


@source(
    "resolver", "resolv.conf", "network.dnsServers", KEY, "network.proxy", deadline_s=RESOLVER_S
)
def read_resolver(
    deadline: Deadline, servers: ReadServers, service_url: str, origin: str = "resolv.conf"
) -> Fields:
    known = servers(deadline)
    return (
        servers_field(known, origin),
        answers_field(known, service_url, deadline),
        proxy_field(getproxies()),
    )


def servers_field(servers: Iterable[str], origin: str) -> Field:
    """Return the name servers, without IPv6 zones."""
    addresses = tuple(dict.fromkeys(each.partition("%")[0] for each in servers))
    reason = "no name server is set"
    return either("network.dnsServers", origin, addresses or None, reason, "not-applicable")


def proxy_field(proxies: dict[str, str]) -> Field:
    """Return the proxy for the web as ``host:port``, without the user's name and password."""
    proxy = next((proxies[s] for s in ("https", "http", "all") if proxies.get(s)), "")
    reason = "no proxy is set"
    return either(
        "network.proxy", "system settings", host_and_port(proxy), reason, "not-applicable"
    )


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
    return read_name_servers(root)
