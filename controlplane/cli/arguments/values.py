"""Values as people type them, read or refused in words."""

import argparse
from typing import Final

DAYS_MAX: Final = 36_500
_UNITS_S: Final = {"m": 60, "h": 3600, "d": 86_400}


def port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:  # the 16 bits of a port
        raise argparse.ArgumentTypeError("a port is 0 to 65535")
    return number


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
