"""Tests of the probes of gateway, name servers and service on loopback, in virtual time."""

import asyncio
import contextlib
import errno
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from types import SimpleNamespace

import pytest

from agent.adapters import service_route
from agent.adapters.connectivity import gateway, name_servers
from agent.adapters.connectivity.gateway import GatewayProbe, echo_request
from agent.adapters.connectivity.link_events import COALESCE_S, Coalescer
from agent.adapters.connectivity.name_servers import NameServerReplies, query_servers
from agent.adapters.connectivity.sensors import SystemSensors
from agent.adapters.connectivity.service_connection import (
    Target,
    addresses_in_hosts,
    connect,
    target_of,
)
from agent.rules.connectivity.cause import LinkState, NameServer
from collectors.shared.addresses import parse_networks
from tests.fakes.virtual_clock import run_in_virtual_time
from tests.unit.agent.samples import config

NAME = "ops.example.com"
QUESTION_AT, NAME_AT = 12, 13
"""Offsets in a DNS query: of the question, and of the first letter of the name in it."""
LOCAL_NETWORKS = parse_networks(("127.0.0.0/8",))
Reply = Callable[[bytes], list[bytes]]


def reply_with(code: int, address: str = "") -> Reply:
    """Return a function that replies with a code, and with an address if there is one."""

    def reply(query: bytes) -> list[bytes]:
        record = b""
        if address:
            record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(address)
        counts = bytes((0, 1, 0, bool(record), 0, 0, 0, 0))
        return [query[:2] + bytes((0x81, 0x80 | code)) + counts + query[QUESTION_AT:] + record]

    return reply


def reply_after_invalid_messages(query: bytes) -> list[bytes]:
    """Send invalid messages before the valid reply."""
    (real,) = reply_with(0, "192.0.2.7")(query)
    wrong_id = bytes((query[0] ^ 1, query[1]))
    return [b"", b"\xff" * 5000, query, wrong_id + real[2:], real[: QUESTION_AT + 3], real]


def reply_from_cache(query: bytes) -> list[bytes]:
    """Reply as a server that cannot reach other name servers and has only ``NAME`` in its cache."""
    return reply_with(0, "192.0.2.7")(query) if query[NAME_AT:].startswith(b"ops") else []


@contextlib.asynccontextmanager
async def name_server(reply: Reply) -> AsyncIterator[int]:
    """Run a name server on loopback. Yield its port."""

    class Server(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, sender: tuple[str, int]) -> None:
            for each in reply(data):
                transport.sendto(each, sender)

    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Server, local_addr=("127.0.0.1", 0))
    try:
        yield transport.get_extra_info("sockname")[1]
    finally:
        transport.close()


@pytest.mark.parametrize(
    ("reply", "answer", "can_forward", "addresses"),
    [
        (reply_with(0, "192.0.2.7"), "answer", True, ("192.0.2.7",)),
        (reply_with(3), "answer", True, ()),
        (reply_after_invalid_messages, "answer", True, ("192.0.2.7",)),
        (reply_from_cache, "answer", False, ("192.0.2.7",)),
        (reply_with(2), "failure", False, ()),
        (reply_with(5), "failure", False, ()),
        (lambda _: [], "silent", None, ()),
    ],
    ids=[
        "address",
        "no such name",
        "invalid first",
        "only from cache",
        "failure",
        "refused",
        "silent",
    ],
)
def test_the_answer_of_a_name_server_is_classified(
    reply: Reply, answer: str, can_forward: bool | None, addresses: tuple[str, ...]
) -> None:
    async def run() -> None:
        async with name_server(reply) as port:
            replies = await query_servers(
                NAME, ["127.0.0.1"], LOCAL_NETWORKS, is_interrupted=True, port=port
            )
        server = NameServer("127.0.0.1", answer, is_local=True, can_forward=can_forward)  # type: ignore[arg-type]
        assert replies.servers == (server,)
        assert replies.addresses == addresses

    run_in_virtual_time(run())


def test_a_lost_query_is_repeated_and_without_an_interruption_no_other_name_is_queried() -> None:
    names: list[bytes] = []

    def reply(query: bytes) -> list[bytes]:
        names.append(query[NAME_AT : NAME_AT + 3])
        return reply_with(0, "192.0.2.7")(query) if len(names) > 1 else []

    async def run() -> None:
        async with name_server(reply) as port:
            replies = await query_servers(
                NAME, ["127.0.0.1"], LOCAL_NETWORKS, is_interrupted=False, port=port
            )
        server = NameServer("127.0.0.1", "answer", is_local=True, can_forward=None)
        assert replies.servers == (server,)

    run_in_virtual_time(run())
    assert names == [b"ops", b"ops"]


async def test_connect_distinguishes_open_and_closed_ports() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert await connect(("127.0.0.1",), port) == "connected"
        assert await connect(("::1", "127.0.0.1"), port) == "connected"
    assert await connect(("127.0.0.1",), port) == "refused"
    assert await connect((), port) is None


@pytest.mark.parametrize(
    ("base_url", "proxy", "target", "needs_query"),
    [
        ("https://ops.example.com", "", Target("ops.example.com", 443), True),
        ("https://192.0.2.1:8443", "", Target("192.0.2.1", 8443), False),
        ("http://localhost:8470", "", Target("localhost", 8470), False),
        ("https://ops.local", "", Target("ops.local", 443), False),
        ("https://ops.example.com", "http://u:p@proxy:3128", Target("proxy", 3128), True),
        ("https://ops.example.com", "http://192.0.2.9:3128", Target("192.0.2.9", 3128), False),
        ("https://ops.example.com", "system", Target("pub", 8080), True),
    ],
)
def test_the_target_is_the_service_or_its_proxy(
    monkeypatch: pytest.MonkeyPatch, base_url: str, proxy: str, target: Target, needs_query: bool
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(service_route, "HAS_SETTINGS", True)
    settings = {"https": "http://pub:8080"} if proxy == "system" else {}
    monkeypatch.setattr(service_route, "system_proxies", lambda _: settings)
    service = config(base_url).service.model_copy(update={"proxy": proxy})
    assert target_of(service) == target
    assert target.needs_query is needs_query


def test_the_addresses_of_a_name_in_the_hosts_file_are_returned() -> None:
    text = "127.0.0.1 localhost\n192.0.2.5\tshop OPS.example.com # x\n#192.0.2.6 ops.example.com\n"
    assert addresses_in_hosts(text + "junk ops.example.com\n", NAME) == ("192.0.2.5",)


async def test_sensors_of_a_service_on_this_machine_contact_nothing_else() -> None:
    """tests/conftest.py fails each test that contacts an address other than loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sensors = SystemSensors(config(f"http://127.0.0.1:{listener.getsockname()[1]}").service)
        sensors.open(lambda: None)
        sample = await sensors.probe(sensors.read_link())
        assert await sensors.query_name_servers() == ()
        sensors.close()
    assert (sample.name_servers, sample.service) == ((), "connected")
    assert (sample.gateway_answers, sample.is_service_local) == (None, True)


@pytest.mark.parametrize("host", ["ops.local", "ops6.example.com"])
async def test_a_service_that_could_not_be_resolved_at_the_start_is_resolved_by_a_probe(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """The names need the system's resolver: one is an mDNS name, and no name server is configured
    for the other one.
    """
    addresses: tuple[str, ...] = ()

    async def resolve(_: Target) -> tuple[str, ...]:
        return addresses

    monkeypatch.setattr("agent.adapters.connectivity.sensors.resolve", resolve)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        base_url = f"https://{host}:{listener.getsockname()[1]}"
        sensors = SystemSensors(config(base_url).service, read_servers=lambda: ())
        sensors.open(lambda: None)
        answers = []
        for addresses in ((), ("127.0.0.1",)):  # noqa: B007 - `resolve` returns it
            sample = await sensors.probe(LinkState())
            answers.append(sample.service)
        sensors.close()
    assert answers == [None, "connected"]


async def test_a_reply_with_ipv4_addresses_keeps_the_ipv6_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def resolve(_: Target) -> tuple[str, ...]:
        return "::1", "192.0.2.1"

    async def query(*_: object, **__: object) -> NameServerReplies:
        return NameServerReplies((), ("192.0.2.1", "192.0.2.2", "192.0.2.3"))

    address_lists: list[Sequence[str]] = []

    async def connect(addresses: Sequence[str], _: int) -> None:
        address_lists.append(addresses)

    for name, function in (("resolve", resolve), ("query_servers", query), ("connect", connect)):
        monkeypatch.setattr(f"agent.adapters.connectivity.sensors.{name}", function)
    sensors = SystemSensors(config(f"https://{NAME}").service, read_servers=lambda: ())
    sensors.open(lambda: None)
    await asyncio.sleep(0)
    await sensors.query_name_servers()
    await sensors.probe(LinkState())
    sensors.close()
    assert address_lists == [("192.0.2.1", "192.0.2.2", "::1", "192.0.2.3")]


def test_only_the_name_servers_of_windows_interfaces_in_use_are_queried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    addresses = {"{WIFI}": "172.16.0.9", "{LAN}": "192.168.1.7", "{FIXED}": "10.0.0.7"}
    netifaces = SimpleNamespace(
        AF_INET=2,
        interfaces=lambda: list(addresses),
        ifaddresses=lambda guid: {2: [{"addr": addresses[guid]}]},
    )
    monkeypatch.setitem(sys.modules, "netifaces", netifaces)
    stats = {name: SimpleNamespace(isup=name != "Wi-Fi") for name in ("Wi-Fi", "Ethernet", "Bar")}
    own_addresses = [[SimpleNamespace(address=address)] for address in addresses.values()]
    monkeypatch.setattr("psutil.net_if_stats", lambda: stats)
    monkeypatch.setattr("psutil.net_if_addrs", lambda: dict(zip(stats, own_addresses, strict=True)))
    registry = {
        "{wifi}": {"EnableDHCP": 1, "DhcpNameServer": "172.16.0.1"},
        "{removed}": {"EnableDHCP": 1, "NameServer": "9.9.9.9"},
        "{lan}": {"EnableDHCP": 1, "NameServer": "", "DhcpNameServer": "192.168.1.1 192.168.1.2"},
        # DHCP is off for this interface. The name server is left over from the time when it was on.
        "{fixed}": {"EnableDHCP": 0, "NameServer": "", "DhcpNameServer": "172.16.0.3"},
    }
    in_use = list(name_servers._interfaces_in_use())
    assert name_servers.servers_of_interfaces(registry, in_use) == ("192.168.1.1", "192.168.1.2")
    registry["{fixed}"]["NameServer"] = "10.0.0.1,10.0.0.2"
    servers = name_servers.servers_of_interfaces(registry, in_use)
    assert servers[2:] == ("10.0.0.1", "10.0.0.2")


async def test_a_refused_connection_is_an_answer_of_the_gateway() -> None:
    assert await GatewayProbe().answers("127.0.0.1", index=1, find_neighbour=lambda: None) is True


def windows_error(number: int) -> OSError:
    """Return an error as asyncio raises it on Windows."""
    error = OSError(errno.EINVAL, "The network location cannot be reached")
    error.winerror = number  # type: ignore[attr-defined, unused-ignore]
    return error


@pytest.mark.parametrize(
    ("error", "is_answer"),
    [
        (ConnectionResetError(), True),
        (windows_error(1234), True),  # ERROR_PORT_UNREACHABLE
        (windows_error(1231), False),
    ],
)
async def test_a_datagram_that_windows_reports_as_refused_is_an_answer_of_the_gateway(
    monkeypatch: pytest.MonkeyPatch, error: OSError, is_answer: bool
) -> None:
    async def refuse(*_: object) -> bytes:
        raise error

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_recv", refuse)
    refused = await gateway._is_refused_by_udp(gateway._Gateway("127.0.0.1", 1))
    assert refused is is_answer


@pytest.mark.parametrize(
    "error",
    [windows_error(1231), windows_error(1232), OSError(errno.EAFNOSUPPORT, "IPv6 is disabled")],
)
def test_an_unreachable_service_is_recognised(
    monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    async def fail(*_: object) -> None:
        raise error

    async def run() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", fail)
        assert await connect(("127.0.0.1",), 9) == "unreachable"

    run_in_virtual_time(run())


def test_an_echo_request_has_a_valid_checksum() -> None:
    request = echo_request(8, 3)
    total = sum(int.from_bytes(request[at : at + 2], "big") for at in range(0, len(request), 2))
    assert (total >> 16) + (total & 0xFFFF) == 0xFFFF


def test_the_first_change_is_reported_at_once_and_further_changes_together() -> None:
    async def run() -> None:
        calls: list[float] = []
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        coalescer = Coalescer(lambda: calls.append(loop.time() - began_s))
        for _ in range(3):
            coalescer.note_change()
        await asyncio.sleep(5 * COALESCE_S)
        coalescer.note_change()
        coalescer.note_change()
        coalescer.close()  # drops the second change
        await asyncio.sleep(5 * COALESCE_S)
        assert calls == pytest.approx([0, COALESCE_S, 5 * COALESCE_S])

    run_in_virtual_time(run())
