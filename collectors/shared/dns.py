"""Encodes questions of the Domain Name System, and reads replies (RFC 1035). No I/O.

Replies are untrusted. The idle daemon uses this module, so it must need little memory.
"""

import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

HEADER: Final = struct.Struct("!6H")
CLASS_IN: Final = 1
TYPES: Final = {"PTR": 12, "SRV": 33, "TXT": 16, "A": 1, "AAAA": 28}
RESPONSE, TRUNCATED, RECURSION_DESIRED = 0x8000, 0x0200, 0x0100  # flags of the header

_RESPONSE_CODE: Final = 0x000F
_TYPE_AND_CLASS: Final = struct.Struct("!2H")  # of a question, after its name
_RECORD: Final = struct.Struct("!HHIH")  # type, class, TTL and length of the data, after the name
# The address family, by the type of the record and the length of its data.
_FAMILIES: Final = {(TYPES["A"], 4): socket.AF_INET, (TYPES["AAAA"], 16): socket.AF_INET6}
_POINTER: Final = 0xC0  # the upper bits of a compression pointer (section 4.1.4)
_RECORDS_MAX: Final = 64
_LABEL_MAX_BYTES: Final = 63
_NAME_MAX_BYTES: Final = 255

RecordType = Literal["PTR", "SRV", "TXT", "A", "AAAA"]


class Reply(NamedTuple):
    """The response code of a reply (RFC 1035, section 4.1.1), and its number of answers."""

    code: int
    answers: int


def write_name(labels: Sequence[str]) -> bytes | None:
    """Encode a name, given as its labels without the root label.

    Returns None if the name or a label is too long or empty.
    """
    encoded = [label.encode("utf-8", "replace") for label in labels]
    if not encoded or any(not 0 < len(label) <= _LABEL_MAX_BYTES for label in encoded):
        return None
    name = b"".join(bytes([len(label)]) + label for label in encoded) + b"\0"
    return name if len(name) <= _NAME_MAX_BYTES else None


def write_question(labels: Sequence[str], record_type: RecordType) -> bytes | None:
    """Encode one question. Returns None if the name cannot be encoded."""
    name = write_name(labels)
    return None if name is None else name + _TYPE_AND_CLASS.pack(TYPES[record_type], CLASS_IN)


def parse_reply(data: bytes, identifier: int, question: bytes) -> Reply | None:
    """Return the response code and the number of answers of a reply to ``question``.

    Returns None if the message is no reply to it.
    """
    if len(data) < HEADER.size:
        return None
    reply_id, flags, questions, answers, _, _ = HEADER.unpack_from(data)
    if reply_id != identifier or not flags & RESPONSE:
        return None
    # A server that refuses a query may leave out the question.
    if questions and data[HEADER.size : HEADER.size + len(question)].lower() != question.lower():
        return None
    return Reply(flags & _RESPONSE_CODE, answers)


def read_addresses(data: bytes, question: bytes) -> tuple[str, ...]:
    """Return the addresses in the answer section of a reply that `parse_reply` has accepted.

    Stops at the first record that cannot be decoded.
    """
    _, _, questions, answers, _, _ = HEADER.unpack_from(data)
    start = HEADER.size + (len(question) if questions else 0)
    return tuple(_addresses(data, start, min(answers, _RECORDS_MAX)))


def _addresses(data: bytes, offset: int, records: int) -> Iterator[str]:
    for _ in range(records):
        start = _end_of_name(data, offset)
        if start is None or start + _RECORD.size > len(data):
            return
        record_type, record_class, _, size = _RECORD.unpack_from(data, start)
        offset = start + _RECORD.size + size
        family = _FAMILIES.get((record_type, size))
        if family is not None and record_class == CLASS_IN and offset <= len(data):
            yield socket.inet_ntop(family, data[offset - size : offset])


def _end_of_name(data: bytes, offset: int) -> int | None:
    """Return the offset after a name that begins at ``offset``. Pointers are not followed."""
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
