"""From the bytes of a request to a model of the contract, or a refusal that says what is wrong.

The JSON is read strictly (RFC 8259): UTF-8, no duplicate keys, no NaN, an object on top.
Messages name fields as the wire does, dotted: ``report.endpoints.0.port``.
"""

import json
from typing import Any, TypeVar, cast

from agent.wire.mistakes import mistakes_in
from agent.wire.reading import Mismatch, Place, converted, read_json
from controlplane.problems import Refusal, invalid_request, validation_error

ERRORS_MAX = 50
"""Fields named for one body; those beyond are counted in the detail."""
NAME_MAX = 256

T = TypeVar("T")


def parse_json(body: bytes) -> dict[str, Any]:
    """Return the object in ``body``, or raise an ``invalid_request`` refusal."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
        )
    except RecursionError:
        raise invalid_request("the body is nested too deeply") from None
    except UnicodeDecodeError:
        raise invalid_request("the body is not UTF-8") from None
    except ValueError as error:
        raise invalid_request(f"the body is not JSON: {_first_line(error)}") from None
    if not isinstance(value, dict):
        raise invalid_request("the body must be a JSON object")
    return value


def parse_body(model: type[T], body: bytes) -> T:
    """Return ``body`` as ``model``, or raise a refusal."""
    value = parse_json(body)
    try:
        return read_json(body, model)
    except Mismatch as mismatch:
        if mismatch.fault == "syntax":
            raise invalid_request(f"the body is not JSON: {mismatch.reason}") from None
        raise refusal_of(model, value, ()) from None


def parse_part(model: type[T], value: Any, name: str) -> T:
    """Read ``value``, found at ``name`` of a body that was parsed, as ``model``."""
    try:
        return cast(T, converted(value, model))
    except Mismatch:
        raise refusal_of(model, value, (name,)) from None


def refusal_of(model: type[Any], value: Any, at: Place) -> Refusal:
    """Say what is wrong in ``value``, found at ``at``."""
    errors: dict[str, tuple[str, ...]] = {}
    unlisted = 0
    for mistake in mistakes_in(model, value, at):
        name = ".".join(str(part) for part in mistake.place)[:NAME_MAX]
        if len(errors) >= ERRORS_MAX and name not in errors:
            unlisted += 1
        elif mistake.reason not in errors.get(name, ()):
            errors[name] = (*errors.get(name, ()), mistake.reason)
    more = f"; {unlisted} more errors are not listed" if unlisted else ""
    return validation_error(errors, "the body does not fit the contract" + more)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("an object names a key twice")
    return result


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _first_line(error: ValueError) -> str:
    return str(error).split("\n", 1)[0][:200]
