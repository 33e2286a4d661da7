"""Holds connections of the service open, with clients that read no replies or send bodies slowly.

A connection that the service closes is opened again after 5 to 15 s. With a shorter wait, the
attack would be a flood of calls, which the rate limit of a proxy would stop.

Usage: python -m tests.bench.connections.attack KIND PORT  (runs until it is stopped)
"""

import contextlib
import heapq
import random
import select
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.web.accounts.sign_in import SIGN_IN

ADDRESS = "127.0.0.2"
"""The attack uses its own source address, like an attacker on another machine."""
RECONNECT_AFTER_S = (5.0, 15.0)
DRIP_S = 5.0
GET = b"GET /openapi.json HTTP/1.1\r\nHost: service\r\n\r\n"
POST = (
    f"POST {SIGN_IN} HTTP/1.1\r\nHost: service\r\nContent-Type: application/json\r\n"
    "Content-Length: 4000\r\n\r\n{"
).encode()


@dataclass(frozen=True, slots=True)
class Attack:
    """Each of the connections first sends the bytes ``sent``. If ``drips`` is true, it then sends
    one more byte of its body every `DRIP_S` seconds.
    """

    connections: int
    sent: bytes
    drips: bool


ATTACKS: Mapping[str, Attack] = {
    "unread": Attack(1500, GET * 1000, drips=False),
    "slow": Attack(6000, POST, drips=True),
}


class Attacker:
    def __init__(self, attack: Attack, port: int) -> None:
        self._attack = attack
        self._port = port
        self._poll = select.epoll()
        self._open: dict[int, socket.socket] = {}
        self._connecting: set[int] = set()
        self._reconnect_at_s: list[float] = []

    def run(self) -> None:
        for _ in range(self._attack.connections):
            self._connect()
            self._handle(0)
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        next_drip_s = time.monotonic() + DRIP_S
        while True:
            self._handle(0.05)
            now_s = time.monotonic()
            while self._reconnect_at_s and self._reconnect_at_s[0] <= now_s:
                heapq.heappop(self._reconnect_at_s)
                self._connect()
            if self._attack.drips and now_s >= next_drip_s:
                next_drip_s = now_s + DRIP_S
                for number in self._open.keys() - self._connecting:
                    self._send(number, b" ")

    def _connect(self) -> None:
        connection = socket.socket()
        connection.setsockopt(socket.IPPROTO_IP, socket.IP_BIND_ADDRESS_NO_PORT, 1)
        connection.bind((ADDRESS, 0))
        connection.setblocking(False)
        number = connection.fileno()
        self._open[number] = connection
        self._connecting.add(number)
        connection.connect_ex(("127.0.0.1", self._port))
        self._poll.register(number, select.EPOLLOUT | select.EPOLLRDHUP)

    def _handle(self, wait_s: float) -> None:
        for number, event in self._poll.poll(wait_s):
            if event & (select.EPOLLERR | select.EPOLLHUP | select.EPOLLRDHUP):
                self._lose(number)
            else:
                self._poll.modify(number, select.EPOLLRDHUP)
                self._connecting.discard(number)
                self._send(number, self._attack.sent)

    def _send(self, number: int, data: bytes) -> None:
        with contextlib.suppress(OSError):  # the next event reports the error
            self._open[number].send(data)

    def _lose(self, number: int) -> None:
        self._poll.unregister(number)
        self._connecting.discard(number)
        self._open.pop(number).close()
        heapq.heappush(self._reconnect_at_s, time.monotonic() + random.uniform(*RECONNECT_AFTER_S))


if __name__ == "__main__":
    Attacker(ATTACKS[sys.argv[1]], int(sys.argv[2])).run()
