"""Reads the maker and name of a screen from its EDID, version 1.4 (VESA E-EDID, release A).

The serial number of the screen is not read.
"""

import re
from dataclasses import dataclass
from typing import Final

from collectors.shared.text import clean_text

_HEADER: Final = b"\x00\xff\xff\xff\xff\xff\xff\x00"
_BLOCK_BYTES: Final = 128
_DESCRIPTOR_OFFSETS: Final = (54, 72, 90, 108)
_PRODUCT_NAME_TAG: Final = 0xFC
_TEXT_TAG: Final = 0xFE
_TEXT_BYTES: Final = 13
_PRINTABLE = re.compile(rb"[ -~]+")


@dataclass(frozen=True, slots=True)
class Screen:
    """A screen. ``maker`` is the three-letter PNP id of its maker."""

    maker: str
    name: str | None


def parse_edid(data: bytes) -> Screen | None:
    """Return the screen that the base block of an EDID describes, or None if it is malformed."""
    if len(data) < _BLOCK_BYTES or data[:8] != _HEADER:
        return None
    code = int.from_bytes(data[8:10], "big")  # three letters of five bits each, from A = 1
    letters = [(code >> shift) & 0x1F for shift in (10, 5, 0)]
    maker = "".join(chr(ord("A") + letter - 1) if 1 <= letter <= 26 else "?" for letter in letters)
    name = _text(data, _PRODUCT_NAME_TAG) or _text(data, _TEXT_TAG)
    return Screen(maker, name)


def _text(data: bytes, tag: int) -> str | None:
    """Return the joined texts of all display descriptors with a tag (section 3.10.3).

    Most screens have one such descriptor. Its text ends at the first byte that is not printable
    ASCII, which is usually a line feed, and on some panels a revision number. A name that fills its
    whole descriptor continues in the next one. If descriptors repeat a text, it is returned once.
    The last byte of a descriptor's head is not checked: it should be 0, but some screens send a
    blank.
    """
    texts: dict[str, None] = {}
    for offset in _DESCRIPTOR_OFFSETS:
        head, body = data[offset : offset + 5], data[offset + 5 : offset + 18]
        match = _PRINTABLE.match(body)
        if match and head[:2] == b"\0\0" and head[3] == tag:
            text = match[0].decode("ascii")
            is_continued = tag == _PRODUCT_NAME_TAG and len(text) == _TEXT_BYTES
            texts[text if is_continued else f"{text} "] = None
    return clean_text("".join(texts)) or None
