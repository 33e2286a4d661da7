"""Reads the DHCP lease of each interface of macOS (ipconfig(8)).

`ipconfig getpacket` prints the server's last message. The time at which the lease was obtained is
only in the lease's file, which only root may read.
"""

import plistlib
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from collectors.application.deadline import Deadline
from collectors.application.readers.network.interfaces import INFINITE, Dhcp
from collectors.application.source import status_of
from collectors.contract import FieldStatus
from collectors.shared.addresses import plain_address
from collectors.shared.run_command import Output, run_command
from collectors.shared.sysfs import SMALL_MAX_BYTES, read_bytes
from collectors.shared.text import decode

LEASES: Final = Path("/var/db/dhcpclient/leases")
_FILES_MAX: Final = 64
_ADDRESS = re.compile(r"^yiaddr = (\S{1,64})$", re.MULTILINE)
_SERVER = re.compile(r"^server_identifier \(ip\): (\S{1,64})$", re.MULTILINE)
_DURATION = re.compile(r"^lease_time \(uint32\): 0x([0-9a-fA-F]{1,8})$", re.MULTILINE)
_WITHOUT_PACKET = re.compile(rb"failed: (?:not found|interface doesn't exist)")
"""The error for an interface without DHCP. Only newer versions of macOS print it."""
_UNASSIGNED: Final = "0.0.0.0"  # noqa: S104 - a reply to DHCPINFORM assigns no address

GetPacket = Callable[[str, Deadline], Output]


def get_packet(name: str, deadline: Deadline) -> Output:
    return run_command(("ipconfig", "getpacket", name), deadline.at)


def read_dhcp(
    names: Iterable[str],
    deadline: Deadline,
    query: GetPacket = get_packet,
    leases: Path = LEASES,
) -> dict[str, Dhcp]:
    dhcp_by_name = {}
    for name in names:
        try:
            dhcp_by_name[name] = parse_packet(query(name, deadline), leases)
        except (OSError, ValueError) as error:
            status, reason = status_of(error)
            dhcp_by_name[name] = Dhcp(status=status, reason=reason)
    return dhcp_by_name


def parse_packet(output: Output, leases: Path) -> Dhcp:
    """Parse the output of `ipconfig getpacket` for one interface.

    The program prints no packet for an interface without DHCP. Raises ValueError if the program
    failed.
    """
    text = decode(output.data)
    address, server, duration = (p.search(text) for p in (_ADDRESS, _SERVER, _DURATION))
    has_failed = output.error.strip() and not _WITHOUT_PACKET.search(output.error)
    if address is None and has_failed:
        raise ValueError(f"ipconfig ended with {output.exit_code}")
    if address is None or address[1] == _UNASSIGNED:
        return Dhcp(is_used=False)
    status, reason, obtained_at = _stored_start(leases, address[1])
    duration_s = None if duration is None else int(duration[1], 16)
    expires_at = None
    if duration_s == INFINITE:
        expires_at = float("inf")
    elif obtained_at is not None and duration_s is not None:
        expires_at = obtained_at + duration_s
    server_address = plain_address(server[1]) if server else None
    return Dhcp(True, server_address, obtained_at, expires_at, status, reason)


def _stored_start(leases: Path, address: str) -> tuple[FieldStatus, str, float | None]:
    """Return a status, a reason, and the start of the newest stored lease of ``address``.

    If the start is None, the status and the reason explain why it is unknown.
    """
    try:
        files = sorted(leases.iterdir())[:_FILES_MAX]
        starts = [start for path in files if (start := _start(path, address)) is not None]
    except OSError as error:
        status, reason = status_of(error)
        return status, f"the stored leases cannot be read: {reason}", None
    return "unsupported", "macOS has stored no lease of this address", max(starts, default=None)


def _start(path: Path, address: str) -> float | None:
    """Return the start of a stored lease, in seconds since the epoch, if it is of ``address``."""
    try:
        lease: Any = plistlib.loads(read_bytes(path, SMALL_MAX_BYTES))
    except OSError:
        raise
    except Exception:  # noqa: BLE001 - plistlib raises many types for a malformed file
        return None
    if not isinstance(lease, dict) or lease.get("IPAddress") != address:
        return None
    start = lease.get("LeaseStartDate")
    return start.replace(tzinfo=UTC).timestamp() if isinstance(start, datetime) else None
