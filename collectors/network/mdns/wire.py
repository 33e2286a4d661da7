"""Encodes multicast DNS questions and decodes the answers (RFC 6762, RFC 6763).

Answers are decoded by python-zeroconf, which is hardened against hostile packets. Questions are
encoded here, because python-zeroconf takes a name as one string with dots. An instance name may
have dots inside its first label ("HP 4.2"), which such a string cannot express.
"""

import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# python-zeroconf documents these names and exports them, but does not list them in its __all__.
from zeroconf import (  # type: ignore[attr-defined]
    DNSAddress,
    DNSIncoming,
    DNSPointer,
    DNSRecord,
    DNSService,
    DNSText,
)

from collectors.shared.dns import (
    CLASS_IN,
    HEADER,
    RESPONSE,
    TRUNCATED,
    TYPES,
    RecordType,
    write_name,
    write_question,
)

PACKET_MAX_BYTES = 1400
"""The most bytes of a question packet, well below an Ethernet frame (RFC 6762, section 17)."""

MESSAGE_MAX_BYTES = 9000
"""The most bytes of a received message. RFC 6762, section 17, permits no larger ones."""

_RECORD = struct.Struct("!HHIH")
_FIRST_QUESTION = b"\xc0\x0c"  # a compression pointer to the name that follows the header
_KNOWN_TTL_S = 4500  # the TTL of a known answer: 75 minutes (RFC 6762, section 10)


@dataclass(frozen=True, slots=True)
class Question:
    """A question: the labels of a name, without the root label, and the requested record type."""

    labels: tuple[str, ...]
    type: RecordType


def type_question(service_type: str) -> Question:
    """Return the question for the instances of a type like ``_ipp._tcp``."""
    return Question((*service_type.split("."), "local"), "PTR")


@dataclass(frozen=True, slots=True)
class PointerRecord:
    name: str
    target: str


@dataclass(frozen=True, slots=True)
class ServiceRecord:
    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class TextRecord:
    name: str
    text: bytes


@dataclass(frozen=True, slots=True)
class AddressRecord:
    name: str
    address: str


Record = PointerRecord | ServiceRecord | TextRecord | AddressRecord


def question_packets(questions: Iterable[Question]) -> tuple[bytes, ...]:
    """Encode questions in as few packets as possible. Names that cannot be encoded are left out.

    The questions request multicast answers (QM), never unicast answers. Several programs share port
    5353 of this machine, and the kernel would deliver a unicast answer to only one of them.
    """
    bodies: list[list[bytes]] = [[]]
    encoded = (write_question(question.labels, question.type) for question in questions)
    for question_bytes in filter(None, encoded):
        size = HEADER.size + sum(map(len, bodies[-1])) + len(question_bytes)
        if bodies[-1] and size > PACKET_MAX_BYTES:
            bodies.append([])
        bodies[-1].append(question_bytes)
    packed = (HEADER.pack(0, 0, len(body), 0, 0, 0) + b"".join(body) for body in bodies if body)
    return tuple(packed)


def known_answer_packets(
    question: Question, instances: Sequence[tuple[str, ...]]
) -> tuple[bytes, ...]:
    """Encode a PTR question with the known instances, so that hosts answer only with new instances.

    Instances that do not fit go into further packets. All packets but the last are marked as
    truncated (RFC 6762, sections 7.1 and 7.2).
    """
    name = write_name(question.labels)
    question_bytes = write_question(question.labels, question.type)
    if name is None or question_bytes is None:
        return ()
    bodies: list[tuple[int, bytes]] = []
    owner, body, count = _FIRST_QUESTION, question_bytes, 0
    for labels in instances:
        target = write_name(labels)
        if target is None:
            continue
        if HEADER.size + len(body) + len(name) + _RECORD.size + len(target) > PACKET_MAX_BYTES:
            bodies.append((count, body))
            owner, body, count = name, b"", 0
        fixed = _RECORD.pack(TYPES["PTR"], CLASS_IN, _KNOWN_TTL_S, len(target))
        body, count = body + owner + fixed + target, count + 1
    bodies.append((count, body))
    last = len(bodies) - 1
    return tuple(
        HEADER.pack(0, TRUNCATED if index < last else 0, int(index == 0), answers, 0, 0) + body
        for index, (answers, body) in enumerate(bodies)
    )


def is_question(data: bytes) -> bool:
    """Return whether a packet is a question, and not a response. Never raises."""
    return len(data) >= HEADER.size and not HEADER.unpack_from(data)[1] & RESPONSE


def parse_response(data: bytes) -> tuple[Record, ...]:
    """Return the records of a response, except goodbye records (TTL 0).

    Names keep their case and have no final dot. Records that cannot be decoded are left out.
    Returns () if ``data`` is not a response. Never raises.
    """
    if len(data) > MESSAGE_MAX_BYTES:
        return ()
    message = DNSIncoming(data)
    if not message.valid or not message.is_response():
        return ()
    records = (_read_record(answer) for answer in message.answers() if answer.ttl > 0)
    return tuple(record for record in records if record is not None)


def _read_record(answer: DNSRecord) -> Record | None:
    name = answer.name.removesuffix(".")
    if isinstance(answer, DNSPointer):
        return PointerRecord(name, answer.alias.removesuffix("."))
    if isinstance(answer, DNSService):
        return ServiceRecord(name, answer.server.removesuffix("."), answer.port)
    if isinstance(answer, DNSText):
        return TextRecord(name, answer.text)
    if isinstance(answer, DNSAddress):
        family = {4: socket.AF_INET, 16: socket.AF_INET6}.get(len(answer.address))
        if family is not None:
            return AddressRecord(name, socket.inet_ntop(family, answer.address))
    return None
