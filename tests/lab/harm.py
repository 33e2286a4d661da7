"""Counts forbidden traffic: bytes to print ports, payment terminals and excluded hosts.

Every LAN of the lab counts this traffic itself and fails its test if the count is not zero, so no
test can forget the check.
"""

import socket
from collections import Counter
from collections.abc import Iterable

from controlplane.demo.lan import frames
from tests.lab.tap.counters import HARM_PORTS

_ETHERTYPE_IPV6 = 0x86DD
_IPV6_HEADER = 40
_TCP_OFFSET = 12  # the upper half of this byte is the header's length in 32-bit words


class Harm:
    """Counts payload bytes by port, and packets of any kind by excluded address."""

    def __init__(self, excluded: Iterable[str] = ()) -> None:
        self.counts: Counter[str] = Counter()
        self._excluded = {socket.inet_aton(address): address for address in excluded}

    def check_frame(self, raw: bytes) -> None:
        """Check a frame. IPv6 frames with extension headers are ignored."""
        frame = frames.read_ethernet(raw)
        if frame.kind == _ETHERTYPE_IPV6 and len(frame.body) > _IPV6_HEADER:
            end = _IPV6_HEADER + int.from_bytes(frame.body[4:6], "big")
            self.count(b"", frame.body[6], frame.body[_IPV6_HEADER:end])
        elif frame.kind == frames.ETHERTYPE_IPV4 and (packet := frames.read_ipv4(frame.body)):
            self.count(packet.destination, packet.protocol, packet.body)

    def count(self, destination: bytes, protocol: int, body: bytes) -> None:
        if excluded := self._excluded.get(destination):
            self.counts[f"packets to the excluded {excluded}"] += 1
        if protocol == frames.TCP and len(body) > _TCP_OFFSET:
            port = int.from_bytes(body[2:4], "big")
            size = len(body) - (body[_TCP_OFFSET] >> 4) * 4
            if size > 0 and port in HARM_PORTS:
                self.counts[f"bytes to port {port}"] += size

    def __str__(self) -> str:
        return ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
