"""Reads the JSON output of other programs. It may have any shape. Unexpected parts are ignored."""

import json
import re
from collections.abc import Iterator
from typing import Any

_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,6})?")

Object = dict[str, Any]


def load_object(data: bytes | str, program: str) -> Object:
    """Parse a JSON object. Raises ValueError if ``data`` is not one. The error never quotes it."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError(f"{program} did not write JSON") from None
    if not isinstance(value, dict):
        raise ValueError(f"{program} did not write a JSON object")
    return value


def objects(value: object) -> Iterator[Object]:
    """Yield the objects of a list. Some programs write one object instead of a list of one."""
    entries = value if isinstance(value, list) else [value]
    return (entry for entry in entries if isinstance(entry, dict))


def text(entry: Object, *names: str) -> str | None:
    """Return the value of the first key in ``names`` that has a non-blank string.

    Blanks at both ends of the value are removed.
    """
    for name in names:
        value = entry.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return None


def number(entry: Object, name: str) -> int | None:
    """Return a number without its decimals. In the JSON, it may be a string."""
    value = entry.get(name)
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if abs(value) < 2**53 else None


def flag(entry: Object, name: str) -> bool | None:
    value = entry.get(name)
    return value if isinstance(value, bool) else None


def hexadecimal(value: str | None) -> int | None:
    """Return the hexadecimal number at the beginning of a text, or None if there is none.

    For example, the result for ``0x04b8  (Seiko Epson Corp.)`` is 1208.
    """
    match = re.match(r"\s*0x([0-9a-fA-F]{1,8})\b", value or "")
    return int(match[1], 16) if match else None
