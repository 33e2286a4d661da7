"""Creates fields from the values that the page returned.

If the caller names no other values, `parse_values` creates the 34 browser fields of the contract.
"""

import math
from collections.abc import Mapping
from typing import Final

from collectors.application.foreign_json import load_object
from collectors.application.kiosk.expression import BROWSER, Value
from collectors.application.source import Fields, Origin
from collectors.contract import Field, FieldStatus
from collectors.shared.text import clean_text

NO_KIOSK: Final = "no kiosk browser is configured"

TEXT_MAX: Final = 256
LIST_MAX: Final = 32
INTEGER_MAX: Final = 2**53 - 1

BROWSER_KEYS: Final = tuple(BROWSER)

_ERRORS: Final[Mapping[str, tuple[FieldStatus, str]]] = {
    "NotAllowedError": ("permission-denied", "the browser's policy denies it to this page"),
    "SecurityError": ("permission-denied", "the browser denies it to this page"),
    "NotSupportedError": ("unsupported", "the browser does not support it"),
    "TypeError": ("unsupported", "the browser does not offer it"),
    "TimeoutError": ("collection-failed", "the browser did not return it in time"),
    "PageHidden": ("not-applicable", "the page is not on the screen"),
}
"""The status and the reason of a value that could not be read, by the name of the error."""


def parse_values(text: str, values: Mapping[str, Value] = BROWSER) -> Fields:
    """Return a field for each of ``values``.

    Args:
        text: The result of the expression that `build_expression` returned: a JSON object with an
            entry for each key.
        values: The requested values, by key.

    Raises:
        ValueError: ``text`` is not a JSON object. A malformed entry does not raise: the field of
            this entry is returned without a value.
    """
    answers = load_object(text, "the page")
    is_secure = answers.get("browser.secureContext") != {"value": False}
    return tuple(
        _field(key, Origin(value.source), answers.get(key), is_secure=is_secure)
        for key, value in values.items()
    )


def _field(key: str, origin: Origin, entry: object, *, is_secure: bool) -> Field:
    if not isinstance(entry, dict):
        return origin.absent(key, "collection-failed", "the page did not report it")
    if "error" in entry:
        name = clean_text(str(entry["error"]), 64)
        status, reason = _ERRORS.get(name, ("collection-failed", f"the browser reported {name}"))
        return origin.absent(key, status, reason)
    value = entry.get("value")
    if value is None:
        condition = "on this system" if is_secure else "to a page without https"
        return origin.unsupported(key, f"the browser does not offer {origin.name} {condition}")
    return _value(key, origin, value)


def _value(key: str, origin: Origin, value: object) -> Field:
    if isinstance(value, str):
        return Field(key, origin.name, "available", _bounded(value))
    if isinstance(value, bool):
        return Field(key, origin.name, "available", value)
    if isinstance(value, int | float) and math.isfinite(value) and abs(value) <= INTEGER_MAX:
        return Field(key, origin.name, "available", value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return Field(key, origin.name, "available", tuple(map(_bounded, value[:LIST_MAX])))
    return origin.absent(key, "collection-failed", "the page returned a value of an unknown type")


def _bounded(text: str) -> str:
    # The contract limits the number of UTF-16 code units. Some characters are two code units.
    clean = clean_text(text, TEXT_MAX)
    while len(clean.encode("utf-16-le")) // 2 > TEXT_MAX:
        clean = clean[:-1]
    return clean
