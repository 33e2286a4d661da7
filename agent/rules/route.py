"""The route to the service: direct or through a proxy, and the setting that defines it.

Environment variables are read as the daemon's HTTP library reads them. A variable in lower case
takes precedence over the same variable in upper case. NO_PROXY lists hosts, domains, addresses and
subnets, or is `*`. A service on this machine is always called directly: it may use http, and over
http a proxy could read the API key.
"""

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from agent.wire.addresses import is_loopback, join_host_port

_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy. ``authorization`` is the value of the Proxy-Authorization header, if it has one."""

    scheme: str
    host: str
    port: int
    authorization: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"{self.scheme}://{join_host_port(self.host, self.port)}"


@dataclass(frozen=True, slots=True)
class Route:
    """A route. ``why`` is the setting that names the proxy, or the reason why none is used."""

    is_tls: bool
    host: str
    port: int
    path: str
    proxy: Proxy | None
    why: str

    @property
    def authority(self) -> str:
        """The service's host and port (RFC 3986, section 3.2)."""
        return join_host_port(self.host, self.port)

    @property
    def first_host(self) -> str:
        """The host to connect to: the proxy, or the service if no proxy is used."""
        return self.proxy.host if self.proxy else self.host

    @property
    def first_port(self) -> int:
        return self.proxy.port if self.proxy else self.port


def route_of(
    base_url: str, configured: str, environment: Mapping[str, str], system: Mapping[str, str]
) -> Route:
    """Return the route to ``base_url``.

    Args:
        configured: The proxy of the configuration; "" if it has none.
        environment: The environment variables.
        system: The proxies of the operating system's settings, by scheme.

    Raises:
        ValueError: The URL of a proxy is invalid.
    """
    parts = urlsplit(base_url)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    url, why = _proxy_of(parts.scheme, host, configured, environment, system)
    proxy = _proxy(url, why) if url else None
    return Route(parts.scheme == "https", host, port, parts.path, proxy, why)


def _proxy_of(
    scheme: str,
    host: str,
    configured: str,
    environment: Mapping[str, str],
    system: Mapping[str, str],
) -> tuple[str, str]:
    """Return the URL of the proxy ("" if none is used), and the reason."""
    if is_loopback(host):
        return "", "no proxy is used for a service on this machine"
    if configured:
        return configured, "service.proxy"
    for name in (f"{scheme}_proxy", "all_proxy"):
        for variable in (name, name.upper()):
            if url := environment.get(variable):
                no_proxy = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
                if rule := _matching_entry(host, no_proxy):
                    return "", f"NO_PROXY names {rule}"
                return url, variable
    if url := system.get(scheme):
        return url, "the operating system's settings"
    return "", "no proxy is configured"


def _matching_entry(host: str, no_proxy: str) -> str | None:
    """Return the entry of NO_PROXY that covers ``host``; None if none does."""
    for entry in (text.strip().lower() for text in no_proxy.split(",")):
        name = entry.removeprefix("*").lstrip(".")
        if entry == "*" or (name and (host == name or host.endswith(f".{name}"))):
            return entry
        if "/" in entry and _is_within(host, entry):
            return entry
    return None


def _is_within(host: str, subnet: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(subnet, strict=False)
    except ValueError:
        return False


def _proxy(url: str, named_by: str) -> Proxy:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if not parts.hostname:
        raise ValueError(f"the proxy of {named_by} is not a URL such as http://proxy:3128")
    port = parts.port or (
        1080 if parts.scheme.startswith("socks") else _PORTS.get(parts.scheme, 80)
    )
    authorization = None
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(pair.encode()).decode()
    return Proxy(parts.scheme, parts.hostname, port, authorization)
