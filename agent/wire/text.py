"""Strings whose length is counted as the service counts it: in UTF-16 code units.

The service's limits are those of a JavaScript runtime, where a character outside the
Basic Multilingual Plane (an emoji, say) has length 2 (ECMA-262, section 6.1.4).
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from agent.wire import limits


def utf16_length(text: str) -> int:
    """Return the number of UTF-16 code units in ``text``. Lone surrogates count as one."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def has_lone_surrogate(text: str) -> bool:
    """Tell whether ``text`` holds half a surrogate pair, which no UTF-8 body can carry."""
    return any("\ud800" <= character <= "\udfff" for character in text)


@dataclass(frozen=True, slots=True)
class Utf16Length:
    """Annotation that bounds a string's length, in UTF-16 code units, both ends included."""

    max: int
    min: int = 0

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "minLength": self.min, "maxLength": self.max}

    def _check(self, text: str) -> str:
        if has_lone_surrogate(text):
            raise PydanticCustomError("lone_surrogate", "the string holds a lone surrogate")
        # Every code point is one or two units, so only strings near the limit need counting.
        if not self.min <= len(text) <= self.max // 2 and not (
            self.min <= utf16_length(text) <= self.max
        ):
            raise PydanticCustomError(
                "utf16_length",
                "the string must have {min} to {max} UTF-16 code units",
                {"min": self.min, "max": self.max},
            )
        return text


NonEmptyText = Annotated[str, Utf16Length(min=1, max=limits.INTEGER_MAX)]
"""A string the contract bounds only from below ("min 1 char")."""

PayloadText = Annotated[str, Utf16Length(limits.PAYLOAD_STRING_MAX)]
PayloadId = Annotated[str, Utf16Length(min=1, max=limits.PAYLOAD_STRING_MAX)]
LocationId = Annotated[str, Utf16Length(min=1, max=limits.LOCATION_ID_MAX)]
LegacyInstallId = Annotated[str, Utf16Length(min=1, max=limits.LEGACY_INSTALL_ID_MAX)]
AppVersion = Annotated[str, Utf16Length(limits.APP_VERSION_MAX)]
Capability = Annotated[str, Utf16Length(min=1, max=limits.CAPABILITY_MAX)]
Cursor = Annotated[str, Utf16Length(limits.CURSOR_MAX)]
