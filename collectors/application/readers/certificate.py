"""Who issued a TLS certificate, and until when it holds, read from its DER bytes.

Only the way to the issuer and the dates is walked (X.690, RFC 5280 section 4.1): the standard
library tells neither for a certificate it does not trust, which is just the one to look at.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from collectors.shared.text import clean_text

_SEQUENCE: Final = 0x30
_SET: Final = 0x31
_INTEGER: Final = 0x02
_OID: Final = 0x06
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_BMP_STRING: Final = 0x1E
_COMMON_NAME: Final = bytes.fromhex("550403")
_ORGANISATION: Final = bytes.fromhex("55040a")
_LONG_FORM: Final = 0x80
_TIME_FORMATS: Final = {_UTC_TIME: "%y%m%d%H%M%SZ", _GENERALIZED_TIME: "%Y%m%d%H%M%SZ"}


@dataclass(frozen=True, slots=True)
class Issued:
    """``issuer`` is the organisation and the common name, as far as they are given."""

    issuer: str
    expires_at: str


@dataclass(frozen=True, slots=True)
class Element:
    tag: int
    content: bytes


def parse_certificate(der: bytes) -> Issued:
    """Read issuer and end of validity. Raises ValueError for anything malformed."""
    certificate = _first(der, _SEQUENCE)
    fields = list(elements(_first(certificate.content, _SEQUENCE).content))
    if fields and fields[0].tag == _VERSION:
        fields = fields[1:]
    # serialNumber, signature, issuer, validity
    if [field.tag for field in fields[:4]] != [_INTEGER, _SEQUENCE, _SEQUENCE, _SEQUENCE]:
        raise ValueError("not an X.509 certificate")
    return Issued(_name(fields[2].content), _not_after(fields[3].content))


def elements(data: bytes) -> Iterator[Element]:
    """The elements that follow one another in ``data``. Raises ValueError when one is cut."""
    position = 0
    while position < len(data):
        if position + 2 > len(data):
            raise ValueError("a DER element is cut")
        tag, length = data[position], data[position + 1]
        position += 2
        if length & _LONG_FORM:
            size = length & 0x7F
            if not 1 <= size <= 4:  # X.690 allows more, no certificate needs it
                raise ValueError("a DER element has an unusable length")
            length = int.from_bytes(data[position : position + size], "big")
            position += size
        if position + length > len(data):
            raise ValueError("a DER element is cut")
        yield Element(tag, data[position : position + length])
        position += length


def _first(data: bytes, tag: int) -> Element:
    element = next(elements(data), None)
    if element is None or element.tag != tag:
        raise ValueError("not an X.509 certificate")
    return element


def _name(content: bytes) -> str:
    """Organisation and common name of a distinguished name, in that order."""
    found: dict[bytes, str] = {}
    for relative in elements(content):
        if relative.tag != _SET:
            raise ValueError("a distinguished name is malformed")
        for attribute in elements(relative.content):
            kind, value, *_ = (*elements(attribute.content), Element(0, b""), Element(0, b""))
            if kind.tag == _OID:
                encoding = "utf-16-be" if value.tag == _BMP_STRING else "utf-8"
                found[kind.content] = value.content.decode(encoding, "replace")
    parts = (found.get(_ORGANISATION), found.get(_COMMON_NAME))
    return clean_text(", ".join(part for part in parts if part), 256) or "unnamed"


def _not_after(content: bytes) -> str:
    times = list(elements(content))
    if len(times) != 2 or times[1].tag not in _TIME_FORMATS:  # notBefore, notAfter
        raise ValueError("a certificate's validity is malformed")
    text = times[1].content.decode("ascii", "replace")
    moment = datetime.strptime(text, _TIME_FORMATS[times[1].tag]).replace(tzinfo=UTC)
    return moment.isoformat()
