"""Removes characters from untrusted text that control terminals, browsers or log viewers."""

from itertools import groupby
from typing import Final

_JOINER: Final = "\u200d"  # joins emoji sequences, and controls nothing


def without_controls(text: str, mark: str = " ") -> str:
    """Return text on one line, with ``mark`` instead of each run of unprintable characters.

    These are control and format characters, such as bidirectional overrides, half surrogates,
    separators, and code points that are private or not assigned. They are replaced, because
    deleting them would join what they separate (Unicode TR 36, section 3.5). A test keeps this
    consistent with ``collectors.shared.text``, which must not import the agent.
    """
    if text.isprintable():
        return text
    runs = groupby(text, key=_is_printable)
    return "".join("".join(run) if is_printable else mark for is_printable, run in runs)


def _is_printable(character: str) -> bool:
    return character.isprintable() or character == _JOINER
