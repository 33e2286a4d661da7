"""Reads which name servers this machine uses, whether they answer, and its web proxy."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, getproxies_environment

from collectors.application.deadline import Deadline
from collectors.application.readers.network.name_servers import ANSWERS_KEY, WAIT_S, answers_field
from collectors.application.source import Fields, Origin, source, status_of
from collectors.contract import Field
from collectors.shared.host.resolv_conf import read_name_servers
from collectors.shared.system_proxy import HAS_SETTINGS, script_address

PROXY_KEYS: Final = ("network.proxy", "network.proxyScript")
RESOLV_CONF: Final = Origin("resolv.conf")
SYSTEM_SETTINGS: Final = Origin("system settings")
RESOLVER_S: Final = WAIT_S + 2.0

ReadServers = Callable[[Deadline], tuple[str, ...]]


@source(
    "resolver",
    RESOLV_CONF,
    "network.dnsServers",
    ANSWERS_KEY,
    *PROXY_KEYS,
    limit_s=RESOLVER_S,
)
def read_resolver(
    deadline: Deadline, servers: ReadServers, service_url: str, origin: Origin = RESOLV_CONF
) -> Fields:
    name_servers = servers(deadline)
    yield servers_field(name_servers, origin)
    yield answers_field(name_servers, service_url, deadline)
    yield from proxy_fields()


def servers_field(servers: Iterable[str], origin: Origin) -> Field:
    """Return the name servers, without IPv6 zones."""
    addresses = tuple(dict.fromkeys(server.partition("%")[0] for server in servers))
    reason = "no name server is set"
    return origin.fact("network.dnsServers", addresses or None, reason, "not-applicable")


def proxy_fields() -> Fields:
    """Return the web proxy that programs of the agent's account use, and the proxy script (PAC)."""
    environment = getproxies_environment()
    origin = Origin("environment") if _web_proxy(environment) else SYSTEM_SETTINGS
    return proxy_field(getproxies(), origin), _script_field()


def _script_field() -> Field:
    key = "network.proxyScript"
    if not HAS_SETTINGS:
        return SYSTEM_SETTINGS.unsupported(key, "this operating system has no such setting")
    try:
        address = script_address()
    except (OSError, ValueError) as error:
        return SYSTEM_SETTINGS.absent(key, *status_of(error))
    return SYSTEM_SETTINGS.fact(key, address, "no script is set", "not-applicable")


def proxy_field(proxies: Mapping[str, str], origin: Origin) -> Field:
    """Return the proxy for the web as ``host:port``, without the user's name and password."""
    address, reason = host_and_port(_web_proxy(proxies)), "no proxy is set"
    return origin.fact("network.proxy", address, reason, "not-applicable")


def _web_proxy(proxies: Mapping[str, str]) -> str:
    return next((proxies[s] for s in ("https", "http", "all") if proxies.get(s)), "")


def host_and_port(url: str) -> str | None:
    """Return ``host:port`` of a proxy's URL, or None if it has no host.

    The URL may have no scheme.
    """
    try:
        # The URL of a proxy has no path in which an `@` could occur. So the last `@` ends the user
        # name and password.
        address = url.rpartition("@")[2]
        parts = urlsplit(address if "://" in address else f"http://{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host:
        return None
    return f"{host}:{port}" if port else host


def read_servers(root: Path, _: Deadline) -> tuple[str, ...]:
    return read_name_servers(root)
