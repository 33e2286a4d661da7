"""Cleans untrusted text: limits its length and removes control characters.

Such characters could control a terminal, a log or a page. Markup is kept, because the code that
displays the text escapes it.
"""

from collectors.contract import TEXT_MAX

_JOINER = "\u200d"  # joins emoji sequences and controls nothing, so it is kept


def clean_text(raw: str, limit: int = TEXT_MAX) -> str:
    """Return a text as one line of at most ``limit`` characters.

    Each character that is not printable becomes a blank: control characters (such as the one that
    begins an ANSI escape), format characters (such as bidirectional overrides), unpaired
    surrogates, and code points that are private or not assigned. Consecutive white space becomes
    one blank. The replaced characters must be the same as those of ``agent.wire.controls``, which a
    collector must not import. A test compares both modules.
    """
    # The text is cut first, so that a text of megabytes is no problem. Four times the limit leaves
    # room for blanks that are removed.
    text = raw[: limit * 4]
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c == _JOINER else " " for c in text)
    return " ".join(text.split())[:limit].rstrip()


def decode(data: bytes) -> str:
    """Decode untrusted bytes as UTF-8. Invalid bytes become U+FFFD. The text is not cleaned."""
    return data.decode("utf-8", "replace")


def decode_text(raw: bytes, limit: int = TEXT_MAX) -> str:
    """Decode untrusted bytes as UTF-8, then clean the text."""
    return clean_text(decode(raw[: limit * 4]), limit)
