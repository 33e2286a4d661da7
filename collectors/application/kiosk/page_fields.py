"""The fields on whether the kiosk's page works, made from its answer or its failure to answer.

The page's content is not kept, and its address only as whether it is the browser's error page.
"""

from collections.abc import Mapping
from typing import Final

from collectors.application.kiosk.browser_fields import parse_values
from collectors.application.kiosk.expression import STATE
from collectors.application.source import Reading, absent, available
from collectors.contract import Field, FieldStatus

_SOURCES: Final[Mapping[str, str]] = {
    "kiosk.crashed": "Inspector.targetCrashed",
    "kiosk.responding": "Runtime.evaluate",
    "kiosk.errorPage": "Page.getFrameTree",
    **{key: value.source for key, value in STATE.items()},
}

PAGE_KEYS: Final = tuple(_SOURCES)
_PERMISSIONS: Final = PAGE_KEYS[5:]


def of_crashed_page() -> Reading:
    known = (_flag("kiosk.crashed", True), _flag("kiosk.responding", False))
    return _with_rest(known, "not-applicable", "the page has crashed")


def of_silent_page() -> Reading:
    known = (_flag("kiosk.crashed", False), _flag("kiosk.responding", False))
    return _with_rest(known, "collection-failed", "the page did not answer in time")


def of_page(frame: Mapping[str, object], answer: str) -> Reading:
    """``frame`` is the page's main one (Page.Frame). Raises ValueError like `parse_values`."""
    is_error = "unreachableUrl" in frame or str(frame.get("url", "")).startswith("chrome-error:")
    # An error page has no origin. Its permissions are not those of the page that failed.
    excluded = _PERMISSIONS if is_error else ()
    known = (
        _flag("kiosk.crashed", False),
        _flag("kiosk.responding", True),
        _flag("kiosk.errorPage", is_error),
        *(field for field in parse_values(answer, STATE) if field.key not in excluded),
    )
    return _with_rest(known, "not-applicable", "an error page is shown")


def _flag(key: str, value: bool) -> Field:
    return available(key, _SOURCES[key], value)


def _with_rest(known: tuple[Field, ...], status: FieldStatus, reason: str) -> Reading:
    keys = {field.key for field in known}
    rest = ((key, where) for key, where in _SOURCES.items() if key not in keys)
    return Reading((*known, *(absent(key, where, status, reason) for key, where in rest)))
