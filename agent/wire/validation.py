"""Validation errors in plain words. Each error has a path and describes the expected value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import ValidationError as PydanticValidationError
from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]
Fault = Literal["syntax", "missing", "unknown", "value"]

MESSAGE_MAX: Final = 160
"""Maximum length of untrusted text in a message."""

_FAULTS: Final[Mapping[str, Fault]] = {
    "json_invalid": "syntax",
    "missing": "missing",
    "extra_forbidden": "unknown",
    "union_tag_not_found": "missing",
}

_REASONS: Final[Mapping[str, str]] = {
    "json_invalid": "it is not JSON: {error}",
    "missing": "is required",
    "extra_forbidden": "is not known",
    "string_type": "must be a text",
    "string_unicode": "must not contain a lone surrogate",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "dataclass_type": "must be an object",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "must have at most {max_length} entries",
    "literal_error": "must be {expected}",
    "union_tag_invalid": "must be {expected_tags}",
    "union_tag_not_found": "is required",
    "value_error": "{error}",
}
"""Message for each error type of pydantic. The types are stable, but pydantic's own messages can
change."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One error. ``path`` consists of JSON keys and array indices.

    ``fault`` is the kind of error: "syntax" for a text that is not JSON, "missing" or "unknown" for
    a key, and "value" for any other error. ``value`` is the wrong value. ``choices`` are the valid
    values, if there is a fixed list. ``is_table`` is True if the value must be an object, which
    TOML calls a table.
    """

    path: Path
    reason: str
    fault: Fault = "value"
    value: Any = None
    choices: tuple[str, ...] = ()
    is_table: bool = False

    @property
    def where(self) -> str:
        """The path as text, such as ``networkMap.hosts.0.address``."""
        return ".".join(str(part) for part in self.path)


class ValidationError(ValueError):
    """A value is invalid. ``issues`` contains all errors; the message contains the first one."""

    def __init__(self, issues: tuple[Issue, ...]) -> None:
        self.issues = issues
        where = issues[0].where
        super().__init__(f"{where}: {issues[0].reason}" if where else issues[0].reason)

    @property
    def where(self) -> str:
        return self.issues[0].where

    @property
    def reason(self) -> str:
        return self.issues[0].reason


def issues_of(error: PydanticValidationError, value: Any) -> tuple[Issue, ...]:
    """Return the errors that pydantic found in ``value``, without repetitions."""
    issues = (_issue(details, value) for details in error.errors(include_url=False))
    return tuple({(issue.path, issue.reason): issue for issue in issues}.values())


def _issue(details: ErrorDetails, value: Any) -> Issue:
    kind, context = details["type"], details.get("ctx", {})
    path = _path(details["loc"], value, is_missing=kind == "missing")
    if kind.startswith("union_tag"):
        path = (*path, str(context["discriminator"]).strip("'"))
    bounds = {name: _format_bound(bound) for name, bound in context.items()}
    template = _REASONS.get(kind)
    reason = details["msg"] if template is None else template.format(**bounds)
    return Issue(
        path,
        reason[:MESSAGE_MAX],
        _FAULTS.get(kind, "value"),
        details["input"],
        _choices(context) if kind == "literal_error" else (),
        kind in {"model_type", "dataclass_type"},
    )


def _format_bound(bound: Any) -> str:
    return str(bound).removesuffix(".0") if isinstance(bound, float) else str(bound)


def _choices(context: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the values of a Literal. pydantic's context contains them as ``'a', 'b' or 'c'``."""
    return tuple(str(context["expected"]).split("'")[1::2])


def _path(location: Path, value: Any, *, is_missing: bool) -> Path:
    """Return ``location`` without the tags that pydantic inserts for the members of a union.

    A part that does not exist in ``value`` is such a tag, unless it is the missing key.
    """
    path: list[str | int] = []
    for number, part in enumerate(location, start=1):
        if _has_part(value, part):
            value = value[part]
        elif not (is_missing and number == len(location)):
            continue
        path.append(part)
    return tuple(str(part)[:MESSAGE_MAX] if isinstance(part, str) else part for part in path)


def _has_part(value: Any, part: str | int) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list | tuple) and isinstance(part, int) and part < len(value)
