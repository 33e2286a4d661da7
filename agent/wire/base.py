"""The two kinds of message: what the agent says (exact) and what it is told (tolerant)."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from agent.wire import limits


class Message(BaseModel):
    """A frozen object of the contract. Python names are snake_case, wire names camelCase."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
    )


class Exact(Message):
    """What a device sends: a key the contract does not name is an error."""

    model_config = ConfigDict(extra="forbid")


class Tolerant(Message):
    """What the service answers: keys of later versions are ignored."""

    model_config = ConfigDict(extra="ignore")


def absent() -> Any:
    """Return the default of a key that is left out, not sent as null, when it has no value."""
    return Field(default=None, exclude_if=lambda value: value is None)


def _as_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        # "Never" written as 9999-12-31 with an offset is a valid date-time: it stays at the end.
        if moment.year > 1:
            return datetime.max.replace(tzinfo=UTC)
        return datetime.min.replace(tzinfo=UTC)


Timestamp = Annotated[datetime, AfterValidator(_as_utc)]
"""An ISO 8601 date-time; one without an offset is read as UTC."""

Integer = Annotated[int, Field(ge=limits.INTEGER_MIN, le=limits.INTEGER_MAX)]
Count = Annotated[int, Field(ge=0, le=limits.INTEGER_MAX)]
Port = Annotated[int, Field(ge=limits.PORT_MIN, le=limits.PORT_MAX)]
Number = Annotated[int, Field(ge=limits.INTEGER_MIN, le=limits.INTEGER_MAX)] | float
