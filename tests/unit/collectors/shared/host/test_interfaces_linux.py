"""Tests parsing rtnetlink dumps of a machine with two interfaces besides loopback, five
default routes and four neighbours.

The fixture contains the kernel's datagrams in hexadecimal (x86-64, little endian).
"""

import json
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.shared.host.interfaces_linux import assemble
from collectors.shared.host.local_network import LocalInterface
from collectors.shared.linux import netlink, rtnetlink
from collectors.shared.linux.netlink import Message
from collectors.shared.linux.rtnetlink import Link, LinkNeighbour, NeighbourTableSize
from tests.paths import FIXTURES

DUMPS = FIXTURES / "network" / "rtnetlink_dumps.json"

pytestmark = pytest.mark.skipif(
    sys.byteorder != "little", reason="the recorded dumps are from a little-endian machine"
)


@pytest.fixture(scope="module")
def dumps() -> dict[str, list[Message]]:
    recorded = json.loads(DUMPS.read_text("ascii"))
    return {
        name: [m for text in datagrams for m in netlink.parse_messages(bytes.fromhex(text))]
        for name, datagrams in recorded.items()
    }


def interfaces(dumps: dict[str, list[Message]]) -> dict[str, LocalInterface]:
    links = (rtnetlink.parse_link(message.body) for message in dumps["links"])
    addresses = (rtnetlink.parse_address(message.body) for message in dumps["addresses"])
    routes = (rtnetlink.parse_default_routes(message.body) for message in dumps["routes"])
    joined = assemble(
        [link for link in links if link],
        [address for address in addresses if address],
        [route for result in routes for route in result],
    )
    return {local.interface.name: local for local in joined}


def test_interfaces_have_addresses_and_macs(dumps: dict[str, list[Message]]) -> None:
    eth0 = interfaces(dumps)["eth0"].interface
    assert [(a.address, a.family, a.prefix_length) for a in eth0.addresses] == [
        ("192.168.1.20", "ipv4", 24),
        ("fd00:1::20", "ipv6", 64),
    ]
    assert eth0.mac_address == "02:00:00:00:00:fe"


def test_default_routes_are_ordered_by_metric(dumps: dict[str, list[Message]]) -> None:
    by_name = interfaces(dumps)
    assert by_name["eth0"].interface.gateways == (
        "192.168.1.254",  # metric 50
        "192.168.1.1",  # 100
        "192.168.1.3",  # 300, one hop of a multipath route
        "fe80::1",  # 1024
    )
    assert by_name["eth0"].metric == 50
    assert by_name["tun0"].interface.gateways == ("10.8.0.1",)
    assert list(by_name) == ["eth0", "tun0", "lo"]


def test_a_mobile_connection_has_a_default_route_without_a_gateway() -> None:
    """The route is the one that `ip route add default dev wwan0 metric 700` adds. wwan0 is
    interface 7.
    """
    head = bytes((rtnetlink.AF_INET, 0, 0, 0, 254, 3, 253, 1)) + struct.pack("=I", 0)
    attributes = struct.pack("=HHIHHI", 8, 4, 7, 8, 6, 700)
    (route,) = rtnetlink.parse_default_routes(head + attributes)
    assert route == rtnetlink.DefaultRoute(7, None, 700)
    mobile = Link(7, "wwan0")
    (joined,) = assemble([mobile], [], [route])
    assert joined.metric == 700
    assert joined.interface.gateways == ()


def test_link_types_are_read(dumps: dict[str, list[Message]]) -> None:
    by_name = interfaces(dumps)
    assert by_name["eth0"].has_arp
    assert by_name["tun0"].is_point_to_point
    assert not by_name["tun0"].has_arp
    assert by_name["lo"].is_loopback
    # A point-to-point link also has the address of the peer, which is not this machine's address.
    assert [a.address for a in by_name["tun0"].interface.addresses] == ["10.8.0.2"]


def test_failed_neighbours_have_no_mac(dumps: dict[str, list[Message]]) -> None:
    entries = [rtnetlink.parse_neighbour(m.body) for m in dumps["neighbours"]]
    assert set(filter(None, entries)) == {
        LinkNeighbour(2, "192.168.1.7", None, "failed"),
        LinkNeighbour(2, "192.168.1.1", "02:00:00:00:00:01", "reachable"),
        LinkNeighbour(2, "192.168.1.9", "02:00:00:00:00:09", "stale"),
        LinkNeighbour(2, "fd00:1::7", "02:00:00:00:00:07", "reachable"),
    }


def test_neighbour_table_size_is_read_once_for_all_interfaces(
    dumps: dict[str, list[Message]],
) -> None:
    sizes = [
        rtnetlink.parse_neighbour_table_size(message.body)
        for message in dumps["neighbour_table"]
        if message.type == rtnetlink.RTM_GETNEIGHTBL + rtnetlink.NEW_FROM_GET
    ]
    assert len(sizes) > 1
    assert [size for size in sizes if size] == [NeighbourTableSize(entries=2, entries_max=1024)]


def test_error_number_is_read_from_an_error_message() -> None:
    refusal = (-1).to_bytes(4, sys.byteorder, signed=True) + bytes(16)
    assert netlink.error_number(Message(netlink.NLMSG_ERROR, refusal)) == 1
    assert netlink.error_number(Message(netlink.NLMSG_ERROR, b"")) == 0


PARSERS = (
    rtnetlink.parse_link,
    rtnetlink.parse_address,
    rtnetlink.parse_default_routes,
    rtnetlink.parse_neighbour,
    rtnetlink.parse_neighbour_table_size,
)


@given(data=st.binary(max_size=256))
def test_any_bytes_are_parsed_or_ignored(data: bytes) -> None:
    for message in netlink.parse_messages(data):
        assert len(message.body) <= len(data)
    for parse in PARSERS:
        parse(data)


@given(data=st.data())
def test_a_damaged_netlink_dump_is_parsed_or_ignored(data: st.DataObject) -> None:
    recorded = json.loads(DUMPS.read_text("ascii"))
    name = data.draw(st.sampled_from(sorted(recorded)))
    datagram = bytearray.fromhex(recorded[name][0])
    for _ in range(data.draw(st.integers(1, 8))):
        datagram[data.draw(st.integers(0, len(datagram) - 1))] = data.draw(st.integers(0, 255))
    for message in netlink.parse_messages(bytes(datagram)):
        for parse in PARSERS:
            parse(message.body)
