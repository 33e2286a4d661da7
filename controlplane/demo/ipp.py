"""Builds the replies of printers and spoolers: IPP messages in HTTP (RFC 8010, sections 3, 4)."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from controlplane.demo.lan.plan import IppPrinter

OPERATION_GROUP, JOB_GROUP, PRINTER_GROUP = 0x01, 0x02, 0x04
"""Delimiter tags (RFC 8010, section 3.5.1)."""
INTEGER, BOOLEAN, ENUM = 0x21, 0x22, 0x23
TEXT, NAME, KEYWORD, URI, CHARSET, LANGUAGE = 0x41, 0x42, 0x44, 0x45, 0x47, 0x48
"""Value tags (RFC 8010, section 3.5.2)."""
OK, NOT_FOUND = 0x0000, 0x0406
"""Status codes (RFC 8011, appendix B)."""
IDLE, STOPPED = 3, 5
"""Values of printer-state (RFC 8011, section 5.4.11)."""

_TAGS: Final = {
    "printer-dns-sd-name": NAME,
    "printer-name": NAME,
    "printer-state": ENUM,
    "printer-state-reasons": KEYWORD,
    "printer-uuid": URI,
}
"""IPP value tags of attributes. Attributes that are not listed here have the type text."""
_END: Final = b"\x03"
_OPERATION_ATTRIBUTES: Final = (
    (CHARSET, "attributes-charset", "utf-8"),
    (LANGUAGE, "attributes-natural-language", "en"),
)
Attribute = tuple[int, str, str | int | bool]
"""A value tag, a name and a value."""
Group = tuple[int, Iterable[Attribute]]
"""A delimiter tag, and the attributes of the group."""


def ipp_answer(printers: Sequence[IppPrinter], request: bytes) -> bytes:
    """Return the HTTP reply to a request.

    The reply has the attributes of the printer at the requested path, or the IPP status not-found.
    """
    path = request.split(b" ", 2)[1].decode("latin-1")
    printer = next((printer for printer in printers if printer.path == path), None)
    if printer is None:
        return http_response(status=NOT_FOUND)
    return http_response((PRINTER_GROUP, _attributes(printer.attributes)))


def _attributes(lines: Iterable[str]) -> Iterator[Attribute]:
    previous_name = ""
    for line in lines:
        name, _, text = line.partition("=")
        tag = _TAGS.get(name, TEXT)
        # The second and each further value of an attribute have an empty name (RFC 8010, 3.1.5).
        yield tag, "" if name == previous_name else name, int(text) if tag == ENUM else text
        previous_name = name


def http_response(*groups: Group, status: int = OK) -> bytes:
    """Return a complete HTTP reply. ``status`` is the IPP status."""
    body = response(*groups, status=status)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/ipp\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


def response(*groups: Group, status: int = OK) -> bytes:
    parts = [struct.pack("!BBHI", 1, 1, status, 1)]  # version 1.1, the status, and request id 1
    for tag, attributes in ((OPERATION_GROUP, _OPERATION_ATTRIBUTES), *groups):
        parts += [bytes([tag]), *map(_attribute, attributes)]
    return b"".join((*parts, _END))


def _attribute(attribute: Attribute) -> bytes:
    tag, name, value = attribute
    if isinstance(value, bool):
        data = bytes([value])
    elif isinstance(value, int):
        data = struct.pack("!i", value)
    else:
        data = value.encode()
    return bytes([tag]) + _with_length(name.encode()) + _with_length(data)


def _with_length(data: bytes) -> bytes:
    return struct.pack("!H", len(data)) + data
