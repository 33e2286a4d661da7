"""Text that every database holds and that is safe to show in lists and logs."""

import unicodedata
from typing import Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

NOT_STORED: Final = frozenset({"Cc", "Cs"})
"""Controls and halves of surrogate pairs: no database holds them, and some refuse to look."""
PATTERN: Final = r"^[^\u0000-\u001f\u007f-\u009f]*$"
"""The same for a JSON Schema, whose texts have no halves of pairs."""


LINES_PATTERN: Final = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$"
"""The same for text of several lines, which may hold tabs and ends of lines."""


def is_storable(text: str, besides: str = "") -> bool:
    """Tell whether a database holds ``text``, whatever of ``besides`` is in it."""
    return not any(
        unicodedata.category(character) in NOT_STORED and character not in besides
        for character in text
    )


def _storable(text: str) -> str:
    if not is_storable(text):
        raise PydanticCustomError("controls", "must not hold control characters")
    return text


STORABLE: Final = (AfterValidator(_storable), Field(json_schema_extra={"pattern": PATTERN}))
"""Annotates a string."""
