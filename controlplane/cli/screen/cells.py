"""The cells of tables: styled texts, ids and ages."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from agent.presentation.humanize import format_seconds

NONE = "–"
STATUS_STYLES = {
    "queued": "cyan",
    "received": "cyan",
    "running": "blue",
    "completed": "green",
    "partial": "yellow",
    "failed": "red",
    "expired": "dim",
    "sent": "green",
    "pending": "cyan",
    "disabled": "dim",
    "revoked": "red",
    "online": "green",
    "offline": "yellow",
    "healthy": "green",
    "warning": "yellow",
    "broken": "red",
    "never-connected": "yellow",
}
"""The Rich styles of the statuses of requests, reports, tracker messages, keys and devices."""


class Styled(NamedTuple):
    """A text and the name of its style in Rich."""

    text: str
    style: str


Cell = str | UUID | Styled | None
"""UUIDs are shortened on a terminal. None is shown as a dash."""
Record = TypeVar("Record")
Columns = Mapping[str, Callable[[Record], Cell]]
"""The heading of each column, and the function that returns the cell of a record."""


def age(timestamp: datetime | None) -> str:
    """Return the age of a timestamp in the largest whole unit: ``29 min``."""
    if timestamp is None:
        return "never"
    passed_s = (datetime.now(UTC) - timestamp).total_seconds()
    return format_seconds(max(0, int(passed_s)), units=1)


def status(text: str) -> Styled:
    return Styled(text, STATUS_STYLES.get(text, ""))


def grant(key: Any) -> Styled:
    """Return ``revoked``, ``write`` or ``read`` for an API key or a retail API key."""
    if key.revoked_at:
        return status("revoked")
    return status("write" if key.can_write else "read")


def shorten_list(values: Sequence[str], count_max: int) -> str:
    """Return the first values, and how many other values there are: ``a, b and 3 more``."""
    text = ", ".join(values[:count_max])
    return f"{text} and {len(values) - count_max} more" if len(values) > count_max else text


def utc_text(timestamp: datetime) -> str:
    """Return a time for programs: in UTC, without fractions of a second (RFC 3339)."""
    return f"{timestamp.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
