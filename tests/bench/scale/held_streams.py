"""Holds the command streams of many devices open, with as little processor time as possible.

Usage: python -m tests.bench.scale.held_streams PORT KEYS FIRST COUNT PARTS

KEYS is a file with the API key of a device in each line. The process uses every PARTS-th line,
beginning with line FIRST (counted from 0), and at most COUNT lines. It prints
``open SECONDS REOPENED`` once all streams are open, ``arrived ID SECONDS`` for each request that it
receives, and ``end OPEN REOPENED`` when its standard input ends. SECONDS is the time of
CLOCK_MONOTONIC. REOPENED is the number of streams that were refused or lost, and opened again.
"""

import resource
import select
import socket
import sys
import time
from collections import deque
from itertools import islice
from pathlib import Path

from agent.wire import routes

AT_ONCE = 64
"""Maximum number of streams that are being opened at a time."""
REOPEN_AFTER_S = 1.0
"""The delay before a refused or lost stream is opened again."""
ADDRESSES = 200
"""Source addresses of a process. Each address has 28,000 ports for the same destination."""
ENDED = select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP


class HeldStreams:
    """Opens the streams. A stream that ends is opened again. ``network`` selects the third octet of
    the source addresses, so it must differ between processes.
    """

    def __init__(self, port: int, keys: list[str], network: int) -> None:
        self._address = ("127.0.0.1", port)
        self._keys = keys
        self._network = network % 250 + 1
        self._poll = select.epoll()
        # By file descriptor: a socket, and the index of its device.
        self._sockets: dict[int, tuple[socket.socket, int]] = {}
        # By file descriptor: the time at which the opening of a stream began.
        self._opening: dict[int, float] = {}
        # Indexes of devices whose streams can be opened now.
        self._to_open = deque(range(len(keys)))
        # The time at which a stream may be opened again, and the index of its device.
        self._to_reopen: deque[tuple[float, int]] = deque()
        self._poll.register(sys.stdin.fileno(), select.EPOLLIN | select.EPOLLHUP)
        self.open = 0
        self.reopened = 0

    def run(self) -> None:
        """Keep the streams open until standard input ends."""
        is_complete = False
        while True:
            self._open_some()
            for number, events in self._poll.poll(0.5, 512):
                if number == sys.stdin.fileno():
                    _print(f"end {self.open} {self.reopened}")
                    return
                self._receive(number, events)
            if not is_complete and self.open == len(self._keys):
                is_complete = True
                _print(f"open {time.monotonic()} {self.reopened}")

    def _open_some(self) -> None:
        now_s = time.monotonic()
        while self._to_reopen and self._to_reopen[0][0] <= now_s:
            self._to_open.append(self._to_reopen.popleft()[1])
        while self._to_open and len(self._opening) < AT_ONCE:
            device = self._to_open.popleft()
            connection = socket.socket()
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_IP, socket.IP_BIND_ADDRESS_NO_PORT, 1)
            connection.bind((f"127.0.{self._network}.{device % ADDRESSES + 1}", 0))
            connection.connect_ex(self._address)
            number = connection.fileno()
            self._sockets[number] = connection, device
            self._opening[number] = now_s
            self._poll.register(number, select.EPOLLOUT | ENDED)

    def _receive(self, number: int, events: int) -> None:
        connection, device = self._sockets[number]
        if events & ENDED:
            self._close(number)
            return
        try:
            if events & select.EPOLLOUT:
                connection.send(_request(self._keys[device]))
                self._poll.modify(number, select.EPOLLIN | ENDED)
                return
            data = connection.recv(65_536)
        except OSError:
            data = b""
        if not data:
            self._close(number)
        elif number in self._opening:
            if b" 200 " not in data[:16]:
                self._close(number)
                return
            del self._opening[number]
            self.open += 1
        if b"\nid: " in data:
            _print_arrivals(data)

    def _close(self, number: int) -> None:
        connection, device = self._sockets.pop(number)
        self._poll.unregister(number)
        connection.close()
        if self._opening.pop(number, None) is None:
            self.open -= 1
        self.reopened += 1
        self._to_reopen.append((time.monotonic() + REOPEN_AFTER_S, device))


def _request(key: str) -> bytes:
    return (
        f"POST {routes.ON_COMMANDS} HTTP/1.1\r\nHost: service\r\nAuthorization: Bearer {key}\r\n"
        "Content-Type: application/json\r\nAccept: text/event-stream\r\n"
        "User-Agent: venue-agent/1.0.0\r\nContent-Length: 2\r\n\r\n{}"
    ).encode()


def _print_arrivals(data: bytes) -> None:
    at_s = time.monotonic()
    for line in data.split(b"\n"):
        if line.startswith(b"id: "):
            _print(f"arrived {line[4:].decode()} {at_s}")


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    port, first, count, parts = (int(sys.argv[at]) for at in (1, 3, 4, 5))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with Path(sys.argv[2]).open(encoding="ascii") as lines:
        keys = [line.strip() for line in islice(lines, first, None, parts)][:count]
    HeldStreams(port, keys, first).run()


if __name__ == "__main__":
    main()
