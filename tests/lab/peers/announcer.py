"""Announces many services with hostile names by mDNS on one interface.

The tests run this script in a network namespace. Usage: announcer.py ADDRESS COUNT. It prints
"ready", and then answers each PTR question with all instances of the type. Questions with few
answers are answered first. Every tenth instance is sent without its SRV, TXT and A records, so
that the program that browses mDNS must query them.
"""

import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

from controlplane.demo.lan.mdns import read_questions

GROUP, PORT = "224.0.0.251", 5353
BURST, PAUSE_S = 50, 0.01
"""The script pauses after each burst of packets, because real hosts do not all answer at the same
time (RFC 6762, section 6). With a longer pause, the answers to later questions would arrive after
the last try of the program that browses."""
TYPES = ("_ipp._tcp", "_http._tcp", "_googlecast._tcp", "_made-up._tcp")
HOSTILE = (
    "Kitchen <script>alert(1)</script>",
    "Bar \x1b[31mred\x1b[0m\x07",
    "Emoji 🖨️👩‍🍳🔥",
    "Dots. in. a name 4.2",
    "Right \u202eto left",
    "Line\r\nbreak\tand tab",
)
_PTR, _TXT, _SRV, _A = 12, 16, 33, 1
_TXT_4K = b"".join(bytes([254]) + f"k{i}=".encode().ljust(254, b"\xff") for i in range(16))


def instance_label(number: int) -> bytes:
    """Return the hostile name of a service. It has at most 63 bytes, which may be invalid UTF-8."""
    text = HOSTILE[number % len(HOSTILE)].encode()[:50]
    return text + f" {number}".encode() + (b"\xff\xfe" if number % 7 == 0 else b"")


def main() -> None:
    address, count = sys.argv[1], int(sys.argv[2])
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * 1024 * 1024)
    sock.bind(("", PORT))
    membership = socket.inet_aton(GROUP) + socket.inet_aton(address)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
    answers = _answers(address, count)
    print("ready", flush=True)
    queue: dict[bytes, None] = {}
    while True:
        names = _read_names(sock, wait=not queue)
        queue |= dict.fromkeys(name for name in names if name in answers)
        if not queue:
            continue
        name = min(queue, key=lambda each: len(answers[each]))  # with equal counts, the oldest
        del queue[name]
        for number, packet in enumerate(answers[name], 1):
            sock.sendto(packet, (GROUP, PORT))
            if number % BURST == 0:
                time.sleep(PAUSE_S)


def _read_names(sock: socket.socket, *, wait: bool) -> Iterator[bytes]:
    """Yield the names in the questions of all packets that are waiting.

    With ``wait``, block until the first packet arrives. The caller answers a name once, even if
    several packets have a question for it. Otherwise a slow machine would never catch up: it would
    answer old questions first, and the program that browses would send its questions again.
    """
    flags = 0 if wait else socket.MSG_DONTWAIT
    with suppress(BlockingIOError):
        while True:
            query = sock.recv(9000, flags)
            yield from (b".".join(name) for name in read_questions(query))
            flags = socket.MSG_DONTWAIT


def _answers(address: str, count: int) -> dict[bytes, list[bytes]]:
    """Return the packets that answer a question, by the lower-case name in the question."""
    answers: dict[bytes, list[bytes]] = {}
    types = [_record(_ENUMERATION, _PTR, _name(_labels(t))) for t in TYPES]
    answers[b"_services._dns-sd._udp.local"] = [_packet(types)]
    for number in range(count):
        kind = _labels(TYPES[number % len(TYPES)])
        instance = [instance_label(number), *kind]
        host = [f"host-{number}".encode(), b"local"]
        pointer = _record(_name(kind), _PTR, _name(instance))
        srv = _record(_name(instance), _SRV, struct.pack("!HHH", 0, 0, 1024 + number) + _name(host))
        txt = _record(_name(instance), _TXT, _TXT_4K if number % 500 == 0 else b"\x0aty=Hostile")
        a = _record(_name(host), _A, socket.inet_aton(address))
        is_pointer_only = number % 10 == 0
        packets = [_packet([pointer]) if is_pointer_only else _packet([pointer, srv, txt, a])]
        answers.setdefault(b".".join(kind).lower(), []).extend(packets)
        answers[b".".join(instance).lower()] = [_packet([srv, txt])]
        answers[b".".join(host).lower()] = [_packet([a])]
    return answers


def _labels(service_type: str) -> list[bytes]:
    return [*(label.encode() for label in service_type.split(".")), b"local"]


def _name(labels: list[bytes]) -> bytes:
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


_ENUMERATION = _name([b"_services", b"_dns-sd", b"_udp", b"local"])


def _record(name: bytes, kind: int, data: bytes) -> bytes:
    return name + struct.pack("!HHIH", kind, 1, 120, len(data)) + data


def _packet(records: list[bytes]) -> bytes:
    return struct.pack("!6H", 0, 0x8400, 0, len(records), 0, 0) + b"".join(records)


if __name__ == "__main__":
    main()
