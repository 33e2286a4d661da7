"""Tests of the parsers for the neighbour tables of macOS and Windows, and for /proc/net/arp."""

import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.shared.host.neighbours import (
    parse_arp,
    parse_ndp,
    parse_proc_arp,
    read_neighbour_table,
)
from collectors.shared.host.neighbours_windows import parse_ip_net_table, read_neighbours_windows
from collectors.shared.linux.rtnetlink import LinkNeighbour

ARP = """\
Neighbor                Linklayer Address Expire(O) Expire(I)          Netif Refs Prbs
192.168.1.1             0:1a:2b:3:4:5     2m38s     41s            en0    1
192.168.1.30            0:1a:2b:3:4:30    1m20s     expired        en0    1   12
192.168.1.40            (incomplete)      1m16s     expired        en0    2   35
192.168.1.50            0:1a:2b:3:4:50    (none)    (none)         en0
224.0.0.251             1:0:5e:0:0:fb     (none)    (none)         en0
"""
NDP = """\
Neighbor                                Linklayer Address  Netif Expire    St Flgs Prbs
fe80::1%en0                             0:1a:2b:3:4:5        en0 23h58m30s S  R
fd00::9                                 (incomplete)         en0 expired   N
"""
PROC_ARP = """\
IP address       HW type     Flags       HW address            Mask     Device
192.168.1.1      0x1         0x2         00:1a:2b:03:04:05     *        eth0
192.168.1.9      0x1         0x0         00:00:00:00:00:00     *        eth0
"""
MAC = "00:1a:2b:03:04:05"


def test_omitted_zeros_in_macs_of_macos_are_restored() -> None:
    assert parse_arp(ARP)[0] == LinkNeighbour(0, "192.168.1.1", MAC, "reachable")


def test_the_expiry_columns_of_arp_on_macos_determine_the_state() -> None:
    assert {entry.address: entry.state for entry in parse_arp(ARP)} == {
        "192.168.1.1": "reachable",
        "192.168.1.30": "stale",
        "192.168.1.40": "resolving",
        "192.168.1.50": "reachable",
        "224.0.0.251": "reachable",
    }


def test_the_best_of_several_entries_for_an_address_is_used_on_macos() -> None:
    rows = (
        "192.168.1.1             (incomplete)      1m16s     expired        en1    1\n",
        "192.168.1.1             0:1a:2b:3:4:5     1m16s     expired        en2    1\n",
        "192.168.1.1             0:1a:2b:3:4:5     2m38s     41s            en0    1\n",
    )
    best = LinkNeighbour(0, "192.168.1.1", MAC, "reachable")
    assert parse_arp("".join(rows)) == parse_arp("".join(reversed(rows))) == (best,)


def test_ipv6_neighbours_of_macos_lose_their_scope() -> None:
    assert parse_ndp(NDP) == (
        LinkNeighbour(0, "fe80::1", MAC, "stale"),
        LinkNeighbour(0, "fd00::9", None, "resolving"),
    )


def test_incomplete_entries_of_proc_net_arp_have_no_mac() -> None:
    assert parse_proc_arp(PROC_ARP) == (
        LinkNeighbour(0, "192.168.1.1", MAC, "stale"),
        LinkNeighbour(0, "192.168.1.9", None, "resolving"),
    )


def windows_row(address: str, mac: str, state: int, index: int = 12) -> bytes:
    """Return a MIB_IPNET_ROW2: SOCKADDR_INET, interface index, LUID, MAC in 32 bytes, its length,
    state and flags.
    """
    packed = ipaddress.ip_address(address).packed
    if len(packed) == 4:
        socket_address = struct.pack("<HH4s20x", 2, 0, packed)
    else:
        socket_address = struct.pack("<HHI16sI", 23, 0, 0, packed, 0)
    raw = bytes.fromhex(mac.replace(":", ""))
    row = socket_address + struct.pack("<IQ32sIIII", index, 7, raw, len(raw), state, 0, 0)
    assert len(row) == 88
    return row


def windows_table(*rows: bytes) -> bytes:
    return struct.pack("<II", len(rows), 0) + b"".join(rows)


def test_the_neighbour_table_of_windows_is_parsed() -> None:
    table = windows_table(
        windows_row("192.168.1.1", MAC, 5),
        windows_row("fe80::1", MAC, 4),
        windows_row("192.168.1.9", "", 0),
    )
    assert parse_ip_net_table(table) == (
        LinkNeighbour(12, "192.168.1.1", MAC, "reachable"),
        LinkNeighbour(12, "fe80::1", MAC, "stale"),
        LinkNeighbour(12, "192.168.1.9", None, "failed"),
    )


def test_whole_rows_of_a_truncated_windows_table_are_parsed() -> None:
    table = windows_table(windows_row("192.168.1.1", MAC, 5), windows_row("192.168.1.2", MAC, 5))
    assert len(parse_ip_net_table(table[:-1])) == 1
    assert parse_ip_net_table(table[:3]) == ()


def test_the_windows_call_raises_an_error_on_other_systems() -> None:
    with pytest.raises(OSError, match="only Windows"):
        read_neighbours_windows()


def test_the_neighbour_table_of_this_machine_is_read_without_an_error() -> None:
    assert all(entry.address for entry in read_neighbour_table())


WORDS = st.sampled_from(
    (
        "192.168.1.1",
        "fe80::1%en0",
        "1.2.3.4.5",
        "0:1a:2b:3:4:5",
        "(incomplete)",
        "41s",
        "0x2",
        "en0",
    )
)
LINES = st.lists(WORDS | st.text(max_size=9), max_size=8).map(" ".join)


@given(text=st.text(max_size=300) | st.lists(LINES, max_size=9).map("\n".join))
def test_all_addresses_parsed_from_any_text_are_valid(text: str) -> None:
    for parse in (parse_arp, parse_ndp, parse_proc_arp):
        for entry in parse(text):
            ipaddress.ip_address(entry.address)


# Rows of a MIB_IPNET_TABLE2 with any address, MAC and state. The address family 99 is unknown.
ROWS = st.builds(
    lambda family, data, state: struct.pack("<H74sI8x", family, data, state),
    st.sampled_from((2, 23, 99)),
    st.binary(min_size=74, max_size=74),
    st.integers(0, 6),
)


@given(rows=st.lists(ROWS, max_size=4), rest=st.binary(max_size=400))
def test_all_addresses_parsed_from_any_bytes_are_valid(rows: list[bytes], rest: bytes) -> None:
    for table in (rest, windows_table(*rows) + rest):
        for entry in parse_ip_net_table(table):
            ipaddress.ip_address(entry.address)
