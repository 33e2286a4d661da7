"""What a screen says of itself: EDID 1.4 (VESA E-EDID, release A). Its serial is not read."""

from dataclasses import dataclass
from typing import Final

from collectors.shared.text import clean_text

_HEADER: Final = b"\x00\xff\xff\xff\xff\xff\xff\x00"
_BLOCK: Final = 128
_DESCRIPTORS: Final = (54, 72, 90, 108)
_PRODUCT_NAME: Final = b"\x00\x00\x00\xfc\x00"


@dataclass(frozen=True, slots=True)
class Screen:
    """``maker`` is the three-letter PNP id; sizes are 0 for a projector."""

    maker: str
    name: str | None
    width_centimetres: int
    height_centimetres: int


def parse_edid(data: bytes) -> Screen | None:
    """Read the base block; None when there is none."""
    if len(data) < _BLOCK or data[:8] != _HEADER:
        return None
    code = int.from_bytes(data[8:10], "big")
    letters = [(code >> shift) & 0x1F for shift in (10, 5, 0)]
    maker = "".join(chr(ord("A") + letter - 1) if 1 <= letter <= 26 else "?" for letter in letters)
    return Screen(maker, _product_name(data), data[21], data[22])


def _product_name(data: bytes) -> str | None:
    for offset in _DESCRIPTORS:
        descriptor = data[offset : offset + 18]
        if descriptor.startswith(_PRODUCT_NAME):
            return clean_text(descriptor[5:].split(b"\n")[0].decode("cp437"), 16) or None
    return None
