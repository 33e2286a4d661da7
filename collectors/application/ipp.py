"""The Internet Printing Protocol's encoding, as far as a local spooler is asked (RFC 8010)."""

import struct
from dataclasses import dataclass, field
from typing import Final

from collectors.shared.text import decode

Value = int | bool | str
Attributes = dict[str, list[Value]]

JOB_ATTRIBUTES: Final = 0x02
PRINTER_ATTRIBUTES: Final = 0x04

_OPERATION_ATTRIBUTES: Final = 0x01
_END: Final = 0x03
_INTEGER: Final = 0x21
_BOOLEAN: Final = 0x22
_ENUM: Final = 0x23
_KEYWORD: Final = 0x44
_URI: Final = 0x45
_CHARSET: Final = 0x47
_LANGUAGE: Final = 0x48
_TEXTS: Final = range(0x40, 0x60)
_FIRST_VALUE_TAG: Final = 0x10
_VERSION: Final = b"\x02\x00"
_NUMBER_BYTES: Final = 4
_GROUPS_MAX: Final = 4096


@dataclass(slots=True)
class Group:
    """One group of attributes; ``tag`` says of what."""

    tag: int
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """``status`` below 0x0100 is success (RFC 8011, appendix B)."""

    status: int
    groups: tuple[Group, ...]

    def of(self, tag: int) -> list[Attributes]:
        return [group.attributes for group in self.groups if group.tag == tag]


def encode_request(
    operation: int, uri: str | None, wanted: tuple[str, ...], **keywords: str
) -> bytes:
    """A request for the attributes ``wanted``; underscores in ``keywords`` stand for hyphens."""
    parts = [
        _VERSION + struct.pack(">HI", operation, 1) + bytes([_OPERATION_ATTRIBUTES]),
        _attribute(_CHARSET, "attributes-charset", "utf-8"),
        _attribute(_LANGUAGE, "attributes-natural-language", "en"),
    ]
    if uri is not None:
        parts.append(_attribute(_URI, "printer-uri", uri))
    parts += [_attribute(_KEYWORD, k.replace("_", "-"), v) for k, v in keywords.items()]
    for index, name in enumerate(wanted):
        parts.append(_attribute(_KEYWORD, "" if index else "requested-attributes", name))
    return b"".join((*parts, bytes([_END])))


def parse_response(data: bytes) -> Response:
    """Read a response. Raises ValueError when it is cut or malformed."""
    if len(data) < 8:  # version, status, request id
        raise ValueError("the IPP response is cut")
    status = int.from_bytes(data[2:4], "big")
    groups: list[Group] = []
    name, position = "", 8
    while position < len(data):
        tag = data[position]
        position += 1
        if tag == _END:
            return Response(status, tuple(groups))
        if tag < _FIRST_VALUE_TAG:
            if len(groups) >= _GROUPS_MAX:
                raise ValueError("the IPP response has too many groups")
            groups.append(Group(tag))
            continue
        new_name, position = _counted(data, position)
        content, position = _counted(data, position)
        name = decode(new_name) or name
        value = _value(tag, content)
        if not groups:
            raise ValueError("the IPP response has a value outside any group")
        if value is not None:
            groups[-1].attributes.setdefault(name, []).append(value)
    raise ValueError("the IPP response is cut")


def _counted(data: bytes, position: int) -> tuple[bytes, int]:
    start = position + 2
    end = start + int.from_bytes(data[position:start], "big")
    if start > len(data) or end > len(data):
        raise ValueError("the IPP response is cut")
    return data[start:end], end


def _value(tag: int, content: bytes) -> Value | None:
    if tag in {_INTEGER, _ENUM}:
        if len(content) != _NUMBER_BYTES:
            raise ValueError("an IPP number is malformed")
        return int.from_bytes(content, "big", signed=True)
    if tag == _BOOLEAN:
        return content == b"\x01"
    return decode(content) if tag in _TEXTS else None


def _attribute(tag: int, name: str, value: str) -> bytes:
    text = value.encode()
    return struct.pack(">BH", tag, len(name)) + name.encode() + struct.pack(">H", len(text)) + text
