"""A printer's name and status for users: the contract's status, or "moved" to another address."""

from collections import Counter
from typing import Final, Literal

from agent.presentation.plain_text import shorten
from agent.presentation.severity import Severity
from agent.wire.addresses import parse_ip, split_host_port
from agent.wire.payloads.network import Printer

Status = Literal["unreachable", "moved", "unknown", "reachable"]

STATUS_SEVERITIES: Final[dict[Status, Severity]] = {
    "unreachable": "bad",
    "moved": "bad",
    "unknown": "warn",
    "reachable": "good",
}
STATUS_ORDER: Final = tuple(STATUS_SEVERITIES)
"""Statuses that need attention come first."""


def printer_name(printer: Printer) -> str:
    return shorten(printer.name) or shorten(printer.id) or "(no name)"


def described_name(printer: Printer) -> str:
    """Return the name as the subject of a sentence: ``The printer Bar``, ``Bar printer``."""
    name = printer_name(printer)
    return name if "printer" in name.casefold() else f"The printer {name}"


def status_of(printer: Printer) -> Status:
    """Return a printer's status: "moved" if it is unreachable and was matched at another address.

    Two addresses are compared only if both are IPv4 or both are IPv6. In two other cases, a printer
    might still have its configured address, and stays "unreachable": if a host name is configured,
    or if an IPv4 address is configured and the printer was matched at an IPv6 address.
    """
    if printer.status != "unreachable" or not printer.matched_endpoint:
        return printer.status
    return "moved" if is_other_address(printer.address, printer.matched_endpoint) else "unreachable"


def is_other_address(one: str | None, other: str | None) -> bool:
    """Return whether these are two different IPv4 or two different IPv6 addresses.

    Both may have a port, which is ignored.
    """
    first, second = (parse_ip(split_host_port(address or "")[0]) for address in (one, other))
    return bool(first and second and first.version == second.version and first != second)


def verdict_on(printers: tuple[Printer, ...] | None) -> tuple[str, Severity]:
    """Return one sentence about all printers of this machine, and its severity."""
    if printers is None:
        return "Printers were not checked.", "muted"
    if not printers:
        return "No printer is configured on this machine.", "muted"
    counts = Counter(map(status_of, printers))
    nonzero_counts = [(status, counts[status]) for status in STATUS_ORDER if counts[status]]
    worst = nonzero_counts[0][0]
    if len(nonzero_counts) == 1:
        return _sentence_on_all(worst, len(printers)), STATUS_SEVERITIES[worst]
    counts_text = ", ".join(f"{count} {status}" for status, count in nonzero_counts)
    return f"{len(printers)} printers: {counts_text}.", STATUS_SEVERITIES[worst]


def _sentence_on_all(status: Status, total: int) -> str:
    """Return the sentence for printers that all have the same status."""
    subject, be, have = f"All {total} printers", "are", "have"
    if total == 1:
        subject, be, have = "The printer", "is", "has"
    if status == "moved":
        return f"{subject} {have} moved to another address."
    return f"{subject} {be} {'in an unknown state' if status == 'unknown' else status}."
