"""Assembles the report's lists of hosts and endpoints from all observations. No I/O."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from collectors.contract import Endpoint, Host, Service
from collectors.network.fair_share import in_turns
from collectors.network.mdns.description import (
    PRINT_SERVICES,
    display_model,
    friendly_name,
    is_apple,
    is_technical,
    role_of,
    txt_model,
)
from collectors.network.observations import (
    HostObservation,
    MdnsService,
    Observations,
    PortObservation,
    PrinterMatches,
)
from collectors.network.scan.port_names import port_name
from collectors.shared.addresses import PRINT_PORTS, numeric_order

ENDPOINTS_AT_ONCE = 32
"""Maximum number of endpoints of a device that one turn adds to the list. Further endpoints of the
device come after the first turn of all other devices."""

LONG_LIST = 256
"""A list with more endpoints than this may be cut later. In such a list, the endpoints of a turn
that have an open port come before those that were only announced. Matched printers come first."""

_LAST_TURN = 256  # all other turns have lower numbers
_NO_MATCHES = PrinterMatches()


def assemble_hosts(observed: Observations) -> tuple[Host, ...]:
    """Return one host per address: first this machine, then the gateways, then all others."""
    return tuple(map(_host, sorted(observed.hosts.values(), key=_host_order)))


def assemble_endpoints(
    observed: Observations, matches: PrinterMatches = _NO_MATCHES
) -> tuple[Endpoint, ...]:
    """Return one endpoint per address and port, in the order of `by_importance`."""
    endpoints: list[Endpoint] = []
    announced_printers: set[tuple[str, int]] = set()
    for host in observed.hosts.values():
        for port, services in _services_by_port(host).items():
            key = (host.address, port)
            if any(service.type in PRINT_SERVICES for service in services):
                announced_printers.add(key)
            observation = observed.ports.get(key) or PortObservation(*key)
            ids = matches.printer_ids.get(key, ())
            endpoints.append(_endpoint(host, services, observation, ids))
    return by_importance(endpoints, announced_printers, observed.announcers)


def select_hosts(
    hosts: Sequence[Host], observed: Observations, matches: PrinterMatches, max_hosts: int
) -> tuple[Host, ...]:
    """Return at most ``max_hosts`` hosts, in the given order.

    This machine, gateways and hosts of matched printers are kept first, then hosts that the scan
    found, then hosts that were only announced. Among the hosts that were only announced, announcers
    take turns.
    """
    if len(hosts) <= max_hosts:
        return tuple(hosts)
    matched = {address for address, _port in matches.printer_ids}

    def rank(host: Host) -> int:
        if {"local", "gateway"} & set(host.sources) or host.address in matched:
            return 0
        return 1 if "tcp" in host.sources else 2

    in_turn = in_turns((observed.announcers.get(h.address, h.address), h.address) for h in hosts)
    positions = {address: position for position, address in enumerate(in_turn)}
    best = sorted(hosts, key=lambda h: (rank(h), positions[h.address] if rank(h) > 1 else 0))
    addresses = {host.address for host in best[:max_hosts]}
    return tuple(host for host in hosts if host.address in addresses)


def by_importance(
    endpoints: Iterable[Endpoint],
    announced_printers: Iterable[tuple[str, int]] = (),
    announcers: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Endpoint, ...]:
    """Order endpoints by importance: matched printers, other printers, announced ports, open ports.

    In each turn of a list with more than ``LONG_LIST`` endpoints, matched printers come first, then
    endpoints with an open port, then endpoints that were only announced.

    A list that is too long is cut later, at its end. Devices take turns, so that no device
    displaces another. The first turn has all matched printers, and at most ``ENDPOINTS_AT_ONCE``
    other endpoints of each device. The further endpoints of a device come after the first turn of
    all devices. ``announcers`` maps an address to the device that announced it.
    """
    printers = frozenset(announced_printers)
    endpoints = tuple(endpoints)
    is_long = len(endpoints) > LONG_LIST

    def importance(endpoint: Endpoint) -> tuple[int, int, int, str, int]:
        is_printer = endpoint.port in PRINT_PORTS or (endpoint.address, endpoint.port) in printers
        if endpoint.matched_printer_ids:
            rank = 0
        elif is_printer:
            rank = 1
        else:
            rank = 2 if "mdns" in endpoint.discovered_by else 3
        if is_long and endpoint.status != "reachable" and not endpoint.matched_printer_ids:
            rank += 4  # any host may announce any port, so open ports come first
        return (rank, *numeric_order(endpoint.address), endpoint.port)

    counts: Counter[str] = Counter()

    def turn(endpoint: Endpoint) -> int:
        """Return the number of an endpoint's turn.

        A turn has at most ``ENDPOINTS_AT_ONCE`` endpoints of each device. Call this once for each
        endpoint, the most important endpoints first.
        """
        if endpoint.matched_printer_ids:
            return 0
        if is_long and endpoint.status != "reachable" and endpoint.mac_address is None:
            return _LAST_TURN  # the address has no known MAC, so it may be forged
        device = endpoint.mac_address or announcers.get(endpoint.address, endpoint.address)
        counts[device] += 1
        return (counts[device] - 1) // ENDPOINTS_AT_ONCE

    # The sort is stable, so the endpoints of one turn stay in the order of their importance.
    return tuple(sorted(sorted(endpoints, key=importance), key=turn))


def _host_order(host: HostObservation) -> tuple[int, int, int, str]:
    rank = 1 if "gateway" in host.sources else 2
    if "local" in host.sources:
        rank = 0
    return (rank, *numeric_order(host.address))


def _host(host: HostObservation) -> Host:
    scanned = host.scanned
    is_reachable = "local" in host.sources or (scanned is not None and scanned.is_confirmed)
    return Host(
        address=host.address,
        services=_services(host),
        reachability="reachable" if is_reachable else "unknown",
        sources=host.sources,
        interface_name=host.interface_name,
        hostname=host.hostname,
        mac_address=host.mac_address,
        latency_ms=scanned.latency_ms if scanned is not None else None,
    )


def _services(host: HostObservation) -> tuple[Service, ...]:
    """Return announced services, then open ports without an announcement."""
    by_port = sorted(_services_by_port(host).items())
    announced = [
        Service(port, "mdns", service.instance or None, service.type, _was_reached(host, port))
        for port, services in by_port
        for service in services
    ]
    unannounced = [
        Service(port, "tcp", port_name(port), reachable=True)
        for port, services in by_port
        if not services
    ]
    return tuple(dict.fromkeys((*announced, *unannounced)))


def _was_reached(host: HostObservation, port: int) -> bool | None:
    contact = host.scanned.contact(port) if host.scanned else None
    return None if contact is None else contact == "open"


def _services_by_port(host: HostObservation) -> dict[int, list[MdnsService]]:
    """Return the announced services of each announced or open port."""
    ports: dict[int, list[MdnsService]] = {}
    for service in host.services:
        if service.port:
            ports.setdefault(service.port, []).append(service)
    for port in host.scanned.open_ports if host.scanned else ():
        ports.setdefault(port, [])
    return ports


def _endpoint(
    host: HostObservation,
    services: Sequence[MdnsService],
    observation: PortObservation,
    printer_ids: tuple[str, ...],
) -> Endpoint:
    port = observation.port
    is_open = _was_reached(host, port) is True
    return Endpoint(
        address=host.address,
        host=host.hostname or host.address,
        port=port,
        label=_label(host, services, observation) or port_name(port),
        discovered_by=(*(("mdns",) if services else ()), *(("scan",) if is_open else ())),
        status="reachable" if is_open else "discovered",
        model=_model(host, services, observation),
        mac_address=host.mac_address,
        matched_printer_ids=printer_ids,
    )


def _label(
    host: HostObservation, services: Sequence[MdnsService], observation: PortObservation
) -> str | None:
    """Return a name of the endpoint, if possible one that is not technical (`is_technical`)."""
    port_names = [friendly_name(service) for service in services if service.instance]
    user_names = [friendly_name(s) for s in host.services if s.type in _NAMED_BY_USERS]
    names = [*port_names, *(user_names if port_names else ()), *observation.labels]
    best = (name for name in names if name and not is_technical(name))
    return next(best, names[0] if names else None)


def _model(
    host: HostObservation, services: Sequence[MdnsService], observation: PortObservation
) -> str | None:
    """Return the model, with the role in brackets if the device announces one: ``X (speaker)``."""
    models = (*observation.models, *map(txt_model, services), host.model)
    model = next(filter(None, map(display_model, filter(None, models))), None)
    roles = dict.fromkeys(filter(None, map(role_of, services)))
    role = "screen" if "screen" in roles else next(iter(roles), None)
    if model is None or role is None or is_apple(model):
        return model or role
    return f"{model} ({role})"


_NAMED_BY_USERS = frozenset(
    {"_airplay._tcp", "_raop._tcp", "_googlecast._tcp", "_companion-link._tcp", "_hap._tcp"}
)
"""Types of services whose instance name is the name that a user gave the device."""
