"""Redacts secrets in facts. Names and addresses from untrusted sources may contain them."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin

T = TypeVar("T")

Redact = Callable[[str], str]


def redacted(facts: T, redact: Redact) -> T:
    """Return ``facts`` with every free text redacted. Fixed words of the contract are kept."""
    kind: Any = type(facts)
    changes: dict[str, Any] = {}
    for name in _free_fields(kind):
        old = getattr(facts, name)
        new = _redacted(old, redact)
        if new is not old:
            changes[name] = new
    return replace(facts, **changes) if changes else facts  # type: ignore[type-var]


def _redacted(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        new = redact(value)
        return value if new == value else new
    if isinstance(value, tuple):
        items = tuple(_redacted(item, redact) for item in value)
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return redacted(value, redact) if is_dataclass(value) else value


@cache
def _free_fields(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields whose type is not a Literal."""
    return tuple(f.name for f in fields(kind) if not _is_choice(f.type))


def _is_choice(annotation: Any) -> bool:
    if get_origin(annotation) is tuple:
        return _is_choice(get_args(annotation)[0])
    return get_origin(annotation) is Literal
