"""Connects to the service, or to the configured proxy, by TCP. Sends no data."""

import asyncio
import contextlib
import errno
import ipaddress
import os
import socket
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.adapters.service_route import service_route
from agent.config.model import Service
from agent.rules.connectivity.cause import ServiceAnswer
from collectors.shared.tcp_refusal import refusal_wait_s

TIMEOUT_S: Final = refusal_wait_s(1.5)
RETRY_AFTER_S: Final = 0.3
ADDRESSES_MAX: Final = 3
_HOSTS_MAX_BYTES: Final = 1 << 20
_UNREACHABLE: Final = frozenset(
    {
        *(errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN),
        *(errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EACCES),
    }
)
"""The errors that this machine or a router reports if no packet can reach the service. EAFNOSUPPORT
means that IPv6 is disabled in the kernel."""
_WINDOWS_UNREACHABLE: Final = frozenset({1231, 1232})
"""ERROR_NETWORK_UNREACHABLE and ERROR_HOST_UNREACHABLE of Windows. Their `errno` is EINVAL."""
_BEST_FIRST: Final[tuple[ServiceAnswer, ...]] = ("connected", "refused", "silent", "unreachable")


@dataclass(frozen=True, slots=True)
class Target:
    """The host and port that the agent's calls are sent to: the proxy, or the service."""

    host: str
    port: int

    @property
    def known_addresses(self) -> tuple[str, ...]:
        """The addresses of the host, if they are known without a query.

        They are known if the host is an address or localhost, or if the hosts file lists it.
        """
        with contextlib.suppress(ValueError):
            return (str(ipaddress.ip_address(self.host)),)
        listed = addresses_in_hosts(_hosts_file(), self.host)
        return listed or (("127.0.0.1", "::1") if self.host == "localhost" else ())

    @property
    def is_mdns(self) -> bool:
        """Whether the name is resolved by multicast DNS, without name servers (RFC 6762)."""
        return self.host.rstrip(".").lower().endswith(".local") and not self.known_addresses

    @property
    def needs_query(self) -> bool:
        """Whether the address has to be queried from name servers."""
        return not self.is_mdns and not self.known_addresses


def target_of(service: Service) -> Target:
    """Return the target for a checked configuration. Raises ValueError for an invalid proxy."""
    route = service_route(service)
    return Target(route.first_host, route.first_port)


async def resolve(target: Target) -> tuple[str, ...]:
    """Return the addresses of the target, as the system's resolver knows them. Never raises."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError, UnicodeError):
        entries = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        return tuple(dict.fromkeys(str(entry[4][0]) for entry in entries))
    return ()


async def connect(addresses: Sequence[str], port: int) -> ServiceAnswer | None:
    """Connect to the first addresses in parallel, and return the best answer.

    Returns None if there is no address.
    """
    answers = await asyncio.gather(*(_connect(each, port) for each in addresses[:ADDRESSES_MAX]))
    return min(answers, key=_BEST_FIRST.index, default=None)


def addresses_in_hosts(text: str, host: str) -> tuple[str, ...]:
    """Return the addresses of a host in a hosts file (hosts(5))."""
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return tuple(_valid(words[0] for words in lines if host.lower() in map(str.lower, words[1:])))


async def _connect(address: str, port: int) -> ServiceAnswer:
    """Connect, and try again as long as the network reports that there is no route.

    For some tenths of a second after a link came up, the kernel still reports its old state.
    """
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + TIMEOUT_S
    while (answer := await _connect_once(address, port, ends_at)) == "unreachable":
        if loop.time() + RETRY_AFTER_S >= ends_at:
            break
        await asyncio.sleep(RETRY_AFTER_S)
    return answer


async def _connect_once(address: str, port: int, ends_at: float) -> ServiceAnswer:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as opened:
            opened.setblocking(False)
            async with asyncio.timeout_at(ends_at):
                await asyncio.get_running_loop().sock_connect(opened, (address, port))
            return "connected"
    except (ConnectionRefusedError, ConnectionResetError):
        return "refused"
    except TimeoutError:
        return "silent"
    except OSError as error:
        windows_error = getattr(error, "winerror", None)
        is_unreachable = error.errno in _UNREACHABLE or windows_error in _WINDOWS_UNREACHABLE
        return "unreachable" if is_unreachable else "silent"


def _valid(addresses: Iterable[str]) -> Iterable[str]:
    for text in addresses:
        with contextlib.suppress(ValueError):
            yield str(ipaddress.ip_address(text.partition("%")[0]))


def _hosts_file() -> str:
    windows = Path(os.environ.get("SYSTEMROOT", r"C:\Windows")) / "System32/drivers/etc/hosts"
    try:
        with (windows if sys.platform == "win32" else Path("/etc/hosts")).open("rb") as file:
            return file.read(_HOSTS_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
