"""Estimates the width of a text in an unknown proportional sans-serif font.

The estimates are too wide rather than too narrow, so that a text that was cut to a width fits this
width in any common font.
"""

import unicodedata
from typing import Final

_NARROW: Final = frozenset("iljtfrI.,:;'|!()[]- ")
_BROAD: Final = frozenset("mwMW@%—…\ufffd")


def estimated_width(text: str, font_size: float) -> float:
    """Return the width of ``text`` in the unit of ``font_size``."""
    return font_size * sum(_width(character) for character in text)


def fit(text: str, width: float, font_size: float, *, keep_end: int = 0) -> str:
    """Cut ``text`` to ``width``. An ellipsis replaces the removed characters.

    Up to ``keep_end`` characters at the end are kept after the ellipsis.
    """
    if estimated_width(text, font_size) <= width:
        return text
    end = text[len(text) - keep_end :]
    while end and estimated_width("…" + end, font_size) > width:
        end = end[1:]
    remaining_width = width - estimated_width("…" + end, font_size)
    start = ""
    for character in text[: len(text) - keep_end]:
        remaining_width -= font_size * _width(character)
        if remaining_width < 0:
            break
        start += character
    return f"{start.rstrip()}…{end}"


def wrap(text: str, width: float, font_size: float) -> tuple[str, ...]:
    """Break ``text`` at a space into at most two lines that fit ``width``."""
    if estimated_width(text, font_size) <= width:
        return (text,)
    breaks = [index for index, character in enumerate(text) if character == " "]
    fitting_breaks = [at for at in breaks if estimated_width(text[:at], font_size) <= width]
    if not fitting_breaks:
        return (fit(text, width, font_size, keep_end=5),)
    first, second = text[: fitting_breaks[-1]], text[fitting_breaks[-1] + 1 :]
    return first, fit(second, width, font_size, keep_end=5)


def _width(character: str) -> float:
    """Return the width of a character as a multiple of the font size."""
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.1
    if character in _NARROW:
        return 0.4
    if character in _BROAD:
        return 1.0
    if character.isupper():
        return 0.74
    return 0.62 if character.isascii() else 0.75
