"""Text of strangers made safe to show: no control, no direction override, bounded marks.

Device names, models and reasons come from whoever is on the network. A terminal obeys control
characters (ECMA-48), both terminals and browsers obey bidirectional overrides (Unicode TR 36,
section 2.5), and stacked combining marks paint over neighbouring lines.
"""

import unicodedata
from typing import Final

from agent.wire.controls import without_controls

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
MARKS_IN_A_ROW_MAX: Final = 3
NAME_LENGTH: Final = 120
"""Characters of a name that are shown; reasons are shown in full."""

# Joiners only shape the letters beside them, and terminals disagree about the width of what they
# join; variation selectors ask for another picture of the same sign, likewise of another width.
_DROPPED: Final = dict.fromkeys(map(ord, "\u200c\u200d\ufe0e\ufe0f"))
_MARKS: Final = frozenset({"Mn", "Me"})


def plain(text: str) -> str:
    """Return ``text`` on one line, with nothing in it that a terminal or a browser would obey.

    Any white space becomes one space; a run of what else is unprintable becomes one U+FFFD, so
    that a reader sees something was there. Idempotent.
    """
    shown = without_controls(" ".join(text.translate(_DROPPED).split()), REPLACEMENT)
    if shown.isascii():
        return shown
    kept: list[str] = []
    marks = 0
    for character in shown:
        marks = marks + 1 if unicodedata.category(character) in _MARKS else 0
        if marks <= MARKS_IN_A_ROW_MAX:
            kept.append(character)
    return "".join(kept)


def shorten(text: str, length: int) -> str:
    """Return ``text`` made plain and cut to ``length`` characters, saying how many were cut."""
    shown = plain(text)
    if len(shown) <= length:
        return shown
    return f"{shown[:length].rstrip()}… (+{len(shown) - length} characters)"
