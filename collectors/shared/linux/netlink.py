"""Encodes and decodes netlink messages of the Linux kernel (netlink(7), linux/netlink.h). No I/O.

All functions accept arbitrary bytes. They leave out entries that are incomplete or malformed.
"""

import struct
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

NLMSG_ERROR = 2
NLMSG_DONE = 3

_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_ATTRIBUTE_TYPE_MASK = 0x3FFF  # without the NLA_F_NESTED and NLA_F_NET_BYTEORDER bits
_NLM_F_REQUEST, _NLM_F_DUMP = 0x1, 0x300


class Message(NamedTuple):
    """One netlink message without its header."""

    type: int
    body: bytes


def dump_message(message_type: int, body: bytes) -> bytes:
    """Return the request that dumps all objects of a type."""
    length = _HEADER.size + len(body)
    return _HEADER.pack(length, message_type, _NLM_F_REQUEST | _NLM_F_DUMP, 1, 0) + body


def parse_messages(data: bytes) -> Iterator[Message]:
    """Split one datagram into messages."""
    return (Message(fields[1], body) for fields, body in split_entries(data, _HEADER))


def error_number(message: Message) -> int:
    """Return the errno of an NLMSG_ERROR message, 0 for a plain acknowledgement."""
    if len(message.body) < 4:  # a 32-bit number
        return 0
    return -int.from_bytes(message.body[:4], sys.byteorder, signed=True)


def parse_attributes(data: bytes) -> dict[int, bytes]:
    """Return the attributes in ``data`` by type: the last one if a type is repeated."""
    return {
        fields[1] & _ATTRIBUTE_TYPE_MASK: value for fields, value in split_entries(data, _ATTRIBUTE)
    }


def write_attribute(number: int, value: bytes) -> bytes:
    """Encode one attribute, padded to four bytes."""
    padding = bytes(-len(value) % 4)
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), number) + value + padding


def unsigned(raw: bytes) -> int | None:
    """Return an unsigned number of 1, 2 or 4 bytes; None for another length."""
    return int.from_bytes(raw, sys.byteorder) if len(raw) in (1, 2, 4) else None


def split_entries(data: bytes, header: struct.Struct) -> Iterator[tuple[tuple[Any, ...], bytes]]:
    """Yield the header fields and the content of each entry in ``data``.

    Messages, attributes and next hops all begin with the entry's length as the first field of the
    header. Stops at the first length that is impossible.
    """
    offset = 0
    while offset + header.size <= len(data):
        fields = header.unpack_from(data, offset)
        end = offset + fields[0]
        if fields[0] < header.size or end > len(data):
            return
        yield fields, data[offset + header.size : end]
        offset = (end + 3) & ~3  # entries are padded to four bytes
