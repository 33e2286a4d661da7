"""The multicast DNS sockets of one interface. They share port 5353 with other mDNS programs.

If another program uses the port exclusively, an ephemeral port is used instead. Responders then
answer directly to that port ("legacy unicast", RFC 6762, section 6.7).
"""

import errno
import ipaddress
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from collectors.contract import Interface
from collectors.network.mdns.wire import MESSAGE_MAX_BYTES
from collectors.shared.addresses import is_loopback, network_of

GROUP_V4 = "224.0.0.251"
GROUP_V6 = "ff02::fb"
PORT = 5353
DESTINATIONS: Mapping[int, tuple[str, int]] = {
    socket.AF_INET: (GROUP_V4, PORT),
    socket.AF_INET6: (GROUP_V6, PORT),
}

RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024
"""The receive buffer that is requested, so that a burst of thousands of answers is not lost. The
kernel may give less."""

_ADDRESSES_MAX = 4096  # the most addresses in the cache of `LinkSockets.receive`
_HOPS = 255  # RFC 6762, section 11
_GROUP = socket.inet_aton(GROUP_V4)
_IP_PKTINFO = 8  # linux/in.h, not in the socket module
_PKTINFO = struct.Struct("=i4s4s")  # struct in_pktinfo; the last field is the destination: ip(7)
_IP_MULTICAST_ALL = 49  # linux/in.h, not in the socket module
_IPV6_MULTICAST_ALL = 29  # linux/in6.h, since Linux 4.20
_SO_MEMINFO = 55  # asm-generic/socket.h, since Linux 4.12
_MEMINFO = struct.Struct("=9I")
_MEMINFO_DROPS = 8  # linux/sock_diag.h: SK_MEMINFO_DROPS


@dataclass(slots=True)
class LinkSockets:
    """The sockets of one interface, and the networks of its addresses.

    ``problems`` describe the sockets that could not be opened. ``send_error`` is the last error
    of sending. It is a problem only if no packet could be sent. ``destinations`` maps an address
    family to the multicast group and port. ``sent`` counts packets, and ``unsent`` those for which
    the kernel had no room, for example because the neighbour table was full (arp(7)).
    """

    name: str
    index: int
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()
    sockets: list[socket.socket] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    sent: int = 0
    destinations: Mapping[int, tuple[str, int]] = field(default_factory=lambda: DESTINATIONS)
    send_error: str | None = None
    unsent: int = 0
    _addresses: dict[tuple[str | int, ...], str] = field(default_factory=dict)

    def send(self, packets: Iterable[bytes]) -> None:
        """Send packets to the multicast group of each address family."""
        for packet in packets:
            self.sent += sum([self._send(socket_, packet) for socket_ in self.sockets])

    def receive(self, from_socket: socket.socket) -> tuple[str, bytes] | None:
        """Return the source and the bytes of the next waiting packet, or None if none is waiting.

        The source is "" if the packet may be from another link (RFC 6762, section 11). A packet to
        the multicast group is certainly from this link, because the socket has joined the group
        only there. A packet is also from this link if its source address is in the networks of the
        interface.
        """
        try:
            packet, source, is_to_group = _receive(from_socket)
        except BlockingIOError:
            return None
        except OSError:
            return "", b""  # an ICMP error of an earlier send; the next read may succeed
        # The result for an address is cached, because thousands of packets may come from it.
        # The port does not matter.
        key = (source[0], *source[2:])
        address = self._addresses.get(key)
        if address is None:
            address = source[0].partition("%")[0] if self.is_neighbour(source) else ""
            if len(self._addresses) < _ADDRESSES_MAX:
                self._addresses[key] = address
        return address or (source[0] if is_to_group else ""), packet

    def lost(self) -> int:
        """Return how many packets the kernel has dropped.

        These are packets that were to be sent, and on Linux also received packets.
        """
        return self.unsent + sum(map(_lost, self.sockets))

    def is_neighbour(self, source: tuple[str | int, ...]) -> bool:
        """Return whether a socket address is on this link, by its scope or by its network."""
        address = ipaddress.ip_address(str(source[0]).partition("%")[0])
        scope = source[3] if len(source) > 3 else 0  # (host, port, flow, scope)
        if address.version == 6 and address.is_link_local:
            return scope == self.index
        return any(address in network for network in self.networks)

    def all_problems(self) -> tuple[str, ...]:
        """Return the descriptions of errors that prevented opening or sending."""
        send_error = (self.send_error,) if self.send_error and not self.sent else ()
        return (*self.problems, *send_error)

    def close(self) -> None:
        for socket_ in self.sockets:
            socket_.close()
        self.sockets.clear()

    def _send(self, to_socket: socket.socket, packet: bytes) -> bool:
        try:
            to_socket.sendto(packet, self.destinations[to_socket.family])
        except OSError as error:
            # One family often fails while the other works, for example if the interface has no IPv6
            # address yet.
            self.send_error = f"mDNS questions could not be sent on {self.name}: {error.strerror}"
            self.unsent += error.errno == errno.ENOBUFS
            return False
        return True


def open_link(interface: Interface, port: int = PORT) -> LinkSockets | None:
    """Open the sockets of an interface. Returns None if it has no addresses except loopback.

    Errors of the machine are not raised. The returned link describes them in ``problems``.
    """
    networks = tuple(
        network_of(address) for address in interface.addresses if not is_loopback(address.address)
    )
    if not networks:
        return None
    link = LinkSockets(interface.name, _index(interface.name), networks)
    v4 = next(
        (address.address for address in interface.addresses if address.family == "ipv4"), None
    )
    if v4 is not None:
        _open(link, port, lambda socket_: _open_v4(v4, socket_))
    if link.index and any(address.family == "ipv6" for address in interface.addresses):
        _open(link, port, lambda socket_: _open_v6(link.index, socket_))
    return link


def _open(link: LinkSockets, port: int, opener: Callable[[int], socket.socket]) -> None:
    try:
        link.sockets.append(opener(port))
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            link.problems.append(f"mDNS is not possible on {link.name}: {error.strerror}")
            return
        link.problems.append(
            f"another program uses UDP port {port} exclusively, so on {link.name} only hosts"
            " that answer by unicast were found"
        )
        with suppress(OSError):
            link.sockets.append(opener(0))


def _open_v4(address: str, port: int) -> socket.socket:
    socket_ = _new_socket(socket.AF_INET)
    try:
        _set_if_known(socket_, socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
        _set_if_known(socket_, socket.IPPROTO_IP, _IP_PKTINFO, 1)
        socket_.bind(("", port))
        address_bytes = socket.inet_aton(address)
        socket_.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, address_bytes)
        socket_.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, _HOPS)
        socket_.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        membership = socket.inet_aton(GROUP_V4) + address_bytes
        socket_.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    except OSError:
        socket_.close()
        raise
    return socket_


def _open_v6(index: int, port: int) -> socket.socket:
    socket_ = _new_socket(socket.AF_INET6)
    try:
        socket_.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        _set_if_known(socket_, socket.IPPROTO_IPV6, _IPV6_MULTICAST_ALL, 0)
        socket_.bind(("", port))
        socket_.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        socket_.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, _HOPS)
        socket_.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)
        membership = socket.inet_pton(socket.AF_INET6, GROUP_V6) + struct.pack("@I", index)
        socket_.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, membership)
    except OSError:
        socket_.close()
        raise
    return socket_


def _new_socket(family: socket.AddressFamily) -> socket.socket:
    socket_ = socket.socket(family, socket.SOCK_DGRAM)
    socket_.setblocking(False)
    socket_.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "SO_REUSEPORT"):
        socket_.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    with suppress(OSError):
        socket_.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    return socket_


def _receive(from_socket: socket.socket) -> tuple[bytes, Any, bool]:
    """Return a packet, its source, and whether it was certainly sent to the IPv4 group."""
    if sys.platform != "linux":
        return (*from_socket.recvfrom(MESSAGE_MAX_BYTES + 1), False)
    space = socket.CMSG_SPACE(_PKTINFO.size)
    packet, control, _, source = from_socket.recvmsg(MESSAGE_MAX_BYTES + 1, space)
    return packet, source, any(data[-len(_GROUP) :] == _GROUP for _, _, data in control)


def _set_if_known(socket_: socket.socket, level: int, option: int, value: int) -> None:
    """Set a socket option of Linux, if the kernel has it.

    With the value 0, the MULTICAST_ALL options limit a socket to the groups that it joined itself.
    Before Linux 4.20, IPv6 packets are filtered only by their source address.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            socket_.setsockopt(level, option, value)


def _lost(socket_: socket.socket) -> int:
    if sys.platform != "linux":
        return 0
    try:
        figures = socket_.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
    except OSError:
        return 0
    return int(_MEMINFO.unpack(figures)[_MEMINFO_DROPS]) if len(figures) == _MEMINFO.size else 0


def _index(name: str) -> int:
    try:
        return socket.if_nametoindex(name)
    except (OSError, AttributeError):
        return 0
