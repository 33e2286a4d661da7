"""Parses request bodies into models of the contract. Errors are raised as refusals.

JSON is parsed strictly (RFC 8259): UTF-8, no duplicate keys, no NaN, an object at the top level.
Errors name a field by its path on the wire, such as ``report.endpoints.0.port``.
"""

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from agent.presentation.humanize import counted
from agent.wire import codec
from agent.wire.validation import Issue, ValidationError
from controlplane.operation.errors import Refusal, invalid_request, validation_error

ERRORS_MAX = 50
"""Maximum number of fields with errors in one refusal. The detail of the refusal states the number
of the other errors."""
NAME_MAX = 256
"""Maximum length of the path of a field in a refusal. Longer paths are cut off."""
CONTAINERS_MAX = 50_000
"""Maximum number of lists and objects in a body, counted by opening brackets. Even an empty list,
which has two bytes in the body, needs far more memory. The largest report (2 MiB) has fewer than
35,000 lists and objects: about one per 60 bytes."""
ITEMS_MAX = 120_000
"""Maximum number of members of objects and elements of lists, counted by commas. The largest report
(2 MiB) has fewer than 100,000: about one per 22 bytes."""
SMALL_BYTES = 65_536
"""Bodies up to this size are parsed and checked for duplicate keys in one pass."""

T = TypeVar("T")
Pairs = list[tuple[str, Any]]


def parse_json(body: bytes) -> dict[str, Any]:
    """Return the object in ``body``, or raise an ``invalid_request`` refusal.

    Duplicate keys are not found if the body is large (`SMALL_BYTES`). The caller must then call
    `require_unique_keys` after its other checks. `require_unique_keys` takes longer than parsing,
    and most invalid bodies are refused earlier, because of other errors.
    """
    value = parse_any_json(body)
    if not isinstance(value, dict):
        raise invalid_request("the body must be a JSON object")
    return value


def parse_any_json(body: bytes) -> Any:
    """Return any JSON value in ``body``, or raise an ``invalid_request`` refusal."""
    if body.count(b"[") + body.count(b"{") > CONTAINERS_MAX:
        raise invalid_request(f"the body contains more than {CONTAINERS_MAX} lists and objects")
    if body.count(b",") > ITEMS_MAX:
        raise invalid_request(f"the body contains more than {ITEMS_MAX} members and elements")
    return _parse_with_hook(body, _unique_keys) if len(body) <= SMALL_BYTES else _parse_fast(body)


def require_unique_keys(body: bytes) -> None:
    """Refuse a large body with duplicate keys, whose meaning would be ambiguous."""
    if len(body) > SMALL_BYTES:
        _parse_with_hook(body, _require_unique_keys)


def parse_body(model: type[T], body: bytes) -> T:
    """Return ``body`` as ``model``, or raise a refusal if it does not fit."""
    body_model = parse_part(model, parse_json(body))
    require_unique_keys(body)
    return body_model


def require_no_body(body: bytes) -> None:
    """Refuse any body that is not an empty object. For operations that take no body."""
    if body and parse_json(body):
        raise invalid_request("this operation takes no body")


def parse_part(model: type[T], value: Any, name: str = "") -> T:
    """Return ``value``, the part ``name`` of a body, as ``model``.

    Raises a refusal if the value does not fit.
    """
    try:
        return codec.validate(value, model)
    except ValidationError as error:
        raise refusal_of(error.issues, name) from None


def refusal_of(issues: Sequence[Issue], name: str = "") -> Refusal:
    """Return the refusal for the issues in the part ``name`` of a body."""
    errors: dict[str, tuple[str, ...]] = {}
    unlisted_count = 0
    for issue in issues:
        where = ".".join(filter(None, (name, issue.where)))[:NAME_MAX]
        if len(errors) >= ERRORS_MAX and where not in errors:
            unlisted_count += 1
        elif issue.reason not in errors.get(where, ()):
            errors[where] = (*errors.get(where, ()), issue.reason)
    more = f"; not listed: {counted(unlisted_count, 'more error')}" if unlisted_count else ""
    return validation_error(errors, "the body does not fit the contract" + more)


def _parse_fast(body: bytes) -> Any:
    try:
        return codec.parse_json(body)
    except ValidationError as error:
        raise invalid_request(f"the body is not JSON: {error.reason}") from None


def _parse_with_hook(body: bytes, object_hook: Callable[[Pairs], Any]) -> Any:
    """Return the value in ``body``. ``object_hook`` converts the pairs of each object."""
    try:
        return _decoder(object_hook).decode(body.decode("utf-8"))
    except RecursionError:
        raise invalid_request("the body is nested too deeply") from None
    except UnicodeDecodeError:
        raise invalid_request("the body is not UTF-8") from None
    except ValueError as error:
        reason = str(error).partition("\n")[0][:200]
        raise invalid_request(f"the body is not JSON: {reason}") from None


@functools.cache
def _decoder(object_hook: Callable[[Pairs], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=object_hook, parse_constant=_refuse_constant)


def _unique_keys(pairs: Pairs) -> dict[str, Any]:
    _require_unique_keys(pairs)
    return dict(pairs)


def _require_unique_keys(pairs: Pairs) -> None:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("an object contains a key twice")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")
