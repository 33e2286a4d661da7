"""The word that was meant: what both command lines say to a mistyped one."""

import re
from difflib import get_close_matches
from typing import Final

UNKNOWN: Final = "unrecognized arguments: "
"""How argparse, and whoever speaks in its place, begins."""
_CHOICE: Final = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
_OPTION: Final = re.compile(r"(?<![\w-])--\w[\w-]*")
_NEAR: Final = 0.6
"""How alike two words must be to be taken for each other (difflib's ratio)."""


def did_you_mean(message: str, help_text: str) -> str:
    """Return the nearest word that argparse would have taken, as words to add to its message."""
    if choice := _CHOICE.search(message):
        words, known = [choice[1]], re.findall(r"[\w-]+", choice[2])
    elif message.startswith(UNKNOWN):
        words = [word.partition("=")[0] for word in message.split() if word.startswith("-")]
        known = _OPTION.findall(help_text)
    else:
        return ""
    for word in words:
        if near := get_close_matches(word, known, n=1, cutoff=_NEAR):
            return f"; did you mean {near[0]!r}?"
    return ""
