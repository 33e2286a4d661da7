"""The simulated LAN of the demo with counters, proxy ARP and filtered multicast."""

import ipaddress
import socket
from collections import defaultdict

from controlplane.demo.lan import frames
from controlplane.demo.lan.lan import TapLan
from controlplane.demo.lan.plan import LanHost, LanPlan
from controlplane.demo.lan.tap import mac_bytes
from tests.lab.harm import Harm
from tests.lab.tap.counters import PRINT_PORTS, LanCounters
from tests.lab.tap.plan import LabPlan
from tests.lab.tap.traffic import Traffic

_END_OPTION, _NO_OPERATION, _TIMESTAMP_OPTION = 0, 1, 8


class CountedLan(TapLan):
    """A LAN that counts the traffic to its hosts.

    ``harm`` and ``traffic`` detect forbidden traffic. ``was_queried`` is True after the first mDNS
    query that the plan does not filter.
    """

    def __init__(self, plan: LabPlan, tap_fd: int, harm: Harm) -> None:
        self.traffic = Traffic(plan.terminals, plan.excluded)
        super().__init__(plan, tap_fd)
        self._harm = harm
        self.was_queried = False
        self.reset()

    def use_plan(self, plan: LanPlan) -> None:
        super().use_plan(plan)
        self.traffic.use_plan(plan)
        assert isinstance(plan, LabPlan)
        self._filters_multicast = plan.filters_multicast
        self._agent = socket.inet_aton(plan.agent_address)
        self._proxy_mac = mac_bytes(plan.proxy_arp_mac)
        self._proxied = (
            ipaddress.IPv4Network(plan.proxied_network) if plan.proxied_network else None
        )

    def reset(self) -> None:
        """Reset the counters and the state of every host."""
        self.counters = LanCounters()
        self._last_arp.clear()
        self._last_mdns.clear()
        self._connections: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
        self._last_print_connection_ms: dict[tuple[str, int], int] = {}
        self._handshakes: dict[tuple[str, int, int], int | None] = {}

    def handle(self, raw: bytes, now: float) -> None:
        self.counters.frames += 1
        self._harm.check_terminals(raw)
        self.traffic.check_frame(raw)
        self.counters.terminal_datagrams = self._harm.datagrams
        super().handle(raw, now)

    def _handle_arp(self, request: frames.ArpRequest, now: float) -> None:
        self.counters.arp_requests += 1
        if self._is_proxied(request.target):
            proxy = LanHost("", "", latency_ms=1.0, jitter_ms=0.0)
            self._send(proxy, frames.arp_reply(request, self._proxy_mac), now)
        super()._handle_arp(request, now)

    def _is_proxied(self, address: bytes) -> bool:
        if self._proxied is None or address in self._hosts or address == self._agent:
            return False
        return ipaddress.IPv4Address(address) in self._proxied

    def _handle_ipv4(self, frame: frames.Ethernet, packet: frames.Ipv4, now: float) -> None:
        self._harm.count(packet.destination, packet.protocol, packet.body)
        host = self._hosts.get(packet.destination)
        if host is not None and not host.drops_all:
            if frame.destination != self._macs[host.address]:
                self.counters.wrong_mac_frames += 1
            elif packet.protocol == frames.UDP:
                self.counters.udp_datagrams += 1
        super()._handle_ipv4(frame, packet, now)

    def _handle_mdns(self, packet: frames.Ipv4, now: float) -> None:
        if not self._filters_multicast:
            self.was_queried = True
            super()._handle_mdns(packet, now)

    def _answer(self, host: LanHost, segment: frames.Tcp) -> frames.Tcp | None:
        port = segment.destination_port
        if segment.payload:
            self.counters.payload_bytes[port] += len(segment.payload)
        if segment.flags & frames.SYN:
            self.counters.syns += 1
            self.counters.syns_by_port[port] += 1
        self._count_connection(host.address, segment)
        return super()._answer(host, segment)

    def _count_connection(self, host: str, segment: frames.Tcp) -> None:
        """Count a connection when its handshake completes.

        The pause between two connections is measured by the sender's timestamps, so that delays of
        this process do not change it.
        """
        client_port, port = segment.source_port, segment.destination_port
        connection = host, client_port, port
        if segment.flags & frames.SYN:
            self._handshakes[connection] = read_timestamp(segment.options)
        elif segment.flags & frames.RST:
            self._handshakes.pop(connection, None)
        elif connection in self._handshakes:
            self._note_connection(host, client_port, port, self._handshakes.pop(connection))
        if segment.flags & (frames.RST | frames.FIN):
            self._connections[host].discard((client_port, port))

    def _note_connection(
        self, host: str, client_port: int, port: int, began_ms: int | None
    ) -> None:
        connections = self._connections[host]
        connections.add((client_port, port))
        counters = self.counters
        counters.most_connections = max(counters.most_connections, len(connections))
        print_count = sum(1 for _, p in connections if p in PRINT_PORTS)
        counters.most_print_connections = max(counters.most_print_connections, print_count)
        if port in PRINT_PORTS and began_ms is not None:
            if (last_ms := self._last_print_connection_ms.get((host, port))) is not None:
                pause_s = (began_ms - last_ms) % 2**32 / 1000
                counters.shortest_print_pause_s = min(counters.shortest_print_pause_s, pause_s)
            self._last_print_connection_ms[host, port] = began_ms


def read_timestamp(options: bytes) -> int | None:
    """Return the sender's clock in ms from TCP options (TSval of RFC 7323); None without it."""
    while options and options[0] != _END_OPTION:
        if options[0] == _NO_OPERATION:
            options = options[1:]
        elif len(options) < 2 or options[1] < 2:
            return None
        elif options[0] == _TIMESTAMP_OPTION:
            return int.from_bytes(options[2:6], "big")
        else:
            options = options[options[1] :]
    return None
