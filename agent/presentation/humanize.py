"""Values in the units people read (the last word of a field's key is its unit), and ages."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from agent.presentation.plain_text import plain

Value = str | bool | int | float | tuple[str, ...]

_BINARY_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_WORDS: Final = re.compile(r"[Ii]pv[46]|[A-Z]?[a-z]+|[0-9]+|[A-Z]+(?![a-z])|[^\W_]+")
_STEP: Final = 1024
_LONGEST_S: Final = 1e11  # three thousand years: what is longer is no duration
_LARGEST: Final = 1e15
_ACRONYMS: Final = {
    word.lower(): word
    for word in ("CPU", "OS", "MAC", "DNS", "TLS", "IP", "USB", "SSID", "URL", "ID", "SMART", "UTC")
} | {
    "wifi": "Wi-Fi",
    "ipv4": "IPv4",
    "ipv6": "IPv6",
    "mtu": "MTU",
    "bssid": "BSSID",
    "pid": "PID",
    "dpi": "DPI",
}


def bytes_in_words(count: float) -> str:
    """Return ``count`` bytes in binary units: ``7.6 GiB``."""
    size = float(count)
    for unit in _BINARY_UNITS[:-1]:
        if abs(size) < _STEP:
            return f"{_number(size, 0 if unit == 'bytes' else 1)} {unit}"
        size /= _STEP
    return f"{_number(size, 1)} {_BINARY_UNITS[-1]}"


def seconds_in_words(seconds: float, units: int = 2) -> str:
    """Return a duration by its greatest units: ``3 d 4 h``, ``4 min 10 s``, ``0.35 s``."""
    sign, rest = ("-" if seconds < 0 else ""), abs(seconds)
    if 0 < rest < 0.1:
        return f"{_number(seconds * 1000, 2)} ms"
    if rest < 60 or rest > _LONGEST_S:  # a minute
        return f"{sign}{_number(rest, 2 if rest < 10 else 1)} s"
    parts: list[str] = []
    whole = round(rest)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        amount, whole = divmod(whole, length)
        if amount or parts:
            parts.append(f"{amount} {unit}" if amount else "")
    return sign + " ".join(part for part in parts[:units] if part)


def milliseconds_in_words(milliseconds: float) -> str:
    """Return a latency: ``0.4 ms``, ``12 ms``, and seconds from one second on."""
    if abs(milliseconds) >= 1000:  # a second
        return seconds_in_words(milliseconds / 1000)
    if 0 < milliseconds < 0.1:
        return "<0.1 ms"
    return f"{_number(milliseconds, 1 if abs(milliseconds) < 10 else 0)} ms"


def percent(fraction: float) -> str:
    """Return a share in whole hundredths: ``92 %``."""
    return f"{_number(fraction * 100, 0)} %"


def moment(text: str) -> datetime | None:
    """Read an ISO 8601 date-time; one without an offset is UTC. None when it is not one."""
    try:
        read = datetime.fromisoformat(text)
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def age_s(text: str, now: datetime | None = None) -> float | None:
    """Return the seconds since an ISO 8601 date-time; None for one that cannot be read."""
    read = moment(text)
    return None if read is None else ((now or datetime.now(UTC)) - read).total_seconds()


def ago(text: str | None, now: datetime | None = None) -> str:
    """Say how long ago an ISO 8601 date-time was, or lies ahead (a clock was set): ``3 h ago``."""
    if text is None:
        return "never"
    seconds = age_s(text, now)
    if seconds is None:
        return "at an unreadable time"
    if seconds <= -2:
        return f"{seconds_in_words(int(-seconds), units=1)} ahead of this machine's clock"
    return f"{seconds_in_words(int(max(seconds, 0)), units=1)} ago"


def moment_in_words(text: str) -> str:
    """Return an ISO 8601 time as ``2026-11-20 19:04:12 UTC``; other text as it is."""
    read = moment(text)
    return plain(text) if read is None else read.strftime("%Y-%m-%d %H:%M:%S UTC")


def duration_between(started: str, finished: str) -> str | None:
    """Return the time between two ISO 8601 times in words, None when either is not one."""
    first, last = moment(started), moment(finished)
    if first is None or last is None:
        return None
    return seconds_in_words((last - first).total_seconds())


_UNITS: Final[dict[str, Callable[[float], str]]] = {
    "Bytes": bytes_in_words,
    "Seconds": seconds_in_words,
    "Milliseconds": milliseconds_in_words,
    "Ms": milliseconds_in_words,
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


def value_in_words(key: str, value: Value) -> str:
    """Return a field's value for people, its unit read off the end of ``key``."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(filter(None, map(plain, value))) or "none"
    if isinstance(value, str):
        return moment_in_words(value) if _looks_like_moment(value) else plain(value) or "(empty)"
    unit, _ = _split_unit(key)
    if unit:
        return _UNITS[unit](value)
    return f"{value:,}" if isinstance(value, int) and abs(value) < _LARGEST else _number(value, 2)


def label_of(key: str) -> str:
    """Return the last part of a dotted key as words, its unit left out: ``Free space``."""
    leaf = key.rpartition(".")[2]
    _, words = _split_unit(leaf)
    label = " ".join(_ACRONYMS.get(word, word) for word in words)
    return plain(label[:1].upper() + label[1:]) or plain(key)


def _split_unit(key: str) -> tuple[str, list[str]]:
    """Return the unit named at the end of ``key`` ("" for none) and the words before it."""
    words = [_decapitalised(word) for word in _WORDS.findall(key.rpartition(".")[2])]
    for length in (3, 2, 1):
        unit = " ".join(word.capitalize() for word in words[-length:])
        if len(words) > length and unit in _UNITS:
            return unit, words[:-length]
    return "", words


def _decapitalised(word: str) -> str:
    return word if word.isupper() and len(word) > 1 else word.lower()


def _looks_like_moment(text: str) -> bool:
    return "T" in text and moment(text) is not None


def _number(number: float, decimals: int) -> str:
    """Return ``number`` rounded to ``decimals``, without trailing zeros."""
    if abs(number) > _LARGEST:
        return f"{number:.3g}"
    if isinstance(number, int) or decimals == 0:
        return f"{number:.0f}"
    shown = f"{number:.{decimals}f}"
    return shown.rstrip("0").rstrip(".")
