"""Creates fields from the values that the page returned, and fields that show whether it works.

By default, `parse_values` creates the 34 browser fields of the contract. The fields in `PAGE_KEYS`
show whether the page replied, did not reply or has crashed. The content of the page is never read.
Its address is used only to recognise the browser's error page.
"""

import math
from collections.abc import Mapping
from typing import Final

from collectors.application.foreign_json import load_object
from collectors.application.kiosk.expression import BROWSER, STATE, Value
from collectors.application.source import FieldTuple, Origin, Reading
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

_ORIGINS: Final[Mapping[str, Origin]] = {
    "kiosk.crashed": Origin("Inspector.targetCrashed"),
    "kiosk.responding": Origin("Runtime.evaluate"),
    "kiosk.errorPage": Origin("Page.getFrameTree"),
    **{key: Origin(value.source) for key, value in STATE.items()},
}
"""The origins of the fields that show whether the page works, by their keys."""

PAGE_KEYS: Final = tuple(_ORIGINS)
_PERMISSIONS: Final = tuple(key for key in PAGE_KEYS if key.endswith("Permission"))


def parse_values(text: str, values: Mapping[str, Value] = BROWSER) -> FieldTuple:
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


def crashed_page_reading() -> Reading:
    fields = (_flag("kiosk.crashed", True), _flag("kiosk.responding", False))
    return _with_missing(fields, "not-applicable", "the page has crashed")


def silent_page_reading() -> Reading:
    fields = (_flag("kiosk.crashed", False), _flag("kiosk.responding", False))
    return _with_missing(fields, "collection-failed", "the page did not answer in time")


def page_reading(frame: Mapping[str, object], answer: str) -> Reading:
    """Return the fields of a page that replied.

    Args:
        frame: The main frame of the page (Page.Frame of the protocol).
        answer: The JSON text with the values of `STATE`.

    Raises:
        ValueError: ``answer`` is malformed.
    """
    is_error = "unreachableUrl" in frame or str(frame.get("url", "")).startswith("chrome-error:")
    # The browser's error page has permissions of its own. They differ from those of the kiosk's
    # page, which could not be loaded.
    excluded = _PERMISSIONS if is_error else ()
    fields = (
        _flag("kiosk.crashed", False),
        _flag("kiosk.responding", True),
        _flag("kiosk.errorPage", is_error),
        *(field for field in parse_values(answer, STATE) if field.key not in excluded),
    )
    return _with_missing(fields, "not-applicable", "an error page is shown")


def _flag(key: str, value: bool) -> Field:
    return _ORIGINS[key].available(key, value)


def _with_missing(fields: FieldTuple, status: FieldStatus, reason: str) -> Reading:
    """Return ``fields``, and an absent field for each of `PAGE_KEYS` that they do not have."""
    keys = {field.key for field in fields}
    missing = ((key, origin) for key, origin in _ORIGINS.items() if key not in keys)
    return Reading((*fields, *(origin.absent(key, status, reason) for key, origin in missing)))
