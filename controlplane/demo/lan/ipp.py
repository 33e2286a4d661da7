"""Builds the replies of simulated printers to Get-Printer-Attributes from the plan of the LAN."""

from collections.abc import Iterable, Iterator, Sequence

from controlplane.demo import ipp
from controlplane.demo.lan.plan import IppPrinter

_TAGS = {
    "printer-dns-sd-name": ipp.NAME,
    "printer-name": ipp.NAME,
    "printer-state": ipp.ENUM,
    "printer-state-reasons": ipp.KEYWORD,
    "printer-uuid": ipp.URI,
}
"""IPP value tags of attributes. Attributes that are not listed here have the type text."""


def ipp_answer(printers: Sequence[IppPrinter], request: bytes) -> bytes:
    """Return the HTTP reply to a request.

    The reply has the attributes of the printer at the requested path, or the IPP status not-found.
    """
    path = request.split(b" ", 2)[1].decode("latin-1")
    printer = next((printer for printer in printers if printer.path == path), None)
    if printer is None:
        return ipp.http_response(status=ipp.NOT_FOUND)
    return ipp.http_response((ipp.PRINTER_GROUP, _attributes(printer.attributes)))


def _attributes(lines: Iterable[str]) -> Iterator[ipp.Attribute]:
    previous_name = ""
    for line in lines:
        name, _, text = line.partition("=")
        tag = _TAGS.get(name, ipp.TEXT)
        # The second and each further value of an attribute have an empty name (RFC 8010, 3.1.5).
        yield tag, "" if name == previous_name else name, int(text) if tag == ipp.ENUM else text
        previous_name = name
