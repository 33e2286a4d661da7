"""Moments in words: how long ago something was."""

from datetime import UTC, datetime
from typing import Final

_UNITS: Final = (("d", 86400), ("h", 3600), ("min", 60))


def ago(moment: str | None, now: datetime | None = None) -> str:
    """Say how long ago an ISO 8601 moment was; one that lies ahead is said to (a clock was set)."""
    if moment is None:
        return "never"
    try:
        past = datetime.fromisoformat(moment)
        seconds = int(((now or datetime.now(UTC)) - past).total_seconds())
    except (ValueError, TypeError):
        return "at an unreadable time"
    if seconds < -1:
        return f"{duration(-seconds)} ahead of this machine's clock"
    return f"{duration(max(seconds, 0))} ago"


def age_s(moment: str) -> float:
    """Return the seconds since an ISO 8601 moment; 0 for one that cannot be read."""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def duration(seconds: int) -> str:
    """Say a number of seconds in its largest unit."""
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
