"""Encodes IPP requests to printers and spoolers, and decodes the replies (RFC 8010, RFC 8011).

No operation here prints, changes or creates anything.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from collectors.shared.text import decode

GET_JOBS = 0x000A
GET_PRINTER_ATTRIBUTES = 0x000B
CUPS_GET_PRINTERS = 0x4002
"""Defined in the document "CUPS Implementation of IPP", section "CUPS-Get-Printers"."""

NOT_FOUND = 0x0406
CONTENT_TYPE = "application/ipp"
RESPONSE_MAX_BYTES = 4 * 1024 * 1024
ATTRIBUTES_MAX = 50_000
COLLECTION_DEPTH_MAX = 16
OPERATION_GROUP = 0x01
JOB_GROUP = 0x02
PRINTER_GROUP = 0x04

_HEADER = struct.Struct("!BBHI")
_LENGTH = struct.Struct("!H")
_INTEGER = struct.Struct("!i")
_VERSION = (1, 1)  # the highest version that every printer must support
_REQUEST_ID = 1
_END = 0x03
_LAST_DELIMITER = 0x0F
_INTEGER_TAGS = frozenset({0x21, 0x23})  # integer, enum
_BOOLEAN = 0x22
_BEGIN_COLLECTION, _END_COLLECTION = 0x34, 0x37
_WITH_LANGUAGE = frozenset({0x35, 0x36})  # textWithLanguage, nameWithLanguage
_FIRST_TEXT_TAG, _LAST_TEXT_TAG = 0x40, 0x5F
_OUT_OF_BAND = range(0x10, 0x20)
_KEYWORD, _URI, _CHARSET, _LANGUAGE = 0x44, 0x45, 0x47, 0x48
_SUCCESSFUL_BELOW = 0x0100
_PRINTER_STATES: Mapping[int, Literal["idle", "processing", "stopped"]] = {
    3: "idle",
    4: "processing",
    5: "stopped",
}
"""The values of printer-state (RFC 8011, section 5.4.11)."""


class IppError(ValueError):
    """The bytes are not an IPP response."""


Value = int | bool | str | bytes


@dataclass(frozen=True, slots=True)
class Group:
    """The attributes of one object, as values by name.

    ``tag`` is the group's delimiter (RFC 8010, section 3.5.1).
    """

    tag: int
    attributes: Mapping[str, Sequence[Value]]

    def values(self, name: str) -> Sequence[Value]:
        return self.attributes.get(name, ())

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the string values of an attribute; () if it has none."""
        return tuple(value for value in self.values(name) if isinstance(value, str))

    def text(self, name: str) -> str | None:
        return next(iter(self.texts(name)), None)

    def integer(self, name: str) -> int | None:
        values = (value for value in self.values(name) if not isinstance(value, bool))
        return next((value for value in values if isinstance(value, int)), None)

    def boolean(self, name: str) -> bool | None:
        return next((value for value in self.values(name) if isinstance(value, bool)), None)

    @property
    def printer_state(self) -> Literal["idle", "processing", "stopped"] | None:
        return _PRINTER_STATES.get(self.integer("printer-state") or 0)


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

    @property
    def jobs(self) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if group.tag == JOB_GROUP)


def encode_request(
    operation: int,
    *,
    requested: Sequence[str],
    printer_uri: str | None = None,
    which_jobs: str | None = None,
) -> bytes:
    """Encode a request for attributes of printers or jobs.

    Without ``printer_uri``, the request is for all printers of a spooler.
    """
    parts = [
        _HEADER.pack(*_VERSION, operation, _REQUEST_ID),
        bytes([OPERATION_GROUP]),
        _attribute(_CHARSET, "attributes-charset", ("utf-8",)),
        _attribute(_LANGUAGE, "attributes-natural-language", ("en",)),
    ]
    if printer_uri is not None:
        parts.append(_attribute(_URI, "printer-uri", (printer_uri,)))
    if which_jobs is not None:
        parts.append(_attribute(_KEYWORD, "which-jobs", (which_jobs,)))
    parts.append(_attribute(_KEYWORD, "requested-attributes", requested))
    return b"".join((*parts, bytes([_END])))


def decode_response(data: bytes) -> Response:
    """Decode a response. Bytes after the end tag are ignored.

    Strings are decoded as UTF-8, with U+FFFD for invalid bytes. They are not cleaned
    (`clean_text`). Raises IppError if ``data`` is not a response.
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
        bytes([tag]) + _with_length(attribute.encode()) + _with_length(value.encode())
        for attribute, value in zip(names, values, strict=True)
    )


def _with_length(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _read_groups(data: bytes) -> Iterator[Group]:
    """Yield the groups. Collections (RFC 8010, section 3.1.6) are skipped, because no caller needs
    them."""
    group_tag = depth = 0  # no group or collection has begun
    attributes: dict[str, list[Value]] = {}
    values: list[Value] = []
    for tag, name, raw in _read_items(data):
        if tag <= _LAST_DELIMITER:
            if depth:
                raise IppError("a collection has no end")
            if group_tag:
                yield Group(group_tag, attributes)
            group_tag, attributes, values = tag, {}, []
            continue
        if not group_tag:
            raise IppError("a value stands outside any group")
        if name and not depth:
            values = attributes.setdefault(name, [])
        is_value = depth == 0 and tag not in (_BEGIN_COLLECTION, _END_COLLECTION)
        depth = _depth_after(tag, depth)
        if is_value and (value := _read_value(tag, raw)) is not None:
            values.append(value)


def _depth_after(tag: int, depth: int) -> int:
    """Return how many nested collections are open after an item."""
    if tag == _END_COLLECTION and depth == 0:
        raise IppError("the end of a collection has no beginning")
    if tag == _BEGIN_COLLECTION and depth == COLLECTION_DEPTH_MAX:
        raise IppError("collections are nested too deeply")
    return depth + (tag == _BEGIN_COLLECTION) - (tag == _END_COLLECTION)


def _read_items(data: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Yield the tag, name and value of each item, including the end tag.

    The name and value of a delimiter are empty.
    """
    offset = _HEADER.size
    for _ in range(ATTRIBUTES_MAX):
        tag, name, value = data[offset], b"", b""
        offset += 1
        if tag > _LAST_DELIMITER:
            name, offset = _read_with_length(data, offset)
            value, offset = _read_with_length(data, offset)
        yield tag, decode(name), value
        if tag == _END:
            return
    raise IppError("more attributes than any printer has")


def _read_with_length(data: bytes, offset: int) -> tuple[bytes, int]:
    (size,) = _LENGTH.unpack_from(data, offset)
    start = offset + _LENGTH.size
    if start + size > len(data):
        raise IppError("a value runs over the end of the message")
    return data[start : start + size], start + size


def _read_value(tag: int, value: bytes) -> Value | None:
    """Decode a value. Returns None for out-of-band values such as "unknown" and "no-value"."""
    if tag in _INTEGER_TAGS and len(value) == _INTEGER.size:
        return int(_INTEGER.unpack(value)[0])
    if tag == _BOOLEAN and len(value) == 1:
        return value != b"\0"
    if tag in _WITH_LANGUAGE:
        return _read_localized(value)
    if _FIRST_TEXT_TAG <= tag <= _LAST_TEXT_TAG:
        return decode(value)
    if tag in _OUT_OF_BAND:
        return None
    return value


def _read_localized(value: bytes) -> str:
    """Return the text of a textWithLanguage or nameWithLanguage value (RFC 8010, section 3.9)."""
    _, offset = _read_with_length(value, 0)
    text, _ = _read_with_length(value, offset)
    return decode(text)
