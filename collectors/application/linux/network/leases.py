"""Reads the leases that the DHCP clients of Linux have stored.

systemd-networkd, dhclient and dhcpcd write their leases to files. NetworkManager reports them by
D-Bus.
"""

import ipaddress
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, NamedTuple

from collectors.application.readers.network.interfaces import INFINITE
from collectors.application.system_bus import Objects
from collectors.sandbox import LEASES
from collectors.shared.addresses import plain_address
from collectors.shared.sysfs import SMALL_MAX_BYTES, whole_number
from collectors.shared.text import decode

_NETWORK_MANAGER: Final = "org.freedesktop.NetworkManager"
_FILES_MAX: Final = 64

_BLOCK = re.compile(r"^lease\s*\{(.*?)^\}", re.MULTILINE | re.DOTALL)
_STATEMENT = re.compile(r"^\s*(?:option\s+)?([a-z-]+)\s+([^;]{1,256});", re.MULTILINE)
_EXPIRES = re.compile(r"\d\s+(\d{4}/\d{1,2}/\d{1,2} \d{1,2}:\d{2}:\d{2})")
_EPOCH = re.compile(r"epoch\s+(\d{1,12})")

_SPAN_WORD = re.compile(r"([0-9]{1,12})(|s|min|h|d|w|month|y)")
_SPAN_UNITS: Final = {
    "": 1, "s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800,
    "month": 2_629_800, "y": 31_557_600,
}  # fmt: skip
"""The units of time spans of systemd, in seconds."""

_BOOTP_BYTES: Final = 236
_COOKIE: Final = b"\x63\x82\x53\x63"
_YIADDR: Final = slice(16, 20)
_LEASE_TIME, _SERVER_ID, _PAD, _END = 51, 54, 0, 255


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as its client has stored it.

    ``server`` is the address of the DHCP server. ``duration_s`` is the period for which the server
    granted the lease. ``expires_at`` is in seconds since the epoch.
    """

    address: str
    server: str | None = None
    duration_s: float | None = None
    expires_at: float | None = None


class Leases(NamedTuple):
    """The leases of all clients, the newest last.

    ``denied`` is True if this account is not permitted to read some of them.
    """

    known: tuple[Lease, ...]
    denied: bool


def stored_leases(root: Path) -> Leases:
    """Return the leases in the files of DHCP clients, the newest file last."""
    by_age: list[tuple[float, tuple[Lease, ...]]] = []
    is_denied = False
    for pattern in LEASES:
        directory, _, name = pattern.removeprefix("/").rpartition("/")
        try:
            files = [path for path in (root / directory).iterdir() if fnmatch(path.name, name)]
        except PermissionError:
            is_denied = True
            continue
        except OSError:
            continue
        for path in sorted(files)[:_FILES_MAX]:
            try:
                changed_at = path.stat().st_mtime
                by_age.append((changed_at, tuple(_parse_file(_end_of(path), changed_at))))
            except PermissionError:
                is_denied = True
            except OSError:
                continue
    by_age.sort(key=lambda entry: entry[0])
    return Leases(tuple(lease for _, leases in by_age for lease in leases), is_denied)


def _end_of(path: Path) -> bytes:
    """Return the end of a file. dhclient appends its newest lease."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - SMALL_MAX_BYTES))
        return file.read(SMALL_MAX_BYTES)


def _parse_file(data: bytes, changed_at: float) -> Iterator[Lease]:
    if data[_BOOTP_BYTES : _BOOTP_BYTES + len(_COOKIE)] == _COOKIE:
        lease = parse_dhcp_message(data, changed_at)
        if lease is not None:
            yield lease
    elif b"\nADDRESS=" in b"\n" + data:
        yield from parse_networkd(decode(data))
    else:
        yield from parse_dhclient(decode(data))


def parse_networkd(text: str) -> Iterator[Lease]:
    """Parse a lease of systemd-networkd, which has lines such as ``ADDRESS=192.168.1.20``."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    address = plain_address(values.get("ADDRESS", ""))
    if address is not None:
        server = plain_address(values.get("SERVER_ADDRESS", ""))
        yield Lease(address, server, parse_time_span(values.get("LIFETIME", "")))


def parse_time_span(text: str) -> float | None:
    """Return the seconds of a time span of systemd (systemd.time(7)), or None if it is malformed.

    Newer versions of systemd-networkd write ``1h 30min`` or ``infinity``, older ones ``5400``.
    """
    if text == "infinity":
        return INFINITE
    words = [_SPAN_WORD.fullmatch(word) for word in text.split()[:8]]
    if not words or None in words:
        return None
    return sum(int(word[1]) * _SPAN_UNITS[word[2]] for word in words if word)


def parse_dhclient(text: str) -> Iterator[Lease]:
    """Parse the leases of dhclient (dhclient.leases(5)), the newest last."""
    for block in _BLOCK.findall(text):
        values = dict(_STATEMENT.findall(block))
        address = plain_address(values.get("fixed-address", "").strip())
        if address is not None:
            yield Lease(
                address,
                plain_address(values.get("dhcp-server-identifier", "").strip()),
                whole_number(values.get("dhcp-lease-time", "").strip()),
                _expiry(values.get("expire", "")),
            )


def _expiry(text: str) -> float | None:
    """Return the time of ``1 2026/11/23 15:10:00`` (in UTC) or ``epoch 1795446600``."""
    if match := _EPOCH.match(text):
        return float(match[1])
    if match := _EXPIRES.match(text):
        with suppress(ValueError):
            timestamp = datetime.strptime(match[1], "%Y/%m/%d %H:%M:%S").replace(tzinfo=UTC)
            return timestamp.timestamp()
    return None


def parse_dhcp_message(data: bytes, changed_at: float) -> Lease | None:
    """Parse the server's message that dhcpcd stores as its lease (RFC 2131, section 2).

    ``changed_at`` is the time at which dhcpcd wrote the file, in seconds since the epoch.
    """
    options = dict(_options(data[_BOOTP_BYTES + len(_COOKIE) :]))
    raw, server, duration = data[_YIADDR], options.get(_SERVER_ID), options.get(_LEASE_TIME)
    if len(data) < _BOOTP_BYTES or not any(raw):
        return None
    duration_s = int.from_bytes(duration, "big") if duration and len(duration) == 4 else None
    return Lease(
        str(ipaddress.IPv4Address(raw)),
        plain_address(server) if server and len(server) == 4 else None,
        duration_s,
        None if duration_s is None else changed_at + duration_s,
    )


def _options(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the options of a DHCP message (RFC 2132, section 2)."""
    offset = 0
    while offset < len(data) and data[offset] != _END:
        if data[offset] == _PAD:
            offset += 1
            continue
        if offset + 2 > len(data):
            return
        end = offset + 2 + data[offset + 1]
        if end > len(data):
            return
        yield data[offset], data[offset + 2 : end]
        offset = end


def parse_network_manager_leases(objects: Objects) -> Iterator[Lease]:
    """Return the leases in NetworkManager's objects."""
    for interfaces in objects.values():
        options = interfaces.get(f"{_NETWORK_MANAGER}.DHCP4Config", {}).get("Options")
        if not isinstance(options, dict):
            continue
        values = {
            name: str(variant.get("data"))
            for name, variant in options.items()
            if isinstance(variant, dict)
        }
        address = plain_address(values.get("ip_address", ""))
        if address is not None:
            yield Lease(
                address,
                plain_address(values.get("dhcp_server_identifier", "")),
                whole_number(values.get("dhcp_lease_time")),
                whole_number(values.get("expiry")),
            )
