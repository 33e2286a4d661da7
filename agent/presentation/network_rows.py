"""The rows of a network report, for every kind of output.

Every string in a row is plain text. Long names are cut; reasons are complete.
"""

from dataclasses import dataclass

from agent.presentation.plain_text import plain, shorten
from agent.presentation.printer_status import (
    STATUS_ORDER,
    STATUS_SEVERITIES,
    Status,
    printer_name,
    status_of,
)
from agent.presentation.severity import Severity
from agent.wire.payloads.network import (
    MapInterface,
    MapSourceState,
    NetworkPayload,
    Printer,
    SourceFailed,
    SourceUnsupported,
)
from agent.wire.payloads.watched_devices import parse_watched


@dataclass(frozen=True, slots=True)
class PrinterRow:
    """A printer.

    ``address`` is the configured address. ``discovered_address`` is the address at which the
    printer was discovered; "" if it is unknown or equal to ``address``.
    """

    name: str
    status: Status
    severity: Severity
    transport: str
    address: str
    discovered_address: str
    reason: str

    @property
    def address_text(self) -> str:
        """Where the printer is: ``192.168.1.51:631 (network), discovered at 192.168.1.61:631``."""
        elsewhere = f", discovered at {self.discovered_address}" if self.discovered_address else ""
        return f"{self.address} ({self.transport}){elsewhere}"


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
    severity: Severity
    reason: str


def printer_rows(payload: NetworkPayload) -> tuple[PrinterRow, ...]:
    """Return the printers, the broken ones first."""
    rows = (printer_row(printer) for printer in payload.printers or ())
    return tuple(sorted(rows, key=lambda row: STATUS_ORDER.index(row.status)))


def printer_row(printer: Printer) -> PrinterRow:
    """Return the row of one printer."""
    address, discovered_address = printer.address or "", printer.matched_endpoint or ""
    status = status_of(printer)
    return PrinterRow(
        name=printer_name(printer),
        status=status,
        severity=STATUS_SEVERITIES[status],
        transport=printer.transport,
        address=shorten(address) or "no address",
        discovered_address="" if discovered_address == address else shorten(discovered_address),
        reason=plain(printer.reason or "") or "No reason was given.",
    )


def interface_rows(payload: NetworkPayload) -> tuple[InterfaceRow, ...]:
    links = payload.network_map.interfaces if payload.network_map else ()
    return tuple(_interface_row(link) for link in links)


def source_rows(payload: NetworkPayload) -> tuple[SourceRow, ...]:
    """Return the state of each source.

    The states come from the network map, or from the discovery if the report has no map.
    """
    network = payload.network_map
    interfaces = [("Interfaces", network.sources.interfaces)] if network else []
    discovery = network.sources if network else payload.discovery
    others = [("mDNS", discovery.mdns), ("Scan", discovery.scan)] if discovery else []
    return tuple(_source_row(name, source) for name, source in (*interfaces, *others))


def limitation_lines(payload: NetworkPayload) -> tuple[str, ...]:
    """Return sentences about what was not tried, was cut, or could not be read.

    The lines about watched devices are left out: they have rows of their own.
    """
    lines = [*payload.limitations]
    if payload.network_map is not None:
        lines += payload.network_map.limitations
        state = payload.network_map.state
        if state != "completed":
            why = "the scan had not ended" if state == "scanning" else f"it was {state}"
            lines.append(f"The network map is incomplete: {why}.")
        if payload.network_map.truncated:
            lines.append("The network map was cut at its limits: it does not contain everything.")
    if payload.endpoints_omitted:
        lines.append(f"Further endpoints, not listed: {payload.endpoints_omitted}.")
    unavailable = payload.unavailable
    for subject, reason in (
        ("MAC addresses", unavailable.mac_address),
        ("Interfaces", unavailable.interfaces),
        ("The gateway", unavailable.gateway),
        ("The system's version", unavailable.os_version),
    ):
        if reason is not None:
            lines.append(f"{subject} could not be read: {reason}")
    lines = [line for line in lines if parse_watched(line) is None]
    return tuple(dict.fromkeys(plain(line) for line in lines))


def _interface_row(link: MapInterface) -> InterfaceRow:
    return InterfaceRow(
        name=shorten(link.name),
        # Like all numbers of the contract, the prefix length is a float.
        addresses=tuple(f"{shorten(a.address)}/{a.prefix_length:.6g}" for a in link.addresses),
        gateways=tuple(map(shorten, link.gateways)),
        mac_address=shorten(link.mac_address or ""),
    )


def _source_row(name: str, source: MapSourceState) -> SourceRow:
    severities: dict[str, Severity] = {"succeeded": "good", "failed": "bad", "running": "warn"}
    reason = source.reason if isinstance(source, SourceFailed | SourceUnsupported) else ""
    return SourceRow(
        name=name,
        state="still running" if source.state == "running" else source.state,
        severity=severities.get(source.state, "muted"),
        reason=plain(reason),
    )
