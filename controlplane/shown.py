"""Text from devices and services as people may see it: without what could steer a terminal."""

import unicodedata

_HARMFUL = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
"""Unicode categories: controls, formats (bidi overrides among them), surrogates, line breaks."""


def plain(text: str) -> str:
    """Return ``text`` with each harmful character as U+FFFD."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in _HARMFUL else character
        for character in text
    )
