"""Packs the IEEE's registry of MAC addresses into agent/presentation/hosts/makers.bin.

Usage: python packaging/makers.py DATE FILE...

DATE is the date of the lists, such as 2026-10-24. FILE is a list of the registry from
https://standards-oui.ieee.org: oui.csv (MA-L), mam.csv (MA-M), oui36.csv (MA-S) or iab.csv. It can
also be Wireshark's `manuf`, which contains all of these lists. Nothing is downloaded. The result
contains the address blocks and the names of their makers. `display_name` shortens the names.
"""

import csv
import datetime
import html
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from agent.presentation.hosts.makers import BLOCK_BITS, HEADER, MAGIC, RECORD

TARGET: Final = Path(__file__).parent.parent / "agent/presentation/hosts/makers.bin"
NOT_MAKERS: Final = frozenset({"", "Private", "IEEE Registration Authority"})
"""Owners that are not makers. The registry itself owns blocks that it divides among makers."""
UNSET: Final = "000000"
"""A block of Xerox. Devices without a MAC send addresses that begin with the same zeros."""

_HEX = re.compile(r"[0-9A-F]{6}|[0-9A-F]{7}|[0-9A-F]{9}")
_LEGAL_FORMS = (
    r"inc|incorporated|corp|corporation|co|company|ltd|limited|llc|l\.l\.c|lnc|lp|plc|gmbh|mbh|ag|kg"
    r"|se|sa|s\.a|s\.a\.u|sas|s\.a\.s|sarl|spa|s\.p\.a|srl|s\.r\.l|bv|b\.v|nv|n\.v|ab|a/s|as|oy|oyj"
    r"|aps|kk|k\.k|pty|pte|pvt|sdn|bhd|s\.?r\.?o|sp\. ?z ?o\.? ?o|zrt|kft|d\.o\.o|ltda|ltd\.sti"
)
_LEGAL_ENDING = re.compile(rf"(?:[\s,.;&(]+(?:{_LEGAL_FORMS})[.,)]*)+\s*$", re.IGNORECASE)

Block = tuple[str, str]  # first 6, 7 or 9 hex digits of the block's addresses; maker


def blocks_of(path: Path) -> Iterator[Block]:
    """Yield the blocks of a list in the format of the IEEE or of Wireshark."""
    text = path.read_text("utf-8")
    if text.startswith("Registry,"):
        for row in csv.DictReader(text.splitlines()):
            yield row["Assignment"].upper(), row["Organization Name"]
        return
    for line in text.splitlines():
        if line and not line.startswith("#"):
            prefix, *_, name = line.split("\t")
            address, _, bits = prefix.strip().partition("/")
            digits = int(bits or 24) // 4
            yield address.upper().replace(":", "")[:digits], name


def display_name(name: str) -> str:
    """Return a maker's name without its legal form, such as `Inc.`

    If the name is all in capitals, words of five or more letters keep only their first capital.
    """
    plain = " ".join(html.unescape(name).split())
    shorter = _LEGAL_ENDING.sub("", plain).rstrip(" ,.&(") or plain
    if shorter.isupper():
        shorter = re.sub(r"[A-Z]{5,}", lambda word: word[0].capitalize(), shorter)
    return shorter


def without_parents(blocks: Iterable[Block]) -> dict[str, str]:
    """Return the display name of the maker of each block.

    Blocks of `NOT_MAKERS`, the block `UNSET`, and blocks that contain a smaller block of the list
    are left out. Raises ValueError if a block is not written as 6, 7 or 9 hex digits.
    """
    makers = {
        digits: display_name(name)
        for digits, name in blocks
        if name.strip() not in NOT_MAKERS and digits != UNSET
    }
    if invalid := [digits for digits in makers if not _HEX.fullmatch(digits)]:
        raise ValueError(f"not blocks of the registry: {', '.join(invalid[:5])}")
    parents = {digits[:length] for digits in makers for length in (6, 7) if len(digits) > length}
    return {digits: name for digits, name in makers.items() if digits not in parents}


def pack(date: datetime.date, makers: Mapping[str, str]) -> bytes:
    """Return the content of makers.bin.

    Raises ValueError if a block does not have 6, 7 or 9 hex digits, and OverflowError if the
    position of a name needs more than 24 bits.
    """
    names, starts = bytearray(), dict[str, int]()
    for name in sorted(set(makers.values())):
        starts[name] = len(names)
        names += name.encode() + b"\n"
    records = bytearray()
    for digits in sorted(makers, key=lambda digits: digits.ljust(9, "0")):
        kind = BLOCK_BITS.index(4 * len(digits))
        block = bytes.fromhex(f"{digits:0<9}{kind}")  # nine digits, and the digit of the kind
        records += RECORD.pack(block, starts[makers[digits]].to_bytes(3))
    return HEADER.pack(MAGIC, date.isoformat().encode(), len(makers)) + records + names


def main(arguments: list[str]) -> None:
    date, *paths = arguments
    makers = without_parents(block for path in paths for block in blocks_of(Path(path)))
    packed = pack(datetime.date.fromisoformat(date), makers)
    TARGET.write_bytes(packed)
    sys.stdout.write(f"{TARGET.name}: {len(makers)} blocks, {len(packed)} bytes, of {date}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
