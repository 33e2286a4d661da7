"""Tests of the interface that is reported for different machines, and of its state."""

from dataclasses import replace
from typing import Any

from agent.adapters.connectivity.link import Tables, summarize
from agent.rules.connectivity.cause import LinkState
from collectors.shared.linux.rtnetlink import DefaultRoute, Link, LinkAddress

LOOPBACK = Link(1, "lo", is_loopback=True)
ETHERNET = Link(2, "eth0", "02:00:00:00:00:20", errors=3)
WIRELESS = Link(3, "wlan0")
DOCKER = Link(4, "docker0", kind="bridge")
CONTAINER = Link(5, "veth1a2b", kind="veth")
TUNNEL = Link(6, "tun0", kind="tun", is_point_to_point=True, has_arp=False)
ADDRESS = LinkAddress(2, "192.168.1.20", 24)
DOCKER_ADDRESS = LinkAddress(4, "172.17.0.1", 16)
ROUTE = DefaultRoute(2, "192.168.1.1", 100)


def machine(*links: Link, addresses: Any = (ADDRESS, DOCKER_ADDRESS), routes: Any = ()) -> Tables:
    """Return the tables of a machine with these links, the loopback, Docker and one container."""
    return Tables((LOOPBACK, *links, DOCKER, CONTAINER), addresses, routes)


def unplug(link: Link) -> Link:
    return replace(link, has_carrier=False)


def test_the_interface_of_the_default_route_is_reported() -> None:
    reading = summarize(machine(ETHERNET, WIRELESS, routes=(ROUTE,)), None)
    assert reading.state == LinkState(
        interface="eth0",
        has_link=True,
        addresses=("192.168.1.20",),
        has_route=True,
        gateway="192.168.1.1",
        link_errors=3,
    )
    assert reading.index == 2
    assert [str(each) for each in reading.networks] == ["192.168.1.0/24", "172.17.0.0/16"]


def test_the_ipv4_default_route_with_the_lowest_metric_is_used() -> None:
    wireless = DefaultRoute(3, "192.168.2.1", 600)
    over_ipv6 = DefaultRoute(3, "fe80::1", 50, is_ipv6=True)
    reading = summarize(machine(ETHERNET, WIRELESS, routes=(over_ipv6, wireless, ROUTE)), None)
    assert reading.state.interface == "eth0"


def test_an_unplugged_cable_is_detected_although_the_route_remains() -> None:
    state = summarize(machine(unplug(ETHERNET), WIRELESS, routes=(ROUTE,)), "eth0").state
    assert (state.interface, state.has_link, state.has_route) == ("eth0", False, True)


def test_without_a_route_the_last_interface_is_reported() -> None:
    state = summarize(machine(unplug(ETHERNET), WIRELESS), "eth0").state
    assert (state.interface, state.has_link, state.has_route) == ("eth0", False, False)


def test_an_adapter_that_was_removed_has_no_link() -> None:
    state = summarize(machine(unplug(ETHERNET)), "usb0").state
    assert (state.interface, state.has_link, state.addresses) == ("usb0", False, ())


def test_interfaces_of_containers_do_not_count_as_a_link() -> None:
    state = summarize(machine(unplug(ETHERNET), addresses=(DOCKER_ADDRESS,)), None).state
    assert (state.interface, state.has_link, state.addresses) == ("eth0", False, ())
    state = summarize(machine(unplug(ETHERNET), WIRELESS), None).state
    assert (state.interface, state.has_link) == (None, True)


def test_inside_a_container_without_a_route_the_link_is_unknown() -> None:
    state = summarize(machine(), None).state
    assert (state.has_link, state.addresses) == (None, None)


def test_a_machine_without_any_interface_has_no_link() -> None:
    assert summarize(Tables((LOOPBACK,)), None).state.has_link is False


def test_a_tunnel_with_the_default_route_counts_and_needs_no_gateway() -> None:
    reading = summarize(machine(ETHERNET, TUNNEL, routes=(DefaultRoute(6, None, 50), ROUTE)), None)
    assert (reading.state.interface, reading.state.has_link) == ("tun0", True)
    assert reading.state.gateway is None


def test_link_local_temporary_and_unusable_addresses_are_not_listed() -> None:
    addresses = (
        LinkAddress(2, "169.254.7.7", 16),
        LinkAddress(2, "fe80::2", 64),
        LinkAddress(2, "2001:db8::7", 64, is_usable=False),
        LinkAddress(2, "2001:db8::8", 64, is_temporary=True),
        LinkAddress(2, "2001:db8::9", 64),
    )
    state = summarize(machine(ETHERNET, addresses=addresses, routes=(ROUTE,)), None).state
    assert state.addresses == ("2001:db8::9",)


def test_ipv6_does_not_replace_ipv4_if_the_service_has_only_ipv4() -> None:
    tables = machine(
        ETHERNET,
        addresses=(LinkAddress(2, "2001:db8::9", 64),),
        routes=(DefaultRoute(2, "fe80::1", 100, is_ipv6=True),),
    )
    assert summarize(tables, "eth0").state.has_route is True
    state = summarize(tables, "eth0", needs_ipv4=True).state
    assert (state.addresses, state.has_route, state.gateway) == ((), False, None)


def test_a_duplicate_ipv6_address_is_a_conflict_if_there_is_no_other_address() -> None:
    duplicate = LinkAddress(2, "2001:db8::7", 64, is_usable=False, is_duplicate=True)
    reading = summarize(machine(ETHERNET, addresses=(duplicate,), routes=(ROUTE,)), None)
    assert (reading.conflict, reading.state.addresses) == ("2001:db8::7", ("2001:db8::7",))
    tables = machine(ETHERNET, addresses=(ADDRESS, duplicate), routes=(ROUTE,))
    reading = summarize(tables, None)
    assert (reading.conflict, reading.state.addresses) == (None, ("192.168.1.20",))
