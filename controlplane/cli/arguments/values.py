"""Parsers of option values.

A parser raises ArgumentTypeError or ValueError for an invalid text, and argparse reports it.
"""

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, TypeVar

from agent.wire.addresses import split_host_port

DAYS_MAX: Final = 36_500
YEARS: Final = range(1971, 3000)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DURATION: Final = re.compile(r"(\d{1,9})([mhd])", re.ASCII)
_UNITS_S: Final = {"m": 60, "h": 3600, "d": 86_400}
_TIME_ERROR: Final = (
    f"must be a time such as 7d, 2026-11-20 or 2026-11-20T09:30, from {YEARS[0]} to {YEARS[-1]}"
)

Number = TypeVar("Number", int, float)


def within(kind: type[Number], lowest: Number, highest: Number) -> Callable[[str], Number]:
    """Return a parser of numbers from ``lowest`` to ``highest``."""

    def read(text: str) -> Number:
        try:
            number = kind(text)
        except ValueError:
            number = lowest - 1
        if not lowest <= number <= highest:  # no comparison with NaN is true
            noun = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"must be {noun} from {lowest} to {highest}")
        return number

    return read


port: Final = within(int, 0, 65_535)


def host_port(text: str) -> tuple[str, int]:
    host, number = split_host_port(text)
    if not host or not (number or "").isdecimal():
        raise argparse.ArgumentTypeError("must be HOST:PORT, such as 127.0.0.1:9470")
    return host, port(number or "")


def seconds(text: str) -> float:
    number = float(text)
    if not 0 < number <= 366 * 86_400:
        raise argparse.ArgumentTypeError("must be more than 0 seconds and at most a year")
    return number


def count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def duration(units: str = "mhd", days_max: int = DAYS_MAX) -> Callable[[str], float]:
    """Return a parser of durations such as ``12h``. The parser returns seconds.

    ``units`` are the permitted units: minutes, hours and days.
    """

    def read(text: str) -> float:
        match = _DURATION.fullmatch(text)
        duration_s = int(match[1]) * _UNITS_S[match[2]] if match and match[2] in units else 0
        if not 0 < duration_s <= days_max * 86_400:
            examples = ", ".join(
                example for example in ("90m", "12h", "7d") if example[-1] in units
            )
            raise argparse.ArgumentTypeError(
                f"must be a duration such as {examples}, at most {days_max}d"
            )
        return float(duration_s)

    return read


def days_or_forever(text: str) -> float | None:
    """Return a duration such as ``90d`` in seconds, or None for ``forever``."""
    if text == "forever":
        return None
    try:
        return duration("d")(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or forever") from None


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The first and the last instant of a day. A single point in time is stored as both."""

    first: datetime
    last: datetime


def time_range(text: str) -> TimeRange:
    """Parse a time: a duration before now such as ``7d``, a date, or a date with a time of day.

    A text without a UTC offset is in this machine's time zone.
    """
    if _DURATION.fullmatch(text):
        timestamp = datetime.now(UTC) - timedelta(seconds=duration()(text))
        return TimeRange(timestamp, timestamp)
    try:
        if _DATE.fullmatch(text):
            day = full_date(text)
            return TimeRange(
                datetime.combine(day, time.min).astimezone(),
                datetime.combine(day, time.max).astimezone(),
            )
        timestamp = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(_TIME_ERROR) from None
    if timestamp.year not in YEARS:
        raise argparse.ArgumentTypeError(_TIME_ERROR)
    timestamp = timestamp if timestamp.tzinfo else timestamp.astimezone()
    return TimeRange(timestamp, timestamp)


def full_date(text: str, year_min: int = YEARS[0]) -> date:
    try:
        day = date.fromisoformat(text) if _DATE.fullmatch(text) else date.min
    except ValueError:
        day = date.min
    if not year_min <= day.year <= YEARS[-1]:
        raise argparse.ArgumentTypeError(
            f"must be a date such as 2026-11-20, from {year_min} to {YEARS[-1]}"
        )
    return day
