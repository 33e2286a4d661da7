"""Creates the fields about DHCP: how an interface got its IPv4 address, and its lease."""

import ipaddress
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from collectors.application.source import Fields, Origin
from collectors.contract import FieldStatus

ORIGIN: Final = Origin("DHCP client")
LEASE_KEYS: Final = (
    "interface.dhcpServer",
    "interface.dhcpLeaseObtainedAt",
    "interface.dhcpLeaseExpiresAt",
)
ASSIGNMENT_KEY: Final = "interface.ipv4Assignment"
KEYS: Final = (ASSIGNMENT_KEY, *LEASE_KEYS)
INFINITE: Final = 0xFFFFFFFF
"""The duration of a lease that does not expire (RFC 2131, section 3.3)."""


@dataclass(frozen=True, slots=True)
class Dhcp:
    """What is known about DHCP at an interface.

    Args:
        is_used: Whether DHCP assigned its IPv4 address; None if this is unknown.
        server: The address of the DHCP server.
        obtained_at: When the lease was obtained or last renewed, in seconds since the epoch.
        expires_at: When the lease expires, in seconds since the epoch; infinite if it does not.
        status: The status of the values that are None, explained by ``reason``.
    """

    is_used: bool | None = None
    server: str | None = None
    obtained_at: float | None = None
    expires_at: float | None = None
    status: FieldStatus = "unsupported"
    reason: str = "the system does not report it"


def dhcp_fields(dhcp: Dhcp, addresses: Iterable[str]) -> Fields:
    """Return the fields of an interface with these IPv4 and IPv6 addresses."""
    own_addresses = [ipaddress.ip_interface(text).ip for text in addresses]
    ipv4 = [address for address in own_addresses if address.version == 4]
    if not ipv4:
        return ORIGIN.all_absent(KEYS, "not-applicable", "it has no IPv4 address")
    if all(address.is_loopback for address in ipv4):
        return ORIGIN.all_absent(KEYS, "not-applicable", "it is the loopback interface")
    if all(address.is_link_local for address in ipv4):
        return _without_lease("link-local")
    if dhcp.is_used is None:
        return ORIGIN.all_absent(KEYS, dhcp.status, dhcp.reason)
    if not dhcp.is_used:
        return _without_lease("static")
    server, obtained, expires = LEASE_KEYS
    return (
        ORIGIN.available(ASSIGNMENT_KEY, "DHCP"),
        ORIGIN.fact(server, dhcp.server, dhcp.reason, dhcp.status),
        ORIGIN.fact(obtained, _timestamp(dhcp.obtained_at), dhcp.reason, dhcp.status),
        ORIGIN.not_applicable(expires, "the lease does not expire")
        if dhcp.expires_at == math.inf
        else ORIGIN.fact(expires, _timestamp(dhcp.expires_at), dhcp.reason, dhcp.status),
    )


def _without_lease(assignment: str) -> Fields:
    reason = "no DHCP server assigned its address"
    return (
        ORIGIN.available(ASSIGNMENT_KEY, assignment),
        *ORIGIN.all_absent(LEASE_KEYS, "not-applicable", reason),
    )


def _timestamp(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return None
