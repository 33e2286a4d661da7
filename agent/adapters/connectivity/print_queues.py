"""Reads the state of the print queues with one request to CUPS (IPP, RFC 8010 and RFC 8011).

`collectors.shared.ipp` decodes every kind of reply and would need 400 KiB in the idle daemon. Here
only five attributes are requested.
"""

import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agent.adapters.connectivity.local_http import exchange
from agent.rules.connectivity.local_faults import LocalState
from agent.wire.controls import without_controls

QUEUES_MAX: Final = 32
NAME_MAX, REASONS_MAX, REASON_MAX = 127, 4, 64

_GET_PRINTERS: Final = 0x4002  # CUPS-Get-Printers
_PRINTER_GROUP, _END, _LAST_DELIMITER = 0x04, 0x03, 0x0F
_STOPPED: Final = b"\0\0\0\5"  # printer-state (RFC 8011, section 5.4.11)
_HEADER: Final = struct.Struct("!BBHI")
_NAME, _STATE, _REASONS, _ACCEPTING, _CHANGED = (
    b"printer-name",
    b"printer-state",
    b"printer-state-reasons",
    b"printer-is-accepting-jobs",
    b"printer-state-change-time",
)

Attributes = dict[bytes, list[bytes]]


async def ask_queues(socket: Path) -> dict[str, LocalState] | None:
    """Return the state of each queue by name; None if CUPS does not answer. Never raises."""
    body = _request()
    head = (
        "POST / HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/ipp\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    try:
        return parse_queues(await exchange(socket, head.encode("ascii") + body))
    except (OSError, ValueError):
        return None


def parse_queues(reply: bytes) -> dict[str, LocalState]:
    """Return the state of the queues in a reply. Raises ValueError if it is malformed.

    CUPS without queues replies with the status "not found".
    """
    if len(reply) < _HEADER.size:
        raise ValueError("shorter than an IPP header")
    status = int.from_bytes(reply[2:4], "big")
    if status >= 0x0100:
        if status == 0x0406:
            return {}
        raise ValueError(f"the IPP status is 0x{status:04x}")
    queues: dict[str, LocalState] = {}
    for printer in _printers(reply):
        name = _text(b"".join(printer.get(_NAME, ())), NAME_MAX)
        if name and len(queues) < QUEUES_MAX:
            queues[name] = _state(printer)
    return queues


def _state(printer: Attributes) -> LocalState:
    seconds = [int.from_bytes(each, "big") for each in printer.get(_CHANGED, ()) if len(each) == 4]
    changed_at = datetime.fromtimestamp(seconds[0], UTC) if seconds and seconds[0] else None
    texts = (_text(each, REASON_MAX) for each in printer.get(_REASONS, ()) if each != b"none")
    reasons = list(texts)[:REASONS_MAX]
    why = f" ({', '.join(reasons)})" if reasons else ""
    if printer.get(_STATE) == [_STOPPED]:
        return LocalState(f"stopped{why}", changed_at)
    if printer.get(_ACCEPTING) == [b"\0"]:
        return LocalState("it accepts no jobs")
    return LocalState(None, changed_at)


def _text(value: bytes, limit: int) -> str:
    return " ".join(without_controls(value.decode("utf-8", "replace")).split())[:limit]


def _request() -> bytes:
    attributes = [
        _attribute(0x47, b"attributes-charset", b"utf-8"),
        _attribute(0x48, b"attributes-natural-language", b"en"),
    ]
    wanted = (b"requested-attributes", b"", b"", b"", b"")
    values = (_NAME, _STATE, _REASONS, _ACCEPTING, _CHANGED)
    attributes += [_attribute(0x44, n, v) for n, v in zip(wanted, values, strict=True)]
    return b"".join((_HEADER.pack(1, 1, _GET_PRINTERS, 1), b"\1", *attributes, bytes([_END])))


def _attribute(tag: int, name: bytes, value: bytes) -> bytes:
    return struct.pack("!BH", tag, len(name)) + name + struct.pack("!H", len(value)) + value


def _printers(reply: bytes) -> Iterator[Attributes]:
    """Yield the attributes of each printer. Raises ValueError if the reply ends within one."""
    at, name = _HEADER.size, b""
    present: Attributes | None = None
    while True:
        tag, at = _bytes(reply, at, 1)
        if tag[0] <= _LAST_DELIMITER:
            if present is not None:
                yield present
            if tag[0] == _END:
                return
            present = {} if tag[0] == _PRINTER_GROUP else None
            continue
        own, at = _sized(reply, at)
        value, at = _sized(reply, at)
        name = own or name
        if present is not None:
            present.setdefault(name, []).append(value)


def _sized(reply: bytes, at: int) -> tuple[bytes, int]:
    length, at = _bytes(reply, at, 2)
    return _bytes(reply, at, int.from_bytes(length, "big"))


def _bytes(reply: bytes, at: int, count: int) -> tuple[bytes, int]:
    if at + count > len(reply):
        raise ValueError("the reply ends within an attribute")
    return reply[at : at + count], at + count
