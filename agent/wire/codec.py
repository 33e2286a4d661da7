"""JSON → models and back. Whatever does not fit raises `validation.ValidationError`."""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter
from pydantic import ValidationError as NotFitting
from pydantic_core import from_json

from agent.wire.base import FROM_OUTSIDE
from agent.wire.validation import MESSAGE_MAX, Issue, ValidationError, issues_of

T = TypeVar("T")


def parse_json(content: bytes | str) -> Any:
    """Read one JSON document strictly (RFC 8259). Raises ValidationError."""
    try:
        # Looking each string up among those before costs most where all differ, as a hostile
        # body's 200,000 keys do; where many are alike it gains little.
        return from_json(content, allow_inf_nan=False, cache_strings="none")
    except ValueError as error:  # no JSON, no UTF-8, or nested too deeply
        is_deep = "recursion limit" in str(error)
        reason = "it is nested too deeply" if is_deep else str(error)[:MESSAGE_MAX]
        raise ValidationError((Issue((), reason, "syntax"),)) from None


def decode(content: bytes | str, kind: type[T]) -> T:
    """Read one JSON document as ``kind``, a model or a type. Raises ValidationError."""
    return validate(parse_json(content), kind)


def validate(value: Any, kind: type[T]) -> T:
    """Read plain values, such as those of JSON or TOML, as ``kind``. Raises ValidationError."""
    key: Any = kind  # a type is hashable, which a type variable does not say
    try:
        made: T = _adapter(key).validate_python(
            value, context=FROM_OUTSIDE, by_alias=True, by_name=False
        )
    except NotFitting as error:
        raise ValidationError(issues_of(error, value)) from None
    except RecursionError:
        raise ValidationError((Issue((), "it is nested too deeply"),)) from None
    return made


def decode_strictly(content: bytes, kind: Any) -> Any:
    """Read one JSON document as dataclasses or a union of them. Raises ValidationError."""
    try:
        return _adapter(kind).validate_json(content, strict=True)
    except NotFitting as error:
        raise ValidationError(issues_of(error, None)) from None


def read_row(row: Mapping[str, Any], kind: type[T]) -> T:
    """Read a database row as a dataclass: texts become UUIDs, times and enums.

    Raises ValidationError.
    """
    key: Any = kind
    try:
        made: T = _adapter(key).validate_python(row)
    except NotFitting as error:
        raise ValidationError(issues_of(error, None)) from None
    return made


def encode(record: BaseModel | None) -> bytes:
    """Write a model as compact JSON. Raises ValueError for text that no UTF-8 can carry."""
    if record is None:
        return b"null"
    return record.model_dump_json(by_alias=True).encode()


def encode_indented(record: BaseModel) -> str:
    """Write a model as JSON for people."""
    return record.model_dump_json(by_alias=True, indent=2)


def to_plain(record: BaseModel) -> dict[str, Any]:
    """Return a model as the values that JSON has."""
    return record.model_dump(mode="json", by_alias=True)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
