"""Attacks the service with many calls at once.

Usage: python -m tests.bench.fleet.attacks.attacker PORT KIND WORD...  (runs until it is stopped)

The kinds and their words are:

    dashboards     request an expensive dashboard. Words: read-only API keys, which take turns.
    reports        submit the report of a large venue. Words: an API key, and the id of the binding
                   to which the reports belong.
    sign-ins       sign in with wrong passwords. Each call has its own account and network, so that
                   no limit of an account or of a network refuses it.
    registrations  register OAuth clients from 1,000 networks, which take turns.

Only registrations pause between the calls of a connection: about 300 are sent in a second.
"""

import asyncio
import contextlib
import ipaddress
import itertools
import json
import os
import random
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from agent.wire.codec import encode
from controlplane.accounts.oauth.metadata import REGISTER
from controlplane.web.accounts.sign_in import SIGN_IN
from tests.bench.fleet.attacks.large_merchant import dashboard_request
from tests.bench.fleet.fleet import Member
from tests.bench.fleet.load import call, read_reply, submit_report
from tests.fixtures.payloads import large_venue

NICENESS: Final = 19
"""A real attacker has its own machine. This program runs on the machine of the service, and must
not take processor time from the service."""
FIRST_NETWORK: Final = int(ipaddress.IPv4Address("10.0.0.0"))
NETWORKS: Final = 1 << 24
REGISTERING_NETWORKS: Final = 1000


def forwarded(path: str, body: object, address: str) -> bytes:
    """Return a request as a proxy forwards it. ``address`` is the address of the client."""
    content = json.dumps(body).encode()
    return (
        f"POST {path} HTTP/1.1\r\nHost: service\r\nX-Forwarded-For: {address}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    ).encode() + content


def sign_in(email: str, password: str, address: str) -> bytes:
    return forwarded(SIGN_IN, {"email": email, "password": password}, address)


def _dashboards(keys: list[str]) -> Iterator[bytes]:
    path, body = dashboard_request()
    nobody = uuid.UUID(int=0)
    return itertools.cycle([call(path, Member(nobody, nobody, key, ""), body) for key in keys])


def _reports(words: list[str]) -> Iterator[bytes]:
    key, binding_id = words
    member = Member(uuid.UUID(int=0), uuid.UUID(binding_id), key, "")
    payload = json.loads(encode(large_venue()))
    while True:
        yield submit_report(member, payload)


def _sign_ins(_: list[str]) -> Iterator[bytes]:
    # Begin with a random network and account, because the service still counts the attempts that an
    # earlier run made from its own networks and accounts.
    for number in itertools.count(random.randrange(NETWORKS)):
        yield sign_in(f"user-{number}@example.com", "a wrong password", _address(number))


def _registrations(_: list[str]) -> Iterator[bytes]:
    body = {"client_name": "Program", "redirect_uris": ["https://client.example/callback"]}
    return itertools.cycle(
        [forwarded(REGISTER, body, _address(number)) for number in range(REGISTERING_NETWORKS)]
    )


def _address(number: int) -> str:
    return str(ipaddress.IPv4Address(FIRST_NETWORK + number % NETWORKS))


@dataclass(frozen=True, slots=True)
class Attack:
    """Each of the connections sends a request, reads the reply and pauses, again and again."""

    connections: int
    create_requests: Callable[[list[str]], Iterator[bytes]]
    pause_s: float = 0.0


KINDS: Final[Mapping[str, Attack]] = {
    "dashboards": Attack(64, _dashboards),
    "reports": Attack(16, _reports),
    "sign-ins": Attack(80, _sign_ins),
    "registrations": Attack(32, _registrations, pause_s=0.1),
}


async def attack(port: int, kind: str, words: list[str]) -> None:
    chosen = KINDS[kind]
    requests = chosen.create_requests(words)
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    await asyncio.gather(
        *(_repeat(port, requests, chosen.pause_s) for _ in range(chosen.connections))
    )


async def _repeat(port: int, requests: Iterator[bytes], pause_s: float) -> None:
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for request in requests:
                writer.write(request)
                await read_reply(reader)
                await asyncio.sleep(pause_s)


if __name__ == "__main__":
    os.nice(NICENESS)
    asyncio.run(attack(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
