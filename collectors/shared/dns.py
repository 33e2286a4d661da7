"""Encodes questions of the Domain Name System, and reads the header of a reply (RFC 1035). Pure."""

import struct
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

HEADER: Final = struct.Struct("!6H")
CLASS_IN: Final = 1
TYPES: Final = {"PTR": 12, "SRV": 33, "TXT": 16, "A": 1, "AAAA": 28}
RESPONSE, TRUNCATED, RECURSION_DESIRED = 0x8000, 0x0200, 0x0100  # flags of the header

_RESPONSE_CODE: Final = 0x000F
_FIXED: Final = struct.Struct("!2H")
_LABEL_MAX_BYTES: Final = 63
_NAME_MAX_BYTES: Final = 255

RecordType = Literal["PTR", "SRV", "TXT", "A", "AAAA"]


class Reply(NamedTuple):
    """The response code of a reply (RFC 1035, section 4.1.1), and its number of answers."""

    code: int
    answers: int


def write_name(labels: Sequence[str]) -> bytes | None:
    """Encode the labels of a name, without the root label. Returns None if it is too long."""
    encoded = [label.encode("utf-8", "replace") for label in labels]
    if not encoded or any(not 0 < len(label) <= _LABEL_MAX_BYTES for label in encoded):
        return None
    name = b"".join(bytes([len(label)]) + label for label in encoded) + b"\0"
    return name if len(name) <= _NAME_MAX_BYTES else None


def write_question(labels: Sequence[str], record_type: RecordType) -> bytes | None:
    """Encode one question. Returns None if the name cannot be encoded."""
    name = write_name(labels)
    return None if name is None else name + _FIXED.pack(TYPES[record_type], CLASS_IN)


def parse_reply(data: bytes, identifier: int, question: bytes) -> Reply | None:
    """Return what a reply to ``question`` says; None if the message is no reply to it."""
    if len(data) < HEADER.size:
        return None
    replied, flags, questions, answers, _, _ = HEADER.unpack_from(data)
    if replied != identifier or not flags & RESPONSE:
        return None
    # A server that refuses a query may leave out the question.
    if questions and data[HEADER.size : HEADER.size + len(question)].lower() != question.lower():
        return None
    return Reply(flags & _RESPONSE_CODE, answers)
