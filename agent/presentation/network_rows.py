"""The rows of a network report, in words, the same for every way of showing them.

Every string in a row is plain text: bounded names, reasons in full.
"""

from dataclasses import dataclass
from typing import Final

from agent.presentation.host_evidence import HostKind
from agent.presentation.host_kind import kind_of
from agent.presentation.humanize import milliseconds_in_words
from agent.presentation.plain_text import NAME_LENGTH, plain, shorten
from agent.presentation.printer_status import (
    STATUS_ORDER,
    STATUS_TONES,
    StatusWord,
    status_of,
)
from agent.presentation.tone import Tone
from agent.wire.addresses import join_host_port, split_host_port
from agent.wire.payloads.network import (
    Endpoint,
    MapHost,
    MapInterface,
    MapService,
    MapSourceState,
    NetworkPayload,
    Printer,
    SourceFailed,
    SourceUnsupported,
)
from agent.wire.vocabulary import DiscoverySource

SERVICES_SHOWN_MAX: Final = 24
"""Services of one host that are listed; the rest is counted."""

_FOUND_BY: Final[dict[DiscoverySource, str]] = {"mdns": "mDNS", "scan": "scan"}


@dataclass(frozen=True, slots=True)
class PrinterRow:
    """``found_at`` is where it was found when that is not where it should be."""

    name: str
    status: StatusWord
    tone: Tone
    transport: str
    address: str
    found_at: str
    reason: str


@dataclass(frozen=True, slots=True)
class EndpointRow:
    address: str
    host: str
    label: str
    model: str
    status: str
    found_by: str
    mac_address: str
    printers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HostRow:
    """``printers`` names those matched to it, or set up at its address without a match."""

    address: str
    name: str
    kind: HostKind
    mac_address: str
    interface: str
    latency: str
    is_reachable: bool
    services: tuple[str, ...]
    printers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InterfaceRow:
    name: str
    addresses: tuple[str, ...]
    gateways: tuple[str, ...]
    mac_address: str


@dataclass(frozen=True, slots=True)
class SourceRow:
    name: str
    state: str
    tone: Tone
    reason: str


def printer_rows(payload: NetworkPayload) -> tuple[PrinterRow, ...]:
    """Return the printers, those that need attention first."""
    rows = (_printer_row(printer) for printer in payload.printers or ())
    return tuple(sorted(rows, key=lambda row: STATUS_ORDER.index(row.status)))


def endpoint_rows(payload: NetworkPayload) -> tuple[EndpointRow, ...]:
    names = {printer.id: _name(printer) for printer in payload.printers or ()}
    return tuple(_endpoint_row(endpoint, names) for endpoint in payload.endpoints)


def host_rows(payload: NetworkPayload) -> tuple[HostRow, ...]:
    """Return the hosts of the map in its order."""
    if payload.network_map is None:
        return ()
    matched, expected = _matched_printers(payload), _expected_printers(payload)
    endpoints: dict[str, list[Endpoint]] = {}
    for endpoint in payload.endpoints:
        endpoints.setdefault(endpoint.address, []).append(endpoint)
    gateways = {gateway for link in payload.network_map.interfaces for gateway in link.gateways}
    return tuple(
        _host_row(
            host,
            matched.get(host.address, ()),
            expected.get(host.address, ()),
            kind_of(
                host,
                endpoints.get(host.address, ()),
                is_matched=host.address in matched,
                is_gateway=host.address in gateways,
            ),
        )
        for host in payload.network_map.hosts
    )


def interface_rows(payload: NetworkPayload) -> tuple[InterfaceRow, ...]:
    links = payload.network_map.interfaces if payload.network_map else ()
    return tuple(_interface_row(link) for link in links)


def source_rows(payload: NetworkPayload) -> tuple[SourceRow, ...]:
    """Return how each source of facts ended: those of the map, else those of the discovery."""
    if payload.network_map is not None:
        sources = payload.network_map.sources
        return (
            _source_row("Interfaces", sources.interfaces),
            _source_row("mDNS", sources.mdns),
            _source_row("Scan", sources.scan),
        )
    if payload.discovery is not None:
        return (
            _source_row("mDNS", payload.discovery.mdns),
            _source_row("Scan", payload.discovery.scan),
        )
    return ()


def limitation_lines(payload: NetworkPayload) -> tuple[str, ...]:
    """Return what was not tried, was cut or could not be read, each line once."""
    lines = [*payload.limitations]
    if payload.network_map is not None:
        lines += payload.network_map.limitations
        if payload.network_map.state != "completed":
            lines.append(f"The network map is not finished: it was {payload.network_map.state}.")
        if payload.network_map.truncated:
            lines.append("The network map was cut at its bounds: there is more than is shown.")
    if payload.endpoints_omitted:
        lines.append(f"{payload.endpoints_omitted} more endpoints were found and are not listed.")
    unavailable = payload.unavailable
    for what, reason in (
        ("MAC addresses", unavailable.mac_address),
        ("Interfaces", unavailable.interfaces),
        ("The gateway", unavailable.gateway),
        ("The system's version", unavailable.os_version),
    ):
        if reason is not None:
            lines.append(f"{what} could not be read: {reason}")
    return tuple(dict.fromkeys(plain(line) for line in lines))


def _printer_row(printer: Printer) -> PrinterRow:
    address, found_at = printer.address or "", printer.matched_endpoint or ""
    status = status_of(printer)
    return PrinterRow(
        name=_name(printer),
        status=status,
        tone=STATUS_TONES[status],
        transport=printer.transport,
        address=shorten(address, NAME_LENGTH) or "no address",
        found_at="" if found_at == address else shorten(found_at, NAME_LENGTH),
        reason=plain(printer.reason or "") or "No reason was given.",
    )


def _name(printer: Printer) -> str:
    return shorten(printer.name, NAME_LENGTH) or shorten(printer.id, NAME_LENGTH) or "(no name)"


def _endpoint_row(endpoint: Endpoint, names: dict[str, str]) -> EndpointRow:
    ids = endpoint.matched_printer_ids
    host = shorten(endpoint.host, NAME_LENGTH)
    address = shorten(endpoint.address, NAME_LENGTH)
    return EndpointRow(
        address=join_host_port(address, endpoint.port),
        host="" if host == address else host,
        label=shorten(endpoint.label, NAME_LENGTH),
        model=shorten(endpoint.model or "", NAME_LENGTH),
        status="answers" if endpoint.status == "reachable" else "announced only",
        found_by=" and ".join(_FOUND_BY[by] for by in endpoint.discovered_by),
        mac_address=shorten(endpoint.mac_address or "", NAME_LENGTH),
        printers=tuple(names.get(known, shorten(known, NAME_LENGTH)) for known in ids),
    )


def _matched_printers(payload: NetworkPayload) -> dict[str, tuple[str, ...]]:
    """Return the names of the printers matched at each address."""
    found: dict[str, dict[str, None]] = {}
    by_id = {printer.id: _name(printer) for printer in payload.printers or ()}
    for endpoint in payload.endpoints:
        for known in endpoint.matched_printer_ids:
            name = by_id.get(known, shorten(known, NAME_LENGTH))
            found.setdefault(endpoint.address, {})[name] = None
    for printer in payload.printers or ():
        if printer.matched_endpoint:
            address = split_host_port(printer.matched_endpoint)[0]
            found.setdefault(address, {})[_name(printer)] = None
    return {address: tuple(names) for address, names in found.items()}


def _expected_printers(payload: NetworkPayload) -> dict[str, tuple[str, ...]]:
    """Return the names of the printers set up at each address that matched nothing."""
    found: dict[str, tuple[str, ...]] = {}
    for printer in payload.printers or ():
        if printer.address and not printer.matched_endpoint:
            address = split_host_port(printer.address)[0]
            found[address] = (*found.get(address, ()), _name(printer))
    return found


def _host_row(
    host: MapHost, matched: tuple[str, ...], expected: tuple[str, ...], kind: HostKind
) -> HostRow:
    name = shorten(host.hostname or "", NAME_LENGTH)
    return HostRow(
        address=shorten(host.address, NAME_LENGTH),
        name="" if host.hostname == host.address else name,
        kind=kind,
        mac_address=shorten(host.mac_address or "", NAME_LENGTH),
        interface=shorten(host.interface_name or "", NAME_LENGTH),
        latency="" if host.latency_ms is None else milliseconds_in_words(host.latency_ms),
        is_reachable=host.reachability == "reachable",
        services=_services_in_words(host.services),
        printers=tuple(dict.fromkeys((*matched, *expected))),
    )


def _services_in_words(services: tuple[MapService, ...]) -> tuple[str, ...]:
    """Return ``9100 jetdirect`` for each port, the names of both sources together."""
    names: dict[str, dict[str, None]] = {}
    for service in services:
        known = names.setdefault(f"{service.port:.0f}" if service.port else "", {})
        word = shorten(service.type or service.name or "", NAME_LENGTH)
        if word:
            known[word.removeprefix("_").partition("._")[0]] = None
    lines = [" ".join((port, *known)).strip() for port, known in names.items()]
    shown = tuple(line for line in lines[:SERVICES_SHOWN_MAX] if line)
    rest = len(lines) - SERVICES_SHOWN_MAX
    return (*shown, f"and {rest} more") if rest > 0 else shown


def _interface_row(link: MapInterface) -> InterfaceRow:
    return InterfaceRow(
        name=shorten(link.name, NAME_LENGTH),
        addresses=tuple(
            f"{shorten(known.address, NAME_LENGTH)}/{known.prefix_length:.6g}"
            for known in link.addresses
        ),
        gateways=tuple(shorten(gateway, NAME_LENGTH) for gateway in link.gateways),
        mac_address=shorten(link.mac_address or "", NAME_LENGTH),
    )


def _source_row(name: str, source: MapSourceState) -> SourceRow:
    tones: dict[str, Tone] = {"succeeded": "good", "failed": "bad", "running": "warn"}
    reason = source.reason if isinstance(source, SourceFailed | SourceUnsupported) else ""
    return SourceRow(
        name=name,
        state="still running" if source.state == "running" else source.state,
        tone=tones.get(source.state, "muted"),
        reason=plain(reason),
    )
