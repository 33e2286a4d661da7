"""The most likely kind of a host, from its services and how it was discovered.

The kind follows from the first line of this list for which there is evidence:

1. The host is this machine, or the gateway.
2. The host shares the queue of a printer that is a different device: it is a computer.
3. A print queue of this machine was matched to the host: it is a printer.
4. The host announces a model or a role (``X (speaker)``), or services (DNS-SD types, RFC 6763).
5. The title of its web page reveals the kind.
6. Its open ports reveal the kind. If they only show a server, the host name takes precedence.
7. Its host name reveals the kind.

A web server alone is no evidence, because most devices have one.
"""

import re
from collections.abc import Collection, Iterable
from typing import Final

from agent.presentation.hosts import evidence
from agent.presentation.hosts.evidence import HostKind, Patterns
from agent.presentation.hosts.services import is_port_name
from agent.wire.payloads.network import Endpoint, MapHost

SHARED_QUEUE: Final = "shared queue"
"""The role of a print queue that a computer shares on the network."""
_ROLE: Final = re.compile(r"(?:(.*) \()?([a-z ]+)\)?", re.DOTALL)


def kind_of(
    host: MapHost, endpoints: Iterable[Endpoint] = (), *, is_matched: bool, is_gateway: bool
) -> HostKind:
    """Return the kind of a host.

    Args:
        is_matched: Whether a printer of this machine was matched to the host.
    """
    host_endpoints = tuple(endpoints)
    if "local" in host.sources:
        return "machine"
    if is_gateway or "gateway" in host.sources:
        return "router"
    # The endpoints of matched printers, or else all endpoints that print.
    print_endpoints = [e for e in host_endpoints if e.matched_printer_ids] or [
        e for e in host_endpoints if _types(host, e.port) & evidence.PRINT_TYPES
    ]
    if print_endpoints and all(_role(endpoint) == SHARED_QUEUE for endpoint in print_endpoints):
        return "server"
    if is_matched:
        return "printer"
    by_name, by_port = _by_pattern(evidence.NAMES, (host.hostname or "",)), _by_port(host)
    return (
        _by_announcement(host, host_endpoints)
        or _by_pattern(
            evidence.PAGES, (e.label for e in host_endpoints if "mdns" not in e.discovered_by)
        )
        or (by_name if by_port == "server" else None)
        or by_port
        or by_name
        or "unknown"
    )


def descriptive_title(endpoints: Iterable[Endpoint]) -> str:
    """Return the title of a web page that reveals the kind of the host; "" if none does."""
    labels = (e.label for e in endpoints if "mdns" not in e.discovered_by)
    titles = (label for label in labels if not is_port_name(label))
    return next((label for label in titles if _by_pattern(evidence.PAGES, (label,))), "")


def split_role(model: str) -> tuple[str, str]:
    """Split ``X (speaker)`` into model and role. ``speaker`` alone is a role without a model."""
    match = _ROLE.fullmatch(model)
    return (match[1] or "", match[2]) if match else (model, "")


def _by_announcement(host: MapHost, endpoints: Collection[Endpoint]) -> HostKind | None:
    """Return the kind by announced models, roles and types of services."""
    types = _types(host)
    if types & evidence.PRINT_TYPES:
        return "printer"
    models = [e.model for e in endpoints if e.model and _role(e) != SHARED_QUEUE]
    roles = {evidence.ROLES.get(_role(endpoint)) for endpoint in endpoints}
    return (
        _by_pattern(evidence.MODELS, models)
        or next((kind for kind in evidence.HOST_KINDS if kind in roles), None)
        or next((kind for kind, service_types in evidence.TYPES if types & service_types), None)
    )


def _role(endpoint: Endpoint) -> str:
    return split_role(endpoint.model or "")[1]


def _types(host: MapHost, port: int | None = None) -> set[str]:
    """Return the announced types of one port or of all ports: ``_ipp`` for ``_ipp._tcp.local``."""
    services = (s for s in host.services if port is None or s.port == port)
    return {(service.type or "").partition(".")[0].lower() for service in services}


def _by_port(host: MapHost) -> HostKind | None:
    ports = {service.port for service in host.services if service.reachable is not False}
    # On a host with SSH, port 9100 is no evidence of a printer: servers use it for Prometheus'
    # node_exporter.
    if evidence.SSH_PORT in ports and not ports & evidence.QUEUE_PORTS:
        ports -= evidence.RAW_PRINT_PORTS
    return next((kind for kind, known_ports in evidence.PORTS if ports & known_ports), None)


def _by_pattern(patterns: Patterns, texts: Iterable[str]) -> HostKind | None:
    texts = tuple(texts)
    return next((kind for kind, pattern in patterns if any(map(pattern.search, texts))), None)
