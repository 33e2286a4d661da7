"""Encodes DNS queries and decodes replies (RFC 1035). Pure.

Replies are untrusted. This decoder needs little memory, because the idle daemon uses it. Multicast
DNS is decoded by ``collectors.network.mdns.wire``.
"""

import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

NO_ERROR: Final = 0
SERVER_FAILURE: Final = 2
NO_SUCH_NAME: Final = 3
REFUSED: Final = 5

TYPE_A: Final = 1
TYPE_AAAA: Final = 28
CLASS_IN: Final = 1
REPLY_MAX_BYTES: Final = 4096

_HEADER = struct.Struct("!6H")
_QUESTION = struct.Struct("!2H")
_RECORD = struct.Struct("!HHIH")
_RESPONSE, _RECURSION_DESIRED, _CODE = 0x8000, 0x0100, 0x000F
_ADDRESS_FAMILIES = {(TYPE_A, 4): socket.AF_INET, (TYPE_AAAA, 16): socket.AF_INET6}
_LABEL_MAX_BYTES = 63
_NAME_MAX_BYTES = 255
_POINTER = 0xC0  # the two upper bits of a compression pointer (section 4.1.4)
_RECORDS_MAX = 64


class DnsReply(NamedTuple):
    """A reply: its code (section 4.1.1), and the addresses of its answer section."""

    code: int
    addresses: tuple[str, ...]


def write_name(labels: Sequence[str]) -> bytes | None:
    """Encode the labels of a name, without the root label. Returns None if this is impossible."""
    encoded = [label.encode("utf-8", "replace") for label in labels]
    if not encoded or any(not 0 < len(label) <= _LABEL_MAX_BYTES for label in encoded):
        return None
    name = b"".join(bytes([len(label)]) + label for label in encoded) + b"\0"
    return name if len(name) <= _NAME_MAX_BYTES else None


def write_question(labels: Sequence[str], record_type: int) -> bytes | None:
    """Encode an entry of the question section. Returns None if the name cannot be encoded."""
    name = write_name(labels)
    return None if name is None else name + _QUESTION.pack(record_type, CLASS_IN)


def write_query(number: int, question: bytes) -> bytes:
    """Encode a recursive query with the ID ``number`` and one question."""
    return _HEADER.pack(number, _RECURSION_DESIRED, 1, 0, 0, 0) + question


def parse_reply(data: bytes, number: int, question: bytes) -> DnsReply | None:
    """Return the reply to a query, or None if ``data`` is not its reply. Never raises.

    Addresses that cannot be decoded are left out.
    """
    if not _HEADER.size + len(question) <= len(data) <= REPLY_MAX_BYTES:
        return None
    own_number, flags, questions, answers, _, _ = _HEADER.unpack_from(data)
    end = _HEADER.size + len(question)
    if own_number != number or not flags & _RESPONSE or questions != 1:
        return None
    if data[_HEADER.size : end].lower() != question.lower():
        return None
    return DnsReply(flags & _CODE, tuple(_addresses(data, end, min(answers, _RECORDS_MAX))))


def _addresses(data: bytes, offset: int, records: int) -> Iterator[str]:
    for _ in range(records):
        start = _end_of_name(data, offset)
        if start is None or start + _RECORD.size > len(data):
            return
        record_type, record_class, _, size = _RECORD.unpack_from(data, start)
        offset = start + _RECORD.size + size
        family = _ADDRESS_FAMILIES.get((record_type, size))
        if family is not None and record_class == CLASS_IN and offset <= len(data):
            yield socket.inet_ntop(family, data[offset - size : offset])


def _end_of_name(data: bytes, offset: int) -> int | None:
    """Return the offset behind a name that begins at ``offset``. Pointers are not followed."""
    while offset < len(data):
        length = data[offset]
        if length & _POINTER == _POINTER:
            return offset + 2
        if length > _LABEL_MAX_BYTES:
            return None
        offset += 1 + length
        if length == 0:
            return offset
    return None
