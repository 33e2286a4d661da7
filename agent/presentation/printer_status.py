"""A printer's status in words: that of the contract, and "moved" where it was found elsewhere."""

import ipaddress
from typing import Final, Literal

from agent.presentation.tone import Tone
from agent.wire.addresses import split_host_port
from agent.wire.payloads.network import Printer

StatusWord = Literal["unreachable", "moved", "unknown", "reachable"]

STATUS_ORDER: Final[tuple[StatusWord, ...]] = ("unreachable", "moved", "unknown", "reachable")
"""What needs attention comes first."""

STATUS_TONES: Final[dict[StatusWord, Tone]] = {
    "unreachable": "bad",
    "moved": "bad",
    "unknown": "warn",
    "reachable": "good",
}


def status_of(printer: Printer) -> StatusWord:
    """Return "moved" for an unreachable printer that was matched at another address.

    Only addresses of one family can tell: a printer set up by its name, or one seen by IPv6 that
    is set up by IPv4, may well be where it was.
    """
    if printer.status != "unreachable" or not printer.matched_endpoint:
        return printer.status
    expected, found = _ip_of(printer.address or ""), _ip_of(printer.matched_endpoint)
    if expected is None or found is None or expected.version != found.version:
        return "unreachable"
    return "unreachable" if expected == found else "moved"


def verdict_on(printers: tuple[Printer, ...] | None) -> tuple[str, Tone]:
    """Return the answer to "do the printers work?" in one sentence, and its tone."""
    if printers is None:
        return "Printers were not looked at.", "muted"
    if not printers:
        return "No printer is set up on this machine.", "muted"
    counts = [(word, sum(status_of(p) == word for p in printers)) for word in STATUS_ORDER]
    found = [(word, count) for word, count in counts if count]
    worst = found[0][0]
    if len(found) == 1:
        return _all_alike(worst, len(printers)), STATUS_TONES[worst]
    listed = ", ".join(f"{count} {word}" for word, count in found)
    return f"{len(printers)} printers: {listed}.", STATUS_TONES[worst]


def _all_alike(word: StatusWord, total: int) -> str:
    who, be, have = ("The printer", "is", "has") if total == 1 else _plural(total)
    if word == "moved":
        return f"{who} {have} moved to another address."
    return f"{who} {be} {'in an unknown state' if word == 'unknown' else word}."


def _plural(total: int) -> tuple[str, str, str]:
    return f"All {total} printers", "are", "have"


def _ip_of(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(split_host_port(address)[0])
    except ValueError:
        return None
