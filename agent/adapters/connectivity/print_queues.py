"""Reads the state of the print queues with one request to CUPS (IPP)."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agent.adapters.connectivity.local_http import exchange_local
from agent.rules.connectivity.local_faults import LocalState
from collectors.shared import ipp
from collectors.shared.http import build_post_request
from collectors.shared.text import clean_text

QUEUES_MAX: Final = 32
NAME_MAX, REASON_MAX = 127, 64  # characters
REASONS_MAX: Final = 4  # of one queue
_IPP_REQUEST: Final = ipp.encode_request(
    ipp.CUPS_GET_PRINTERS,
    requested=(
        "printer-name",
        "printer-state",
        "printer-state-reasons",
        "printer-is-accepting-jobs",
        "printer-state-change-time",
    ),
)


async def query_queues(socket: Path) -> dict[str, LocalState] | None:
    """Return the state of each queue by name; None if CUPS does not answer. Never raises."""
    request = build_post_request("localhost", "/", ipp.CONTENT_TYPE, _IPP_REQUEST)
    try:
        return parse_queues(await exchange_local(socket, request))
    except (OSError, ValueError):
        return None


def parse_queues(reply: bytes) -> dict[str, LocalState]:
    """Return the state of the queues in a reply. Raises ValueError if it is malformed.

    CUPS without queues replies with the status "not found".
    """
    response = ipp.decode_response(reply)
    if not response.is_successful and response.status != ipp.NOT_FOUND:
        raise ValueError(f"the IPP status is 0x{response.status:04x}")
    queues: dict[str, LocalState] = {}
    for printer in response.printers:
        name = clean_text(printer.text("printer-name") or "", NAME_MAX)
        if name and len(queues) < QUEUES_MAX:
            queues[name] = _state(printer)
    return queues


def _state(printer: ipp.Group) -> LocalState:
    seconds = printer.integer("printer-state-change-time")
    changed_at = datetime.fromtimestamp(seconds, UTC) if seconds and seconds > 0 else None
    texts = [text for text in printer.texts("printer-state-reasons") if text != "none"]
    reasons = ", ".join(clean_text(text, REASON_MAX) for text in texts[:REASONS_MAX])
    if printer.printer_state == "stopped":
        return LocalState(f"stopped ({reasons})" if reasons else "stopped", changed_at)
    if printer.boolean("printer-is-accepting-jobs") is False:
        # `changed_at` does not apply: it is the time at which the printer's state changed.
        return LocalState("it accepts no jobs")
    return LocalState(None, changed_at)
