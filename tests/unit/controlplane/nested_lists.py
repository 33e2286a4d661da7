"""Builds nested lists, to test the limit on the depth of JSON values."""

from typing import Any


def nested_list(depth: int) -> Any:
    """Return the number 1 inside ``depth`` lists."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value
