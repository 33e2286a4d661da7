"""Frozen, checked records: what the wire and the configuration are made of.

msgspec reads JSON into them strictly and knows bounds of numbers and lengths. What it has no word
for, such as a length in UTF-16 units, is a `Check` among a field's annotations; it is looked at
whenever a record is made, by hand or from JSON.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, dataclass_transform, get_args, get_origin

import msgspec

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Check:
    """``Annotated[str, Check(function)]``: the function returns the value as it is kept.

    It raises ValueError for one that is wrong, in words that follow the field's name. ``also``
    are types that a value made by hand may have, besides the one that is read.
    """

    function: Callable[[Any], Any]
    also: tuple[type, ...] = ()


class RecordType(msgspec.StructMeta):
    """Makes every record frozen, and built by keywords only."""

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> "RecordType":
        options = {"frozen": True, "kw_only": True, **options}
        return super().__new__(mcls, name, bases, namespace, **options)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Record(msgspec.Struct, metaclass=RecordType, frozen=True):
    """The base of every model. Raises ValueError when a value fails one of its checks."""

    def __post_init__(self) -> None:
        for name, wire_name, checks in _checks_of(type(self)):
            value = getattr(self, name)
            check = checks.get(type(value))
            if check is None:
                continue
            try:
                kept = check(value)
            except ValueError as error:
                raise ValueError(f"`{wire_name}` {error}") from None
            if kept is not value:
                msgspec.structs.force_setattr(self, name, kept)


Checks = Mapping[type, Callable[[Any], Any]]
"""By the type that a value has, which is how the branches of a union are told apart."""


@cache
def _checks_of(model: type[Record]) -> tuple[tuple[str, str, Checks], ...]:
    """Return (name, name on the wire, checks) of the fields that have checks."""
    found = ((f.name, f.encode_name, checks_in(f.type)) for f in msgspec.structs.fields(model))
    return tuple(each for each in found if each[2])


def checks_in(annotation: Any) -> Checks:
    """Return the checks that stand in a type, as ``Annotated[str, Check(function)] | None``."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner, *notes = arguments
        checks = dict(checks_in(inner))
        for note in notes:
            if isinstance(note, Check):
                for kind in (get_origin(inner) or inner, *note.also):
                    checks[kind] = _in_turn([*filter(None, [checks.get(kind)]), note.function])
        return checks
    if origin in {Union, UnionType}:
        return {kind: check for each in arguments for kind, check in checks_in(each).items()}
    if origin is tuple and (inner_checks := checks_in(arguments[0])):
        return {tuple: _of_each(inner_checks)}
    return {}


def _in_turn(functions: Iterable[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    every = tuple(functions)

    def check(value: Any) -> Any:
        for function in every:
            value = function(value)
        return value

    return check


def _of_each(checks: Checks) -> Callable[[Any], Any]:
    def check(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(checks[type(v)](v) if type(v) in checks else v for v in values)

    return check


def replaced(record: Made, **changes: Any) -> Made:
    """Return a copy of a record with other values; its checks are looked at again."""
    return msgspec.structs.replace(record, **changes)  # type: ignore[type-var]
