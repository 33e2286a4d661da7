"""Text of strangers without what a terminal, a browser or a log viewer would obey."""

from itertools import groupby
from typing import Final

_JOINER: Final = "\u200d"  # holds emoji sequences together and steers nothing


def without_controls(text: str, mark: str = " ") -> str:
    """Return what a stranger wrote on one line, with ``mark`` for each run of what is unprintable.

    That are control and format characters (bidirectional overrides among them), half surrogates,
    separators, and code points that are private or not assigned. They are replaced and never
    dropped, because dropping joins what they kept apart (Unicode TR 36, section 3.5). This must
    agree with ``collectors.shared.text``, which must not import the agent; a test holds the two
    together.
    """
    if text.isprintable():
        return text
    runs = groupby(text, key=_is_printable)
    return "".join("".join(run) if is_printable else mark for is_printable, run in runs)


def _is_printable(character: str) -> bool:
    return character.isprintable() or character == _JOINER
