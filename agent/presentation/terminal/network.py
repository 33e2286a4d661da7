"""A network report on a terminal: printers with their reasons first, then hosts."""

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agent.presentation.headline import headline_of
from agent.presentation.hosts.rows import HostRow, by_interest, host_rows, makers_note
from agent.presentation.network_rows import (
    PrinterRow,
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
    styled,
    title,
    words,
)
from agent.wire.payloads.network import NetworkPayload


def network_view(payload: NetworkPayload) -> Iterator[RenderableType]:
    yield from headline_view(headline_of(payload))
    yield from _printers(printer_rows(payload))
    yield from _hosts(payload)
    yield from _interfaces(payload)
    yield from _sources(payload)
    yield from notes_view(limitation_lines(payload), payload.failures)


def _printers(rows: tuple[PrinterRow, ...]) -> Iterator[RenderableType]:
    if not rows:
        return  # the verdict mentions it
    yield title("Printers", len(rows))
    printers = Table.grid(padding=(0, 2, 0, 0))
    printers.add_column(width=11)
    printers.add_column(overflow="fold")
    for row in rows:
        elsewhere = f", discovered at {row.discovered_at}" if row.discovered_at else ""
        where = words(f"{row.address} ({row.transport}){elsewhere}", "dim")
        facts = stacked(words(row.name, "bold"), words(row.reason), where)
        printers.add_row(styled(row.status, row.severity), facts)
    yield printers


def _hosts(payload: NetworkPayload) -> Iterator[RenderableType]:
    rows = host_rows(payload)
    yield title("Hosts", len(rows))
    if not rows:
        yield nothing("No host was discovered.")
        return
    first, rest = by_interest(rows)
    yield _listed(map(_host, first))
    if rest:
        yield title("Further hosts", len(rest))
        yield _listed(map(_further_host, rest))
    if note := makers_note(rows):
        yield words(note, "dim")


def _listed(rows: Iterable[tuple[Text, Text]]) -> RenderableType:
    """Return two columns that are readable at 50 columns as well."""
    listed = Table.grid(padding=(0, 2, 0, 0))
    listed.add_column(width=17, overflow="fold")
    listed.add_column(overflow="fold")
    for what, facts in rows:
        listed.add_row(what, facts)
    return listed


def _host(row: HostRow) -> tuple[Text, Text]:
    tags = (words(f"printer {name}", "magenta") for name in row.printers)
    beside = [fact for fact in row.what if fact != row.title]
    offers = filter(None, (", ".join(row.services), row.latency))
    return (
        stacked(words(row.address), words(row.mac_address, "dim")),
        stacked(
            _joined(words(row.title, "bold"), *tags, *map(words, beside)),
            words(" · ".join(offers), "dim"),
        ),
    )


def _further_host(row: HostRow) -> tuple[Text, Text]:
    return words(row.address), _joined(*map(words, (*row.what, *row.services)))


def _joined(*parts: Text) -> Text:
    return Text(" · ", overflow="fold").join(filter(None, parts))


def _interfaces(payload: NetworkPayload) -> Iterator[RenderableType]:
    rows = interface_rows(payload)
    yield title("Interfaces and gateways", len(rows))
    if not rows:
        yield nothing("No interface could be read.")
        return
    yield _listed(
        (
            stacked(words(row.name, "bold"), words(row.mac_address, "dim")),
            stacked(
                *map(words, row.addresses),
                *(words(f"gateway {gateway}", "dim") for gateway in row.gateways),
            ),
        )
        for row in rows
    )


def _sources(payload: NetworkPayload) -> Iterator[RenderableType]:
    rows = source_rows(payload)
    if rows:
        yield title("Sources")
        yield _listed(
            (words(row.name), stacked(styled(row.state, row.severity), words(row.reason)))
            for row in rows
        )
