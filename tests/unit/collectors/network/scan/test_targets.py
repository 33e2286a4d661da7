"""Tests the selection of the addresses that the scan contacts."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.config.model import Network
from collectors.contract import Interface, InterfaceAddress
from collectors.network.scan.targets import (
    TargetSelection,
    select_own_addresses,
    select_targets,
)
from collectors.shared.addresses import is_private
from collectors.shared.host.local_network import LocalInterface


def local_interface(
    address: str, *, name: str = "eth0", metric: int | None = 0, point_to_point: bool = False
) -> LocalInterface:
    host, prefix = address.split("/")
    return LocalInterface(
        Interface(name, (InterfaceAddress(host, "ipv4", int(prefix)),)),
        metric=metric,
        is_point_to_point=point_to_point,
    )


def select(
    *interfaces: LocalInterface,
    subnets: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    max_hosts: int = 1024,
    first: tuple[str, ...] = (),
) -> TargetSelection:
    return select_targets(
        interfaces, subnets=subnets, exclude=exclude, max_hosts=max_hosts, first=first
    )


def addresses(selection: TargetSelection) -> list[str]:
    return [target.address for target in selection.targets]


def test_the_own_private_subnet_is_selected_without_its_first_and_last_address() -> None:
    selection = select(local_interface("192.168.1.20/24"))
    assert len(selection.targets) == 254
    assert addresses(selection)[0] == "192.168.1.20"
    assert selection.targets[0].way == "local"
    assert {t.way for t in selection.targets[1:]} == {"arp"}
    assert not {"192.168.1.0", "192.168.1.255"} & set(addresses(selection))
    assert selection.networks == ("192.168.1.0/24",)
    assert not selection.truncated


def test_public_networks_are_never_scanned() -> None:
    own = select(local_interface("203.0.113.5/24"))
    assert addresses(own) == ["203.0.113.5"]
    assert "no private network" in own.limitations[0]
    configured = select(local_interface("192.168.1.20/24"), subnets=("8.8.8.0/24", "172.0.0.0/8"))
    assert addresses(configured) == ["192.168.1.20"]
    assert len(configured.limitations) == 2


def test_a_network_of_the_shared_range_is_scanned_only_if_it_is_configured() -> None:
    carrier = local_interface("100.64.1.5/24")  # RFC 6598: addresses of a provider or of a VPN
    assert addresses(select(carrier)) == ["100.64.1.5"]
    assert len(addresses(select(carrier, subnets=("100.64.1.0/24",)))) == 254


def test_max_hosts_keeps_the_nearest_addresses_and_reports_how_many_were_tried() -> None:
    selection = select(local_interface("10.20.30.40/8"), max_hosts=300, first=("10.20.99.1",))
    assert len(selection.targets) == 300
    assert addresses(selection)[:2] == ["10.20.30.40", "10.20.99.1"]
    nearest = [a for a in addresses(selection) if a.startswith("10.20.30.")]
    assert len(nearest) == 256
    assert selection.truncated
    assert selection.networks == ()
    assert selection.limitations == (
        "300 of about 16777214 addresses were tried: max_hosts is 300",
    )


def test_a_subnet_of_exactly_max_hosts_is_not_truncated() -> None:
    assert not select(local_interface("192.168.1.20/24"), max_hosts=254).truncated
    assert select(local_interface("192.168.1.20/24"), max_hosts=253).truncated


def test_excluded_addresses_are_left_out() -> None:
    selection = select(
        local_interface("192.168.1.20/28"), exclude=("192.168.1.17", "192.168.1.24/29")
    )
    assert addresses(selection) == [
        "192.168.1.20",
        "192.168.1.18",
        "192.168.1.19",
        "192.168.1.21",
        "192.168.1.22",
        "192.168.1.23",
    ]
    # The networks contain all addresses except the excluded ones. So an address beside an excluded
    # one counts as scanned, even if the printer at this address does not answer.
    assert selection.networks == ("192.168.1.16/32", "192.168.1.18/31", "192.168.1.20/30")


def test_a_subnet_with_two_own_addresses_is_scanned_once() -> None:
    selection = select(
        local_interface("10.0.0.5/22"), local_interface("10.0.1.5/22"), max_hosts=1022
    )
    assert len(selection.targets) == 1022
    assert not selection.truncated


def test_a_large_excluded_network_is_skipped() -> None:
    selection = select(local_interface("10.200.0.5/8"), exclude=("10.128.0.0/9",), max_hosts=50)
    assert len(selection.targets) == 50
    assert all(a == "10.200.0.5" or int(a.split(".")[1]) < 128 for a in addresses(selection))


def test_configured_subnets_replace_the_own_subnets() -> None:
    selection = select(
        local_interface("192.168.1.20/24"), subnets=("10.9.0.0/30", "192.168.1.8/30")
    )
    assert {(t.address, t.way) for t in selection.targets} == {
        ("192.168.1.20", "local"),
        ("10.9.0.1", "routed"),
        ("10.9.0.2", "routed"),
        ("192.168.1.9", "arp"),
        ("192.168.1.10", "arp"),
    }


def test_only_addresses_of_the_own_link_are_resolved_in_a_larger_subnet() -> None:
    selection = select(local_interface("192.168.1.20/30"), subnets=("192.168.1.16/29",))
    ways = {t.address: t.way for t in selection.targets}
    assert ways["192.168.1.20"] == "local"
    assert ways["192.168.1.21"] == "arp"
    assert ways["192.168.1.17"] == "routed"


def test_tunnels_and_container_networks_are_left_out_and_reported() -> None:
    selection = select(
        local_interface("192.168.1.20/30"),
        local_interface("10.8.0.2/24", name="tun0", metric=None, point_to_point=True),
        local_interface("172.17.0.1/16", name="docker0", metric=None),
    )
    assert {t.interface_name for t in selection.targets if t.way == "arp"} == {"eth0"}
    assert [text.split(" ")[0] for text in selection.limitations] == ["tun0", "docker0"]


def test_addresses_of_a_link_without_arp_are_contacted_without_resolution() -> None:
    interface = LocalInterface(
        Interface("en0", (InterfaceAddress("192.168.1.21", "ipv4", 30),)), has_arp=False
    )
    assert [t.way for t in select(interface).targets] == ["local", "routed"]


def test_point_to_point_prefixes_use_both_addresses() -> None:
    assert addresses(select(local_interface("10.0.0.0/31"))) == ["10.0.0.0", "10.0.0.1"]
    assert addresses(select(local_interface("10.0.0.7/32"))) == ["10.0.0.7"]


def test_invalid_network_is_reported() -> None:
    selection = select(local_interface("192.168.1.20/30"), exclude=("kitchen", "fd00::/64"))
    assert selection.limitations[0] == "'kitchen' is no network and was left out"
    assert "IPv6" in selection.limitations[1]


def test_device_only_selects_this_machine() -> None:
    loopback = LocalInterface(
        Interface("lo", (InterfaceAddress("127.0.0.1", "ipv4", 8),)), is_loopback=True
    )
    selection = select_own_addresses([loopback, local_interface("192.168.1.20/24")])
    assert [(t.address, t.way) for t in selection.targets] == [
        ("127.0.0.1", "local"),
        ("192.168.1.20", "local"),
    ]


def test_a_configured_loopback_subnet_is_this_machine() -> None:
    selection = select(local_interface("192.168.1.20/24"), subnets=("127.0.0.0/29",))
    assert {t.way for t in selection.targets} == {"local"}
    assert addresses(selection)[:2] == ["192.168.1.20", "127.0.0.1"]
    assert len(selection.targets) == 7
    assert selection.networks == ("127.0.0.0/29",)


@pytest.mark.parametrize(
    ("subnet", "is_accepted"),
    [
        ("10.1.0.0/24", True),
        ("172.31.0.0/30", True),
        ("192.168.0.0/24", True),
        ("169.254.1.0/24", True),
        ("100.64.0.0/24", True),
        ("127.0.0.0/8", True),
        ("127.0.0.1", True),
        ("172.32.0.0/24", False),
        ("192.168.0.0/15", False),
        ("100.128.0.0/24", False),
        ("126.0.0.0/7", False),
        ("8.8.8.0/24", False),
        ("fd00::/64", False),
    ],
)
def test_the_scan_accepts_the_subnets_that_the_configuration_accepts(
    subnet: str, is_accepted: bool
) -> None:
    selection = select(local_interface("192.168.1.20/24"), subnets=(subnet,), max_hosts=4)
    assert (addresses(selection) != ["192.168.1.20"]) == is_accepted
    assert (
        any("scanned" in text or "swept" in text for text in selection.limitations) != is_accepted
    )
    try:
        Network(subnets=(subnet,))
    except ValidationError:
        assert not is_accepted
    else:
        assert is_accepted


@given(
    number=st.integers(0, 2**32 - 1),
    prefix=st.integers(4, 32),
    max_hosts=st.integers(1, 600),
    exclude=st.lists(st.integers(0, 2**32 - 1), max_size=3),
)
def test_selection_is_bounded_private_and_distinct(
    number: int, prefix: int, max_hosts: int, exclude: list[int]
) -> None:
    own = str(ipaddress.IPv4Address(number))
    excluded = tuple(f"{ipaddress.IPv4Address(n)}/20" for n in exclude)
    selection = select(local_interface(f"{own}/{prefix}"), max_hosts=max_hosts, exclude=excluded)
    listed = addresses(selection)
    assert len(listed) <= max_hosts
    assert len(set(listed)) == len(listed)
    assert all(address == own or is_private(address) for address in listed)
    nets = [ipaddress.ip_network(text, strict=False) for text in excluded]
    for address in listed:
        assert address == own or not any(ipaddress.ip_address(address) in net for net in nets)
    for covered in map(ipaddress.ip_network, selection.networks):
        assert not any(covered.overlaps(net) for net in nets)
