"""Requests an expensive dashboard with read-only API keys: 64 calls at once, without a pause.

Usage: python -m tests.bench.fleet.attacks.greedy_viewer PORT KEY...  (runs until it is stopped)
"""

import asyncio
import contextlib
import itertools
import os
import sys
import uuid
from collections.abc import Iterator
from typing import Final

from tests.bench.fleet.attacks.large_merchant import dashboard_request
from tests.bench.fleet.fleet import Member
from tests.bench.fleet.load import call, read_reply

AT_ONCE: Final = 64
NICENESS: Final = 19
"""An attacker uses its own machine. Here, it must not take processor time from the service."""


async def attack(port: int, keys: list[str]) -> None:
    path, body = dashboard_request()
    nobody = uuid.UUID(int=0)
    requests = itertools.cycle(call(path, Member(nobody, nobody, key, ""), body) for key in keys)
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    await asyncio.gather(*(_repeat(port, requests) for _ in range(AT_ONCE)))


async def _repeat(port: int, requests: Iterator[bytes]) -> None:
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for request in requests:
                writer.write(request)
                await read_reply(reader)


if __name__ == "__main__":
    os.nice(NICENESS)
    asyncio.run(attack(int(sys.argv[1]), sys.argv[2:]))
