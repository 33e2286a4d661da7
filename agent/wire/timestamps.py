"""Parses date-times in all common forms, and converts them to UTC.

The contract requires an "ISO 8601 date-time". JavaScript, Go, Java, .NET and Python write different
forms, which are all accepted:

- up to 18 decimals after a point or a comma;
- no seconds, if they are zero (Java);
- a blank instead of the T (Python's str);
- offsets with or without minutes, and with or without a colon;
- the name of the zone after the offset (Java, Go);
- no zone.
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
    """Return ``value`` in UTC. If it has no zone, it is assumed to be in UTC.

    Raises ValueError if the text is not a date-time, or its year is not 1 to 9999.
    """
    return _in_utc(value if isinstance(value, datetime) else _read(value))


def _read(text: str) -> datetime:
    match = _FORM.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if match is None:
        raise ValueError("is not an ISO 8601 date-time")
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    extra = timedelta()
    # The hour 24:00 is the end of a day, and second 60 is a leap second (ISO 8601, RFC 3339).
    if (hour, minute, second) == (24, 0, 0):
        hour, extra = 0, timedelta(days=1)
    elif second == 60:
        second, extra = 59, timedelta(seconds=1)
    date, zone = match["date"].replace("-", ""), (match["zone"] or "Z").upper()
    time = f"{hour:02}{minute:02}{second:02}.{match['decimals'] or 0}"
    try:
        return datetime.fromisoformat(f"{date}T{time}{zone}") + extra
    except (ValueError, OverflowError) as error:
        raise ValueError(f"is not a date-time that exists: {error}") from None


def _in_utc(timestamp: datetime) -> datetime:
    if timestamp.tzinfo is None:
        return timestamp.replace(tzinfo=UTC)
    try:
        return timestamp.astimezone(UTC)
    except OverflowError:
        # Programs often write 9999-12-31 for "never". In UTC, this time can be later than the
        # maximum of datetime.
        if timestamp.year > 1:
            return datetime.max.replace(tzinfo=UTC)
        return datetime.min.replace(tzinfo=UTC)
