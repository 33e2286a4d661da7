"""Readable JSON: a value is on one line if it fits, and only one element of a list is shown."""

import json
from typing import Any, Final

WIDTH: Final = 96
INDENT: Final = "  "
MORE: Final = "…"


def format_json(value: Any) -> str:
    return "\n".join(_lines(_cut(value), WIDTH, 0))


def _cut(value: Any) -> Any:
    """Return ``value`` with one element of each list, without parts that are shown elsewhere."""
    if isinstance(value, list):
        return [_cut(item) for item in value[:1]] + ([MORE] if len(value) > 1 else [])
    if not isinstance(value, dict):
        return value
    cut = {name: _cut(part) for name, part in value.items()}
    if {"current", "previous"} <= set(cut):
        cut["previous"] = {MORE: "the same fields as current"}
    if value.get("kind") == "network" and value.get("payload"):
        cut["payload"] = {MORE: "the payload that was submitted"}
    if {"figures", "locations"} <= set(cut):
        cut["locations"][0]["figures"] = {MORE: "the same fields as figures above"}
    return cut


def _lines(value: Any, width: int, prefix_width: int) -> list[str]:
    """Return the lines of a value, with at most ``width`` columns.

    The first line has ``prefix_width`` columns fewer.
    """
    one_line = _flat(value)
    if prefix_width + len(one_line) < width or not isinstance(value, list | dict) or not value:
        return [one_line]
    if isinstance(value, list):
        parts = [("", item) for item in value]
    else:
        parts = [(f"{_flat(name)}: ", part) for name, part in value.items()]
    lines: list[str] = []
    can_continue = False
    for number, (name, part) in enumerate(parts):
        part_lines = _lines(part, width - len(INDENT), len(name))
        part_lines = [f"{name}{part_lines[0]}", *part_lines[1:]]
        part_lines[-1] += "" if number == len(parts) - 1 else ","
        is_plain = not isinstance(part, list | dict)
        if can_continue and is_plain and len(lines[-1]) + len(part_lines[0]) + 1 <= width:
            lines[-1] += f" {part_lines[0]}"
        else:
            lines.extend(f"{INDENT}{line}" for line in part_lines)
        can_continue = is_plain
    opening, closing = "[]" if isinstance(value, list) else "{}"
    return [opening, *lines, closing]


def _flat(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
