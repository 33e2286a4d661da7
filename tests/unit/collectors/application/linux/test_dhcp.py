"""DHCP leases of Linux, from the kernel and from DHCP clients."""

import ipaddress
import math
import os
import socket
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.application.deadline import Deadline
from collectors.application.linux.network import dhcp, leases, links
from collectors.application.linux.network.dhcp import Address, dhcp_of
from collectors.application.linux.network.leases import Lease, Leases
from collectors.application.readers.network.interfaces import DHCP_KEYS, INFINITE, Dhcp, dhcp_fields
from collectors.application.system_bus import parse_objects
from collectors.shared.linux import netlink
from tests.unit.collectors.application.fixtures import fixture, values, write_files

NOW = 1_795_446_000.0  # 2026-11-23 15:00:00 UTC
ADDRESS = "192.168.1.20"
NETWORKD = f"# private\nADDRESS={ADDRESS}\nSERVER_ADDRESS=192.168.1.1\nLIFETIME=3600\n"
DHCLIENT = """default-duid "x";
lease {
  interface "eth0";
  fixed-address 192.168.1.20;
  option dhcp-lease-time 600;
  option dhcp-server-identifier 192.168.1.9;
  expire 1 2026/11/23 14:10:00;
}
lease {
  interface "eth0";
  fixed-address 192.168.1.20;
  option dhcp-lease-time 3600;
  option dhcp-server-identifier 192.168.1.1;
  expire 1 2026/11/23 15:50:00;
}
"""


def dhcp_message(address: str, *options: tuple[int, bytes]) -> bytes:
    """Return a DHCPACK (RFC 2131, section 2)."""
    head = struct.pack("!4B8x4s", 2, 1, 6, 0, b"")
    fixed = head + ipaddress.IPv4Address(address).packed + bytes(236 - 20)
    option_bytes = b"".join(bytes((code, len(value))) + value for code, value in options)
    return fixed + b"\x63\x82\x53\x63\x00" + option_bytes + b"\xff"


@pytest.mark.parametrize(
    ("lifetime", "seconds"),
    [
        ("3600", 3600),
        ("12h", 43_200),
        ("1h 30min", 5400),
        ("1w 3d", 864_000),
        ("1month 5s", 2_629_805),
        ("infinity", INFINITE),
        ("", None),
        ("soon", None),
        ("1h soon", None),
    ],
)
def test_the_lifetime_of_networkd_is_a_number_or_a_time_span(
    lifetime: str, seconds: float | None
) -> None:
    (lease,) = leases.parse_networkd(f"ADDRESS={ADDRESS}\nLIFETIME={lifetime}\n")
    assert lease == Lease(ADDRESS, None, seconds)


DHCPCD = dhcp_message(
    ADDRESS, (53, b"\x05"), (51, (3600).to_bytes(4, "big")), (54, bytes((192, 168, 1, 1)))
)


def address_of(valid_s: int, changed_cs: int, now_s: float) -> Address | None:
    """Parse an RTM_NEWADDR message with an IFA_CACHEINFO attribute."""
    head = struct.pack("=BBBBI", 2, 24, 0, 0, 2)
    cache = struct.pack("=IIII", valid_s, valid_s, changed_cs, changed_cs)
    address = ipaddress.IPv4Address(ADDRESS).packed
    ifa_local, ifa_cacheinfo = 2, 6
    body = (
        head
        + netlink.write_attribute(ifa_local, address)
        + netlink.write_attribute(ifa_cacheinfo, cache)
    )
    assert dhcp.parse_address(body, {3: "wlan0"}, now_s) is None
    return dhcp.parse_address(body, {2: "eth0"}, now_s)


def read(
    tmp_path: Path, *, valid_s: float | None, now: float = NOW, files: dict[str, str | bytes]
) -> Dhcp:
    """Return the DHCP facts of eth0 with the stored leases ``files``.

    ``valid_s`` is the time for which the address is still valid, None if it is permanent.
    """
    root = write_files(tmp_path, files)
    stored = leases.stored_leases(root)
    return dhcp_of([Address("eth0", ADDRESS, valid_s, age_s=600.0)], stored, now=now)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run/systemd/netif/leases/2", NETWORKD),
        ("var/lib/dhcp/dhclient.eth0.leases", DHCLIENT),
        ("var/lib/dhclient/dhclient-6f1e-eth0.lease", DHCLIENT),
        ("var/lib/dhcpcd/eth0.lease", DHCPCD),
        ("var/lib/dhcpcd5/dhcpcd-eth0.lease", DHCPCD),
    ],
    ids=["networkd", "dhclient", "dhclient-redhat", "dhcpcd", "dhcpcd5"],
)
def test_the_lease_of_each_client_has_a_server_and_times(
    tmp_path: Path, name: str, content: str | bytes
) -> None:
    facts = read(tmp_path, valid_s=3000.0, files={name: content})
    assert facts == Dhcp(
        True, "192.168.1.1", NOW - 600, NOW + 3000, reason="the DHCP client does not report it"
    )


def test_networkmanager_reports_its_lease_by_dbus(tmp_path: Path) -> None:
    objects = parse_objects(fixture("linux/network-manager.json"))
    (lease,) = leases.parse_network_manager_leases(objects)
    assert lease == Lease("192.168.1.20", "192.168.1.1", 3600, NOW + 3000)
    write_files(tmp_path, {"run/NetworkManager/resolv.conf": ""})
    facts = dhcp.read_dhcp(
        tmp_path, ["wlan0"], lambda: objects, lambda: (Address("wlan0", ADDRESS, 3000.0, 5.0),)
    )
    assert facts["wlan0"].server == "192.168.1.1"


def test_a_lease_that_no_client_has_stored_is_read_from_the_kernel(tmp_path: Path) -> None:
    facts = read(tmp_path, valid_s=3000.0, files={})
    assert (facts.is_used, facts.server) == (True, None)
    assert (facts.obtained_at, facts.expires_at) == (NOW - 600, NOW + 3000)


@pytest.mark.parametrize("address", ["192.168.1.21", ADDRESS], ids=["other-address", "expired"])
def test_an_old_lease_does_not_make_a_static_address_dynamic(tmp_path: Path, address: str) -> None:
    files: dict[str, str | bytes] = {
        "var/lib/dhcp/dhclient.leases": DHCLIENT.replace(ADDRESS, address)
    }
    assert read(tmp_path, valid_s=None, now=NOW + 86400, files=files) == Dhcp(is_used=False)


def test_a_lease_without_an_end_is_reported(tmp_path: Path) -> None:
    text = NETWORKD.replace("3600", str(INFINITE))
    facts = read(tmp_path, valid_s=None, files={"run/systemd/netif/leases/2": text})
    assert facts.expires_at == math.inf
    fields = {field.key: field for field in dhcp_fields(facts, [f"{ADDRESS}/24"])}
    assert fields["interface.dhcpLeaseExpiresAt"].reason == "the lease does not expire"


def test_an_unreadable_lease_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    root = write_files(tmp_path, {"var/lib/dhcpcd/eth0.lease": DHCPCD})
    assert not leases.stored_leases(root).denied
    monkeypatch.setattr(leases, "_end_of", refuse)
    assert leases.stored_leases(root) == Leases((), denied=True)


def test_an_unreadable_lease_is_permission_denied() -> None:
    unread = Leases((), denied=True)
    facts = dhcp_of([Address("eth0", ADDRESS, 3000.0, 600.0)], unread, now=NOW)
    server, obtained, expires = dhcp_fields(facts, [ADDRESS])[1:]
    assert (server.status, server.reason) == (
        "permission-denied",
        "this account may not read the leases of the DHCP client",
    )
    assert (obtained.value, expires.value) == (
        "2026-11-23T14:50:00+00:00",
        "2026-11-23T15:50:00+00:00",
    )
    permanent = [Address("eth0", ADDRESS, None, 600.0)]
    assert dhcp_of(permanent, unread, {"dhcpcd"}).status == "permission-denied"
    assert dhcp_of(permanent, unread, ()) == Dhcp(is_used=False)


def test_a_client_that_stores_no_lease_leaves_the_assignment_unknown(tmp_path: Path) -> None:
    write_files(tmp_path, {"proc/77/comm": "udhcpc\n", "proc/uptime": "1 1\n"})
    facts = dhcp.read_dhcp(tmp_path, ["eth0"], dict, lambda: (Address("eth0", ADDRESS, None, 1.0),))
    assert facts["eth0"].is_used is None
    assert facts["eth0"].reason == "the DHCP client udhcpc does not report its leases"


def test_a_mobile_connection_has_no_static_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = (Address("ppp0", "10.64.0.9", None, 1.0), Address("eth0", ADDRESS, None, 1.0))
    monkeypatch.setattr(dhcp, "kernel_addresses", lambda: addresses)
    files: dict[str, str | bytes] = {
        "sys/class/net/ppp0/type": "512\n",  # ARPHRD_PPP
        "sys/class/net/eth0/type": "1\n",  # ARPHRD_ETHER
    }
    facts = links.read_links(
        write_files(tmp_path, files), ("ppp0", "eth0"), Deadline.after(60)
    ).dhcp
    assert (facts["ppp0"].is_used, facts["ppp0"].status) == (None, "not-applicable")
    assert facts["eth0"] == Dhcp(is_used=False)


def test_a_refused_netlink_socket_is_the_reason_of_each_interface(tmp_path: Path) -> None:
    def refuse() -> tuple[Address, ...]:
        raise PermissionError(1, "Operation not permitted")

    facts = dhcp.read_dhcp(tmp_path, ["eth0"], dict, refuse)
    assert facts["eth0"].status == "permission-denied"


@pytest.mark.parametrize(
    ("addresses", "assignment"),
    [
        (["192.168.1.20/24", "fe80::1/64"], "static"),
        (["169.254.7.1/16", "fd00::1/64"], "link-local"),
        (["169.254.7.1/16", "10.0.0.2/8"], "static"),
        (["fd00::1/64"], None),
        (["127.0.0.1/8", "::1/128"], None),
    ],
)
def test_the_ipv4_address_determines_the_assignment(
    addresses: list[str], assignment: str | None
) -> None:
    fields = dhcp_fields(Dhcp(is_used=False), addresses)
    assert tuple(field.key for field in fields) == DHCP_KEYS
    assert values(fields) == ({} if assignment is None else {DHCP_KEYS[0]: assignment})
    assert all(field.status == "not-applicable" for field in fields[1:])


def test_impossible_times_are_left_out() -> None:
    assert values(dhcp_fields(Dhcp(True, None, 1e300, -1e300), [ADDRESS])) == {DHCP_KEYS[0]: "DHCP"}


def test_validity_and_age_of_an_address_come_from_the_kernel() -> None:
    assert address_of(600, 90_000, 1000.5) == Address("eth0", ADDRESS, 600.0, 100.5)
    permanent = address_of(INFINITE, 90_000, 1000.0)
    assert permanent == Address("eth0", ADDRESS, None, 100.0)
    # The clock of the kernel is slightly ahead, or its counter of 32 bits started again at zero.
    ahead = address_of(600, 100_010, 1000.0)
    assert ahead is not None
    assert ahead.age_s == 0
    wrapped = address_of(600, 2**32 - 100, 2**32 / 100 + 1)
    assert wrapped is not None
    assert wrapped.age_s == pytest.approx(2.0)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux has rtnetlink")
def test_the_running_kernel_answers_the_dump_of_addresses() -> None:
    interfaces = {name for _, name in socket.if_nameindex()}
    addresses = dhcp.kernel_addresses()
    assert addresses, "at least loopback has an address"
    assert {address.link for address in addresses} <= interfaces


@given(st.binary(max_size=400))
def test_any_bytes_are_parsed_or_ignored(data: bytes) -> None:
    dhcp.parse_address(data, {0: "lo"}, 1.0)
    leases.parse_dhcp_message(data, 0.0)
    header_and_cookie = DHCPCD[:240]
    leases.parse_dhcp_message(header_and_cookie + data, 0.0)


@given(st.text(), st.text())
def test_any_text_is_parsed_or_ignored(text: str, value: str) -> None:
    block = f"lease {{\n fixed-address 10.0.0.1;\n expire {value};\n {text};\n}}\n"
    for lease in (
        *leases.parse_networkd(f"ADDRESS=10.0.0.1\n{text}"),
        *leases.parse_dhclient(block),
    ):
        ipaddress.IPv4Address(lease.address)


@given(st.integers(0, len(DHCPCD)))
def test_a_truncated_dhcp_message_is_parsed_or_ignored(length: int) -> None:
    lease = leases.parse_dhcp_message(DHCPCD[:length], 0.0)
    assert lease is None or lease.address == ADDRESS
