"""Parses date-times in the forms that programs write, to times in UTC.

The contract requires an "ISO 8601 date-time". JavaScript, Go, Java, .NET and Python write different
forms: any number of decimals after a point or a comma, no seconds (Java, if they are zero), a blank
instead of the T (Python's str), offsets with and without minutes or colon, the name of a zone after
the offset (Java, Go), or no zone at all. All of them are accepted.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_FORM: Final = re.compile(
    r"(?P<date>\d{4}-?\d\d-?\d\d)[Tt ]"
    r"(?P<hour>\d\d):?(?P<minute>\d\d)(?::?(?P<second>\d\d)(?:[.,](?P<decimals>\d{1,18}))?)?"
    r" ?(?P<zone>[Zz]|[+-]\d\d(?::?\d\d(?::?\d\d(?:\.\d{1,6})?)?)?)?"
    r"(?: [A-Z]{1,5}|\[[\w/+\-:]{1,64}\])?",
    re.ASCII,
)
LENGTH_MAX: Final = 128


def to_utc(value: str | datetime) -> datetime:
    """Return ``value`` in UTC, which is also the default zone.

    Raises ValueError, also for years outside of 1 to 9999.
    """
    return _in_utc(value if isinstance(value, datetime) else _read(value))


def _read(text: str) -> datetime:
    match = _FORM.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if match is None:
        raise ValueError("is not an ISO 8601 date-time")
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    later = timedelta()
    # 24:00 is the end of a day, :60 a leap second (ISO 8601, RFC 3339).
    if (hour, minute, second) == (24, 0, 0):
        hour, later = 0, timedelta(days=1)
    elif second == 60:
        second, later = 59, timedelta(seconds=1)
    date, zone = match["date"].replace("-", ""), (match["zone"] or "Z").upper()
    time = f"{hour:02}{minute:02}{second:02}.{match['decimals'] or 0}"
    try:
        return datetime.fromisoformat(f"{date}T{time}{zone}") + later
    except (ValueError, OverflowError) as error:
        raise ValueError(f"is not a date-time that exists: {error}") from None


def _in_utc(timestamp: datetime) -> datetime:
    if timestamp.tzinfo is None:
        return timestamp.replace(tzinfo=UTC)
    try:
        return timestamp.astimezone(UTC)
    except OverflowError:
        # 9999-12-31 with an offset, which often means "never", is valid.
        if timestamp.year > 1:
            return datetime.max.replace(tzinfo=UTC)
        return datetime.min.replace(tzinfo=UTC)
