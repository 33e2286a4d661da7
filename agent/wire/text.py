"""Strings whose length is limited in UTF-16 code units.

The service counts the length of a string like JavaScript: a character outside of the Basic
Multilingual Plane, such as an emoji, has length 2 (ECMA-262, section 6.1.4).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from annotated_types import GroupedMetadata
from pydantic import AfterValidator, Field

from agent.wire import limits


def utf16_length(text: str) -> int:
    """Return the number of UTF-16 code units in ``text``. A lone surrogate counts as one."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(frozen=True, slots=True)
class Utf16Length(GroupedMetadata):
    """Limits a string's length in UTF-16 code units. Both limits are inclusive."""

    most: int
    least: int = 0

    def __iter__(self) -> Iterator[object]:
        # pydantic first checks the number of characters, which is cheap. This rejects no valid
        # string: a string never has more characters than code units, and a string that is not empty
        # has at least one character.
        yield Field(
            min_length=min(1, self.least),
            max_length=self.most,
            # JSON Schema counts characters, not code units. Only keys and signatures have a minimum
            # above 1. They are in ASCII, where both numbers are equal.
            json_schema_extra={"minLength": self.least} if self.least > 1 else None,
        )
        yield AfterValidator(self._check)

    def _check(self, text: str) -> str:
        # A character has one or two code units, so a text of ``most // 2`` characters is never too
        # long. Its code units are not counted, because counting is slower.
        if self.least <= len(text) <= self.most // 2:
            return text
        if self.least <= utf16_length(text) <= self.most:
            return text
        least = f"{self.least} to " if self.least else "at most "
        raise ValueError(f"must have {least}{self.most} UTF-16 code units")


NonEmptyText = Annotated[str, Field(min_length=1)]
"""A string for which the contract defines only a minimum length ("min 1 char")."""

PayloadText = Annotated[str, Utf16Length(limits.PAYLOAD_STRING_MAX)]
PayloadId = Annotated[str, Utf16Length(limits.PAYLOAD_STRING_MAX, 1)]
LocationId = Annotated[str, Utf16Length(limits.LOCATION_ID_MAX, 1)]
LegacyInstallId = Annotated[str, Utf16Length(limits.LEGACY_INSTALL_ID_MAX, 1)]
AppVersion = Annotated[str, Utf16Length(limits.APP_VERSION_MAX)]
Capability = Annotated[str, Utf16Length(limits.CAPABILITY_MAX, 1)]
Cursor = Annotated[str, Utf16Length(limits.CURSOR_MAX)]
