"""The rules on the printers of a network report."""

import re
from collections.abc import Iterator
from typing import Final

from agent.presentation.findings.rule import Rule, Sighting
from agent.presentation.printer_status import StatusWord, status_of
from agent.wire.payloads.network import NetworkPayload, Printer

_SAYS: Final = re.compile(r"\b[Tt]he (?:printer|spooler) (?:reports|says): ([^;]+)")
"""Older agents wrote "says"."""
_HARMLESS: Final = re.compile(r"low on |asked to |holds new jobs|.* nearly ")
_STOPPED: Final = (
    "the printer reports that it is stopped",
    "the printer says that it is stopped",  # of older agents
    "its queue is stopped on this machine",
)


def _with_status(payload: NetworkPayload, status: StatusWord) -> Iterator[Printer]:
    return (printer for printer in payload.printers or () if status_of(printer) == status)


def _words_of(printer: Printer) -> dict[str, str]:
    name = printer.name or printer.id
    at = f"at {printer.address}" if printer.address else ""
    return {"printer": name if "printer" in name.casefold() else f"The printer {name}", "at": at}


def _unreachable(payload: NetworkPayload) -> Iterator[Sighting]:
    return map(_words_of, _with_status(payload, "unreachable"))


def _moved(payload: NetworkPayload) -> Iterator[Sighting]:
    for printer in _with_status(payload, "moved"):
        places = {"old": printer.address or "", "new": printer.matched_endpoint or ""}
        yield {**_words_of(printer), **places}


def _unjudged(payload: NetworkPayload) -> Iterator[Sighting]:
    # Whether one at a cable, or paired, is there, many systems do not tell.
    network = (p for p in _with_status(payload, "unknown") if p.transport == "network")
    return map(_words_of, network)


def _complaining(payload: NetworkPayload) -> Iterator[Sighting]:
    for printer in payload.printers or ():
        says = ", ".join(_complaints(printer.reason or ""))
        if says:
            yield {**_words_of(printer), "says": says}


def _complaints(reason: str) -> Iterator[str]:
    """Yield what a reason quotes of a printer that somebody has to see to."""
    for quoted in dict.fromkeys(_SAYS.findall(reason)):
        for each in re.split(r", | and ", quoted):
            if not _HARMLESS.match(each):
                yield each
    if any(stopped in reason for stopped in _STOPPED):
        yield "stopped"


PRINTER_RULES: Final[tuple[Rule[NetworkPayload], ...]] = (
    Rule(
        "printer-moved",
        "problem",
        "printers[].status, matchedEndpoint",
        "unreachable, and found at another address",
        "{printer} has moved from {old} to {new}.",
        "set it up with the new address, or have the router give it a fixed one",
        _moved,
    ),
    Rule(
        "printer-unreachable",
        "problem",
        "printers[].status",
        "unreachable, and found nowhere else",
        "{printer} {at} is not reachable.",
        "see that it is on and connected; the reason stands under Printers",
        _unreachable,
    ),
    Rule(
        "printer-needs-attention",
        "warning",
        "printers[].reason",
        "quotes the printer or its queue as stopped, out of paper or toner, jammed, open, …",
        "{printer} needs attention: {says}.",
        "go to the printer: its panel says what it needs; then resume its queue",
        _complaining,
    ),
    Rule(
        "printer-not-judged",
        "note",
        "printers[].status, transport",
        "unknown, of a printer on the network",
        "{printer} {at} could not be judged.",
        "the reason stands under Printers",
        _unjudged,
    ),
)
