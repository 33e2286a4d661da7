"""Values as people type them, read or refused in words."""

import argparse
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from agent.wire.addresses import split_host_port

DAYS_MAX: Final = 36_500
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENTS: Final = "must be as 7d, 2026-11-20 or 2026-11-20T09:30, from 1971 to 2999"
YEARS: Final = range(1971, 3000)
_UNITS_S: Final = {"m": 60, "h": 3600, "d": 86_400}


def port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:  # the 16 bits of a port
        raise argparse.ArgumentTypeError("a port is 0 to 65535")
    return number


def host_port(text: str) -> tuple[str, int]:
    host, number = split_host_port(text)
    if not host or not (number or "").isdecimal():
        raise argparse.ArgumentTypeError("must be HOST:PORT, as 127.0.0.1:9470")
    return host, port(number or "")


def seconds(text: str) -> float:
    number = float(text)
    if not 0 < number <= 366 * 86400:
        raise argparse.ArgumentTypeError("must be more than 0 seconds, and at most a year")
    return number


def days(text: str) -> float:
    """Return the seconds of ``180d``."""
    number, unit = text[:-1], text[-1:]
    if unit != "d" or not _is_number(number) or not 1 <= int(number) <= DAYS_MAX:
        raise argparse.ArgumentTypeError(f"must be days, 1d to {DAYS_MAX}d")
    return int(number) * 86400.0


def age(text: str) -> float:
    """Return the seconds of ``30m``, ``12h`` or ``7d``."""
    number, unit_s = text[:-1], _UNITS_S.get(text[-1:], 0)
    if not unit_s or not _is_number(number) or not 0 < int(number) * unit_s <= DAYS_MAX * 86_400:
        raise argparse.ArgumentTypeError("must be minutes, hours or days: 30m, 12h, 7d")
    return float(int(number) * unit_s)


@dataclass(frozen=True, slots=True)
class Moment:
    """What a person named: one moment, or the day from ``first`` to ``last``."""

    first: datetime
    last: datetime


def moment(text: str) -> Moment:
    """Return the moment of ``7d`` (that long ago), a date, or a date with a time.

    Without an offset, the clock is this machine's.
    """
    if text[-1:] in _UNITS_S and _is_number(text[:-1]):
        then = datetime.now(UTC) - timedelta(seconds=age(text))
        return Moment(then, then)
    try:
        if _DATE.fullmatch(text):
            day = full_date(text)
            return Moment(
                datetime.combine(day, time.min).astimezone(),
                datetime.combine(day, time.max).astimezone(),
            )
        then = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(_MOMENTS) from None
    if then.year not in YEARS:
        raise argparse.ArgumentTypeError(_MOMENTS)
    then = then if then.tzinfo else then.astimezone()
    return Moment(then, then)


def full_date(text: str) -> date:
    try:
        found = date.fromisoformat(text) if _DATE.fullmatch(text) else date.min
    except ValueError:
        found = date.min
    if found.year not in YEARS:
        raise argparse.ArgumentTypeError("must be a date such as 2026-11-20, from 1971 to 2999")
    return found


def rate(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1e6:  # keeps inf and nan out
        raise argparse.ArgumentTypeError("must be 0 to 1000000")
    return number


def count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9
