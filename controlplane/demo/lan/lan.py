"""A LAN of up to thousands of hosts, simulated by one process behind a TAP device."""

import heapq
import html
import os
import random
import select
import socket
import time
from contextlib import suppress

from controlplane.demo.ipp import ipp_answer
from controlplane.demo.lan import frames
from controlplane.demo.lan.mdns import Responder, read_questions
from controlplane.demo.lan.plan import LanHost, LanPlan
from controlplane.demo.lan.tap import mac_bytes

FRAME_MAX = 65536
_ISN = 1000
"""The initial sequence number of each simulated TCP connection."""
_ARP_FORGOTTEN_S = 5.0
"""An ARP request for a host counts as the first one if there was none for this many seconds."""
_MDNS_GROUP = bytes((224, 0, 0, 251))
_MDNS_MAC = bytes.fromhex("01005e0000fb")
_MDNS_PORT = 5353
_WEB_PORTS = frozenset({80, 8008, 8080})
_IPP_PORT = 631
_ECHO_REQUEST = b"\x08"
_FRAMES_PER_RUN = 64
_WEB_PAGE = "HTTP/1.0 200 OK\r\nServer: lab/1.0\r\n\r\n<title>{title}</title>"
_TLS_ALERT = b"\x15\x03\x01\x00\x02\x02\x28"  # fatal, handshake_failure (RFC 8446, section 6.2)


class TapLan:
    """Reads the frames that the machine sends, and replies as the simulated hosts.

    Each reply is sent after the delay of its host. The tests extend this class with counters, proxy
    ARP and filtered multicast.
    """

    def __init__(self, plan: LanPlan, tap_fd: int) -> None:
        self._tap = tap_fd
        self._rng = random.Random()  # noqa: S311 - each run differs
        self.use_plan(plan)
        # The frames to send: when each is due, its number, and the frame. The number keeps frames
        # that are due at the same time in order.
        self._due: list[tuple[float, int, bytes]] = []
        self._number = 0
        self._last_arp: dict[bytes, float] = {}
        self._last_mdns: dict[tuple[bytes, ...], float] = {}

    def use_plan(self, plan: LanPlan) -> None:
        """Replace the simulated hosts by the hosts of a plan."""
        self._hosts = {socket.inet_aton(host.address): host for host in plan.hosts}
        self._macs = {host.address: mac_bytes(host.mac) for host in plan.hosts}
        self._responder = Responder(plan)

    def run_once(self, *watched: int) -> list[int]:
        """Wait until a frame arrives or a reply is due, at most a tenth of a second.

        Then process the frames that have arrived, and send the replies that are due. Returns the
        descriptors of ``watched`` that can be read.
        """
        now = time.monotonic()
        wait_s = min(0.1, max(0.0, self._due[0][0] - now)) if self._due else 0.1
        ready, _, _ = select.select([self._tap, *watched], [], [], wait_s)
        if self._tap in ready:
            with suppress(BlockingIOError):
                for _ in range(_FRAMES_PER_RUN):
                    self.handle(os.read(self._tap, FRAME_MAX), time.monotonic())
        self._send_due(time.monotonic())
        return [ready_descriptor for ready_descriptor in ready if ready_descriptor != self._tap]

    def _send_due(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            frame = heapq.heappop(self._due)[2]
            try:
                os.write(self._tap, frame)
            except OSError:  # the TAP device's queue is full: drop the frame, as a switch does
                continue

    # ------------------------------------------------------------------ frames in

    def handle(self, raw: bytes, now: float) -> None:
        frame = frames.read_ethernet(raw)
        if frame.kind == frames.ETHERTYPE_ARP:
            request = frames.read_arp_request(frame.body)
            if request is not None and request.sender != request.target:
                self._handle_arp(request, now)
        elif frame.kind == frames.ETHERTYPE_IPV4:
            packet = frames.read_ipv4(frame.body)
            if packet is not None:
                self._handle_ipv4(frame, packet, now)

    def _handle_arp(self, request: frames.ArpRequest, now: float) -> None:
        host = self._hosts.get(request.target)
        if host is None:
            return
        last = self._last_arp.get(request.target, -_ARP_FORGOTTEN_S)
        self._last_arp[request.target] = now
        if host.loses_first_arp and now - last >= _ARP_FORGOTTEN_S:
            return
        self._send(host, frames.arp_reply(request, self._macs[host.address]), now)

    def _handle_ipv4(self, frame: frames.Ethernet, packet: frames.Ipv4, now: float) -> None:
        if packet.destination == _MDNS_GROUP:
            self._handle_mdns(packet, now)
            return
        host = self._hosts.get(packet.destination)
        if host is None or host.drops_all or frame.destination != self._macs[host.address]:
            return
        if packet.protocol == frames.TCP:
            segment = frames.read_tcp(packet.body)
            answer = None if segment is None else self._answer(host, segment)
            if answer is not None:
                reply = frames.tcp_packet(packet.destination, packet.source, answer)
                self._reply(host, frame, reply, now)
        elif packet.protocol == frames.UDP:
            if packet.body[2:4] == _MDNS_PORT.to_bytes(2, "big"):
                self._handle_unicast_mdns(host, frame, packet, now)
                return
            self._reply(host, frame, frames.port_unreachable(packet), now)
        elif packet.protocol == frames.ICMP and packet.body[:1] == _ECHO_REQUEST:
            self._reply(host, frame, frames.echo_reply(packet), now)

    def _answer(self, host: LanHost, segment: frames.Tcp) -> frames.Tcp | None:
        """Return the segment with which the host replies, or None if it does not reply."""
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
            data = _reply_of(host, port, segment.payload)
            flags = frames.ACK | frames.PSH | frames.FIN if data else frames.ACK
            return frames.Tcp(port, client, segment.acknowledgement, ack, flags, data)
        if segment.flags & frames.FIN:
            ack = segment.sequence + 1
            return frames.Tcp(port, client, segment.acknowledgement, ack, frames.ACK)
        return None

    def _handle_mdns(self, packet: frames.Ipv4, now: float) -> None:
        for name in read_questions(packet.body[8:]):
            # A record is multicast at most once a second (RFC 6762, section 6).
            if now - self._last_mdns.get(name, -1.0) < 1.0:
                continue
            self._last_mdns[name] = now
            for host, payload in self._responder.answers(name):
                source = socket.inet_aton(host.address)
                body = frames.udp_packet(source, _MDNS_GROUP, _MDNS_PORT, _MDNS_PORT, payload)
                frame = frames.ethernet_frame(
                    _MDNS_MAC, self._macs[host.address], frames.ETHERTYPE_IPV4, body
                )
                self._send(host, frame, now + self._rng.uniform(0.02, 0.12))

    def _handle_unicast_mdns(
        self, host: LanHost, frame: frames.Ethernet, packet: frames.Ipv4, now: float
    ) -> None:
        """Reply to an mDNS query that was sent to one host.

        The reply is unicast and has the id of the query (RFC 6762, section 6.7).
        """
        port, payload = int.from_bytes(packet.body[:2], "big"), packet.body[8:]
        for name in read_questions(payload):
            for replying_host, answer in self._responder.answers(name):
                if replying_host is host:
                    reply = payload[:2] + answer[2:]
                    body = frames.udp_packet(
                        packet.destination, packet.source, _MDNS_PORT, port, reply
                    )
                    self._reply(host, frame, body, now)

    # ------------------------------------------------------------------ frames out

    def _reply(self, host: LanHost, frame: frames.Ethernet, packet: bytes, now: float) -> None:
        mac = self._macs[host.address]
        reply = frames.ethernet_frame(frame.source, mac, frames.ETHERTYPE_IPV4, packet)
        self._send(host, reply, now)

    def _send(self, host: LanHost, frame: bytes, now: float) -> None:
        """Queue a reply with the host's delay, unless the request or the reply is lost.

        Each of the two is lost at random, with the probability ``host.loss``.
        """
        if self._rng.random() < host.loss or self._rng.random() < host.loss:
            return
        delay_s = (host.latency_ms + self._rng.uniform(0, host.jitter_ms)) / 1000
        self._number += 1
        heapq.heappush(self._due, (now + delay_s, self._number, frame))


def _reply_of(host: LanHost, port: int, request: bytes) -> bytes:
    """Return a host's reply to data that a client sent to a port, or b"" for no reply."""
    if port in host.mute_ports:
        return b""
    if port == _IPP_PORT and host.ipp:
        return ipp_answer(host.ipp, request)
    if port in _WEB_PORTS:
        return _WEB_PAGE.format(title=html.escape(host.title)).encode()
    return _TLS_ALERT
