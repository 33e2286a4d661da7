"""Text written by strangers: bounded and freed of what steers a terminal, a log or a page.

Markup is left as it is, since escaping belongs to whoever shows it.
"""

import unicodedata

from collectors.contract import TEXT_MAX

_JOINER = "\u200d"  # holds emoji sequences together and steers nothing
_DROPPED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clean_text(raw: str, limit: int = TEXT_MAX) -> str:
    """Return at most ``limit`` characters without controls, with white space runs as one blank.

    Dropped: control characters (so no ANSI escape), format characters (so no bidirectional
    override), half surrogates, line separators, and code points that are private or not assigned.
    """
    # Cut before the walk, so that megabytes cost nothing; four for one leaves room for what goes.
    shown = "".join(_kept(character) for character in raw[: limit * 4])
    return " ".join(shown.split())[:limit].rstrip()


def decode_text(raw: bytes, limit: int = TEXT_MAX) -> str:
    """Decode UTF-8 of unknown honesty (what is not becomes U+FFFD), then clean it."""
    return clean_text(raw[: limit * 4].decode("utf-8", "replace"), limit)


def _kept(character: str) -> str:
    if " " <= character <= "~":
        return character
    if character in "\t\n\r\v\f":
        return " "
    if character == _JOINER:
        return character
    return "" if unicodedata.category(character) in _DROPPED else character
