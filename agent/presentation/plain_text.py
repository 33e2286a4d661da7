"""Makes untrusted text safe for output.

It replaces control characters and bidirectional overrides, and limits stacked combining marks.

Device names, models and reasons come from the network. Terminals interpret control characters
(ECMA-48), terminals and browsers interpret bidirectional overrides (Unicode TR 36, section 2.5),
and stacked combining marks overlap other lines.
"""

import unicodedata
from typing import Final

from agent.wire.controls import without_controls

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
MARKS_IN_A_ROW_MAX: Final = 3
NAME_LENGTH: Final = 120
"""Maximum length of a displayed name. Reasons are displayed completely."""

# Zero-width joiners and non-joiners only change the shape of neighbouring letters. Variation
# selectors only change the form of a symbol. All of them are removed, because terminals disagree
# about the width of the result.
_DROPPED: Final = dict.fromkeys(map(ord, "\u200c\u200d\ufe0e\ufe0f"))
_MARKS: Final = frozenset({"Mn", "Me"})


def plain(text: str) -> str:
    """Return ``text`` on one line, without characters that a terminal or browser interprets.

    Each run of white space becomes one space. White space at both ends is removed. A run of other
    unprintable characters becomes one U+FFFD, so that readers see that something was there. Text
    that this function has returned is not changed by another call.
    """
    clean_text = without_controls(" ".join(text.translate(_DROPPED).split()), REPLACEMENT)
    if clean_text.isascii():
        return clean_text
    kept_parts: list[str] = []
    marks = 0
    for character in clean_text:
        marks = marks + 1 if unicodedata.category(character) in _MARKS else 0
        if marks <= MARKS_IN_A_ROW_MAX:
            kept_parts.append(character)
    return "".join(kept_parts)


def shorten(text: str, length: int = NAME_LENGTH) -> str:
    """Return plain text, cut to ``length`` characters.

    If it was cut, the number of removed characters is appended: ``… (+12 characters)``.
    """
    clean_text = plain(text)
    if len(clean_text) <= length:
        return clean_text
    return f"{clean_text[:length].rstrip()}… (+{len(clean_text) - length} characters)"
