"""Text and free data that a client can write into a catalog.

Free data of an external system can be any JSON that can be stored and returned: strings without
control characters, finite numbers, and a limited depth.
"""

import math
from collections.abc import Iterable
from typing import Any, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from controlplane.operation.storable_text import LINES_PATTERN, PATTERN, is_storable
from controlplane.retail.limits import EXTERNAL_DEPTH_MAX


def _check_lines(text: str) -> str:
    if not is_storable(text, permitted="\n\r\t"):
        raise PydanticCustomError(
            "controls", "must not contain control characters except tabs and line breaks"
        )
    return text


LINES: Final = (AfterValidator(_check_lines), Field(json_schema_extra={"pattern": LINES_PATTERN}))
"""Annotation of a string that can have several lines."""

FREE_VALUE: Final = "FreeValue"
_FREE_VALUE: Final = {"$ref": f"#/components/schemas/{FREE_VALUE}"}
FREE_KEYS_SCHEMA: Final[dict[str, Any]] = {
    "propertyNames": {"pattern": PATTERN},
    "additionalProperties": _FREE_VALUE,
}
FREE_VALUE_SCHEMA: Final[dict[str, Any]] = {
    "description": f"Any JSON, at most {EXTERNAL_DEPTH_MAX} lists and objects deep. Its strings and"
    " keys must not contain control characters.",
    "anyOf": [
        {"type": "string", "pattern": PATTERN},
        {"type": ["number", "boolean", "null"]},
        {"type": "array", "items": _FREE_VALUE},
        {"type": "object", **FREE_KEYS_SCHEMA},
    ],
}
"""The JSON Schema of a value of external data."""


def mistake_in_free_data(data: dict[str, Any]) -> str | None:
    """Describe why external data cannot be stored, or return None if it can."""
    waiting: list[tuple[Any, int]] = [(data, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str) and not is_storable(value):
            return "must not contain control characters"
        if isinstance(value, float) and not math.isfinite(value):
            return "must not contain a number that is too large"
        parts = _parts(value)
        if parts is not None and depth >= EXTERNAL_DEPTH_MAX:
            return f"must not be deeper than {EXTERNAL_DEPTH_MAX} lists and objects"
        waiting.extend((part, depth + 1) for part in parts or ())
    return None


def _parts(value: Any) -> Iterable[Any] | None:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else None
