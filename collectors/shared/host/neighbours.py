"""The neighbour table of this machine: which MAC answers for which address.

On Linux it is read by rtnetlink, or from /proc/net/arp if a sandbox denies netlink. On macOS it is
read by ``arp -anl`` and ``ndp -an``, on Windows by GetIpNetTable2. Reading the table sends nothing
to the network.
"""

import re
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from collectors.shared.addresses import normal_mac, plain_address
from collectors.shared.linux import rtnetlink
from collectors.shared.linux.rtnetlink import LinkNeighbour, NeighbourState
from collectors.shared.run_command import run_command
from collectors.shared.text import decode

_COMMAND_TIMEOUT_S = 2.0
_ARP_FLAG_COMPLETE = 0x2  # linux/if_arp.h: ATF_COM
_MAC_GROUPS = 6
_PROC_ARP_LINE = re.compile(r"\s*(\S+)\s+\S+\s+0x([0-9a-fA-F]+)\s+(\S+)\s+\S+\s+\S")
_ARP_LINE = re.compile(r"\s*(\S+)\s+(\S+)\s+\S+\s+(\S+)\s+\S")
_NDP_LINE = re.compile(r"\s*([^\s%]+)\S*\s+(\S+)\s+\S")
_BEST_FIRST: tuple[NeighbourState, ...] = ("reachable", "stale", "resolving")


def read_neighbour_table(platform: str = sys.platform) -> tuple[LinkNeighbour, ...]:
    """Read the IPv4 and IPv6 entries of the table. Raises OSError if the system denies it."""
    if platform == "linux":
        return _read_linux()
    if platform == "win32":
        from collectors.shared.host.neighbours_windows import read_neighbours_windows

        return read_neighbours_windows()
    return (*parse_arp(_output_of("arp", "-anl")), *parse_ndp(_output_of("ndp", "-an")))


def parse_proc_arp(text: str) -> tuple[LinkNeighbour, ...]:
    """Parse /proc/net/arp (``proc(5)``): address, hardware type, flags, MAC, mask, device."""
    return tuple(
        entry
        for match in _matches(_PROC_ARP_LINE, text)
        for entry in _entry(match[1], match[3] if int(match[2], 16) & _ARP_FLAG_COMPLETE else "")
    )


def parse_arp(text: str) -> tuple[LinkNeighbour, ...]:
    """Parse ``arp -anl`` of macOS: neighbour, MAC, two expiry times, interface, counters.

    Source: arp(8). Each byte of a MAC is printed without a leading zero. ``(incomplete)`` stands
    for no MAC. The second expiry time, ``Expire(I)``, is ``expired`` if the neighbour has sent
    nothing for about two minutes. It is ``(none)`` for permanent entries. macOS keeps an entry for
    20 minutes.
    """
    return _find_best(
        entry
        for match in _matches(_ARP_LINE, text)
        for entry in _entry(match[1], match[2], "stale" if match[3] == "expired" else "reachable")
    )


def parse_ndp(text: str) -> tuple[LinkNeighbour, ...]:
    """Parse ``ndp -an`` of macOS: neighbour, link-layer address, interface, expire, state.

    The state is not read, so an entry with a MAC is "stale".
    """
    return _find_best(e for match in _matches(_NDP_LINE, text) for e in _entry(match[1], match[2]))


def _find_best(entries: Iterable[LinkNeighbour]) -> tuple[LinkNeighbour, ...]:
    """Return the best entry of each address.

    If two interfaces are in the same network, macOS has two entries for the same neighbour address.
    """
    best: dict[str, LinkNeighbour] = {}
    for entry in sorted(entries, key=lambda entry: _BEST_FIRST.index(entry.state)):
        best.setdefault(entry.address, entry)
    return tuple(best.values())


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    return filter(None, map(pattern.match, text.splitlines()))


def _entry(address: str, mac_text: str, state: NeighbourState = "stale") -> Iterator[LinkNeighbour]:
    """Yield the neighbour if the address is valid.

    The state of the neighbour is ``state`` if it has a MAC, and otherwise "resolving".
    """
    text = plain_address(address)
    if text is None:
        return
    groups = mac_text.split(":")
    padded = ":".join(group.zfill(2) for group in groups) if len(groups) == _MAC_GROUPS else ""
    mac_address = normal_mac(padded)
    yield LinkNeighbour(0, text, mac_address, state if mac_address else "resolving")


def _read_linux() -> tuple[LinkNeighbour, ...]:
    from collectors.shared.linux.rtnetlink_socket import read_neighbours

    try:
        families = (rtnetlink.AF_INET, rtnetlink.AF_INET6)
        return tuple(entry for family in families for entry in read_neighbours(family))
    except OSError:
        return parse_proc_arp(Path("/proc/net/arp").read_text("ascii", "replace"))


def _output_of(*command: str) -> str:
    try:
        output = run_command(command, time.monotonic() + _COMMAND_TIMEOUT_S, environ={})
    except ValueError as error:
        raise OSError(str(error)) from error
    return decode(output.data)
