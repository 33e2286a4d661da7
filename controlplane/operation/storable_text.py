"""Text that every database can store, and that is safe in lists and logs."""

import unicodedata
from typing import Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

NAME_MAX: Final = 128
"""Maximum length of a name that users enter, such as that of a user or a location."""
NOT_STORED: Final = frozenset({"Cc", "Cs"})
"""The Unicode categories of control characters and lone surrogates. Some databases cannot store or
compare these."""
PATTERN: Final = r"^[^\u0000-\u001f\u007f-\u009f]*$"
"""The pattern for text without control characters, for JSON Schema. It does not exclude lone
surrogates, because strings in JSON Schema cannot contain them."""
LINES_PATTERN: Final = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$"
"""The pattern for text of several lines, which can also contain tabs and line breaks."""


def is_storable(text: str, permitted: str = "") -> bool:
    """Return whether ``text`` can be stored. Control characters in ``permitted`` are accepted."""
    return not any(
        unicodedata.category(character) in NOT_STORED and character not in permitted
        for character in text
    )


def _storable(text: str) -> str:
    if not is_storable(text):
        raise PydanticCustomError("controls", "must not contain control characters")
    return text


STORABLE: Final = (AfterValidator(_storable), Field(json_schema_extra={"pattern": PATTERN}))
"""Metadata for the ``Annotated`` type of a string that is stored."""
