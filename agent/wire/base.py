"""The base classes of all models, and the common types of their fields.

`Model` is the base class of state files and of the configuration. `Exact` is for messages to the
service: unknown keys are errors. `Tolerant` is for replies of the service: unknown keys are
ignored, because later versions can add keys.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeVar
from uuid import UUID

from annotated_types import GroupedMetadata
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    ValidationInfo,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError, PydanticKnownError, core_schema

from agent.wire import limits
from agent.wire.timestamps import to_utc

T = TypeVar("T")

FROM_OUTSIDE: Final = "from outside"
"""The validation context of external data. The program's own models are created without it."""

UNKNOWN_KEYS_MAX: Final = 32
"""If a message has more keys than its model has fields, and the difference exceeds this number, one
error is reported instead of one for each unknown key."""


class Model(BaseModel):
    """A strict and frozen model. Its validator is built when it is first used."""

    model_config = ConfigDict(
        strict=True, frozen=True, defer_build=True, allow_inf_nan=False, extra="ignore"
    )


class Message(Model):
    """An object of the contract. Its Python names are snake_case, its JSON keys camelCase."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class Exact(Message):
    """A message to the service. Unknown keys are errors."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _limit_unknown_keys(cls, value: Any) -> Any:
        # pydantic creates one error for each unknown key, which is expensive.
        if isinstance(value, dict) and len(value) > len(cls.__pydantic_fields__) + UNKNOWN_KEYS_MAX:
            raise PydanticCustomError("too_many_keys", "has more keys than the contract allows")
        return value


class Tolerant(Message):
    """A reply of the service. Unknown keys are ignored."""


# ---------------------------------------------------------------------------- absent and null


def _refuse_null(value: Any, info: ValidationInfo) -> Any:
    if value is None and info.context == FROM_OUTSIDE:
        raise PydanticCustomError("null", "must not be null: leave the key out instead")
    return value


def _without_null(schema: dict[str, Any]) -> None:
    """Remove null from the JSON Schema of a field, because `_refuse_null` refuses null."""
    schema.pop("default", None)
    alternatives = [
        alternative for alternative in schema.pop("anyOf", ()) if alternative != {"type": "null"}
    ]
    if len(alternatives) == 1:
        schema.update(alternatives[0])
    elif alternatives:
        schema["anyOf"] = alternatives


Absent = Annotated[
    T | None,
    BeforeValidator(_refuse_null),
    Field(exclude_if=lambda value: value is None, json_schema_extra=_without_null),
]
"""An optional key of the contract. It is omitted if it has no value, and null is an error."""

# ---------------------------------------------------------------------------- lists


@dataclass(frozen=True, slots=True)
class MaxItems(GroupedMetadata):
    """Limits the length of an array. An array that is too long is reported as one error."""

    count: int

    def __iter__(self) -> Iterator[object]:
        yield Field(strict=False, max_length=self.count)  # a JSON array becomes a tuple
        yield BeforeValidator(self._check)

    def _check(self, value: Any) -> Any:
        if isinstance(value, list | tuple) and len(value) > self.count:
            context = {"field_type": "List", "max_length": self.count, "actual_length": len(value)}
            raise PydanticKnownError("too_long", context)
        return value


Array = Annotated[tuple[T, ...], Field(strict=False, fail_fast=True)]
"""An array without a limit in the contract. Only its first invalid element is reported."""

# ---------------------------------------------------------------------------- time and identifiers

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


def _read_uuid(value: Any) -> Any:
    """Parse a UUID in canonical form (RFC 9562, section 4), without braces and ``urn:uuid:``."""
    if isinstance(value, str):
        if not _UUID.fullmatch(value):
            raise PydanticCustomError("uuid", "must be a UUID such as {example}", _EXAMPLE)
        return UUID(value)
    return value


_EXAMPLE: Final = {"example": "0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10"}

Uuid = Annotated[UUID, BeforeValidator(_read_uuid)]


def _read_timestamp(value: Any) -> Any:
    return to_utc(value) if isinstance(value, str | datetime) else value


Timestamp = Annotated[datetime, BeforeValidator(_read_timestamp)]
"""An ISO 8601 date-time. `timestamps` accepts all common forms, and converts them to UTC."""

# ---------------------------------------------------------------------------- numbers


def _read_integer(value: Any) -> Any:
    """Convert 3.0 to 3.

    JSON has only one type of number, so a program can write either form (JSON Schema, 6.1.1).
    """
    return int(value) if type(value) is float and value.is_integer() else value


WHOLE: Final = BeforeValidator(_read_integer)
Count = Annotated[int, Field(ge=0, le=limits.INTEGER_MAX), WHOLE]
Port = Annotated[int, Field(ge=limits.PORT_MIN, le=limits.PORT_MAX), WHOLE]


_FINITE: Final = core_schema.float_schema(strict=True, allow_inf_nan=False)

Number = Annotated[
    int | float,
    # This schema reports one error instead of two, and calls no Python code for a number.
    GetPydanticSchema(
        lambda _source, _handler: core_schema.union_schema(
            [core_schema.int_schema(strict=True), _FINITE],
            mode="left_to_right",
            custom_error_type="number_type",
            custom_error_message="must be a number",
        )
    ),
]
"""A JSON number without limits. In the contract, only integer fields have limits."""


# ---------------------------------------------------------------------------- constants


def is_equal_but_other_type(value: Any, constant: int) -> bool:
    """Return whether ``value`` equals ``constant``, but one is a number and the other a boolean.

    In Python, 1 and True are equal, so pydantic accepts each for a Literal of the other. In JSON,
    they are different.
    """
    return value == constant and isinstance(value, bool) is not isinstance(constant, bool)


def _refuse_equal_of_other_type(constant: int) -> BeforeValidator:
    def check(value: Any) -> Any:
        if is_equal_but_other_type(value, constant):
            raise PydanticKnownError("literal_error", {"expected": repr(constant)})
        return value

    return BeforeValidator(check)


LiteralOne = Annotated[Literal[1], _refuse_equal_of_other_type(1)]
LiteralTrue = Annotated[Literal[True], _refuse_equal_of_other_type(True)]

# ---------------------------------------------------------------------------- plain values


def value_kind(value: Any) -> str | None:
    """Return the tag of a value's type for a tagged union; None if the type has no tag."""
    return _KINDS.get(type(value))


_KINDS: Final[Mapping[type, str]] = {
    str: "text",
    bool: "flag",
    int: "number",
    float: "number",
    list: "list",
    tuple: "list",
}
