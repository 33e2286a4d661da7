"""mDNS of the simulated LAN: reads queries, and builds packets of records (RFC 6762).

Names are written without compression. The names of service instances are sent as the plan has them,
even if they are hostile; only names longer than 63 bytes are cut. Surrogate escapes in a string of
the plan stand for bytes that are not UTF-8.
"""

import ipaddress
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence

from controlplane.demo.lan.plan import LanHost, LanPlan, LanService

_A, _PTR, _TXT, _SRV = 1, 12, 16, 33
_CLASS_IN, _CLASS_IN_FLUSH = 1, 0x8001
_TTL_S = 120
_PACKET_MAX = 8000
_LABEL_MAX = 63
_POINTER = 0xC0
_HEADER_BYTES = 12
_RESPONSE, _AUTHORITATIVE_RESPONSE = 0x8000, 0x8400
ENUMERATION = b"_services._dns-sd._udp.local"
"""The name whose PTR records list the service types (RFC 6763, section 9)."""

Name = tuple[bytes, ...]


def read_questions(payload: bytes) -> tuple[Name, ...]:
    """Return the queried names in lower case, up to the first malformed name.

    Returns () for a response, and for a packet without a complete header.
    """
    if len(payload) < _HEADER_BYTES:
        return ()
    _, flags, count = struct.unpack_from("!HHH", payload)
    if flags & _RESPONSE:
        return ()
    names: list[Name] = []
    offset = _HEADER_BYTES
    for _ in range(min(count, 256)):
        name, offset = _read_name(payload, offset)
        if not name:
            break
        names.append(tuple(label.lower() for label in name))
        offset += 4  # the type and the class
    return tuple(names)


class Responder:
    """Prepares the replies to queries, by queried name.

    A reply is a packet and the host that sends it.
    """

    def __init__(self, plan: LanPlan) -> None:
        self._answers: dict[Name, list[tuple[LanHost, bytes]]] = defaultdict(list)
        for host in plan.hosts:
            self._add(host)

    def answers(self, name: Name) -> Sequence[tuple[LanHost, bytes]]:
        return self._answers.get(name, ())

    def _add(self, host: LanHost) -> None:
        own_name = _labels(f"{host.hostname or 'host-' + host.address.replace('.', '-')}.local")
        by_type: dict[Name, list[Sequence[bytes]]] = defaultdict(list)
        types: list[bytes] = []
        for service in host.services:
            kind = _labels(f"{service.type}.local")
            by_type[kind].append(_service_records(service, kind, own_name))
            types.append(_record(_labels(ENUMERATION.decode()), _PTR, _name(kind)))
        address = _record(own_name, _A, ipaddress.ip_address(host.address).packed)
        for kind, blocks in by_type.items():
            for packet in _packets(blocks, [address]):
                self._answers[kind].append((host, packet))
        for packet in _packets([[record] for record in sorted(set(types))], []):
            self._answers[_labels(ENUMERATION.decode())].append((host, packet))
        if host.hostname:
            reverse = _labels(ipaddress.ip_address(host.address).reverse_pointer)
            pointer = _packet([_record(reverse, _PTR, _name(own_name))])
            self._answers[reverse].append((host, pointer))


def _service_records(service: LanService, kind: Name, own_name: Name) -> Sequence[bytes]:
    label = service.instance.encode("utf-8", "surrogateescape")[:_LABEL_MAX] or b"unnamed"
    instance = (label, *kind)
    strings = [text.encode("utf-8", "surrogateescape")[:255] for text in service.txt]
    txt = b"".join(bytes([len(s)]) + s for s in strings) or b"\0"
    target = struct.pack("!HHH", 0, 0, service.port) + _name(own_name)
    # `_packets` keeps the three records together.
    return (
        _record(kind, _PTR, _name(instance)),
        _record(instance, _SRV, target, _CLASS_IN_FLUSH),
        _record(instance, _TXT, txt, _CLASS_IN_FLUSH),
    )


def _packets(blocks: Sequence[Sequence[bytes]], last: Sequence[bytes]) -> Iterator[bytes]:
    """Group blocks of records into packets of bounded size. Each packet ends with ``last``."""
    group: list[bytes] = []
    for block in blocks:
        if group and sum(map(len, (*group, *block, *last))) > _PACKET_MAX:
            yield _packet([*group, *last])
            group = []
        group += block
    if group:
        yield _packet([*group, *last])


def _packet(records: Sequence[bytes]) -> bytes:
    head = struct.pack("!HHHHHH", 0, _AUTHORITATIVE_RESPONSE, 0, len(records), 0, 0)
    return head + b"".join(records)


def _record(name: Name, record_type: int, data: bytes, record_class: int = _CLASS_IN) -> bytes:
    header = struct.pack("!HHIH", record_type, record_class, _TTL_S, len(data))
    return _name(name) + header + data


def _labels(name: str) -> Name:
    return tuple(label.encode().lower() for label in name.split("."))


def _name(labels: Name) -> bytes:
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def _read_name(payload: bytes, offset: int) -> tuple[Name, int]:
    """Return the name at an offset, and the offset after it. A malformed name is returned as ().

    The name may be compressed (RFC 1035, section 4.1.4).
    """
    labels: list[bytes] = []
    end = 0
    for _ in range(64):  # a bound, because pointers of a hostile packet can form a loop
        if offset >= len(payload):
            return (), offset
        length = payload[offset]
        if length & _POINTER == _POINTER:
            end = end or offset + 2
            offset = int.from_bytes(payload[offset : offset + 2], "big") & 0x3FFF
            continue
        offset += 1 + length
        if length == 0:
            return tuple(labels), end or offset
        labels.append(payload[offset - length : offset])
    return (), offset
