"""From the bytes of a request to a model of the contract, or a refusal that says what is wrong.

The JSON is read strictly (RFC 8259): UTF-8, no duplicate keys, no NaN, an object on top.
Messages name fields as the wire does, dotted: ``report.endpoints.0.port``.
"""

import json
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from controlplane.problems import Refusal, invalid_request, validation_error

ERRORS_MAX = 50
"""Messages given for one body; what is beyond is counted in the detail."""
NAME_MAX = 256

Model = TypeVar("Model", bound=BaseModel)


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


def parse_body(model: type[Model], body: bytes) -> Model:
    """Return ``body`` as ``model``, or raise a refusal."""
    value = parse_json(body)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise refusal_of(error, value) from None


def parse_part(adapter: TypeAdapter[Any] | type[BaseModel], value: Any, name: str) -> Any:
    """Validate ``value``, found at ``name`` of a body, by the rules of JSON input."""
    text = json.dumps(value)
    try:
        if isinstance(adapter, TypeAdapter):
            return adapter.validate_json(text)
        return adapter.model_validate_json(text)
    except ValidationError as error:
        raise refusal_of(error, value, name) from None


def refusal_of(error: ValidationError, value: Any, prefix: str = "") -> Refusal:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    if any(detail["type"] == "json_invalid" for detail in details):
        return invalid_request(f"the body is not JSON: {details[0]['msg'][:200]}")
    errors: dict[str, tuple[str, ...]] = {}
    for detail in details[:ERRORS_MAX]:
        name = _dotted(detail, value, prefix)
        if detail["msg"] not in errors.get(name, ()):
            errors[name] = (*errors.get(name, ()), detail["msg"])
    unlisted = len(details) - ERRORS_MAX
    more = f"; {unlisted} more errors are not listed" if unlisted > 0 else ""
    return validation_error(errors, "the body does not fit the contract" + more)


def _dotted(detail: ErrorDetails, value: Any, prefix: str) -> str:
    """Return the path of the error, without the names of union members pydantic puts into it.

    Those are told apart by walking the input: a part that leads nowhere in it is not a key,
    unless it is the key that is missing.
    """
    parts = [prefix] if prefix else []
    location = detail["loc"]
    for index, part in enumerate(location):
        is_last = index == len(location) - 1
        if _leads_on(value, part):
            value = value[part]
        elif not (is_last and detail["type"] == "missing"):
            continue
        parts.append(str(part))
    return ".".join(parts)[:NAME_MAX]


def _leads_on(value: Any, part: int | str) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list) and isinstance(part, int) and part < len(value)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("an object names a key twice")
    return result


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _first_line(error: ValueError) -> str:
    return str(error).split("\n", 1)[0][:200]
