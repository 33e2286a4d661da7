"""Reads the DHCP lease of each interface of Linux.

The kernel reports how long an address remains valid, if the DHCP client has set a limit for it.
Only the client can report the DHCP server.
"""

import math
import socket
import struct
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from collectors.application.linux.network.leases import (
    Lease,
    Leases,
    parse_network_manager_leases,
    stored_leases,
)
from collectors.application.readers.network.interfaces import INFINITE, Dhcp
from collectors.application.source import status_of
from collectors.application.system_bus import Objects
from collectors.contract import FieldStatus
from collectors.shared.linux import rtnetlink
from collectors.shared.linux.netlink import parse_attributes
from collectors.shared.linux.rtnetlink_socket import read_dump
from collectors.shared.sysfs import children, read_line

_IFA_CACHEINFO: Final = 6
_CACHEINFO: Final = struct.Struct("=IIII")
_TICKS_WRAP: Final = 1 << 32
_PROCESSES_MAX: Final = 4096
_SILENT_CLIENTS: Final = frozenset({"udhcpc", "connmand"})
"""DHCP clients that set addresses without a limit of validity, and store no leases."""
_STORING_CLIENTS: Final = frozenset({"dhclient", "dhcpcd"})
"""DHCP clients that store their leases in files."""
_DENIED: Final = "this account may not read the leases of the DHCP client"
_NOT_STORED: Final = "the DHCP client does not report it"


class Address(NamedTuple):
    """An IPv4 address of the interface ``link``.

    ``valid_s`` is the time for which it is still valid; None if there is no limit. ``age_s`` is
    the time since it was set or its validity was renewed.
    """

    link: str
    address: str
    valid_s: float | None
    age_s: float


ReadAddresses = Callable[[], tuple[Address, ...]]


def read_dhcp(
    root: Path,
    names: Iterable[str],
    network_manager: Callable[[], Objects],
    read_addresses: ReadAddresses | None = None,
) -> dict[str, Dhcp]:
    """Return what is known about DHCP at each interface, by the interface's name."""
    try:
        addresses = (read_addresses or kernel_addresses)()
    except OSError as error:
        status, reason = status_of(error)
        return {name: Dhcp(status=status, reason=reason) for name in names}
    leases = stored_leases(root)
    if (root / "run/NetworkManager").exists():
        leases = leases._replace(
            known=(*leases.known, *parse_network_manager_leases(network_manager()))
        )
    clients = _running_clients(root / "proc")
    return {
        name: dhcp_of([address for address in addresses if address.link == name], leases, clients)
        for name in names
    }


def dhcp_of(
    addresses: Iterable[Address],
    leases: Leases,
    clients: Collection[str] = (),
    now: float | None = None,
) -> Dhcp:
    """Return what is known about DHCP at an interface with these addresses.

    Args:
        clients: The names of the running DHCP clients.
        now: The present, in seconds since the epoch.
    """
    now = time.time() if now is None else now
    by_address = {address.address: address for address in addresses}
    if not by_address:
        return Dhcp(reason="the kernel does not list its addresses")
    for lease in reversed(leases.known):
        address = by_address.get(lease.address)
        if address is not None and _is_current(lease, address, now):
            return _dhcp_of_lease(lease, address, now, "unsupported", _NOT_STORED)
    for address in by_address.values():
        if address.valid_s is not None:
            cause: tuple[FieldStatus, str] = ("unsupported", _NOT_STORED)
            if leases.denied:
                cause = "permission-denied", _DENIED
            return _dhcp_of_lease(Lease(address.address), address, now, *cause)
    if leases.denied and _STORING_CLIENTS.intersection(clients):
        return Dhcp(status="permission-denied", reason=_DENIED)
    if silent_clients := _SILENT_CLIENTS.intersection(clients):
        return Dhcp(reason=f"the DHCP client {min(silent_clients)} does not report its leases")
    return Dhcp(is_used=False)


def _is_current(lease: Lease, address: Address, now: float) -> bool:
    """Return whether a stored lease still applies to an address.

    An expired lease applies only if the kernel has a time limit for the address. Without a limit,
    the address may be static by now.
    """
    return address.valid_s is not None or lease.expires_at is None or lease.expires_at > now


def _dhcp_of_lease(
    lease: Lease, address: Address, now: float, status: FieldStatus, reason: str
) -> Dhcp:
    """Return the lease of an address. ``status`` and ``reason`` are for the missing values."""
    expires_at, obtained_at = lease.expires_at, None
    if lease.duration_s == INFINITE:
        expires_at = math.inf
    elif address.valid_s is not None:
        # The kernel has the latest renewal. A file may be out of date.
        expires_at, obtained_at = now + address.valid_s, now - address.age_s
    if expires_at is not None and expires_at != math.inf and lease.duration_s is not None:
        obtained_at = min(now, expires_at - lease.duration_s)
    return Dhcp(True, lease.server, obtained_at, expires_at, status, reason)


# ---------------------------------------------------------------------------- kernel


def kernel_addresses() -> tuple[Address, ...]:
    """Return all IPv4 addresses. Raises OSError."""
    parse = partial(parse_address, names=dict(socket.if_nameindex()), now_s=time.monotonic())
    return read_dump(rtnetlink.RTM_GETADDR, parse, rtnetlink.AF_INET)


def parse_address(body: bytes, names: Mapping[int, str], now_s: float) -> Address | None:
    """Parse an RTM_NEWADDR body (rtnetlink(7)).

    ``names`` are the interfaces by index. ``now_s`` is the time since the machine started,
    without the time in sleep (CLOCK_MONOTONIC).
    """
    known = rtnetlink.parse_address(body)
    if known is None or ":" in known.address or known.index not in names:
        return None
    cache = parse_attributes(body[rtnetlink.IFADDRMSG.size :]).get(_IFA_CACHEINFO, b"")
    if len(cache) < _CACHEINFO.size:
        return None
    # changed_at is in hundredths of a second since the machine started, modulo 2**32.
    _, valid_s, _, changed_at = _CACHEINFO.unpack_from(cache)
    age_s = (int(now_s * 100) - changed_at) % _TICKS_WRAP / 100
    if age_s > _TICKS_WRAP / 100 / 2:  # the kernel's clock is ahead: changed_at is after now_s
        age_s = 0.0
    limit_s = None if valid_s == INFINITE else float(valid_s)
    return Address(names[known.index], known.address, limit_s, age_s)


def _running_clients(proc: Path) -> frozenset[str]:
    names = (read_line(process / "comm") for process in children(proc, _PROCESSES_MAX))
    return frozenset(filter(None, names)) & (_SILENT_CLIENTS | _STORING_CLIENTS)
