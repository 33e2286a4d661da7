"""Fits untrusted texts and lists into the contract's limits, and counts the dropped items."""

import math
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeVar

from agent.wire import limits
from agent.wire.controls import without_controls
from agent.wire.text import utf16_length

Item = TypeVar("Item")

ELLIPSIS: Final = "…"


def clip(text: str, maximum: int = limits.PAYLOAD_STRING_MAX) -> str:
    """Return ``text`` without control characters, cut to ``maximum`` UTF-16 code units.

    A cut text ends with an ellipsis. Surrogate pairs are never split.
    """
    clean = without_controls(text)
    if utf16_length(clean) <= maximum:
        return clean
    head_max = maximum - len(ELLIPSIS)
    head = clean[:head_max]
    while (excess := utf16_length(head) - head_max) > 0:
        head = head[: -max(1, excess // 2)]  # a character has at most two code units
    return head + ELLIPSIS


def clip_id(text: str, fallback: str, maximum: int = limits.PAYLOAD_STRING_MAX) -> str:
    """Clip a text as `clip` does. Return ``fallback`` if nothing is left."""
    return clip(text, maximum) or fallback


def fitted(value: Any) -> Any:
    """Return a fact as plain values: texts are clipped, dataclasses become dicts.

    Infinity and NaN, which JSON cannot represent, become None.
    """
    if isinstance(value, str):
        return clip(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, tuple):
        return tuple(fitted(item) for item in value)
    if is_dataclass(value):
        return {field.name: fitted(getattr(value, field.name)) for field in fields(value)}
    return value


def truncate(
    items: Iterable[Item], maximum: int, describe: Callable[[int], Item]
) -> tuple[Item, ...]:
    """Return the first ``maximum`` items.

    If items are dropped, ``describe`` is called with the number of dropped items, and its result
    becomes the last returned item.
    """
    everything = tuple(items)
    if len(everything) <= maximum:
        return everything
    kept_items = everything[: maximum - 1]
    return (*kept_items, describe(len(everything) - len(kept_items)))
