"""Finds out whether the gateway answers, without privileges and within `TIMEOUT_S`.

An entry of the neighbour table is not enough: it stays valid for up to a minute after the gateway
has gone. So the gateway is contacted in several ways. Every reply counts, even a refusal:

- a ping by a datagram socket, which most systems allow (icmp(7), ping_group_range),
- one UDP datagram to the discard port, which is usually answered by ICMP port unreachable,
- TCP connections to the ports of DNS and HTTP. They are closed at once, and send no data.

This traffic also makes the kernel resolve the gateway's address. If this creates an entry, or makes
one reachable, the gateway answers. If the address cannot be resolved, the gateway does not answer.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from collectors.shared.linux.rtnetlink import LinkNeighbour
from collectors.shared.tcp_refusal import report_refusal_at_once

TIMEOUT_S: Final = 1.6
_TABLE_PAUSES_S: Final = (0.2, 0.3, 0.5, 0.5)
"""The pause before each reading of the neighbour table."""
_PING_WAITS_S: Final = (0.0, 0.5, 0.5)
"""The pauses before the first, second and third ping."""
_UDP_PORT: Final = 9  # discard (RFC 863)
_PORT_UNREACHABLE: Final = 1234
"""ERROR_PORT_UNREACHABLE of Windows, which reports a refused datagram by this error or as a reset
connection."""
_TCP_PORTS: Final = (53, 80)
_ECHO = struct.Struct("!BBHHH")
_ECHO_REQUEST: Final = {socket.AF_INET: 8, socket.AF_INET6: 128}
_PING_PROTOCOL: Final = {
    socket.AF_INET: socket.IPPROTO_ICMP,
    socket.AF_INET6: getattr(socket, "IPPROTO_ICMPV6", 58),
}
_REPLY_MAX: Final = 1500

SocketAddress = tuple[str, int] | tuple[str, int, int, int]
FindNeighbour = Callable[[], LinkNeighbour | None]


@dataclass(frozen=True, slots=True)
class _Gateway:
    """The address of a gateway, and the number of the interface that leads to it."""

    address: str
    index: int

    @property
    def family(self) -> socket.AddressFamily:
        return socket.AF_INET6 if ":" in self.address else socket.AF_INET

    def at(self, port: int) -> SocketAddress:
        return (self.address, port, 0, self.index) if ":" in self.address else (self.address, port)


class GatewayProbe:
    """Probes the gateway, and remembers the last gateway that has replied."""

    def __init__(self) -> None:
        self._last_replier: tuple[str, str | None] | None = None

    async def answers(self, gateway: str, index: int, find_neighbour: FindNeighbour) -> bool | None:
        """Return whether the gateway answers, or None if this is unknown.

        Args:
            gateway: the address of the gateway.
            index: the number of the interface, which a link-local IPv6 address needs.
            find_neighbour: returns the gateway's entry of the neighbour table.
        """
        before = find_neighbour()
        target = _Gateway(gateway, index)
        replied = await _any(
            _ping(target),
            _is_refused_by_udp(target),
            *(_is_answered_by_tcp(target, port) for port in _TCP_PORTS),
            _is_resolved(before, find_neighbour),
        )
        after = find_neighbour()
        identity = (gateway, after.mac_address if after else None)
        if replied:
            self._last_replier = identity
            return True
        if after is not None and after.state in ("resolving", "failed"):
            return False
        # No reply, but the neighbour table shows no failure. If this gateway was the last one that
        # replied, it is gone. If not, it may ignore every probe, so it is unknown whether it works.
        return False if identity == self._last_replier else None


async def _any(*probes: Awaitable[bool]) -> bool:
    """Return True as soon as a probe returns True; False if none does within `TIMEOUT_S`."""
    tasks = [asyncio.ensure_future(probe) for probe in probes]
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TIMEOUT_S):
                for next_result in asyncio.as_completed(tasks):
                    if await next_result:
                        return True
        return False
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ping(gateway: _Gateway) -> bool:
    """Send echo requests, and return True when a reply arrives.

    Returns False if the system does not allow pings, or after another error. Without a reply, the
    function waits until it is cancelled.
    """
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        protocol = _PING_PROTOCOL[gateway.family]
        with socket.socket(gateway.family, socket.SOCK_DGRAM, protocol) as sock:
            sock.setblocking(False)
            sock.connect(gateway.at(0))
            reply = asyncio.ensure_future(loop.sock_recv(sock, _REPLY_MAX))
            try:
                for number, wait_s in enumerate(_PING_WAITS_S, start=1):
                    await asyncio.wait({reply}, timeout=wait_s)
                    if reply.done():
                        break
                    sock.send(echo_request(_ECHO_REQUEST[gateway.family], number))
                return bool(await reply)
            finally:
                reply.cancel()
                await asyncio.gather(reply, return_exceptions=True)
    return False


def echo_request(kind: int, number: int) -> bytes:
    """Return an ICMP echo request without data (RFC 792), with its checksum (RFC 1071).

    Args:
        kind: the ICMP type, which differs between IPv4 and IPv6.
        number: the sequence number.
    """
    words = (kind << 8) + number
    checksum = ~((words >> 16) + (words & 0xFFFF)) & 0xFFFF
    return _ECHO.pack(kind, 0, checksum, 0, number)


async def _is_refused_by_udp(gateway: _Gateway) -> bool:
    with (
        contextlib.suppress(OSError),
        socket.socket(gateway.family, socket.SOCK_DGRAM) as sock,
    ):
        sock.setblocking(False)
        sock.connect(gateway.at(_UDP_PORT))
        sock.send(b"")
        try:
            return bool(await asyncio.get_running_loop().sock_recv(sock, 1))
        except (ConnectionRefusedError, ConnectionResetError):
            return True
        except OSError as error:
            return getattr(error, "winerror", None) == _PORT_UNREACHABLE
    return False


async def _is_answered_by_tcp(gateway: _Gateway, port: int) -> bool:
    with (
        contextlib.suppress(OSError),
        socket.socket(gateway.family, socket.SOCK_STREAM) as sock,
    ):
        sock.setblocking(False)
        report_refusal_at_once(sock)
        with contextlib.suppress(ConnectionRefusedError):
            await asyncio.get_running_loop().sock_connect(sock, gateway.at(port))
        return True
    return False


async def _is_resolved(before: LinkNeighbour | None, find_neighbour: FindNeighbour) -> bool:
    """Return whether the gateway has replied to the kernel since ``before`` was read."""
    for pause_s in _TABLE_PAUSES_S:
        await asyncio.sleep(pause_s)
        if _is_new(before, find_neighbour()):
            return True
    return False


def _is_new(before: LinkNeighbour | None, now: LinkNeighbour | None) -> bool:
    """Return whether the entry ``now`` was confirmed after ``before`` was read."""
    if now is None or now.state not in ("reachable", "stale"):
        return False
    if before is None or before.state not in ("reachable", "stale"):
        return True
    return (before.state, now.state) == ("stale", "reachable")
