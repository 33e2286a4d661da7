"""Strings whose length is counted as the service counts it: in UTF-16 code units.

The service's limits are those of a JavaScript runtime, where a character outside the
Basic Multilingual Plane (an emoji, say) has length 2 (ECMA-262, section 6.1.4). msgspec counts
characters: its upper bound is looked at first and is never the stricter one.
"""

from typing import Annotated

from msgspec import Meta

from agent.wire import limits
from agent.wire.model import Check


def utf16_length(text: str) -> int:
    """Return the number of UTF-16 code units in ``text``. Lone surrogates count as one."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def has_lone_surrogate(text: str) -> bool:
    """Tell whether ``text`` holds half a surrogate pair, which no UTF-8 body can carry."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def at_most(units: int, *, at_least: int = 0) -> Check:
    """Bound a string's length in UTF-16 code units, both ends included."""

    def check(text: str) -> str:
        if has_lone_surrogate(text):
            raise ValueError("must not hold a lone surrogate")
        # Every character is one or two units, so only strings near a limit need counting.
        if at_least <= len(text) <= units // 2 or at_least <= utf16_length(text) <= units:
            return text
        least = f"{at_least} to " if at_least else "at most "
        raise ValueError(f"must have {least}{units} UTF-16 code units")

    return Check(check)


NonEmptyText = Annotated[str, Meta(min_length=1)]
"""A string the contract bounds only from below ("min 1 char")."""

PayloadText = Annotated[
    str, Meta(max_length=limits.PAYLOAD_STRING_MAX), at_most(limits.PAYLOAD_STRING_MAX)
]
PayloadId = Annotated[PayloadText, Meta(min_length=1)]
LocationId = Annotated[
    str, Meta(min_length=1, max_length=limits.LOCATION_ID_MAX), at_most(limits.LOCATION_ID_MAX)
]
LegacyInstallId = Annotated[
    str,
    Meta(min_length=1, max_length=limits.LEGACY_INSTALL_ID_MAX),
    at_most(limits.LEGACY_INSTALL_ID_MAX),
]
AppVersion = Annotated[
    str, Meta(max_length=limits.APP_VERSION_MAX), at_most(limits.APP_VERSION_MAX)
]
Capability = Annotated[
    str, Meta(min_length=1, max_length=limits.CAPABILITY_MAX), at_most(limits.CAPABILITY_MAX)
]
Cursor = Annotated[str, Meta(max_length=limits.CURSOR_MAX), at_most(limits.CURSOR_MAX)]
