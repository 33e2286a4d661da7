"""Makes untrusted text safe to show in terminals, browsers and log viewers.

Characters that could control these programs are replaced.
"""

from itertools import groupby
from typing import Final

_JOINER: Final = "\u200d"  # joins emoji sequences; harmless


def without_controls(text: str, mark: str = " ") -> str:
    """Return ``text`` as one line, with ``mark`` instead of each run of unprintable characters.

    Unprintable characters are control and format characters (such as bidirectional overrides), lone
    surrogates, separators, and code points that are private or not assigned. They are not simply
    deleted, because this would join the text around them (Unicode TR 36, section 3.5).
    ``collectors.shared.text.clean_text`` replaces the same characters. It cannot call this
    function, because collectors must not import the agent. A test compares the two.
    """
    if text.isprintable():
        return text
    runs = groupby(text, key=_is_printable)
    return "".join("".join(run) if is_printable else mark for is_printable, run in runs)


def _is_printable(character: str) -> bool:
    return character.isprintable() or character == _JOINER
