"""A network report on a terminal: printers and their reasons first, then what was found."""

from collections.abc import Iterator

from rich.console import RenderableType

from agent.presentation.headline import network_headline
from agent.presentation.host_evidence import KIND_IN_WORDS
from agent.presentation.network_rows import (
    HostRow,
    PrinterRow,
    endpoint_rows,
    host_rows,
    interface_rows,
    limitation_lines,
    printer_rows,
    source_rows,
)
from agent.presentation.terminal.blocks import (
    headline_view,
    notes_view,
    nothing,
    stacked,
    table,
    title,
    toned,
    words,
)
from agent.wire.payloads.network import NetworkPayload


def network_view(payload: NetworkPayload) -> Iterator[RenderableType]:
    yield from headline_view(network_headline(payload))
    yield from _printers(printer_rows(payload))
    yield from _endpoints(payload)
    yield from _hosts(host_rows(payload))
    yield from _interfaces(payload)
    yield from _sources(payload)
    yield from notes_view(limitation_lines(payload), payload.failures)


def _printers(rows: tuple[PrinterRow, ...]) -> Iterator[RenderableType]:
    yield title("Printers", len(rows))
    if not rows:
        yield nothing("None to show.")
        return
    printers = table(("Printer", 23), ("Status", 11), ("Why", None))
    for row in rows:
        where = words(f"{row.address} ({row.transport})", "dim")
        found = words(f"found at {row.found_at}", "dim") if row.found_at else words("")
        printers.add_row(
            stacked(words(row.name, "bold"), where, found),
            toned(row.status, row.tone),
            words(row.reason),
            end_section=True,
        )
    yield printers


def _endpoints(payload: NetworkPayload) -> Iterator[RenderableType]:
    rows = endpoint_rows(payload)
    yield title("Endpoints", len(rows))
    if not rows:
        yield nothing("None was found.")
        return
    endpoints = table(("Endpoint", 21), ("Host", 17), ("What", None), ("Printer", 16))
    for row in rows:
        what = stacked(words(row.label), words(row.model), words(_how(row.status), "dim"))
        printers = stacked(*(words(name, "bold") for name in row.printers))
        endpoints.add_row(words(row.address), words(row.host), what, printers)
    yield endpoints


def _how(status: str) -> str:
    return "" if status == "answers" else status


def _hosts(rows: tuple[HostRow, ...]) -> Iterator[RenderableType]:
    yield title("Hosts", len(rows))
    if not rows:
        yield nothing("None was found.")
        return
    hosts = table(("Address", 17), ("Host", 21), ("Latency", 8), ("Services", None))
    for row in rows:
        kind = "" if row.kind == "unknown" else KIND_IN_WORDS[row.kind]
        hosts.add_row(
            stacked(words(row.address), words(row.mac_address, "dim")),
            stacked(words(row.name, "bold"), words(kind, "dim")),
            words(row.latency),
            words(", ".join(row.services)),
        )
    yield hosts


def _interfaces(payload: NetworkPayload) -> Iterator[RenderableType]:
    rows = interface_rows(payload)
    yield title("Interfaces and gateways", len(rows))
    if not rows:
        yield nothing("None was read.")
        return
    interfaces = table(("Interface", 12), ("MAC", 17), ("Gateways", 17), ("Addresses", None))
    for row in rows:
        interfaces.add_row(
            words(row.name, "bold"),
            words(row.mac_address, "dim"),
            stacked(*(words(gateway) for gateway in row.gateways)),
            stacked(*(words(address) for address in row.addresses)),
        )
    yield interfaces


def _sources(payload: NetworkPayload) -> Iterator[RenderableType]:
    rows = source_rows(payload)
    if not rows:
        return
    yield title("Sources")
    sources = table(("Source", 12), ("State", 13), ("Why", None))
    for row in rows:
        sources.add_row(words(row.name), toned(row.state, row.tone), words(row.reason))
    yield sources
