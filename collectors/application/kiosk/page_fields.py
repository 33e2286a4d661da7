"""Creates the fields that show whether the kiosk's page works.

They come from the page's reply, or show that the page has crashed or did not reply. The content of
the page is never read. Its address is used only to recognise the browser's error page.
"""

from collections.abc import Mapping
from typing import Final

from collectors.application.kiosk.browser_fields import parse_values
from collectors.application.kiosk.expression import STATE
from collectors.application.source import Fields, Origin, Reading
from collectors.contract import Field, FieldStatus

_ORIGINS: Final[Mapping[str, Origin]] = {
    "kiosk.crashed": Origin("Inspector.targetCrashed"),
    "kiosk.responding": Origin("Runtime.evaluate"),
    "kiosk.errorPage": Origin("Page.getFrameTree"),
    **{key: Origin(value.source) for key, value in STATE.items()},
}

PAGE_KEYS: Final = tuple(_ORIGINS)
_PERMISSIONS: Final = tuple(key for key in PAGE_KEYS if key.endswith("Permission"))


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


def _with_missing(fields: Fields, status: FieldStatus, reason: str) -> Reading:
    """Return ``fields``, and an absent field for each of `PAGE_KEYS` that they do not have."""
    keys = {field.key for field in fields}
    missing = ((key, origin) for key, origin in _ORIGINS.items() if key not in keys)
    return Reading((*fields, *(origin.absent(key, status, reason) for key, origin in missing)))
