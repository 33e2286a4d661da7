"""Reads this machine's interfaces. Only the reader for this operating system is imported."""

import sys

from collectors.shared.host.local_network import LocalNetwork


def read_local_network() -> LocalNetwork:
    """Read the interfaces of this machine. Raises OSError if the system refuses to list them."""
    if sys.platform == "linux":
        # There is no alternative to rtnetlink: libc's getifaddrs, psutil and netifaces use it.
        from collectors.shared.host.interfaces_linux import read_interfaces
    else:
        from collectors.shared.host.interfaces_portable import read_interfaces
    return read_interfaces()
