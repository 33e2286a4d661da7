"""Reads the states of all interfaces with psutil, and corrects them on macOS.

psutil derives ``isup`` from the flag IFF_RUNNING. On macOS this flag stays set if the cable is
unplugged, or if Wi-Fi is not connected. So on macOS, SIOCGIFMEDIA (ifmedia(4)) is queried, which
returns whether the interface has a carrier. ifconfig prints the carrier as "status".
"""

import contextlib
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from typing import Final

import psutil

_SIOCGIFMEDIA: Final = 0xC02C6938
_REQUEST: Final = struct.Struct("=16s5iQ")
"""struct ifmediareq of net/if.h: name, current, mask, status, active, count, and a pointer."""
_STATUS: Final = 3
_VALID, _ACTIVE = 1, 2  # net/if_media.h: IFM_AVALID, IFM_ACTIVE

QueryMedia = Callable[[bytes], bytes]


def read_link_stats() -> "Mapping[str, psutil._ntp.snicstats]":
    """Return the state of each interface. Raises OSError."""
    stats = psutil.net_if_stats()
    if sys.platform == "darwin":
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
            return with_carriers(stats, lambda request: fcntl.ioctl(query, _SIOCGIFMEDIA, request))
    return stats


def with_carriers(
    stats: "Mapping[str, psutil._ntp.snicstats]", query: QueryMedia
) -> "Mapping[str, psutil._ntp.snicstats]":
    """Return ``stats`` with ``isup`` False for the interfaces that have no carrier.

    ``query`` returns the system's answer to a request. It raises OSError for an interface without
    media, such as a tunnel.
    """
    corrected = dict(stats)
    for name, state in stats.items():
        with contextlib.suppress(OSError):
            reply = query(_REQUEST.pack(name.encode(), 0, 0, 0, 0, 0, 0))
            status = _REQUEST.unpack(reply)[_STATUS]
            if status & _VALID and not status & _ACTIVE:
                corrected[name] = state._replace(isup=False)
    return corrected
