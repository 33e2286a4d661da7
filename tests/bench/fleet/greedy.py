"""Simulates an API key that uses as many resources as it can: the maximum number of streams, calls
without a pause, slow bodies, the most expensive bodies, and connections that send no request.

Usage: python -m tests.bench.fleet.greedy PORT KEY BINDING  (runs until it is stopped)
"""

import asyncio
import contextlib
import sys
import uuid
from itertools import islice

from agent.wire import routes
from tests.bench.bodies import bodies
from tests.bench.fleet.fleet import Member
from tests.bench.fleet.load import call, heartbeat, read_reply, stream

STREAMS = 1500
"""More than the service permits for one key. The service refuses the streams above its limit."""
HEARTBEAT_CONNECTIONS = 8
SLOW_BODIES = 100
"""Calls whose last byte is never sent."""
SILENT_CONNECTIONS = 300
EXPENSIVE_CONNECTIONS = 4
EVERY = 12
"""The attack uses every twelfth body that `tests.bench.bodies` generates."""


async def attack(port: int, member: Member) -> None:
    expensive = [body for _, body in islice(bodies(), 0, None, EVERY)]
    tasks = [
        *(_hold(port, stream(member)) for _ in range(STREAMS)),
        *(_repeat(port, [heartbeat(member)]) for _ in range(HEARTBEAT_CONNECTIONS)),
        *(_hold(port, call(routes.SUBMIT_RESULT, member, {})[:-1]) for _ in range(SLOW_BODIES)),
        *(_hold(port, b"POST /api") for _ in range(SILENT_CONNECTIONS)),
        *(
            _repeat(port, [_submission(member, body) for body in expensive])
            for _ in range(EXPENSIVE_CONNECTIONS)
        ),
    ]
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    await asyncio.gather(*tasks)


def _submission(member: Member, body: bytes) -> bytes:
    head, _, _ = call(routes.SUBMIT_RESULT, member, {}).partition(b"Content-Length")
    return head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


async def _hold(port: int, request: bytes) -> None:
    """Send the bytes and keep the connection open. If the service closes the connection, connect
    again and send the bytes again.
    """
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            while await reader.read(65536):
                pass
            writer.close()


async def _repeat(port: int, requests: list[bytes]) -> None:
    """Send the requests in turn and read the replies, without a pause."""
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for number in range(1_000_000):
                writer.write(requests[number % len(requests)])
                await read_reply(reader)


if __name__ == "__main__":
    key, binding = sys.argv[2:]
    asyncio.run(attack(int(sys.argv[1]), Member(uuid.uuid4(), uuid.UUID(binding), key, "")))
