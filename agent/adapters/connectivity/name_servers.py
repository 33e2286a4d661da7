"""Queries the configured name servers for the service's name (DNS over UDP, RFC 1035)."""

import asyncio
import ipaddress
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from agent.rules.connectivity.cause import NameServer, NameServerAnswer
from collectors.shared import dns
from collectors.shared.addresses import Network, is_in_networks
from collectors.shared.host.resolv_conf import name_servers, read_name_servers

SERVERS_MAX: Final = 3  # the resolver of libc uses three as well (resolv.conf(5))
TIMEOUT_S: Final = 1.5
REPEAT_AFTER_S: Final = 0.5
DNS_PORT: Final = 53

_NO_ERROR, _NO_SUCH_NAME = 0, 3
_INTERFACES_KEY: Final = r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces"


@dataclass(frozen=True, slots=True)
class NameServerReplies:
    """The answers of the name servers, and the addresses of the service that they contained."""

    servers: tuple[NameServer, ...] = ()
    addresses: tuple[str, ...] = ()


def configured_servers() -> tuple[str, ...]:
    """Return the addresses of the first name servers of this machine. Never raises."""
    try:
        read = read_name_servers if sys.platform != "win32" else _servers_of_registry
        return read()[:SERVERS_MAX]
    except (OSError, ValueError, ImportError):  # netifaces raises ValueError
        return ()


@dataclass(frozen=True, slots=True)
class _Reply:
    """The response code of a reply (RFC 1035, section 4.1.1), and the addresses in it."""

    code: int
    addresses: tuple[str, ...]


async def query_servers(
    host: str,
    servers: Sequence[str],
    networks: Sequence[Network],
    *,
    is_interrupted: bool,
    port: int = DNS_PORT,
) -> NameServerReplies:
    """Query all servers in parallel, for at most `TIMEOUT_S`.

    Args:
        host: the name of the service, or of its proxy.
        servers: the addresses of the name servers.
        networks: the networks of this machine.
        is_interrupted: whether the service is unreachable. Then local servers are also queried for
            a random name, which no server has cached. A local server answers this query only if it
            reaches other name servers.
        port: the port of the name servers.
    """
    random_name = f"{os.urandom(4).hex()}.{host}"

    async def query(server: str) -> tuple[NameServer, tuple[str, ...]]:
        is_local = is_on_link(server, networks)
        names = (host, random_name) if is_interrupted and is_local else (host,)
        replies = await asyncio.gather(*(_query(server, port, name) for name in names))
        answer = _answer_of(replies[0])
        is_forwarding_known = len(replies) > 1 and answer != "silent"
        can_forward = _answer_of(replies[1]) == "answer" if is_forwarding_known else None
        addresses = replies[0].addresses if replies[0] else ()
        return NameServer(server, answer, is_local, can_forward), addresses

    results = await asyncio.gather(*map(query, servers))
    addresses = dict.fromkeys(chain.from_iterable(addresses for _, addresses in results))
    return NameServerReplies(tuple(server for server, _ in results), tuple(addresses))


def is_on_link(address: str, networks: Sequence[Network]) -> bool:
    """Return whether an address is on-link: packets to it need no gateway.

    This is true for loopback, link-local addresses, and addresses in ``networks``.
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    needs_no_network = parsed.is_loopback or parsed.is_link_local
    return needs_no_network or is_in_networks(address, networks)


def _answer_of(reply: _Reply | None) -> NameServerAnswer:
    if reply is None:
        return "silent"
    return "answer" if reply.code in (_NO_ERROR, _NO_SUCH_NAME) else "failure"


async def _query(server: str, port: int, name: str) -> _Reply | None:
    """Send a query, and repeat it once if no reply arrives. Return None if there is no reply."""
    question = dns.write_question(_ascii(name).rstrip(".").split("."), "A")
    if question is None:
        return None
    query_id = int.from_bytes(os.urandom(2), "big")
    query = dns.HEADER.pack(query_id, dns.RECURSION_DESIRED, 1, 0, 0, 0) + question
    loop = asyncio.get_running_loop()
    try:
        # The socket is connected, so the kernel discards datagrams of other senders.
        transport, protocol = await loop.create_datagram_endpoint(
            lambda: _ReplyProtocol(query_id, question), remote_addr=(server, port)
        )
    except OSError:
        return None
    try:
        for wait_s in (REPEAT_AFTER_S, TIMEOUT_S - REPEAT_AFTER_S):
            transport.sendto(query)
            await asyncio.wait({protocol.reply}, timeout=wait_s)
            if protocol.reply.done():
                return protocol.reply.result()
        return None
    finally:
        transport.close()


class _ReplyProtocol(asyncio.DatagramProtocol):
    """Waits for the reply to one query. Errors, such as a closed port, count as no reply."""

    def __init__(self, query_id: int, question: bytes) -> None:
        self.reply: asyncio.Future[_Reply] = asyncio.get_running_loop().create_future()
        self._query_id = query_id
        self._question = question

    def datagram_received(self, data: bytes, _: object) -> None:
        reply = dns.parse_reply(data, self._query_id, self._question)
        if reply is not None and not self.reply.done():
            self.reply.set_result(_Reply(reply.code, dns.read_addresses(data, self._question)))


def _ascii(name: str) -> str:
    """Return a name as DNS transfers it (RFC 5891), or unchanged if it is invalid."""
    try:
        return name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError:
        return name


def _servers_of_registry() -> tuple[str, ...]:
    """Return the name servers of the interfaces of Windows that are in use.

    Raises OSError if the registry cannot be read.
    """
    interfaces: dict[str, Mapping[str, object]] = {}
    if sys.platform == "win32":
        import winreg

        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _INTERFACES_KEY) as parent:
            for number in range(winreg.QueryInfoKey(parent)[0]):
                guid = winreg.EnumKey(parent, number)
                with winreg.OpenKey(parent, guid) as key:
                    count = winreg.QueryInfoKey(key)[1]
                    entries = (winreg.EnumValue(key, at) for at in range(count))
                    interfaces[guid] = {name: data for name, data, _ in entries}
    return servers_of_interfaces(interfaces, _interfaces_in_use())


def servers_of_interfaces(
    interfaces: Mapping[str, Mapping[str, object]], in_use: Iterable[str]
) -> tuple[str, ...]:
    """Return the name servers of the interfaces that are in use.

    Windows keeps the values of interfaces that are disconnected or were removed. An
    interface uses its configured servers. If it has none, it uses the servers from DHCP, unless
    DHCP is disabled.

    Args:
        interfaces: the values of each interface's key of the registry, by its GUID.
        in_use: the GUIDs of the interfaces that are in use.
    """
    names = {name.lower() for name in in_use}
    texts: list[str] = []
    for values in (values for name, values in interfaces.items() if name.lower() in names):
        from_dhcp = values.get("DhcpNameServer") if values.get("EnableDHCP") != 0 else None
        text = values.get("NameServer") or from_dhcp or ""
        texts += str(text).replace(",", " ").split()
    return name_servers(texts)


def _interfaces_in_use() -> Iterator[str]:
    """Yield the GUIDs of the interfaces that are up and have an IPv4 address."""
    import netifaces  # on Windows, it names the interfaces by their GUIDs
    import psutil

    stats = psutil.net_if_stats()
    own_addresses = {
        entry.address
        for name, entries in psutil.net_if_addrs().items()
        if name in stats and stats[name].isup
        for entry in entries
    }
    for guid in netifaces.interfaces():
        listed = netifaces.ifaddresses(guid).get(netifaces.AF_INET, ())
        if any(entry.get("addr") in own_addresses for entry in listed):
            yield guid
