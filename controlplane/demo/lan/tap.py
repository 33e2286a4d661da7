"""Creates the TAP device of a simulated LAN, with an address and a default route.

This module uses ioctls (netdevice(7); SIOCADDRT of linux/route.h), because not every machine has
the program `ip`. The process must be in a network namespace of its own, and have the right to
configure it.
"""

import contextlib
import fcntl
import ipaddress
import os
import socket
import struct
from pathlib import Path

from controlplane.demo.lan.plan import LanPlan

DEVICE = "lab0"
DEVICE_MAC = "02:00:00:00:00:fe"

_TUNSETIFF = 0x400454CA
_IFF_TAP, _IFF_NO_PI = 0x0002, 0x1000
_IFF_UP, _IFF_BROADCAST, _IFF_MULTICAST = 0x0001, 0x0002, 0x1000
_LAN_FLAGS = _IFF_UP | _IFF_BROADCAST | _IFF_MULTICAST
_SIOCADDRT = 0x890B
_SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK = 0x8914, 0x8916, 0x891C
_SIOCSIFMTU, _SIOCSIFHWADDR = 0x8922, 0x8924
_ARPHRD_ETHER = 1
_RTF_UP, _RTF_GATEWAY = 0x0001, 0x0002
_ROUTE_BYTES = 256
"""Size of the buffer for a struct rtentry, which is smaller on all machines. The fields after the
flags are zero.
"""


def open_tap(plan: LanPlan) -> int:
    """Create the TAP device with the agent's address, and return its descriptor. Raises OSError.

    The kernel deletes the device when the descriptor is closed or the network namespace ends.
    """
    tap_fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(tap_fd, _TUNSETIFF, _request(DEVICE, "H", _IFF_TAP | _IFF_NO_PI))
        _set_up(plan)
    except OSError:
        os.close(tap_fd)
        raise
    return tap_fd


def _set_up(plan: LanPlan) -> None:
    # Switch off duplicate address detection, so that the IPv6 address is usable at once.
    with contextlib.suppress(OSError):  # in a container /proc/sys may be read-only
        Path(f"/proc/sys/net/ipv6/conf/{DEVICE}/accept_dad").write_text("0", "ascii")
    # Hosts with services send mDNS packets of up to 8000 bytes.
    mtu = 9000 if any(host.services for host in plan.hosts) else 1500
    netmask = str(ipaddress.IPv4Network(plan.subnet).netmask)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for number, request in (
            (_SIOCSIFFLAGS, _request("lo", "H", _IFF_UP)),
            (_SIOCSIFHWADDR, _request(DEVICE, "H6s", _ARPHRD_ETHER, mac_bytes(DEVICE_MAC))),
            (_SIOCSIFMTU, _request(DEVICE, "i", mtu)),
            (_SIOCSIFADDR, _request(DEVICE, "16s", _inet(plan.agent_address))),
            (_SIOCSIFNETMASK, _request(DEVICE, "16s", _inet(netmask))),
            (_SIOCSIFFLAGS, _request(DEVICE, "H", _LAN_FLAGS)),
            (_SIOCADDRT, _default_route(plan.gateway)),
        ):
            fcntl.ioctl(control, number, request)


def mac_bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def _request(device: str, form: str, *values: int | bytes) -> bytes:
    """Return a struct ifreq: the name of the device, and a union with ``values``.

    ``form`` is the format of the values for `struct.pack`.
    """
    return struct.pack("16s", device.encode()) + struct.pack(form, *values).ljust(24, b"\0")


def _default_route(gateway: str) -> bytes:
    flags = struct.pack("H", _RTF_UP | _RTF_GATEWAY)
    route = struct.pack("L", 0) + _inet("0.0.0.0") + _inet(gateway) + _inet("0.0.0.0") + flags  # noqa: S104 - any destination
    return route.ljust(_ROUTE_BYTES, b"\0")


def _inet(address: str) -> bytes:
    """Return a struct sockaddr_in."""
    return struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))
