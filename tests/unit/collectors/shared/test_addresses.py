"""Tests the functions for addresses that both collectors use."""

from collectors.shared.addresses import (
    PRINT_PORTS,
    is_loopback,
    is_private,
    join_host_port,
    parse_networks,
    split_host_port,
)


def test_hosts_and_ports_are_split() -> None:
    assert split_host_port("192.168.1.50:9100") == ("192.168.1.50", 9100)
    assert split_host_port("192.168.1.50") == ("192.168.1.50", None)
    assert split_host_port("[fd00::1]:631") == ("fd00::1", 631)
    assert split_host_port("fd00::1") == ("fd00::1", None)
    assert split_host_port("printer:99999") == ("printer", None)
    assert split_host_port("printer:") == ("printer", None)
    assert split_host_port("") == (None, None)


def test_hosts_and_ports_are_joined() -> None:
    assert join_host_port("fd00::1", 631) == "[fd00::1]:631"
    assert join_host_port("10.0.0.9", 9100) == "10.0.0.9:9100"
    assert join_host_port("fd00::1", None) == "[fd00::1]"


def test_private_addresses_are_recognised() -> None:
    private = ("10.1.2.3", "172.31.0.1", "192.168.0.1", "169.254.1.1", "fd00::1", "fe80::1")
    public = ("8.8.8.8", "172.32.0.1", "192.0.2.1", "2001:db8::1", "localhost", "127.0.0.1")
    assert all(map(is_private, private))
    assert not any(map(is_private, public))


def test_loopback_is_recognised_by_address_and_by_name() -> None:
    assert all(map(is_loopback, ("localhost", "127.9.9.9", "::1")))
    assert not any(map(is_loopback, ("", "10.0.0.1", "127.0.0.1.evil.example", "fe80::1%eth0")))


def test_invalid_networks_are_left_out() -> None:
    texts = ("10.0.0.0/24", "x", "192.168.1.20", "fd00::/8")
    assert [str(network) for network in parse_networks(texts)] == [
        "10.0.0.0/24",
        "192.168.1.20/32",
        "fd00::/8",
    ]


def test_print_ports_are_ordered_and_unique() -> None:
    assert PRINT_PORTS[:3] == (631, 9100, 515)
    assert sorted(PRINT_PORTS) == [515, 631, *range(9100, 9117)]
