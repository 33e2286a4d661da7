"""IPP messages: the two questions asked and the replies to them (RFC 8010, RFC 8011).

Only what the collector needs: no collections are kept and no operation here prints, changes or
creates anything.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

GET_PRINTER_ATTRIBUTES = 0x000B
CUPS_GET_PRINTERS = 0x4002
"""CUPS implementation of IPP, section "CUPS-Get-Printers"."""

CONTENT_TYPE = "application/ipp"
RESPONSE_MAX_BYTES = 4 * 1024 * 1024
ATTRIBUTES_MAX = 50_000
OPERATION_GROUP = 0x01
PRINTER_GROUP = 0x04

_HEADER = struct.Struct("!BBHI")
_LENGTH = struct.Struct("!H")
_INTEGER = struct.Struct("!i")
_VERSION = (1, 1)  # the highest every printer must understand
_REQUEST_ID = 1
_END = 0x03
_LAST_DELIMITER = 0x0F
_INTEGER_TAGS = frozenset({0x21, 0x23})  # integer, enum
_BOOLEAN = 0x22
_BEGIN_COLLECTION, _END_COLLECTION = 0x34, 0x37
_WITH_LANGUAGE = frozenset({0x35, 0x36})
_FIRST_TEXT_TAG, _LAST_TEXT_TAG = 0x40, 0x5F
_OUT_OF_BAND = range(0x10, 0x20)
_KEYWORD, _URI, _CHARSET, _LANGUAGE = 0x44, 0x45, 0x47, 0x48
_SUCCESSFUL_BELOW = 0x0100

Value = int | bool | str | bytes


class IppError(ValueError):
    """The bytes are not an IPP response."""


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Attributes of one object; ``tag`` is the group's delimiter (RFC 8010, section 3.5.1)."""

    tag: int
    attributes: tuple[Attribute, ...]

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the string values of an attribute, () when there are none."""
        values = (v for a in self.attributes if a.name == name for v in a.values)
        return tuple(v for v in values if isinstance(v, str))

    def text(self, name: str) -> str | None:
        return next(iter(self.texts(name)), None)

    def integer(self, name: str) -> int | None:
        values = (v for a in self.attributes if a.name == name for v in a.values)
        return next((v for v in values if isinstance(v, int)), None)


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    groups: tuple[Group, ...]

    @property
    def is_successful(self) -> bool:
        return self.status < _SUCCESSFUL_BELOW

    @property
    def printers(self) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if group.tag == PRINTER_GROUP)


def encode_request(
    operation: int, *, requested: Sequence[str], printer_uri: str | None = None
) -> bytes:
    """Encode a request for attributes of one printer, or of all the printers of a spooler."""
    parts = [
        _HEADER.pack(*_VERSION, operation, _REQUEST_ID),
        bytes([OPERATION_GROUP]),
        _attribute(_CHARSET, "attributes-charset", ("utf-8",)),
        _attribute(_LANGUAGE, "attributes-natural-language", ("en",)),
    ]
    if printer_uri is not None:
        parts.append(_attribute(_URI, "printer-uri", (printer_uri,)))
    parts.append(_attribute(_KEYWORD, "requested-attributes", requested))
    return b"".join((*parts, bytes([_END])))


def decode_response(data: bytes) -> Response:
    """Decode a response; what follows the end tag is ignored. Raises IppError for anything else.

    Strings are decoded as UTF-8 with replacement and are not cleaned.
    """
    if len(data) < _HEADER.size:
        raise IppError("shorter than an IPP header")
    _, _, status, _ = _HEADER.unpack_from(data)
    try:
        return Response(status, tuple(_read_groups(data)))
    except (struct.error, IndexError) as error:
        raise IppError("the message ends within an attribute") from error


def _attribute(tag: int, name: str, values: Sequence[str]) -> bytes:
    names = (name, *([""] * (len(values) - 1)))
    return b"".join(
        bytes([tag]) + _sized(each.encode()) + _sized(value.encode())
        for each, value in zip(names, values, strict=True)
    )


def _sized(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _read_groups(data: bytes) -> Iterator[Group]:
    tag = 0
    names: list[str] = []
    values: list[list[Value]] = []
    for delimiter, name, value in _read_items(data):
        if delimiter is not None:
            if tag:
                yield Group(tag, _joined(names, values))
            tag, names, values = delimiter, [], []
        elif name:
            names.append(name)
            values.append([] if value is None else [value])
        elif values and value is not None:
            values[-1].append(value)
    if tag:
        yield Group(tag, _joined(names, values))


def _joined(names: list[str], values: list[list[Value]]) -> tuple[Attribute, ...]:
    return tuple(Attribute(n, tuple(v)) for n, v in zip(names, values, strict=True))


def _read_items(data: bytes) -> Iterator[tuple[int | None, str, Value | None]]:
    """Yield ``(delimiter, "", None)`` for a group's begin, ``(None, name, value)`` for a value.

    Members of collections are passed over: only the collection's name is told.
    """
    offset, depth, count = _HEADER.size, 0, 0
    while data[offset] != _END:
        tag = data[offset]
        offset += 1
        if tag <= _LAST_DELIMITER:
            depth = 0
            yield tag, "", None
            continue
        name, offset = _read_sized(data, offset)
        value, offset = _read_sized(data, offset)
        count += 1
        if count > ATTRIBUTES_MAX:
            raise IppError("more attributes than any printer has")
        if tag == _END_COLLECTION:
            depth = max(0, depth - 1)
            continue
        if depth == 0:
            yield None, name.decode("utf-8", "replace"), _read_value(tag, value)
        depth += tag == _BEGIN_COLLECTION


def _read_sized(data: bytes, offset: int) -> tuple[bytes, int]:
    (size,) = _LENGTH.unpack_from(data, offset)
    start = offset + _LENGTH.size
    if start + size > len(data):
        raise IppError("a value runs over the end of the message")
    return data[start : start + size], start + size


def _read_value(tag: int, value: bytes) -> Value | None:
    """None for values without meaning here: "unknown", "no-value", a collection's begin."""
    if tag in _INTEGER_TAGS and len(value) == _INTEGER.size:
        return int(_INTEGER.unpack(value)[0])
    if tag == _BOOLEAN and len(value) == 1:
        return value != b"\0"
    if tag in _WITH_LANGUAGE:
        return _read_localized(value)
    if _FIRST_TEXT_TAG <= tag <= _LAST_TEXT_TAG:
        return value.decode("utf-8", "replace")
    if tag in _OUT_OF_BAND or tag == _BEGIN_COLLECTION:
        return None
    return value


def _read_localized(value: bytes) -> str:
    """Return the text of a textWithLanguage value (RFC 8010, section 3.9)."""
    _, offset = _read_sized(value, 0)
    text, _ = _read_sized(value, offset)
    return text.decode("utf-8", "replace")
