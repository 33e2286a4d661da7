"""The reader of this system's interfaces; only what this system needs is loaded."""

import sys

from collectors.network.host.local_network import LocalNetwork


def read_local_network() -> LocalNetwork:
    """Read the interfaces of this machine. Raises OSError where even their list is denied."""
    if sys.platform == "linux":
        # There is no alternative to rtnetlink: libc's getifaddrs, psutil and netifaces use it.
        from collectors.network.host.interfaces_linux import read_interfaces
    else:
        from collectors.network.host.interfaces_portable import read_interfaces
    return read_interfaces()
