"""The two kinds of message: what the agent says (exact) and what it is told (tolerant)."""

from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta

from agent.wire import limits
from agent.wire.model import Check, Record


class Message(Record, rename="camel"):
    """An object of the contract. Python names are snake_case, wire names camelCase."""


class Exact(Message, forbid_unknown_fields=True, omit_defaults=True):
    """What a device sends: a key the contract does not name is an error.

    A key with a default is one the contract calls optional: it is left out, not sent as null,
    when it has no value.
    """


class Tolerant(Message):
    """What the service answers: keys of later versions are ignored."""


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


Timestamp = Annotated[datetime, Check(_as_utc)]
"""An RFC 3339 date-time; one without an offset is read as UTC."""

Integer = Annotated[int, Meta(ge=limits.INTEGER_MIN, le=limits.INTEGER_MAX)]
Count = Annotated[int, Meta(ge=0, le=limits.INTEGER_MAX)]
Port = Annotated[int, Meta(ge=limits.PORT_MIN, le=limits.PORT_MAX)]
Number = Annotated[int, Meta(ge=limits.INTEGER_MIN, le=limits.INTEGER_MAX)] | float
