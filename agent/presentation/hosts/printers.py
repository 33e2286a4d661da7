"""One sentence about the printers of a report.

If this machine has no printer, the sentence names the printers on the network.
"""

from typing import Final

from agent.presentation.hosts.rows import host_rows
from agent.presentation.printer_status import verdict_on
from agent.presentation.severity import Severity
from agent.wire.payloads.network import NetworkPayload

NAMED_MAX: Final = 3
"""Maximum number of printers in a sentence."""


def printers_verdict(payload: NetworkPayload) -> tuple[str, Severity]:
    """Return one sentence about the printers, and its severity."""
    verdict, severity = verdict_on(payload.printers)
    on_network = _describe_discovered(payload) if payload.printers == () else ""
    return (f"{verdict.removesuffix('.')}; {on_network}." if on_network else verdict), severity


def _describe_discovered(payload: NetworkPayload) -> str:
    """Return the number of printers on the network, and the first ones with their addresses.

    For example: ``2 discovered on the network: TM-T88VI at 192.168.1.50, Bar at .51``.
    Return "" if there are none.
    """
    rows = [row for row in host_rows(payload) if row.kind == "printer"]
    if not rows:
        return ""
    network = rows[0].address.rpartition(".")[0]
    printer_names: list[str] = []
    for row in rows[:NAMED_MAX]:
        prefix, _, last_octet = row.address.rpartition(".")
        where = f".{last_octet}" if printer_names and prefix and prefix == network else row.address
        printer_names.append(f"{row.model or row.name or row.known_maker or 'one'} at {where}")
    more = f" and {len(rows) - len(printer_names)} more" if len(rows) > len(printer_names) else ""
    return f"{len(rows)} discovered on the network: {', '.join(printer_names)}{more}"
