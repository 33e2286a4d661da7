"""Tests of parsing and joining hosts and ports, and of recognising loopback."""

import pytest

from agent.wire.addresses import is_loopback, is_loopback_url, join_host_port, split_host_port


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.0.0.1:9100", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.1"),
        ("[fe80::1]:631", "fe80::1"),
        ("fe80::1", "fe80::1"),
        ("/dev/ttyUSB0", "/dev/ttyUSB0"),
        ("", ""),
    ],
)
def test_the_host_of_an_address_is_parsed(address: str, host: str) -> None:
    assert split_host_port(address)[0] == host


def test_hosts_and_ports_are_split_and_joined() -> None:
    assert split_host_port("10.0.0.1:9100") == ("10.0.0.1", "9100")
    assert split_host_port("[fe80::1]:631") == ("fe80::1", "631")
    assert split_host_port("kitchen:") == ("kitchen", "")
    assert split_host_port("[fe80::1]") == ("fe80::1", None)
    for other in ("fe80::1", "kitchen", "[fe80::1", "[fe80::1]9100", "[10.0.0.1]:9100"):
        assert split_host_port(other) == (other, None)
    assert join_host_port("fe80::1", 631) == "[fe80::1]:631"


def test_loopback_addresses_and_urls_are_recognised() -> None:
    assert all(map(is_loopback, ("localhost", "127.9.9.9", "::1")))
    assert not any(map(is_loopback, ("", "10.0.0.1", "127.0.0.1.evil.example")))
    assert is_loopback_url("http://[::1]:8080/x")
    assert not is_loopback_url("http://10.0.0.1@localhost.example")
