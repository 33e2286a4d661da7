"""Untrusted text: bounded, without characters that control a terminal, a log or a page.

Markup is kept: the code that displays the text escapes it.
"""

from collectors.contract import TEXT_MAX

_JOINER = "\u200d"  # holds emoji sequences together and steers nothing


def clean_text(raw: str, limit: int = TEXT_MAX) -> str:
    """Return at most ``limit`` characters on one line, with a blank for what is not printable.

    Not printable are control characters (so no ANSI escape), format characters (so no
    bidirectional override), half surrogates, and code points that are private or not assigned.
    Runs of white space become one blank. This must agree with ``agent.wire.controls``, which a
    collector must not import; a test holds the two together.
    """
    # Cut first, so that megabytes cost nothing. Four times the limit leaves room for blanks.
    text = raw[: limit * 4]
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c == _JOINER else " " for c in text)
    return " ".join(text.split())[:limit].rstrip()


def decode(data: bytes) -> str:
    """Read bytes of unknown origin as UTF-8. Invalid bytes become U+FFFD. Does not clean."""
    return data.decode("utf-8", "replace")


def decode_text(raw: bytes, limit: int = TEXT_MAX) -> str:
    """Decode bytes of unknown origin, then clean them."""
    return clean_text(decode(raw[: limit * 4]), limit)
