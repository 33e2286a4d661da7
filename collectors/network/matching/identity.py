"""Parses the identities of devices: UUIDs, serial numbers and MACs.

A MAC may also be a part of a UUID, of a host name or of an IPv6 address.
"""

import ipaddress
import re

from collectors.shared.addresses import normal_mac

# Default host names: a prefix of the maker, then the whole MAC or its last three bytes.
_NAMED_MAC = re.compile(r"^(?:BRN|BRW|EPSON|ET|KM|RNP|SEC|XRX|LXK|HP)[_-]?([0-9A-F]{12})$")
_NAMED_TAIL = re.compile(r"^(?:NPI|HP|EPSON|RNP|ET|KM|KMBT|BRN|BRW|CANON)[_-]?([0-9A-F]{6})$")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PLACEHOLDERS = frozenset({"none", "na", "null", "unknown", "default", "serial", "notprovided"})
_COUNTED_UP = ("0123456789abcdef", "1234567890abcdef")
_REAL_DIGITS = 3  # a UUID with fewer different digits is a placeholder
_EUI64_MARK = b"\xff\xfe"  # RFC 4291, appendix A
_LOCAL_BIT = 0x02  # this bit of the MAC is inverted in the address


def normal_uuid(text: str | None) -> str | None:
    """Return the UUID in ``text`` in lower case. ``text`` may have a prefix such as ``urn:uuid:``.

    Returns None if there is no UUID or only a placeholder.
    """
    match = _UUID.search(text or "")
    if match is None or len({*match[0].replace("-", "").lower()}) < _REAL_DIGITS:
        return None
    return match[0].lower()


def real_serial(text: str | None) -> str | None:
    """Return a serial number without surrounding spaces.

    Returns None for a placeholder of the firmware, such as ``00000000``, ``000001``, ``0.00``,
    ``123456789`` or ``XXXXXX``.
    """
    plain = "".join(c for c in (text or "").lower() if c.isalnum())
    is_counted = len(plain) > 1 and any(plain in digits for digits in _COUNTED_UP)
    if len({*plain.lstrip("0")}) < 2 or is_counted or plain in _PLACEHOLDERS:
        return None
    return (text or "").strip()


def mac_in_uuid(uuid: str | None) -> str | None:
    """Return the last 12 digits of a UUID as a MAC.

    Brother, Epson, HP and others put the printer's MAC there. Other makers have random digits
    there, so the result must be compared with a MAC that was observed.
    """
    return normal_mac(uuid[-12:]) if uuid else None


def mac_in_hostname(hostname: str | None) -> str | None:
    """Return the MAC in a default host name such as ``BRN001BA9123456``, or None."""
    match = _NAMED_MAC.match(_first_label(hostname))
    return normal_mac(match[1]) if match else None


def mac_tail_in_hostname(hostname: str | None) -> str | None:
    """Return the last three bytes of the MAC in a default host name, or None.

    For ``NPI123456`` these are ``12:34:56``.
    """
    match = _NAMED_TAIL.match(_first_label(hostname))
    digits = match[1].lower() if match else ""
    return ":".join(digits[i : i + 2] for i in range(0, 6, 2)) if digits else None


def mac_in_address(address: str | None) -> str | None:
    """Return the MAC that an IPv6 address contains (RFC 4291, appendix A), or None."""
    try:
        interface_id = ipaddress.IPv6Address((address or "").partition("%")[0]).packed[8:]
    except ValueError:
        return None
    if interface_id[3:5] != _EUI64_MARK:
        return None
    return normal_mac(
        bytes((interface_id[0] ^ _LOCAL_BIT, *interface_id[1:3], *interface_id[5:])).hex()
    )


def _first_label(hostname: str | None) -> str:
    return (hostname or "").split(".")[0].upper()
