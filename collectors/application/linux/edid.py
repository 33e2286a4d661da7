"""What a screen says of itself: EDID 1.4 (VESA E-EDID, release A). Its serial is not read."""

from dataclasses import dataclass
from typing import Final

from collectors.shared.text import clean_text

_HEADER: Final = b"\x00\xff\xff\xff\xff\xff\xff\x00"
_BLOCK: Final = 128
_DESCRIPTORS: Final = (54, 72, 90, 108)
_PRODUCT_NAME: Final = 0xFC
_TEXT: Final = 0xFE
_TEXT_BYTES: Final = 13


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
    name = _text(data, _PRODUCT_NAME) or _text(data, _TEXT)
    return Screen(maker, name, data[21], data[22])


def _text(data: bytes, tag: int) -> str | None:
    """The text of all display descriptors of one kind (3.10.3), most screens having one.

    A text that fills its descriptor goes on in the next. The last byte of a descriptor's head
    should be 0, but is a blank in some.
    """
    texts: dict[str, None] = {}
    for offset in _DESCRIPTORS:
        head, body = data[offset : offset + 5], data[offset + 5 : offset + 18]
        text = body.split(b"\n")[0].rstrip(b"\0\r")
        if head[:2] != b"\0\0" or head[3] != tag or any(byte < 0x20 for byte in text):
            continue
        written = text.decode("ascii", "replace").replace("\ufffd", " ")
        texts[written if len(text) == _TEXT_BYTES else f"{written} "] = None
    return clean_text("".join(texts)) or None
