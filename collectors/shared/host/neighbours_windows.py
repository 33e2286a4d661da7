"""The neighbour table of Windows: GetIpNetTable2 of iphlpapi (netioapi.h, MIB_IPNET_TABLE2)."""

import contextlib
import ctypes
import struct
import sys

from collectors.shared.addresses import mac_text, plain_address
from collectors.shared.linux.rtnetlink import LinkNeighbour, NeighbourState

_AF_INET, _AF_INET6 = 2, 23
_ROW_BYTES = 88
_TABLE_HEADER_BYTES = 8  # ULONG NumEntries, and padding to the rows' alignment
_ROWS_MAX = 65536
_ERROR_NOT_FOUND = 1168  # ERROR_NOT_FOUND: the table is empty
_INDEX_OFFSET = 28  # after SOCKADDR_INET (28 bytes)
_MAC_OFFSET = 40  # after InterfaceIndex (4) and InterfaceLuid (8)
_MAC_BYTES_MAX = 32  # IF_MAX_PHYS_ADDRESS_LENGTH
_LENGTH_OFFSET = 72
_STATES: dict[int, NeighbourState] = {  # NL_NEIGHBOR_STATE
    0: "failed",  # unreachable
    1: "resolving",  # incomplete
    2: "stale",  # probe
    3: "stale",  # delay
    4: "stale",
    5: "reachable",
    6: "reachable",  # permanent
}


def read_neighbours_windows() -> tuple[LinkNeighbour, ...]:
    """Return the IPv4 and IPv6 entries. Raises OSError if the IPv4 table cannot be read."""
    if sys.platform == "win32":
        # The families are read one by one: a call for both returns nothing if IPv6 is missing.
        entries = _get_ip_net_table(_AF_INET)
        with contextlib.suppress(OSError):
            entries += _get_ip_net_table(_AF_INET6)
        return entries
    else:  # noqa: RET505 - type checkers need the else
        raise OSError("only Windows has GetIpNetTable2")


def parse_ip_net_table(table: bytes) -> tuple[LinkNeighbour, ...]:
    """Parse a MIB_IPNET_TABLE2. Truncated rows and rows of other families are left out."""
    if len(table) < _TABLE_HEADER_BYTES:
        return ()
    count = min(struct.unpack_from("<I", table)[0], _ROWS_MAX)
    offsets = (_TABLE_HEADER_BYTES + number * _ROW_BYTES for number in range(count))
    parsed = (
        _row(table[offset : offset + _ROW_BYTES])
        for offset in offsets
        if offset + _ROW_BYTES <= len(table)
    )
    return tuple(entry for entry in parsed if entry)


def _row(row: bytes) -> LinkNeighbour | None:
    (family,) = struct.unpack_from("<H", row)
    if family == _AF_INET:
        address = plain_address(row[4:8])  # after the family and the port
    elif family == _AF_INET6:
        address = plain_address(row[8:24])  # after the family, the port and the flow label
    else:
        return None
    (index,) = struct.unpack_from("<I", row, _INDEX_OFFSET)
    length, state = struct.unpack_from("<II", row, _LENGTH_OFFSET)
    mac = mac_text(row[_MAC_OFFSET : _MAC_OFFSET + min(length, _MAC_BYTES_MAX)])
    if address is None or state not in _STATES:
        return None
    state_name = _STATES[state]
    has_mac = state_name in ("reachable", "stale")
    return LinkNeighbour(index, address, mac if has_mac else None, state_name)


if sys.platform == "win32":

    def _get_ip_net_table(family: int) -> tuple[LinkNeighbour, ...]:
        helper = ctypes.WinDLL("iphlpapi")
        table = ctypes.c_void_p()
        result = helper.GetIpNetTable2(family, ctypes.byref(table))
        if result == _ERROR_NOT_FOUND:
            return ()
        if result != 0 or not table.value:
            raise OSError(result, f"GetIpNetTable2 failed with error {result}")
        try:
            (count,) = struct.unpack("<I", ctypes.string_at(table.value, 4))
            size = _TABLE_HEADER_BYTES + min(count, _ROWS_MAX) * _ROW_BYTES
            return parse_ip_net_table(ctypes.string_at(table.value, size))
        finally:
            helper.FreeMibTable(table)
