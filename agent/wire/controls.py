"""Text of strangers without what a terminal, a browser or a log viewer would obey."""

import re
from typing import Final

# C0 and C1 controls, line and paragraph separators, lone surrogates, and the bidirectional
# controls that make text read other than it is (Unicode TR 9 and TR 36).
_UNSAFE: Final = re.compile(
    "[\u0000-\u001f\u007f-\u009f\u2028\u2029\ud800-\udfff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+"
)


def without_controls(text: str) -> str:
    """Return what a stranger wrote on one line, with a blank for what a terminal would obey."""
    return _UNSAFE.sub(" ", text)
