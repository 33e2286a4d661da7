"""The hosts of a network report: one row each, with name, kind, model, maker and services.

Every string in a row is plain text. Long names are cut.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.presentation.hosts.evidence import KIND_LABELS, ROLES, HostKind
from agent.presentation.hosts.kind import SHARED_QUEUE, descriptive_title, kind_of, split_role
from agent.presentation.hosts.makers import RANDOM_ADDRESS, maker_of, registry
from agent.presentation.hosts.services import describe_services, is_port_name
from agent.presentation.humanize import format_milliseconds
from agent.presentation.plain_text import shorten
from agent.presentation.printer_status import printer_name
from agent.presentation.watched_devices import located_devices
from agent.wire.addresses import split_host_port
from agent.wire.payloads.network import Endpoint, MapHost, MapService, NetworkPayload

FIRST_MIN: Final = 24
FIRST_MAX: Final = 40
"""The minimum and maximum number of hosts in the first list that `by_interest` returns."""

_TECHNICAL: Final = re.compile(
    r"[0-9a-f]{12}|([0-9a-f]{2}[:-]){5}|[0-9a-f]{8}-[0-9a-f]{4}-", re.IGNORECASE
)
"""Matches a name that was generated from a MAC address or a UUID."""

_WORD_MIN: Final = 4
"""Minimum number of other letters in a name that contains a MAC address or a UUID. With fewer
letters, users do not recognise the device: makers use short prefixes in such names (BRN, NPI)."""


@dataclass(frozen=True, slots=True)
class HostRow:
    """One host.

    Args:
        name: The announced name, or else the host name. A watched device has its configured name.
            This machine has its host name, or else its install id, unless the install id was
            generated.
        maker: The maker that the IEEE's registry names for the MAC address, or `RANDOM_ADDRESS`.
        interface: The interface of this machine at which the host was discovered; "" if unknown.
        printers: Names of the printers that are matched to this host, and of the printers without a
            match that are configured with its address.
        watched_kind: What the device is according to the configuration; "" if it is not watched.
    """

    address: str
    name: str
    hostname: str
    kind: HostKind
    model: str
    maker: str
    mac_address: str
    interface: str
    latency: str
    is_reachable: bool
    services: tuple[str, ...]
    printers: tuple[str, ...]
    watched_kind: str = ""

    @property
    def kind_label(self) -> str:
        return self.watched_kind or KIND_LABELS[self.kind]

    @property
    def title(self) -> str:
        return self.name or self.model or next(iter(self.identity_facts), self.address)

    @property
    def identity_facts(self) -> tuple[str, ...]:
        """Return the kind, the model and the maker, as far as they are known.

        The maker is left out if the model contains a word of the maker's name.
        """
        kind = "" if self.kind == "unknown" and not self.watched_kind else self.kind_label
        words = self.model.casefold().split()
        is_repeated = any(word in words for word in self.maker.casefold().split())
        return tuple(filter(None, (kind, self.model, "" if is_repeated else self.maker)))

    @property
    def address_facts(self) -> tuple[str, ...]:
        """Return the addresses, the latency, and the host name if ``name`` differs from it."""
        is_repeated = _alphanumeric(self.hostname) == _alphanumeric(self.name)
        facts = (self.address, "" if is_repeated else self.hostname, self.mac_address, self.latency)
        return tuple(filter(None, facts))

    @property
    def known_maker(self) -> str:
        return "" if self.maker == RANDOM_ADDRESS else self.maker

    @property
    def is_recognisable(self) -> bool:
        """Return whether a user can recognise the device by name, model or maker."""
        letters = re.sub(r"[\W\d_]", "", _TECHNICAL.sub("", self.name))
        is_named = len(letters) >= _WORD_MIN if _TECHNICAL.search(self.name) else bool(self.name)
        identification = self.printers or self.model or self.known_maker
        return self.kind == "machine" or is_named or bool(identification)


def host_rows(payload: NetworkPayload) -> tuple[HostRow, ...]:
    """Return the hosts in the order of the network map, then hosts that only endpoints mention."""
    endpoints: dict[str, list[Endpoint]] = {}
    for endpoint in payload.endpoints:
        endpoints.setdefault(endpoint.address, []).append(endpoint)
    hosts = payload.network_map.hosts if payload.network_map else ()
    links = payload.network_map.interfaces if payload.network_map else ()
    matched_printers, expected_printers = _matched_printers(payload), _expected_printers(payload)
    watched_by_address = located_devices(payload)
    gateways = {gateway for link in links for gateway in link.gateways}
    mapped_addresses = {host.address for host in hosts}
    unmapped_hosts = (
        _unmapped(host_endpoints)
        for address, host_endpoints in endpoints.items()
        if address not in mapped_addresses
    )

    def row(host: MapHost) -> HostRow:
        host_endpoints = endpoints.get(host.address, ())
        host_printers = matched_printers.get(host.address, ())
        is_gateway = host.address in gateways
        kind = kind_of(host, host_endpoints, is_matched=bool(host_printers), is_gateway=is_gateway)
        printers = dict.fromkeys((*host_printers, *expected_printers.get(host.address, ())))
        basic_row = _host_row(host, host_endpoints, kind, tuple(printers))
        if device := watched_by_address.get(host.address):
            kind = kind if printers or kind in ("machine", "router") else "watched"
            name = shorten(device.name)
            return replace(basic_row, name=name, kind=kind, watched_kind=device.kind)
        if kind == "machine":
            return replace(basic_row, name=basic_row.name or _own_name(payload))
        return basic_row

    return tuple(map(row, (*hosts, *unmapped_hosts)))


def by_interest(rows: Iterable[HostRow]) -> tuple[tuple[HostRow, ...], tuple[HostRow, ...]]:
    """Return the most relevant hosts, and all others.

    This machine, the router, printers, watched devices, and hosts with a name or model come first.
    """
    sorted_rows = sorted(rows, key=_rank)
    named_count = sum(_rank(row) < _NAMELESS for row in sorted_rows)
    first = min(max(named_count, FIRST_MIN), FIRST_MAX)
    return tuple(sorted_rows[:first]), tuple(sorted_rows[first:])


def makers_note(rows: Iterable[HostRow]) -> str:
    """Return a sentence about the source of the makers; "" if no row has a maker."""
    if not any(row.known_maker for row in rows):
        return ""
    return f"Makers are looked up by MAC address in the IEEE's list of {registry().date}."


_NAMELESS: Final = 4
"""The first rank of the hosts that have neither a name nor a model."""


def _rank(row: HostRow) -> int:
    """Return the position of a host in the order of `by_interest`. Hosts can share a position."""
    if row.kind in ("machine", "router"):
        return 0
    if row.printers or row.watched_kind or row.kind == "printer":
        return 1 if row.printers or row.watched_kind else 2
    if row.name or row.model:
        return 3
    return _NAMELESS if row.kind != "unknown" or row.known_maker else _NAMELESS + 1


def _host_row(
    host: MapHost, endpoints: Sequence[Endpoint], kind: HostKind, printers: tuple[str, ...]
) -> HostRow:
    address = shorten(host.address)
    raw_hostname = "" if host.hostname in (None, host.address) else host.hostname or ""
    hostname = shorten(raw_hostname).removesuffix(".").removesuffix(".local")
    name = hostname if kind == "machine" else _name(endpoints, hostname)
    maker = shorten(maker_of(host.mac_address or ""))
    model = _model(endpoints, kind)
    return HostRow(
        address=address,
        name=name,
        hostname=hostname,
        kind=kind,
        model="" if model.casefold() == name.casefold() else model,
        maker="" if kind == "machine" and maker == RANDOM_ADDRESS else maker,
        mac_address=shorten(host.mac_address or ""),
        interface=shorten(host.interface_name or ""),
        latency="" if host.latency_ms is None else format_milliseconds(host.latency_ms),
        is_reachable=host.reachability == "reachable",
        services=describe_services(host.services, endpoints, (name, hostname, model)),
        printers=printers,
    )


def _own_name(payload: NetworkPayload) -> str:
    """Return the install id if it is a name; "" if it was generated or is not known yet."""
    name = shorten(payload.identity.install_id)
    return "" if name == "unenrolled" or _TECHNICAL.search(name) else name


def _name(endpoints: Iterable[Endpoint], hostname: str) -> str:
    """Return the announced name of the device, or else its host name.

    Names that were generated from a MAC address or a UUID are used only if there is no other name.
    """
    announced_names = (
        shorten(endpoint.label)
        for endpoint in endpoints
        if "mdns" in endpoint.discovered_by
        and not is_port_name(endpoint.label)
        and split_role(endpoint.model or "")[1] != SHARED_QUEUE
    )
    names = [name for name in (*announced_names, hostname) if name]
    return next((name for name in names if not _TECHNICAL.search(name)), next(iter(names), ""))


def _model(endpoints: Sequence[Endpoint], kind: HostKind) -> str:
    """Return the model of the device itself, with its role if the kind does not show it.

    The model of a shared printer is ignored. Without a model, return the title of the device's web
    page, if the title reveals the kind.
    """
    for endpoint in endpoints:
        announced_model = shorten(endpoint.model or "")
        model, role = split_role(announced_model)
        if announced_model and role != SHARED_QUEUE:
            return model if ROLES.get(role) == kind else announced_model
    return "" if kind == "machine" else shorten(descriptive_title(endpoints))


def _unmapped(endpoints: Sequence[Endpoint]) -> MapHost:
    """Return a host that only endpoints mention: the map is full, or the report has no map."""
    first = endpoints[0]
    return MapHost(
        address=first.address,
        hostname=first.host,
        mac_address=first.mac_address,
        services=tuple(
            MapService(
                name=endpoint.label,
                port=endpoint.port,
                source="mdns" if "mdns" in endpoint.discovered_by else "tcp",
                reachable=endpoint.status == "reachable",
            )
            for endpoint in endpoints
        ),
        reachability="reachable" if any(e.status == "reachable" for e in endpoints) else "unknown",
        sources=("tcp",),
    )


def _matched_printers(payload: NetworkPayload) -> dict[str, tuple[str, ...]]:
    """Return the names of the matched printers, by the address of their match."""
    names: dict[str, dict[str, None]] = {}
    by_id = {printer.id: printer_name(printer) for printer in payload.printers or ()}
    for endpoint in payload.endpoints:
        for printer_id in endpoint.matched_printer_ids:
            name = by_id.get(printer_id, shorten(printer_id))
            names.setdefault(endpoint.address, {})[name] = None
    for printer in payload.printers or ():
        if printer.matched_endpoint:
            address = split_host_port(printer.matched_endpoint)[0]
            names.setdefault(address, {})[printer_name(printer)] = None
    return {address: tuple(names_at_address) for address, names_at_address in names.items()}


def _expected_printers(payload: NetworkPayload) -> dict[str, tuple[str, ...]]:
    """Return the names of the printers without a match, by their configured address."""
    names: dict[str, tuple[str, ...]] = {}
    for printer in payload.printers or ():
        if printer.address and not printer.matched_endpoint:
            address = split_host_port(printer.address)[0]
            names[address] = (*names.get(address, ()), printer_name(printer))
    return names


def _alphanumeric(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return re.sub(r"[\W_]", "", text).casefold()
