"""Text of strangers made safe to show: no control, no direction override, bounded marks.

Device names, models and reasons come from whoever is on the network. A terminal obeys control
characters (ECMA-48), both terminals and browsers obey bidirectional overrides (Unicode TR 36,
section 2.5), and stacked combining marks paint over neighbouring lines.
"""

import unicodedata
from typing import Final

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
MARKS_IN_A_ROW_MAX: Final = 3
NAME_LENGTH: Final = 120
"""Characters of a name that are shown; reasons are shown in full."""

# Joiners only shape the letters beside them, and terminals disagree about the width of what they
# join; variation selectors ask for another picture of the same sign, likewise of another width.
_DROPPED: Final = frozenset("\u200c\u200d\ufe0e\ufe0f")
_SPACES: Final = frozenset({"Zs", "Zl", "Zp"})
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_MARKS: Final = frozenset({"Mn", "Me"})


def plain(text: str) -> str:
    """Return ``text`` on one line, with nothing in it that a terminal or a browser would obey.

    Any white space becomes one space; a run of control, format, private or unassigned
    characters becomes one U+FFFD, so that a reader sees something was there. Idempotent.
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    kept: list[str] = []
    marks = 0
    for character in text:
        if character in _DROPPED:
            continue
        category = unicodedata.category(character)
        marks = marks + 1 if category in _MARKS else 0
        if character.isspace() or category in _SPACES:
            kept.append(" ")
        elif category in _UNSAFE:
            if kept[-1:] != [REPLACEMENT]:
                kept.append(REPLACEMENT)
        elif marks <= MARKS_IN_A_ROW_MAX:
            kept.append(character)
    return " ".join("".join(kept).split())


def shorten(text: str, length: int) -> str:
    """Return ``text`` made plain and cut to ``length`` characters, saying how many were cut."""
    shown = plain(text)
    if len(shown) <= length:
        return shown
    return f"{shown[:length].rstrip()}… (+{len(shown) - length} characters)"
