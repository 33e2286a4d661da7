"""Formats values with units, durations and ages for users.

The unit of a field is at the end of its key: ``memory.totalBytes`` is in bytes.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from agent.presentation.plain_text import plain

Value = str | bool | int | float | tuple[str, ...]

_BINARY_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_WORDS: Final = re.compile(r"[Ii]pv[46]|[A-Z]?[a-z]+|[0-9]+|[A-Z]+(?![a-z])|[^\W_]+")
"""Matches each word of a key in camel case: ``total`` and ``Bytes`` in ``totalBytes``."""
_PERIOD: Final = re.compile(r"(?:24h|7d)$")
"""The period of a figure, at the end of its key: ``downtimeSeconds24h``."""
_BINARY_FACTOR: Final = 1024
_LONGEST_S: Final = 1e11  # three thousand years: a longer value is not a duration
_LARGEST: Final = 1e15  # a larger number is written with an exponent
_ACRONYMS: Final = {
    word.replace("-", "").lower(): word
    for word in (
        "CPU", "OS", "MAC", "DNS", "TLS", "IP", "USB", "SSID", "URL", "ID", "SMART", "UTC", "MTU",
        "BSSID", "PID", "DPI", "Wi-Fi", "IPv4", "IPv6",
    )
}  # fmt: skip


def format_bytes(count: float) -> str:
    """Return ``count`` bytes in binary units: ``7.6 GiB``."""
    size = float(count)
    for unit in _BINARY_UNITS[:-1]:
        decimals = 0 if unit == "bytes" else 1
        if round(abs(size), decimals) < _BINARY_FACTOR:
            return f"{_number(size, decimals)} {unit}"
        size /= _BINARY_FACTOR
    return f"{_number(size, 1)} {_BINARY_UNITS[-1]}"


def format_seconds(seconds: float, units: int = 2) -> str:
    """Return a duration: ``3 d 4 h``, ``4 min 10 s``, ``0.35 s``.

    ``units`` is the maximum number of units in the result. Smaller units are left out.
    """
    sign, magnitude_s = ("-" if seconds < 0 else ""), abs(seconds)
    if 0 < magnitude_s < 0.1:
        return f"{_number(seconds * 1000, 2)} ms"
    decimals = 2 if magnitude_s < 10 else 1
    if round(magnitude_s, decimals) < 60 or magnitude_s > _LONGEST_S:  # a minute
        return f"{sign}{_number(magnitude_s, decimals)} s"
    parts: list[str] = []
    whole_seconds = round(magnitude_s)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        amount, whole_seconds = divmod(whole_seconds, length)
        if amount or parts:
            parts.append(f"{amount} {unit}" if amount else "")
    return sign + " ".join(part for part in parts[:units] if part)


def format_milliseconds(milliseconds: float) -> str:
    """Return a latency: ``0.4 ms``, ``12 ms``. From 1000 ms on, it is in seconds."""
    if round(abs(milliseconds)) >= 1000:  # a second
        return format_seconds(milliseconds / 1000)
    if 0 < milliseconds < 0.1:
        return "<0.1 ms"
    return f"{_number(milliseconds, 1 if abs(milliseconds) < 10 else 0)} ms"


def percent(fraction: float) -> str:
    """Return a fraction as a percentage: ``92 %``."""
    return f"{_number(fraction * 100, 0)} %"


def parse_timestamp(text: str) -> datetime | None:
    """Parse an ISO 8601 date-time; None if it is invalid. Without an offset, it is in UTC."""
    try:
        timestamp = datetime.fromisoformat(text)
        return (
            timestamp.replace(tzinfo=UTC) if timestamp.tzinfo is None else timestamp.astimezone(UTC)
        )
    except (ValueError, OverflowError):
        return None


def age_s(text: str, now: datetime | None = None) -> float | None:
    """Return the seconds since an ISO 8601 date-time; None if it is invalid."""
    timestamp = parse_timestamp(text)
    return None if timestamp is None else ((now or datetime.now(UTC)) - timestamp).total_seconds()


def ago(text: str | None, now: datetime | None = None) -> str:
    """Return the age of an ISO 8601 date-time: ``3 h ago``.

    A time in the future becomes ``3 h ahead of this machine's clock``, and None becomes ``never``.
    """
    if text is None:
        return "never"
    seconds = age_s(text, now)
    if seconds is None:
        return "at an unreadable time"
    if seconds <= -2:  # rounding alone can make a time seem to be in the future
        return f"{format_seconds(int(-seconds), units=1)} ahead of this machine's clock"
    return f"{format_seconds(int(max(seconds, 0)), units=1)} ago"


def format_timestamp(text: str) -> str:
    """Return an ISO 8601 time as ``2026-11-20 19:04:12 UTC``.

    Return any other text as `plain` returns it.
    """
    timestamp = parse_timestamp(text)
    return plain(text) if timestamp is None else timestamp.strftime("%Y-%m-%d %H:%M:%S UTC")


def duration_between(started_at: str, finished_at: str) -> str | None:
    """Return the duration between two ISO 8601 times; None if one is invalid."""
    first, last = parse_timestamp(started_at), parse_timestamp(finished_at)
    if first is None or last is None:
        return None
    return format_seconds((last - first).total_seconds())


_UNITS: Final[dict[str, Callable[[float], str]]] = {
    "Bytes": format_bytes,
    "Seconds": format_seconds,
    "Milliseconds": format_milliseconds,
    "Ms": format_milliseconds,
    "Percent": lambda n: f"{_number(n, 1)} %",
    "Fraction": lambda n: f"{_number(n * 100, 1)} %",
    "Celsius": lambda n: f"{_number(n, 1)} °C",
    "Volts": lambda n: f"{_number(n, 2)} V",
    "Watts": lambda n: f"{_number(n, 1)} W",
    "Pixels": lambda n: f"{_number(n, 0)} px",
    "Millimetres": lambda n: f"{_number(n, 0)} mm",
    "Mbps": lambda n: f"{_number(n, 1)} Mbit/s",
    "Megabits Per Second": lambda n: f"{_number(n, 1)} Mbit/s",
    "Megahertz": lambda n: f"{_number(n, 0)} MHz",
    "Mhz": lambda n: f"{_number(n, 0)} MHz",
    "Hertz": lambda n: f"{_number(n, 1)} Hz",
    "Dbm": lambda n: f"{_number(n, 0)} dBm",
    "Hz": lambda n: f"{_number(n, 1)} Hz",
    "M Hz": lambda n: f"{_number(n, 0)} MHz",
    "Gi B": lambda n: f"{_number(n, 1)} GiB",
    "Mi B": lambda n: f"{_number(n, 1)} MiB",
}
"""The format of each unit. A unit is written as `_split_unit` splits the end of a key: ``M Hz`` for
``clockMHz``."""


def format_value(key: str, value: Value) -> str:
    """Return a field's value with the unit from the end of ``key``."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(filter(None, map(plain, value))) or "none"
    if isinstance(value, str):
        # Only a text with a T can be a date-time. Without this test, "20261120" would be one.
        return (format_timestamp(value) if "T" in value else plain(value)) or "(empty)"
    unit, _ = _split_unit(key)
    if unit:
        return _UNITS[unit](value)
    return f"{value:,}" if isinstance(value, int) and abs(value) < _LARGEST else _number(value, 2)


def label_of(key: str) -> str:
    """Return the last part of a dotted key as a label without its unit.

    For example, return ``Available`` for ``memory.availableBytes``.
    """
    leaf = key.rpartition(".")[2]
    _, words = _split_unit(leaf)
    label = " ".join(_ACRONYMS.get(word, word) for word in words)
    return plain(label[:1].upper() + label[1:]) or plain(key)


def _split_unit(key: str) -> tuple[str, list[str]]:
    """Return the unit at the end of ``key`` ("" for none) and the words before it."""
    leaf = _PERIOD.sub("", key.rpartition(".")[2])
    words = [_decapitalised(word) for word in _WORDS.findall(leaf)]
    for length in (3, 2, 1):
        unit = " ".join(word.capitalize() for word in words[-length:])
        if len(words) > length and unit in _UNITS:
            return unit, words[:-length]
    return "", words


def _decapitalised(word: str) -> str:
    return word if word.isupper() and len(word) > 1 else word.lower()


def _number(number: float, decimals: int) -> str:
    """Return ``number`` rounded to ``decimals``, without trailing zeros."""
    if abs(number) > _LARGEST:
        return f"{number:.3g}"
    if isinstance(number, int) or decimals == 0:
        return f"{number:.0f}"
    return f"{number:.{decimals}f}".rstrip("0").rstrip(".")


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: ``1 host``, ``3 hosts``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def do_not_apply(count: int) -> str:
    """Return ``does not apply`` for one fact, and ``do not apply`` for any other number."""
    return "does not apply" if count == 1 else "do not apply"


def times(count: int) -> str:
    """Return how often something happened: ``once``, ``twice``, ``3 times``."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def with_more(sentence: str, more: int, noun: str) -> str:
    """Return ``sentence``, and the number of further items, such as ``And 2 more findings.``

    If ``more`` is 0, return only ``sentence``.
    """
    return f"{sentence} And {counted(more, f'more {noun}')}." if more else sentence
