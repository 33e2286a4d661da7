"""Converts JSON to models and back. Invalid data raises `validation.ValidationError`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, TypeVar

from pydantic import BaseModel, TypeAdapter
from pydantic import ValidationError as PydanticValidationError
from pydantic_core import from_json

from agent.wire.base import FROM_OUTSIDE
from agent.wire.validation import MESSAGE_MAX, Issue, ValidationError, issues_of

T = TypeVar("T")

# mypy does not know that types are hashable. Without this annotation, it would refuse them.
_adapter: Final[Callable[[Any], TypeAdapter[Any]]] = cache(TypeAdapter)


def parse_json(content: bytes | str) -> Any:
    """Parse one JSON document strictly (RFC 8259). Raises ValidationError."""
    try:
        # A cache of strings saves little. It is slow if all strings differ, for example if an
        # attacker sends 200,000 different keys.
        return from_json(content, allow_inf_nan=False, cache_strings="none")
    except ValueError as error:  # not JSON, not UTF-8, or nested too deeply
        is_deep = "recursion limit" in str(error)
        reason = "it is nested too deeply" if is_deep else str(error)[:MESSAGE_MAX]
        raise ValidationError((Issue((), reason, "syntax"),)) from None


def decode(content: bytes | str, kind: type[T]) -> T:
    """Parse one JSON document as ``kind``, a model or a type. Raises ValidationError."""
    return validate(parse_json(content), kind)


def validate(value: Any, kind: type[T]) -> T:
    """Validate plain values, such as parsed JSON or TOML, as ``kind``. Raises ValidationError."""
    with _as_issues(value):
        result: T = _adapter(kind).validate_python(
            value, context=FROM_OUTSIDE, by_alias=True, by_name=False
        )
    return result


def decode_strictly(content: bytes, kind: Any) -> Any:
    """Parse one JSON document as dataclasses or a union of them. Raises ValidationError.

    Dataclasses are not strict by themselves, unlike each `Model`.
    """
    with _as_issues():
        return _adapter(kind).validate_json(content, strict=True)


def read_row(row: Mapping[str, Any], kind: type[T]) -> T:
    """Convert a database row to a dataclass. Strings are converted to UUIDs, times and enums.

    Raises ValidationError.
    """
    with _as_issues():
        value: T = _adapter(kind).validate_python(row)
    return value


def encode(record: BaseModel | None) -> bytes:
    """Return a model as compact JSON, and None as ``null``.

    Raises ValueError for text that UTF-8 cannot encode.
    """
    if record is None:
        return b"null"
    return record.model_dump_json(by_alias=True).encode()


def encode_indented(record: BaseModel) -> str:
    """Return a model as indented JSON."""
    return record.model_dump_json(by_alias=True, indent=2)


def to_plain(record: BaseModel) -> dict[str, Any]:
    """Return a model as a dict of plain JSON values."""
    return record.model_dump(mode="json", by_alias=True)


@contextmanager
def _as_issues(value: Any = None) -> Iterator[None]:
    """Convert pydantic's errors to ValidationError. ``value`` is the value to validate."""
    try:
        yield
    except PydanticValidationError as error:
        raise ValidationError(issues_of(error, value)) from None
    except RecursionError:
        raise ValidationError((Issue((), "it is nested too deeply"),)) from None
