"""The present state of this machine's printers on a terminal, the broken ones first."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from agent.cli.terminal.screen import Screen, Style
from agent.presentation.findings.printers import complaints_of
from agent.presentation.network_rows import PrinterRow, printer_row
from agent.presentation.printer_status import STATUS_ORDER
from agent.wire.payloads.network import NetworkPayload, Printer

ATTENTION: Final = "needs attention"
_ORDER: Final = (*STATUS_ORDER[:-1], ATTENTION, STATUS_ORDER[-1])
"""The verdicts in the order of the list. `ATTENTION` comes directly before "reachable"."""
_STYLES: Final[dict[str, Style]] = {"reachable": "good", "unknown": "warn", ATTENTION: "warn"}
_INDENT: Final = " " * 4


@dataclass(frozen=True, slots=True)
class PrinterView:
    """A printer for display. ``verdict`` is its status, or that it needs attention."""

    verdict: str
    row: PrinterRow


def printer_views(printers: Iterable[Printer]) -> tuple[PrinterView, ...]:
    """Return the printers, the broken ones first."""
    return tuple(sorted(map(_view, printers), key=lambda view: _ORDER.index(view.verdict)))


def show_printers(screen: Screen, payload: NetworkPayload) -> None:
    """Print each printer with its verdict, the cause and what to do."""
    views = printer_views(payload.printers or ())
    if not views:
        screen.paragraph("this machine has no printers")
    for number, view in enumerate(views):
        if number:
            screen.blank()
        style = _STYLES.get(view.verdict, "bad")
        screen.line((view.row.name, "strong"), (f": {view.verdict}", style))
        screen.paragraph(view.row.reason, indent=_INDENT)
        screen.paragraph(view.row.address_text, "quiet", indent=_INDENT)
    for note in _notes(payload):
        screen.blank()
        screen.paragraph(note, "warn")


def _view(printer: Printer) -> PrinterView:
    row = printer_row(printer)
    needs_attention = row.status == "reachable" and complaints_of(printer)
    return PrinterView(ATTENTION if needs_attention else row.status, row)


def _notes(payload: NetworkPayload) -> Iterator[str]:
    """Yield why printers could not be read or checked."""
    yield from (f"{failure.step}: {failure.reason}" for failure in payload.failures)
    yield from payload.limitations
