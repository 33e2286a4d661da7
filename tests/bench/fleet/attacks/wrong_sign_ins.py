"""Signs in with wrong passwords: 80 calls at once, without a pause. Each call has its own account
and its own network, so that neither of their limits refuses it.

Usage: python -m tests.bench.fleet.attacks.wrong_sign_ins PORT  (runs until it is stopped)
"""

import asyncio
import contextlib
import ipaddress
import itertools
import json
import os
import random
import sys
from collections.abc import Iterator
from typing import Final

from controlplane.web.accounts.sign_in import SIGN_IN
from tests.bench.fleet.load import read_reply

AT_ONCE: Final = 80
NICENESS: Final = 19
"""An attacker uses its own machine. Here, it must not take processor time from the service."""
NETWORKS: Final = int(ipaddress.IPv4Address("10.0.0.0"))
MANY: Final = 1 << 24


def sign_in(email: str, password: str, address: str) -> bytes:
    """Return a request as a proxy forwards it. ``address`` is the address of the client."""
    body = json.dumps({"email": email, "password": password}).encode()
    return (
        f"POST {SIGN_IN} HTTP/1.1\r\nHost: service\r\nX-Forwarded-For: {address}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def attack(port: int) -> None:
    # Each run of the attack begins with other networks.
    numbers = itertools.count(random.randrange(MANY))
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    await asyncio.gather(*(_repeat(port, numbers) for _ in range(AT_ONCE)))


async def _repeat(port: int, numbers: Iterator[int]) -> None:
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for number in numbers:
                address = ipaddress.IPv4Address(NETWORKS + number % MANY)
                email = f"user-{number}@example.com"
                writer.write(sign_in(email, "a wrong password", str(address)))
                await read_reply(reader)


if __name__ == "__main__":
    os.nice(NICENESS)
    asyncio.run(attack(int(sys.argv[1])))
