"""Column types of the merchant's tables: money, timestamps, 64-bit numbers."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from sqlalchemy import JSON, BigInteger, Dialect, TypeDecorator
from sqlalchemy.orm import mapped_column

from controlplane.storage.tables import Position

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)


def microseconds(timestamp: datetime) -> int:
    """Return whole microseconds since 1970-01-01T00:00Z."""
    return (timestamp - EPOCH) // MICROSECOND


def from_microseconds(count: int) -> datetime:
    """Return the timestamp that is ``count`` microseconds after 1970-01-01T00:00Z."""
    return EPOCH + timedelta(microseconds=count)


class Microseconds(TypeDecorator[datetime]):
    """A timestamp as microseconds since 1970 in UTC.

    Millions of sales are compared by their time. A number takes a third of the space of a timestamp
    as text.
    """

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else microseconds(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return None if value is None else from_microseconds(int(value))


Money = Annotated[int, mapped_column(BigInteger)]
"""Minor units of the row's currency (cents, fils)."""
Wide = Annotated[int, mapped_column(BigInteger)]
"""A 64-bit number, for example the position of a row in a large table."""
Timestamp = Annotated[datetime, mapped_column(Microseconds)]
OptionalTimestamp = Annotated[datetime | None, mapped_column(Microseconds)]
MaybeWide = Annotated[int | None, mapped_column(BigInteger)]
RowPosition = Annotated[int, mapped_column(Position, primary_key=True, autoincrement=True)]
"""The primary key, by which other rows refer to this row. It is never a field of a reply."""
ExternalData = Annotated[dict[str, Any] | None, mapped_column(JSON(none_as_null=True))]
"""A JSON object from an external system, with an ``id`` and any other fields."""
