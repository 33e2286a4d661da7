"""The two kinds of message: what the agent says (exact) and what it is told (tolerant)."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from agent.wire import limits
from agent.wire.model import Check, Record
from agent.wire.moments import moment_of


class Message(Record, rename="camel"):
    """An object of the contract. Python names are snake_case, wire names camelCase."""


class Exact(Message, forbid_unknown_fields=True, omit_defaults=True):
    """What a device sends: a key the contract does not name is an error.

    A key with a default is one the contract calls optional: it is left out, not sent as null,
    when it has no value.
    """


class Tolerant(Message):
    """What the service answers: keys of later versions are ignored."""


if TYPE_CHECKING:
    Timestamp = datetime
else:
    Timestamp = Annotated[str, Check(moment_of, also=(datetime,))]
    """An ISO 8601 date-time in any form that is in use (`moments`); kept as a moment in UTC."""

Integer = Annotated[int, Meta(ge=limits.INTEGER_MIN, le=limits.INTEGER_MAX)]
Count = Annotated[int, Meta(ge=0, le=limits.INTEGER_MAX)]
Port = Annotated[int, Meta(ge=limits.PORT_MIN, le=limits.PORT_MAX)]
Number = Annotated[int, Meta(ge=limits.INTEGER_MIN, le=limits.INTEGER_MAX)] | float
