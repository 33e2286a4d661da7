"""Counts forbidden traffic: bytes to ``HARM_PORTS``, packets to excluded hosts and to terminals.

A payment terminal may get ARP requests, and the empty datagrams that make the kernel send them.

Every LAN of the lab counts this traffic itself and fails its test if the count is not zero, so no
test can forget the check.
"""

import socket
from collections import Counter
from collections.abc import Iterable

from controlplane.demo.lan import frames
from controlplane.demo.lan.tap import mac_bytes
from tests.lab.tap.counters import HARM_PORTS

_ETHERTYPE_IPV6 = 0x86DD
_IPV6_HEADER = 40
_UDP_HEADER = 8
_TCP_OFFSET = 12  # the upper half of this byte is the header's length in 32-bit words


class Harm:
    """Counts payload bytes by port, and packets by excluded address and by payment terminal.

    ``terminals`` are the MACs of payment terminals. ``datagrams`` counts the empty datagrams that
    they got.
    """

    def __init__(self, excluded: Iterable[str] = (), terminals: Iterable[str] = ()) -> None:
        self.counts: Counter[str] = Counter()
        self.datagrams = 0
        self._excluded = {socket.inet_aton(address): address for address in excluded}
        self._terminals = {mac_bytes(mac): mac for mac in terminals}

    def check_terminals(self, raw: bytes) -> None:
        """Count a frame to the MAC of a payment terminal. ARP is not counted, and empty datagrams
        are counted only in ``datagrams``."""
        frame = frames.read_ethernet(raw)
        terminal = self._terminals.get(frame.destination)
        if terminal is None or frame.kind == frames.ETHERTYPE_ARP:
            return
        packet = frames.read_ipv4(frame.body) if frame.kind == frames.ETHERTYPE_IPV4 else None
        if packet and packet.protocol == frames.UDP and len(packet.body) == _UDP_HEADER:
            self.datagrams += 1
            return
        protocol = f"packets of protocol {packet.protocol}" if packet else "frames"
        self.counts[f"{protocol} to the terminal {terminal}"] += 1

    def check_frame(self, raw: bytes) -> None:
        """Count the forbidden traffic in a frame: bytes to ``HARM_PORTS``, and packets to excluded
        IPv4 addresses. IPv6 frames with extension headers are ignored."""
        frame = frames.read_ethernet(raw)
        if frame.kind == _ETHERTYPE_IPV6 and len(frame.body) > _IPV6_HEADER:
            end = _IPV6_HEADER + int.from_bytes(frame.body[4:6], "big")
            self.count(b"", frame.body[6], frame.body[_IPV6_HEADER:end])
        elif frame.kind == frames.ETHERTYPE_IPV4 and (packet := frames.read_ipv4(frame.body)):
            self.count(packet.destination, packet.protocol, packet.body)

    def count(self, destination: bytes, protocol: int, body: bytes) -> None:
        """Count the forbidden traffic in a packet. ``destination`` is b"" for IPv6."""
        if excluded := self._excluded.get(destination):
            self.counts[f"packets to the excluded {excluded}"] += 1
        if protocol == frames.TCP and len(body) > _TCP_OFFSET:
            port = int.from_bytes(body[2:4], "big")
            size = len(body) - (body[_TCP_OFFSET] >> 4) * 4
            if size > 0 and port in HARM_PORTS:
                self.counts[f"bytes to port {port}"] += size

    def __str__(self) -> str:
        return ", ".join(f"{count} {traffic}" for traffic, count in sorted(self.counts.items()))
