"""Tests of the code that reads the interfaces of Windows and macOS with psutil and netifaces."""

import socket
import sys
from typing import NamedTuple

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.shared.host.gateways import SystemGateway, parse_prefix_length, read_gateways
from collectors.shared.host.interfaces_portable import (
    assemble,
    read_interfaces,
)


class Address(NamedTuple):
    """The fields of psutil's address type that the collector reads."""

    family: int
    address: str
    netmask: str | None = None


class Stats(NamedTuple):
    """The fields of psutil's snicstats that the collector reads."""

    isup: bool
    flags: str = ""


WINDOWS = {
    "Loopback Pseudo-Interface 1": [
        Address(socket.AF_INET, "127.0.0.1", "255.0.0.0"),
        Address(socket.AF_INET6, "::1"),
    ],
    "WLAN": [
        Address(psutil.AF_LINK, "AA-BB-CC-00-11-22"),
        Address(socket.AF_INET, "192.168.1.7", "255.255.255.0"),
    ],
    "Ethernet": [
        Address(psutil.AF_LINK, "00-1A-2B-3C-4D-5E"),
        Address(socket.AF_INET6, "fe80::1:2%12"),
        Address(socket.AF_INET, "10.0.0.20", "255.255.254.0"),
    ],
    "Bluetooth": [Address(psutil.AF_LINK, "00-00-00-00-00-00")],
}
STATS = {name: Stats(name != "Bluetooth") for name in WINDOWS}
GATEWAYS = (
    SystemGateway("10.0.0.1", frozenset({"10.0.0.20", "fe80::1:2"})),
    SystemGateway("192.168.1.1", frozenset({"192.168.1.7"})),
)


def test_gateways_are_assigned_to_interfaces_by_their_addresses() -> None:
    result = assemble(WINDOWS, STATS, GATEWAYS)
    assert [
        (interface.interface.name, interface.interface.gateways) for interface in result[:2]
    ] == [
        ("Ethernet", ("10.0.0.1",)),
        ("WLAN", ("192.168.1.1",)),
    ]
    assert [interface.metric for interface in result] == [0, 1, None, None]


def test_addresses_lose_their_scope_and_get_prefix_lengths() -> None:
    ethernet = assemble(WINDOWS, STATS, GATEWAYS)[0].interface
    assert [(a.address, a.prefix_length) for a in ethernet.addresses] == [
        ("10.0.0.20", 23),
        ("fe80::1:2", 64),
    ]
    assert ethernet.mac_address == "00:1a:2b:3c:4d:5e"


def test_loopback_and_disabled_interfaces_are_recognised() -> None:
    by_name = {
        interface.interface.name: interface for interface in assemble(WINDOWS, STATS, GATEWAYS)
    }
    assert by_name["Loopback Pseudo-Interface 1"].is_loopback
    assert not by_name["Bluetooth"].is_up
    assert by_name["Bluetooth"].interface.mac_address is None


def test_prefix_lengths_are_parsed_from_netmasks_of_both_families() -> None:
    assert parse_prefix_length("10.0.0.1", "255.255.255.128") == 25
    assert parse_prefix_length("fe80::1", "ffff:ffff:ffff:ffff::") == 64
    assert parse_prefix_length("10.0.0.1", None) == 32
    assert parse_prefix_length("nonsense", "255.0.0.0") is None


@given(address=st.text(max_size=40), netmask=st.none() | st.text(max_size=40))
def test_any_text_gives_a_valid_prefix_length_or_none(address: str, netmask: str | None) -> None:
    length = parse_prefix_length(address, netmask)
    assert length is None or 0 <= length <= 128


class FakeNetifaces:
    """A fake netifaces with the results of a Mac that prefers Wi-Fi to Ethernet."""

    AF_INET, AF_INET6 = 2, 30

    def gateways(self) -> dict[object, object]:
        return {
            "default": {2: ("192.168.1.1", "en0")},
            2: [("10.0.0.1", "en1", False), ("192.168.1.1", "en0", True)],
            # macOS adds a default route for each of its own tunnels.
            30: [("fe80::%utun0", "utun0", False), ("fe80::1%en0", "en0", True)],
        }

    def ifaddresses(self, interface: str) -> dict[int, list[dict[str, str]]]:
        if interface == "en1":
            return {2: [{"addr": "10.0.0.20"}], 18: [{"addr": "00:1a:2b:3c:4d:5e"}]}
        if interface == "utun0":
            return {30: [{"addr": "fe80::9%utun0"}]}
        return {2: [{"addr": "192.168.1.7"}], 30: [{"addr": "fe80::7%en0"}, {"peer": "fe80::8"}]}


def test_default_gateways_come_first_and_gateways_of_tunnels_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "netifaces", FakeNetifaces())
    wifi, ethernet = frozenset({"192.168.1.7", "fe80::7"}), frozenset({"10.0.0.20"})
    assert read_gateways() == (
        SystemGateway("192.168.1.1", wifi),
        SystemGateway("10.0.0.1", ethernet),
        SystemGateway("fe80::1", wifi),
    )


def test_loopback_of_this_machine_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "netifaces", FakeNetifaces())
    assert any(interface.is_loopback for interface in read_interfaces().interfaces)


def test_a_denied_routing_table_affects_only_the_gateways(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class DeniedNetifaces(FakeNetifaces):
        def gateways(self) -> dict[object, object]:
            raise OSError("denied")

    monkeypatch.setitem(sys.modules, "netifaces", DeniedNetifaces())
    local = read_interfaces()
    assert local.interfaces
    assert local.unavailable.gateway == "the routing table cannot be read: denied"
