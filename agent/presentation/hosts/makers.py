"""The maker of a network interface, by its MAC address and the IEEE's registry.

The registry is a packed file that `packaging/makers.py` writes (docs/adr/0022). A block is a range
of MAC addresses that the IEEE has assigned to one maker. Blocks do not overlap. Numbers are
big-endian. The file contains in this order:

- ``OUI1``
- the date of the list, such as ``2026-10-24``
- the number of blocks (4 bytes)
- a record of 8 bytes for each block, in ascending order
- the makers' names in UTF-8, each with a line feed at its end

A record contains the first 36 bits of the block's addresses, 4 bits for the length of the block's
prefix (an index of `BLOCK_BITS`), and 24 bits for the position of the maker's name in the names.
"""

import re
import struct
from bisect import bisect_right
from functools import lru_cache
from importlib.resources import files
from typing import Final

HEADER: Final = struct.Struct(">4s10sI")
RECORD: Final = struct.Struct(">5s3s")
MAGIC: Final = b"OUI1"
BLOCK_BITS: Final = (24, 28, 36)
"""Bits in the prefixes of the blocks MA-L, MA-M and MA-S. A record has an index of this tuple."""

RANDOM_ADDRESS: Final = "randomised address"
_MAC: Final = re.compile(r"(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}", re.IGNORECASE)
_GROUP, _LOCAL = 1, 2
"""Bits of the first octet (IEEE 802). `_GROUP` marks a group address, and `_LOCAL` an address that
the machine chose itself."""


class Registry:
    """The packed registry.

    Raises:
        ValueError: ``table`` is not a packed registry, or is cut short.
    """

    def __init__(self, table: bytes) -> None:
        if len(table) < HEADER.size or not table.startswith(MAGIC):
            raise ValueError("the data is not a packed registry of makers")
        _, date, self._count = HEADER.unpack_from(table)
        self.date = date.decode("ascii")
        self._packed = table
        self._names_start = HEADER.size + self._count * RECORD.size
        if len(table) < self._names_start:
            raise ValueError("the registry of makers is cut short")

    def maker_of(self, mac: bytes) -> str:
        """Return the maker for a MAC address of 6 bytes; "" if the registry has none."""
        # No block that contains the address has a higher record than this one.
        highest_record = mac[:4] + bytes([mac[4] | 0x0F])
        count = bisect_right(range(self._count), highest_record, key=lambda n: self._record(n)[0])
        if not count:
            return ""
        # The last record that is not above `highest_record`.
        block, name_position = self._record(count - 1)
        if (prefix_index := block[4] & 0x0F) >= len(BLOCK_BITS):
            return ""
        shift = 40 - BLOCK_BITS[prefix_index]
        if int.from_bytes(block) >> shift != int.from_bytes(highest_record) >> shift:
            return ""
        start = self._names_start + int.from_bytes(name_position)
        return self._packed[start : self._packed.find(b"\n", start)].decode(errors="replace")

    def _record(self, number: int) -> tuple[bytes, bytes]:
        offset = HEADER.size + number * RECORD.size
        block, name_position = RECORD.unpack_from(self._packed, offset)
        return block, name_position


@lru_cache(maxsize=1)
def registry() -> Registry:
    """Return the registry that is installed with this program. The first call reads the file."""
    return Registry((files("agent.presentation.hosts") / "makers.bin").read_bytes())


def maker_of(mac_address: str) -> str:
    """Return the maker of an interface; "" if it is unknown.

    The result is `RANDOM_ADDRESS` for an address that the device chose itself, as telephones do for
    each network.
    """
    if not _MAC.fullmatch(mac_address):
        return ""
    mac = bytes.fromhex(mac_address.replace(":", "").replace("-", ""))
    if mac[0] & _LOCAL:
        return RANDOM_ADDRESS
    return "" if mac[0] & _GROUP else registry().maker_of(mac)
