"""Everything that is wrong in a document: reading it by a model stops at the first mistake."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec.structs import FieldInfo, fields

from agent.wire.model import Record
from agent.wire.reading import Fault, Mismatch, Place, converted


@dataclass(frozen=True, slots=True)
class Mistake:
    """``value`` is what stands at ``place``, ``annotation`` the type it should have."""

    place: Place
    fault: Fault
    reason: str
    value: Any = None
    annotation: Any = None


def mistakes_in(annotation: Any, value: Any, at: Place = ()) -> Iterator[Mistake]:
    """Yield what is wrong in ``value``, which is made of what JSON and TOML have."""
    kind = bare(annotation)
    if is_record(kind) and isinstance(value, dict):
        yield from _mistakes_in_table(kind, value, at)
        return
    if get_origin(kind) is tuple and isinstance(value, list):
        element = get_args(kind)[0]
        inner = [m for i, each in enumerate(value) for m in mistakes_in(element, each, (*at, i))]
        if inner:
            yield from inner
            return
    try:
        converted(value, annotation)
    except Mismatch as error:
        yield Mistake((*at, *error.place), error.fault, error.reason, value, annotation)


def _mistakes_in_table(
    model: type[Record], table: Mapping[str, Any], at: Place
) -> Iterator[Mistake]:
    known = {field.encode_name: field for field in fields(model)}
    settings = model.__struct_config__
    tag = settings.tag_field
    if tag is not None and table.get(tag, settings.tag) != settings.tag:
        yield Mistake((*at, tag), "value", f"must be {settings.tag!r}", table[tag])
    for key in table:
        if settings.forbid_unknown_fields and key not in known and key != tag:
            yield Mistake((*at, key), "unknown", "is not known")
    found = False
    for key, field in known.items():
        if key in table:
            for mistake in mistakes_in(field.type, table[key], (*at, key)):
                found = True
                yield mistake
        elif field.required:
            found = True
            yield Mistake((*at, key), "missing", "is required")
    if not found:
        yield from _as_a_whole(model, {k: v for k, v in table.items() if k in known}, at)


def _as_a_whole(model: type[Record], table: dict[str, Any], at: Place) -> Iterator[Mistake]:
    """Yield what is wrong although each key is right for itself."""
    try:
        converted(table, model)
    except Mismatch as error:
        yield Mistake((*at, *error.place), error.fault, error.reason, table)


def bare(annotation: Any) -> Any:
    """Return a type without its bounds, and without None."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in {Union, UnionType}:
        others = [each for each in get_args(annotation) if each is not type(None)]
        return bare(others[0]) if len(others) == 1 else annotation
    return annotation


def is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Record)


def choices_of(annotation: Any) -> tuple[str, ...]:
    """Return the words a value may be; none where it may be any."""
    kind = bare(annotation)
    return get_args(kind) if get_origin(kind) is Literal else ()


def section_of(annotation: Any) -> type[Record] | None:
    """Return the model of a table, or of each table of an array; None for plain values."""
    kind = bare(annotation)
    if get_origin(kind) is tuple:
        kind = bare(get_args(kind)[0])
    return kind if is_record(kind) else None


def fields_below(model: type[Record], place: Place) -> Mapping[str, FieldInfo]:
    """Return the fields of the section that ``place`` leads to; none if it leads nowhere."""
    for part in place:
        if isinstance(part, int):
            continue
        field = {f.encode_name: f for f in fields(model)}.get(part)
        section = None if field is None else section_of(field.type)
        if section is None:
            return {}
        model = section
    return {f.encode_name: f for f in fields(model)}
