"""A network report on a terminal: printers with their reasons first, then hosts."""

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from agent.presentation import network_rows
from agent.presentation.headline import headline_of
from agent.presentation.hosts.rows import HostRow, by_interest, host_rows, makers_note
from agent.presentation.network_rows import InterfaceRow, PrinterRow, SourceRow
from agent.presentation.terminal.blocks import (
    EditAdvice,
    columns,
    headline_view,
    notes_view,
    stacked,
    styled,
    title,
    words,
)
from agent.presentation.watched_devices import WatchedRow, watched_rows
from agent.wire.payloads.network import NetworkPayload

_FIRST_WIDTH: Final = 17
"""Width of the first column, in characters. It fits a MAC address, and leaves the second column
enough space on a terminal of 50 characters."""


def network_view(
    payload: NetworkPayload, edit_advice: EditAdvice = str
) -> Iterator[RenderableType]:
    yield from headline_view(headline_of(payload), edit_advice)
    yield from _printers(network_rows.printer_rows(payload))
    yield from _watched(watched_rows(payload))
    yield from _hosts(payload)
    yield from _interfaces(payload)
    yield from _sources(payload)
    yield from notes_view(network_rows.limitation_lines(payload), payload.failures)


def _printers(rows: tuple[PrinterRow, ...]) -> Iterator[RenderableType]:
    if not rows:
        return  # the headline already reports that there are no printers
    yield title("Printers", len(rows))
    yield columns(map(_printer, rows), first_width=11)


def _printer(row: PrinterRow) -> tuple[Text, Text]:
    facts = stacked(words(row.name, "bold"), words(row.reason), words(row.address_text, "dim"))
    return styled(row.status, row.severity), facts


def _watched(rows: tuple[WatchedRow, ...]) -> Iterator[RenderableType]:
    if rows:
        yield title("Watched devices", len(rows))
        yield columns(map(_watched_device, rows), first_width=11)


def _watched_device(row: WatchedRow) -> tuple[Text, Text]:
    facts = stacked(words(row.name, "bold"), words(f"{row.kind}, {row.detail}", "dim"))
    return styled(row.state, row.severity), facts


def _hosts(payload: NetworkPayload) -> Iterator[RenderableType]:
    rows = host_rows(payload)
    yield title("Hosts", len(rows))
    if not rows:
        yield words("No host was discovered.", "dim")
        return
    first_rows, other_rows = by_interest(rows)
    yield columns(map(_host, first_rows), _FIRST_WIDTH)
    if other_rows:
        yield title("Further hosts", len(other_rows))
        yield columns(map(_further_host, other_rows), _FIRST_WIDTH)
    if note := makers_note(rows):
        yield words(note, "dim")


def _host(row: HostRow) -> tuple[Text, Text]:
    tags = (words(f"printer {name}", "magenta") for name in row.printers)
    details = [fact for fact in row.identity_facts if fact != row.title]
    offers = filter(None, (", ".join(row.services), row.latency))
    return (
        stacked(words(row.address), words(row.mac_address, "dim")),
        stacked(
            _joined(words(row.title, "bold"), *tags, *map(words, details)),
            words(" · ".join(offers), "dim"),
        ),
    )


def _further_host(row: HostRow) -> tuple[Text, Text]:
    return words(row.address), _joined(*map(words, (*row.identity_facts, *row.services)))


def _joined(*parts: Text) -> Text:
    return Text(" · ", overflow="fold").join(filter(None, parts))


def _interfaces(payload: NetworkPayload) -> Iterator[RenderableType]:
    rows = network_rows.interface_rows(payload)
    yield title("Interfaces and gateways", len(rows))
    if not rows:
        yield words("No interface could be read.", "dim")
        return
    yield columns(map(_interface, rows), _FIRST_WIDTH)


def _interface(row: InterfaceRow) -> tuple[Text, Text]:
    gateways = (words(f"gateway {gateway}", "dim") for gateway in row.gateways)
    return (
        stacked(words(row.name, "bold"), words(row.mac_address, "dim")),
        stacked(*map(words, row.addresses), *gateways),
    )


def _sources(payload: NetworkPayload) -> Iterator[RenderableType]:
    rows = network_rows.source_rows(payload)
    if rows:
        yield title("Sources")
        yield columns(map(_source, rows), _FIRST_WIDTH)


def _source(row: SourceRow) -> tuple[Text, Text]:
    return words(row.name), stacked(styled(row.state, row.severity), words(row.reason))
