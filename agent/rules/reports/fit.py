"""Makes foreign text and long lists fit the contract, and counts what had to go."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from agent.wire import limits
from agent.wire.controls import without_controls
from agent.wire.text import utf16_length

Item = TypeVar("Item")

ELLIPSIS: Final = "…"


def clip(text: str, maximum: int = limits.PAYLOAD_STRING_MAX) -> str:
    """Return ``text`` without control characters, cut to ``maximum`` UTF-16 code units.

    A cut never splits a surrogate pair and is marked by an ellipsis.
    """
    clean = without_controls(text)
    if utf16_length(clean) <= maximum:
        return clean
    room = maximum - 1
    kept = clean[:room]
    while utf16_length(kept) > room:
        kept = kept[: len(kept) - max(1, (utf16_length(kept) - room) // 2)]
    return kept + ELLIPSIS


def clip_id(text: str, fallback: str, maximum: int = limits.PAYLOAD_STRING_MAX) -> str:
    """Like `clip`, for fields that must not be empty."""
    return clip(text, maximum) or fallback


def take(
    items: Iterable[Item], maximum: int, say: Callable[[int], Item] | None = None
) -> tuple[Item, ...]:
    """Return the first ``maximum`` items; if some go, the last kept one may say how many."""
    everything = tuple(items)
    if len(everything) <= maximum:
        return everything
    if say is None:
        return everything[:maximum]
    kept = everything[: maximum - 1]
    return (*kept, say(len(everything) - len(kept)))
