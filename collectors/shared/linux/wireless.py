"""Reads the Wi-Fi connection from the wireless extensions of the Linux kernel (wireless(7)).

This needs no privilege. Kernels without the wireless extensions have neither the ioctl nor the file
/proc/net/wireless.
"""

import re
import socket
import struct
from typing import Final

_SIGNAL = re.compile(r"^\s*(\S+):\s+\S+\s+-?\d+\.?\s+(-?\d{1,3})\.?\s", re.MULTILINE)
_NO_SIGNAL_DBM: Final = -256
"""Some drivers report this level without a connection, for example if the interface is an access
point."""
_SIOCGIWAP: Final = 0x8B15
_IWREQ = struct.Struct("16s2x6s8x")  # struct iwreq with a hardware address in a sockaddr


def parse_signals(text: str) -> dict[str, int]:
    """Return the signal level in dBm of each interface in /proc/net/wireless."""
    signals = ((name, int(level)) for name, level in _SIGNAL.findall(text))
    return {name: level for name, level in signals if _NO_SIGNAL_DBM < level < 0}


def read_access_point(name: str) -> str | None:
    """Return the MAC of the access point that an interface is connected to (SIOCGIWAP)."""
    import fcntl  # imported here, because it exists only on POSIX

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        try:
            answer = fcntl.ioctl(control, _SIOCGIWAP, _IWREQ.pack(name.encode()[:15], bytes(6)))
        except OSError:
            return None
    return access_point_mac(_IWREQ.unpack(answer)[1])


def access_point_mac(raw: bytes) -> str | None:
    """Return the MAC of an access point as text.

    Returns None for the addresses that drivers report without a connection: 00:00:00:00:00:00,
    44:44:44:44:44:44 and group addresses such as ff:ff:ff:ff:ff:ff.
    """
    is_access_point = len(raw) == 6 and any(raw) and not raw[0] & 1 and raw != b"\x44" * 6
    return raw.hex(":") if is_access_point else None
