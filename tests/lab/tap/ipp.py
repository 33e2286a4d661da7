"""The IPP side of the LAN that is played: Get-Printer-Attributes, answered from the plan (RFC 8010,
section 3)."""

import struct
from collections.abc import Iterable, Sequence

from tests.lab.tap.plan import IppPrinter

_OK, _NOT_FOUND = 0x0000, 0x0406
_ENUM, _TEXT, _NAME, _KEYWORD, _URI = 0x23, 0x41, 0x42, 0x44, 0x45
_CHARSET, _LANGUAGE = 0x47, 0x48
_OPERATION, _PRINTER, _END = b"\x01", b"\x04", b"\x03"
_TAGS = {
    "attributes-charset": _CHARSET,
    "attributes-natural-language": _LANGUAGE,
    "printer-dns-sd-name": _NAME,
    "printer-name": _NAME,
    "printer-state": _ENUM,
    "printer-state-reasons": _KEYWORD,
    "printer-uuid": _URI,
}
"""Tags of the attributes that are no text."""


def lab_printer(uuid: str, *attributes: str, path: str = "/ipp/print") -> IppPrinter:
    """Return a printer that is idle, unless further attributes say otherwise."""
    own = ("printer-make-and-model=Lab Printer 1", "printer-state=3")
    named = {each.partition("=")[0] for each in attributes}
    kept = (each for each in own if each.partition("=")[0] not in named)
    return IppPrinter(path, (f"printer-uuid=urn:uuid:{uuid}", *kept, *attributes))


def ipp_answer(printers: Sequence[IppPrinter], request: bytes) -> bytes:
    """Return the HTTP reply to a request: the printer at its path, or that there is none."""
    path = request.split(b" ", 2)[1].decode("latin-1")
    found = next((each for each in printers if each.path == path), None)
    body = struct.pack("!BBHI", 1, 1, _NOT_FOUND if found is None else _OK, 1) + _OPERATION
    body += _values(("attributes-charset=utf-8", "attributes-natural-language=en"))
    body += b"" if found is None else _PRINTER + _values(found.attributes)
    body += _END
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/ipp\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


def _values(attributes: Iterable[str]) -> bytes:
    written, before = b"", ""
    for each in attributes:
        name, _, text = each.partition("=")
        tag = _TAGS.get(name, _TEXT)
        value = struct.pack("!i", int(text)) if tag == _ENUM else text.encode()
        label = b"" if name == before else name.encode()  # a further value has no name
        written += struct.pack("!BH", tag, len(label)) + label
        written += struct.pack("!H", len(value)) + value
        before = name
    return written
