"""Sends calls at a fixed rate. A call that cannot start in time counts as late, not as missing: its
latency is measured from the time at which it was due.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

HEAD_END = b"\r\n\r\n"
TICK_S = 0.002
ANSWER_S = 60.0
"""Maximum wait for the last replies."""
RUNNING_MAX = 2000
"""Maximum number of calls without a reply. Further calls wait, and their latency grows."""
IDLE_S = 3.0
"""A connection that was not used for this time is not used again. The service closes it after 5 s.
"""
OnReply = Callable[[int, float, bytes], None]
"""Takes the number of a call, the time at which it was due, and the body of its reply. It is called
only if the status of the reply is 200.
"""


@dataclass(slots=True)
class Tally:
    statuses: dict[int, int] = field(default_factory=dict)
    latencies_s: list[float] = field(default_factory=list)
    unanswered: int = 0
    """Calls without a reply."""


class PacedCalls:
    """Sends calls over connections that it keeps open and uses again, as a proxy does."""

    def __init__(
        self, port: int, requests: Iterator[bytes], tally: Tally, on_reply: OnReply | None = None
    ) -> None:
        self.port = port
        self.tally = tally
        self.on_reply = on_reply
        self.idle: list[_Connection] = []
        self.running = 0
        self._requests = requests

    async def send(self, rate_per_s: float, within_s: float) -> None:
        """Send calls for ``within_s`` seconds, and wait for the replies."""
        began_s = time.monotonic()
        total, sent = int(rate_per_s * within_s), 0
        while sent < total:
            now_s = time.monotonic()
            while (
                sent < total
                and self.running < RUNNING_MAX
                and (due_s := began_s + sent / rate_per_s) <= now_s
            ):
                await self._start(sent, due_s)
                sent += 1
            await asyncio.sleep(TICK_S)
        until_s = time.monotonic() + ANSWER_S
        while self.running and time.monotonic() < until_s:  # noqa: ASYNC110 - bounded
            await asyncio.sleep(TICK_S)
        self.tally.unanswered += self.running
        while self.idle:
            self.idle.pop().transport.abort()

    async def _start(self, number: int, due_s: float) -> None:
        self.running += 1
        connection = self.idle.pop() if self.idle else None
        if connection is None or time.monotonic() - connection.idle_since_s > IDLE_S:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(
                lambda: _Connection(self), "127.0.0.1", self.port
            )
        connection.call(number, due_s, next(self._requests))


class _Connection(asyncio.Protocol):
    def __init__(self, calls: PacedCalls) -> None:
        self._calls = calls
        self._buffer = b""
        self._number: int | None = None
        self._due_s = 0.0
        self.idle_since_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def call(self, number: int, due_s: float, request: bytes) -> None:
        self._number, self._due_s, self._buffer = number, due_s, b""
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, body = self._buffer.partition(HEAD_END)
        if not end or self._number is None:
            return
        lowered = head.lower()
        at = lowered.index(b"content-length:") + len(b"content-length:")
        if len(body) < int(lowered[at : at + 12].split(b"\r")[0]):
            return
        number, self._number = self._number, None
        status = int(head[9:12])
        tally = self._calls.tally
        tally.statuses[status] = tally.statuses.get(status, 0) + 1
        self.idle_since_s = time.monotonic()
        tally.latencies_s.append(self.idle_since_s - self._due_s)
        self._calls.running -= 1
        self._calls.idle.append(self)
        if self._calls.on_reply is not None and status == 200:
            self._calls.on_reply(number, self._due_s, body)

    def connection_lost(self, error: Exception | None) -> None:
        if self._number is not None:
            self._calls.tally.unanswered += 1
            self._calls.running -= 1
        elif self in self._calls.idle:
            self._calls.idle.remove(self)
