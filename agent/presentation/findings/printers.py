"""Rules for the printers of a network report."""

import re
from collections.abc import Iterator
from typing import Final

from agent.presentation.findings.rule import NoteRule, ProblemRule, Rule, Values, WarningRule
from agent.presentation.printer_status import Status, described_name, status_of
from agent.wire.payloads.network import NetworkPayload, Printer

_QUOTED: Final = re.compile(r"\b[Tt]he (?:printer|spooler) reports: ([^;]+)")
"""Matches the messages of the printer or the spooler in the reason of a printer's status."""
_HARMLESS: Final = re.compile(
    r"low on |asked to |holds new jobs|.* nearly |wifi not configured|cups (?:waiting|ipp) "
)
"""Matches messages that need no action yet: about supplies that run low, parts that are nearly full
or used up, a request to identify the printer, held jobs, an unused Wi-Fi, or the state of CUPS."""
_STOPPED: Final = (
    "the printer reports that it is stopped",
    "its queue is stopped on this machine",
)
"""The collector's texts for a stopped printer or queue."""


def _with_status(payload: NetworkPayload, status: Status) -> Iterator[Printer]:
    return (printer for printer in payload.printers or () if status_of(printer) == status)


def _values(printer: Printer) -> dict[str, str]:
    at = f"at {printer.address}" if printer.address else ""
    return {"printer": described_name(printer), "at": at}


def _unreachable(payload: NetworkPayload) -> Iterator[Values]:
    return map(_values, _with_status(payload, "unreachable"))


def _moved(payload: NetworkPayload) -> Iterator[Values]:
    for printer in _with_status(payload, "moved"):
        addresses = {"old": printer.address or "", "new": printer.matched_endpoint or ""}
        yield _values(printer) | addresses


def _in_unknown_state(payload: NetworkPayload) -> Iterator[Values]:
    # Many systems cannot detect whether a USB or Bluetooth printer is connected, so the unknown
    # state of such a printer is not a finding.
    network = (p for p in _with_status(payload, "unknown") if p.transport == "network")
    return map(_values, network)


def _complaining(payload: NetworkPayload) -> Iterator[Values]:
    for printer in payload.printers or ():
        if complaints := complaints_of(printer):
            yield _values(printer) | {"complaints": complaints}


def complaints_of(printer: Printer) -> str:
    """Return what needs a user's attention at a printer; "" if nothing does."""
    return ", ".join(_complaints(printer.reason or ""))


def _complaints(reason: str) -> Iterator[str]:
    """Yield those messages in the ``reason`` of a printer's status that need a user's attention."""
    for messages in dict.fromkeys(_QUOTED.findall(reason)):
        for message in re.split(r", | and ", messages):
            if not _HARMLESS.match(message):
                yield message
    if any(phrase in reason for phrase in _STOPPED):
        yield "stopped"


PRINTER_RULES: Final[tuple[Rule[NetworkPayload], ...]] = (
    ProblemRule(
        "printer-moved",
        "printers[].status, matchedEndpoint",
        "unreachable, and discovered at another address",
        "{printer} has moved from {old} to {new}.",
        "configure the new address, or give the printer a fixed address in the router",
        _moved,
    ),
    ProblemRule(
        "printer-unreachable",
        "printers[].status",
        "unreachable, and not discovered elsewhere",
        "{printer} {at} is not reachable.",
        "check that it is on and connected; the reason is listed under Printers",
        _unreachable,
    ),
    WarningRule(
        "printer-needs-attention",
        "printers[].reason",
        "contains a problem of the printer or its queue: stopped, out of paper or toner, jammed,"
        " open, …",
        "{printer} needs attention: {complaints}.",
        "go to the printer and check its display; then resume its queue",
        _complaining,
    ),
    NoteRule(
        "printer-not-judged",
        "printers[].status, transport",
        "unknown, for a printer on the network",
        "{printer} {at} has an unknown state.",
        "see the reason under Printers",
        _in_unknown_state,
    ),
)
