"""A LAN of up to thousands of hosts, played by one process behind a TAP device."""

import heapq
import html
import os
import random
import select
import socket
import time
from collections import defaultdict
from collections.abc import Callable

from controlplane.demo.lan import frames
from controlplane.demo.lan.counters import PRINT_PORTS, LanCounters
from controlplane.demo.lan.ipp import ipp_answer
from controlplane.demo.lan.mdns import Responder, read_questions
from controlplane.demo.lan.plan import LanHost, LanPlan
from controlplane.demo.lan.tap import mac_bytes

FRAME_MAX = 65536
_ISN = 1000
_ARP_FORGOTTEN_S = 5.0
_MDNS_GROUP = bytes((224, 0, 0, 251))
_MDNS_MAC = bytes.fromhex("01005e0000fb")
_MDNS_PORT = 5353
_WEB_PORTS = frozenset({80, 8008, 8080})
_IPP_PORT = 631
_WEB_PAGE = "HTTP/1.0 200 OK\r\nServer: lab/1.0\r\n\r\n<title>{title}</title>"
_TLS_ALERT = b"\x15\x03\x01\x00\x02\x02\x28"  # fatal, handshake_failure (RFC 8446, section 6.2)


Watch = Callable[[bytes, int, bytes], None]
"""Sees destination, protocol and body of each IPv4 packet."""


class TapLan:
    """Answers frames after the delay of the host they are for."""

    def __init__(self, plan: LanPlan, tap_fd: int, watch: Watch | None = None) -> None:
        self.counters = LanCounters()
        self._watch = watch
        self._tap = tap_fd
        self._rng = random.Random()  # noqa: S311 - each run of a LAN is another one
        self.play(plan)
        self._due: list[tuple[float, int, bytes]] = []
        self._number = 0
        self._last_arp: dict[bytes, float] = {}
        self._last_mdns: dict[tuple[bytes, ...], float] = {}
        self.was_queried = False
        self._last_printing_ms: dict[tuple[bytes, int], int] = {}
        self._handshakes: dict[tuple[bytes, int, int], int | None] = {}
        self._connections: defaultdict[bytes, set[tuple[int, int]]] = defaultdict(set)

    def play(self, plan: LanPlan) -> None:
        """Have the hosts of a plan from now on."""
        self._hosts = {socket.inet_aton(host.address): host for host in plan.hosts}
        self._macs = {host.address: mac_bytes(host.mac) for host in plan.hosts}
        self._ghosts = _Ghosts(plan)
        self._responder = Responder(plan)
        self._filters_multicast = plan.filters_multicast

    # ------------------------------------------------------------------ time

    def wait_s(self, now: float) -> float:
        """Return how long nothing is due, at most a tenth of a second."""
        return min(0.1, max(0.0, self._due[0][0] - now)) if self._due else 0.1

    def send_due(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            frame = heapq.heappop(self._due)[2]
            try:
                os.write(self._tap, frame)
            except OSError:  # the device's queue is full: a switch would drop it, too
                continue

    def reset(self) -> None:
        self.counters = LanCounters()
        self._last_arp.clear()
        self._last_mdns.clear()
        self._connections.clear()
        self._last_printing_ms.clear()
        self._handshakes.clear()

    # ------------------------------------------------------------------ frames in

    def handle(self, raw: bytes, now: float) -> None:
        self.counters.frames += 1
        frame = frames.read_ethernet(raw)
        if frame.kind == frames.ETHERTYPE_ARP:
            self._handle_arp(frame.body, now)
        elif frame.kind == frames.ETHERTYPE_IPV4:
            self._handle_ipv4(frame, now)

    def _handle_arp(self, body: bytes, now: float) -> None:
        request = frames.read_arp_request(body)
        if request is None or request.sender == request.target:
            return
        self.counters.arp_requests += 1
        host = self._hosts.get(request.target)
        if host is None:
            ghost_mac = self._ghosts.mac_for(request.target)
            if ghost_mac:
                self._send(None, frames.arp_reply(request, ghost_mac), now)
            return
        last = self._last_arp.get(request.target, -_ARP_FORGOTTEN_S)
        self._last_arp[request.target] = now
        if host.loses_first_arp and now - last >= _ARP_FORGOTTEN_S:
            return
        self._send(host, frames.arp_reply(request, self._macs[host.address]), now)

    def _handle_ipv4(self, frame: frames.Ethernet, now: float) -> None:
        packet = frames.read_ipv4(frame.body)
        if packet is None:
            return
        if self._watch is not None:
            self._watch(packet.destination, packet.protocol, packet.body)
        if packet.destination == _MDNS_GROUP:
            self._handle_mdns(packet, now)
            return
        host = self._hosts.get(packet.destination)
        if host is None or host.drops_all:
            return
        if frame.destination != self._macs[host.address]:
            self.counters.wrong_destination += 1
            return
        if packet.protocol == frames.TCP:
            self._handle_tcp(host, frame, packet, now)
        elif packet.protocol == frames.UDP:
            self.counters.udp_datagrams += 1
            if packet.body[2:4] == _MDNS_PORT.to_bytes(2, "big"):
                self._answer_directly(host, frame, packet, now)
                return
            self._reply(host, frame, frames.port_unreachable(packet), now)
        elif packet.protocol == frames.ICMP and packet.body[:1] == b"\x08":
            self._reply(host, frame, frames.echo_reply(packet), now)

    def _handle_tcp(
        self, host: LanHost, frame: frames.Ethernet, packet: frames.Ipv4, now: float
    ) -> None:
        segment = frames.read_tcp(packet.body)
        if segment is None:
            return
        port = segment.destination_port
        if segment.payload:
            self.counters.payload_bytes[port] += len(segment.payload)
        if segment.flags & frames.SYN:
            self.counters.syns += 1
            self.counters.syns_by_port[port] += 1
        self._count_connection(packet.destination, segment)
        answer = self._answer(host, segment)
        if answer is not None:
            reply = frames.tcp(packet.destination, packet.source, answer)
            self._reply(host, frame, reply, now)

    def _answer(self, host: LanHost, segment: frames.Tcp) -> frames.Tcp | None:
        """What the host's TCP says to a segment; None says nothing."""
        port, client = segment.destination_port, segment.source_port
        if segment.flags & frames.RST or port in host.filtered_ports:
            return None
        if segment.flags & frames.SYN:
            ack = segment.sequence + 1
            if port in host.open_ports:
                return frames.Tcp(port, client, _ISN, ack, frames.SYN | frames.ACK)
            return frames.Tcp(port, client, 0, ack, frames.RST | frames.ACK)
        if segment.payload:
            ack = segment.sequence + len(segment.payload)
            text = _reply_of(host, port, segment.payload)
            flags = frames.ACK | frames.PSH | frames.FIN if text else frames.ACK
            return frames.Tcp(port, client, segment.acknowledgement, ack, flags, text)
        if segment.flags & frames.FIN:
            ack = segment.sequence + 1
            return frames.Tcp(port, client, segment.acknowledgement, ack, frames.ACK)
        return None

    def _count_connection(self, host: bytes, segment: frames.Tcp) -> None:
        """Count a connection when its handshake completes. Pauses are measured by the sender's
        timestamps, so that a delay of this process does not change them."""
        client_port, port = segment.source_port, segment.destination_port
        connection = host, client_port, port
        if segment.flags & frames.SYN:
            self._handshakes[connection] = segment.timestamp_ms
        elif segment.flags & frames.RST:
            self._handshakes.pop(connection, None)
        elif connection in self._handshakes:
            self._connected(host, client_port, port, self._handshakes.pop(connection))
        if segment.flags & (frames.RST | frames.FIN):
            self._connections[host].discard((client_port, port))

    def _connected(self, host: bytes, client_port: int, port: int, began_ms: int | None) -> None:
        held = self._connections[host]
        held.add((client_port, port))
        counters = self.counters
        counters.most_connections = max(counters.most_connections, len(held))
        printing = sum(1 for _, p in held if p in PRINT_PORTS)
        counters.most_print_connections = max(counters.most_print_connections, printing)
        if port in PRINT_PORTS and began_ms is not None:
            if (last_ms := self._last_printing_ms.get((host, port))) is not None:
                pause_s = (began_ms - last_ms) % 2**32 / 1000
                counters.shortest_print_pause_s = min(counters.shortest_print_pause_s, pause_s)
            self._last_printing_ms[host, port] = began_ms

    def _handle_mdns(self, packet: frames.Ipv4, now: float) -> None:
        if self._filters_multicast:
            return
        self.was_queried = True
        for name in read_questions(packet.body[8:]):
            # A record is multicast at most once a second (RFC 6762, section 6).
            if now - self._last_mdns.get(name, -1.0) < 1.0:
                continue
            self._last_mdns[name] = now
            for host, payload in self._responder.answers(name):
                source = socket.inet_aton(host.address)
                body = frames.udp(source, _MDNS_GROUP, _MDNS_PORT, _MDNS_PORT, payload)
                frame = frames.ethernet(
                    _MDNS_MAC, self._macs[host.address], frames.ETHERTYPE_IPV4, body
                )
                self._send(host, frame, now + self._rng.uniform(0.02, 0.12))

    def _answer_directly(
        self, host: LanHost, frame: frames.Ethernet, packet: frames.Ipv4, now: float
    ) -> None:
        """Answer a question to one host alone, with its number (RFC 6762, section 6.7)."""
        port, payload = int.from_bytes(packet.body[:2], "big"), packet.body[8:]
        for name in read_questions(payload):
            for answering, answer in self._responder.answers(name):
                if answering is host:
                    reply = payload[:2] + answer[2:]
                    body = frames.udp(packet.destination, packet.source, _MDNS_PORT, port, reply)
                    self._reply(host, frame, body, now)

    # ------------------------------------------------------------------ frames out

    def _reply(self, host: LanHost, frame: frames.Ethernet, packet: bytes, now: float) -> bool:
        mac = self._macs[host.address]
        return self._send(
            host, frames.ethernet(frame.source, mac, frames.ETHERTYPE_IPV4, packet), now
        )

    def _send(self, host: LanHost | None, frame: bytes, now: float) -> bool:
        """Queue a frame with the host's delay, unless one of the two ways loses it."""
        delay_s = 0.001
        if host is not None:
            if self._rng.random() < host.loss or self._rng.random() < host.loss:
                return False
            delay_s = (host.latency_ms + self._rng.uniform(0, host.jitter_ms)) / 1000
        self._number += 1
        heapq.heappush(self._due, (now + delay_s, self._number, frame))
        return True


class _Ghosts:
    """The addresses for which the proxy's MAC answers ARP though nobody is there."""

    def __init__(self, plan: LanPlan) -> None:
        self._mac = mac_bytes(plan.proxy_arp_mac) if plan.proxy_arp_mac else b""
        self._bits = self._mask = 0
        if plan.proxied:
            network, length = plan.proxied.split("/")
            self._mask = 0xFFFFFFFF << (32 - int(length)) & 0xFFFFFFFF
            self._bits = int.from_bytes(socket.inet_aton(network), "big")
        self._agent = socket.inet_aton(plan.agent_address)

    def mac_for(self, address: bytes) -> bytes:
        number = int.from_bytes(address, "big")
        is_ghost = self._mac and number & self._mask == self._bits and address != self._agent
        return self._mac if is_ghost else b""


def play_for_a_while(lan: TapLan, tap_fd: int, *watched: int) -> list[int]:
    """Answer frames until the next thing is due or came; return those of ``watched`` to read."""
    ready, _, _ = select.select([tap_fd, *watched], [], [], lan.wait_s(time.monotonic()))
    if tap_fd in ready:
        _read_frames(lan, tap_fd)
    lan.send_due(time.monotonic())
    return [each for each in ready if each != tap_fd]


def _read_frames(lan: TapLan, tap_fd: int) -> None:
    try:
        for _ in range(64):
            lan.handle(os.read(tap_fd, FRAME_MAX), time.monotonic())
    except BlockingIOError:
        pass


def _reply_of(host: LanHost, port: int, question: bytes) -> bytes:
    """Return what a host says to the first bytes on a port; nothing on a mute one."""
    if port in host.mute_ports:
        return b""
    if port == _IPP_PORT and host.ipp:
        return ipp_answer(host.ipp, question)
    if port in _WEB_PORTS:
        return _WEB_PAGE.format(title=html.escape(host.title)).encode()
    return _TLS_ALERT
