"""A LAN of up to thousands of hosts, played by one process behind a TAP device.

    python -m tests.lab.tap.lan PLAN.json COMMAND [ARGUMENT ...]

plays the plan while the command runs and ends with its exit code, or with HARMED where anything
came that nobody may send. It must be started in a network
namespace of its own (see namespaces.py), whose only device beside loopback is the TAP. The command
finds in ``TAP_LAN_CONTROL`` the socket at which `read_counters` and `reset_counters` ask.
"""

import fcntl
import heapq
import json
import math
import os
import random
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from tests.lab.harm import Harm
from tests.lab.tap import frames
from tests.lab.tap.counters import PRINT_PORTS, LanCounters, counters_from_json, counters_to_json
from tests.lab.tap.ipp import ipp_answer
from tests.lab.tap.mdns import Responder, read_questions
from tests.lab.tap.plan import LanHost, LanPlan, load_plan

CONTROL_VARIABLE = "TAP_LAN_CONTROL"
HARMED = 70
DEVICE = "lab0"
DEVICE_MAC = "02:00:00:00:00:fe"

_TUNSETIFF = 0x400454CA
_IFF_TAP, _IFF_NO_PI = 0x0002, 0x1000
_FRAME_MAX = 65536
_ISN = 1000
_PLAY = b"play "
_ARP_FORGOTTEN_S = 5.0
_MDNS_GROUP = bytes((224, 0, 0, 251))
_MDNS_MAC = bytes.fromhex("01005e0000fb")
_MDNS_PORT = 5353
_WEB_PORTS = frozenset({80, 8008, 8080})
_IPP_PORT = 631
_WEB_PAGE = b"HTTP/1.0 200 OK\r\nServer: lab/1.0\r\n\r\n<title>Lab host</title>"
_TLS_ALERT = b"\x15\x03\x01\x00\x02\x02\x28"  # fatal, handshake_failure (RFC 8446, section 6.2)


class TapLan:
    """Answers frames after the delay of the host they are for."""

    def __init__(self, plan: LanPlan, tap_fd: int) -> None:
        self.counters = LanCounters()
        self.harm = Harm(plan.excluded)
        self._tap = tap_fd
        self._rng = random.Random()  # each run of a LAN is another one
        self.play(plan)
        self._due: list[tuple[float, int, bytes]] = []
        self._number = 0
        self._last_arp: dict[bytes, float] = {}
        self._last_mdns: dict[tuple[bytes, ...], float] = {}
        self.was_asked = False
        self._last_printing: dict[tuple[bytes, int], float] = {}
        self._connections: defaultdict[bytes, set[tuple[int, int]]] = defaultdict(set)

    def play(self, plan: LanPlan) -> None:
        """Have the hosts of a plan from now on; who is excluded stays."""
        self._hosts = {socket.inet_aton(host.address): host for host in plan.hosts}
        self._macs = {host.address: _mac(host.mac) for host in plan.hosts}
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
        self._last_printing.clear()

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
        self.harm.count(packet.destination, packet.protocol, packet.body)
        if packet.destination == _MDNS_GROUP:
            if not self._filters_multicast:
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
        if segment.flags & (frames.RST | frames.FIN):
            self._connections[packet.destination].discard((segment.source_port, port))
        answer = self._answer(host, segment)
        if answer is None:
            return
        reply = frames.tcp(packet.destination, packet.source, answer)
        sent = self._reply(host, frame, reply, now)
        if sent and answer.flags == frames.SYN | frames.ACK:
            self._connected(packet.destination, segment.source_port, port, now)

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
            page = _page(host, port, segment.payload)
            flags = frames.ACK | frames.PSH | frames.FIN if page else frames.ACK
            return frames.Tcp(port, client, segment.acknowledgement, ack, flags, page)
        if segment.flags & frames.FIN:
            ack = segment.sequence + 1
            return frames.Tcp(port, client, segment.acknowledgement, ack, frames.ACK)
        return None

    def _connected(self, host: bytes, client_port: int, port: int, now: float) -> None:
        held = self._connections[host]
        held.add((client_port, port))
        counters = self.counters
        counters.most_connections = max(counters.most_connections, len(held))
        printing = sum(1 for _, p in held if p in PRINT_PORTS)
        counters.most_print_connections = max(counters.most_print_connections, printing)
        if port in PRINT_PORTS:
            pause_s = now - self._last_printing.get((host, port), -math.inf)
            counters.shortest_print_pause_s = min(counters.shortest_print_pause_s, pause_s)
            self._last_printing[host, port] = now

    def _handle_mdns(self, packet: frames.Ipv4, now: float) -> None:
        self.was_asked = True
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
        self._mac = _mac(plan.proxy_arp_mac) if plan.proxy_arp_mac else b""
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


def read_counters() -> LanCounters:
    """Ask the LAN this process runs in for its counters."""
    return counters_from_json(json.loads(_ask(b"counters")))


def reset_counters() -> None:
    """Set the counters to zero and let every host forget what it has seen."""
    _ask(b"reset")


def change_plan(path: Path) -> None:
    """Have other hosts on the LAN this process runs in."""
    _ask(_PLAY + bytes(path))


def _ask(question: bytes) -> bytes:
    with tempfile.TemporaryDirectory() as directory, _control_socket() as asking:
        asking.bind(str(Path(directory) / "reply"))
        asking.settimeout(5)
        asking.sendto(question, os.environ[CONTROL_VARIABLE])
        return asking.recv(_FRAME_MAX)


def _control_socket() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


def open_tap(plan: LanPlan) -> int:
    """Make the device and give it the agent's address; the namespace dies with the command."""
    tap_fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    request = struct.pack("16sH22x", DEVICE.encode(), _IFF_TAP | _IFF_NO_PI)
    fcntl.ioctl(tap_fd, _TUNSETIFF, request)
    mtu = "9000" if any(host.services for host in plan.hosts) else "1500"
    own = f"{plan.agent_address}/{plan.prefix_length}"
    # Without duplicate detection the IPv6 address is usable at once.
    Path(f"/proc/sys/net/ipv6/conf/{DEVICE}/accept_dad").write_text("0", "ascii")
    for command in (
        ("link", "set", "lo", "up"),
        ("link", "set", DEVICE, "address", DEVICE_MAC, "mtu", mtu, "txqueuelen", "10000"),
        ("link", "set", DEVICE, "up"),
        ("addr", "add", own, "dev", DEVICE),
        ("route", "add", "default", "via", plan.gateway, "dev", DEVICE),
    ):
        subprocess.run(["ip", *command], check=True)
    return tap_fd


def _page(host: LanHost, port: int, question: bytes) -> bytes:
    """Return what a port says to the first bytes it gets; nothing from a mute one."""
    if port in host.mute_ports:
        return b""
    if port == _IPP_PORT and host.ipp:
        return ipp_answer(host.ipp, question)
    return _WEB_PAGE if port in _WEB_PORTS else _TLS_ALERT


def start_liar(plan_path: Path, packets: int, tap_fd: int) -> subprocess.Popen[bytes]:
    """Start the liar; it is ready to lie when this returns."""
    command = [
        sys.executable,
        "-m",
        "tests.lab.tap.liar",
        str(plan_path),
        str(tap_fd),
        str(packets),
    ]
    liar = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(tap_fd,)
    )
    assert liar.stdout is not None
    assert liar.stdout.readline() == b"ready\n"
    return liar


def play(
    lan: TapLan,
    tap_fd: int,
    control: socket.socket,
    child: subprocess.Popen[bytes],
    liar: subprocess.Popen[bytes] | None = None,
) -> int:
    """Answer frames until the command ends; returns its exit code."""
    while child.poll() is None:
        if liar is not None and liar.stdin is not None and lan.was_asked:
            liar.stdin.write(b"\n")
            liar.stdin.close()
            liar.stdin = None
        ready, _, _ = select.select([tap_fd, control], [], [], lan.wait_s(time.monotonic()))
        if tap_fd in ready:
            _read_frames(lan, tap_fd)
        if control in ready:
            _answer_control(lan, control)
        lan.send_due(time.monotonic())
    return child.returncode


def _read_frames(lan: TapLan, tap_fd: int) -> None:
    try:
        for _ in range(64):
            lan.handle(os.read(tap_fd, _FRAME_MAX), time.monotonic())
    except BlockingIOError:
        pass


def _answer_control(lan: TapLan, control: socket.socket) -> None:
    question, asker = control.recvfrom(_FRAME_MAX)
    if question == b"reset":
        lan.reset()
    elif question.startswith(_PLAY):
        lan.play(load_plan(Path(os.fsdecode(question.removeprefix(_PLAY)))))
    control.sendto(json.dumps(counters_to_json(lan.counters)).encode(), asker)


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def main() -> int:
    plan = load_plan(Path(sys.argv[1]))
    tap_fd = open_tap(plan)
    with tempfile.TemporaryDirectory(prefix="tap-lan-") as directory, _control_socket() as control:
        path = str(Path(directory) / "control")
        control.bind(path)
        environment = {**os.environ, CONTROL_VARIABLE: path}
        liar = start_liar(Path(sys.argv[1]), plan.lies, tap_fd) if plan.lies else None
        try:
            lan = TapLan(plan, tap_fd)
            with subprocess.Popen(sys.argv[2:], env=environment) as child:
                code = play(lan, tap_fd, control, child, liar)
            if lan.harm.counts:
                sys.stderr.write(f"the LAN got what nobody may send: {lan.harm}\n")
            return HARMED if lan.harm.counts else code
        finally:
            if liar is not None:
                liar.kill()
                liar.communicate()


if __name__ == "__main__":
    sys.exit(main())
