"""Tests of the link of Windows and macOS machines, as psutil and netifaces describe it."""

import socket
from typing import NamedTuple

import psutil
import pytest

from agent.adapters.connectivity import link_portable
from agent.adapters.connectivity.link import summarize
from agent.adapters.connectivity.link_portable import assemble
from agent.rules.connectivity.cause import LinkState
from collectors.shared.host.gateways import SystemGateway


# Address, Stats and Counters have the fields of psutil's tuples that the agent reads.
class Address(NamedTuple):
    family: int
    address: str
    netmask: str | None = None


class Stats(NamedTuple):
    isup: bool
    flags: str = ""


class Counters(NamedTuple):
    errin: int
    errout: int


WINDOWS = {
    "Loopback Pseudo-Interface 1": [Address(socket.AF_INET, "127.0.0.1", "255.0.0.0")],
    "vEthernet (WSL)": [Address(socket.AF_INET, "172.28.0.1", "255.255.240.0")],
    "Ethernet": [
        Address(psutil.AF_LINK, "AA-BB-CC-00-11-22"),
        Address(socket.AF_INET, "192.168.1.7", "255.255.255.0"),
        Address(socket.AF_INET6, "fe80::7%12"),
    ],
}
MACOS = {
    "lo0": [Address(socket.AF_INET, "127.0.0.1", "255.0.0.0")],
    "en0": [Address(socket.AF_INET, "10.0.0.20", "255.255.255.0")],
    "utun0": [Address(socket.AF_INET6, "fe80::1%utun0", "ffff:ffff:ffff:ffff::")],
}


def link_state(
    machine: dict[str, list[Address]],
    platform: str,
    *gateways: SystemGateway,
    down: str = "",
    last: str | None = None,
) -> LinkState:
    """Return the state of the link of a machine.

    Args:
        machine: the addresses of each interface, by name.
        down: the interface that is not up, if there is one.
        last: the interface of the last known default route.
    """
    stats = {
        name: Stats(name != down, "up,loopback" if name == "lo0" else "up") for name in machine
    }
    counters = {name: Counters(2, 3) for name in machine}
    return summarize(assemble(machine, stats, counters, gateways, platform), last).state


def test_the_interface_of_a_default_route_is_identified_by_its_addresses() -> None:
    gateway = SystemGateway("192.168.1.1", frozenset({"192.168.1.7"}))
    assert link_state(WINDOWS, "win32", gateway) == LinkState(
        interface="Ethernet",
        has_link=True,
        addresses=("192.168.1.7",),
        has_route=True,
        gateway="192.168.1.1",
        link_errors=5,
    )


def test_virtual_interfaces_of_windows_do_not_count_as_a_link() -> None:
    link = link_state(WINDOWS, "win32", down="Ethernet")
    assert (link.interface, link.has_link) == ("Ethernet", False)


def test_interfaces_of_virtual_machines_on_a_mac_do_not_count_as_a_link() -> None:
    machine = {**MACOS, "vmenet0": [], "bridge100": [], "anpi0": []}
    assert link_state(machine, "darwin", down="en0").has_link is False


def test_the_link_of_a_mac_without_a_gateway_is_known() -> None:
    link = link_state(MACOS, "darwin", last="en0")
    assert (link.interface, link.has_link, link.has_route) == ("en0", True, False)
    link = link_state(MACOS, "darwin", down="en0")
    assert (link.interface, link.has_link) == ("en0", False)


def test_the_reading_has_the_index_of_the_interface_that_leads_to_the_gateway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gateway = SystemGateway("fe80::fe", frozenset({"10.0.0.20"}))
    stats = {name: Stats(isup=True) for name in MACOS}
    tables = assemble(MACOS, stats, {}, (gateway,), "darwin")
    monkeypatch.setattr(link_portable, "_read_tables", lambda: tables)
    monkeypatch.setattr(socket, "if_nametoindex", {"lo0": 1, "en0": 14}.__getitem__)
    reading = link_portable.read_link(None, needs_ipv4=False)
    assert (reading.state.gateway, reading.index) == ("fe80::fe", 14)


def test_an_unknown_interface_has_the_index_0() -> None:
    assert link_portable.system_index("no such interface") == 0
    assert link_portable.system_index(None) == 0
