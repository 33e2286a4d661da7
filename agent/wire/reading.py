"""JSON → records of the models and back, and what is wrong with JSON that does not fit."""

import re
from typing import Any, Final, Literal, TypeVar

import msgspec

from agent.wire.model import checks_in

T = TypeVar("T")

Place = tuple[str | int, ...]
Fault = Literal["syntax", "missing", "unknown", "value"]

_AT: Final = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?$", re.DOTALL)
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")
_MISSING: Final = re.compile(r"^Object missing required field `(.*)`$")
_UNKNOWN: Final = re.compile(r"^Object contains unknown field `(.*)`$", re.DOTALL)
_NAMED: Final = re.compile(r"^`(\w+)` (.*)$", re.DOTALL)
_SHOWN: Final = 160
"""Characters of what a stranger wrote that are repeated to somebody."""


class Mismatch(ValueError):
    """Not what the model says. ``place`` leads to what is wrong: names on the wire, and indices."""

    def __init__(self, place: Place, reason: str, fault: Fault = "value") -> None:
        self.place = place
        self.reason = reason
        self.fault = fault
        where = self.where
        super().__init__(f"{where}: {reason}" if where else reason)

    @property
    def where(self) -> str:
        return ".".join(str(part) for part in self.place)


def read_json(content: bytes | str, kind: type[T]) -> T:
    """Read one JSON document strictly (RFC 8259). Raises Mismatch."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        raise _mismatch(error) from None
    except RecursionError:
        raise Mismatch((), "it is nested too deeply", "syntax") from None
    except ValueError as error:  # no JSON, or no UTF-8
        raise Mismatch((), str(error)[:_SHOWN], "syntax") from None


def converted(value: Any, annotation: Any) -> Any:
    """Read plain values, such as those of TOML, as ``annotation`` says. Raises Mismatch."""
    try:
        made = msgspec.convert(value, annotation)
    except msgspec.ValidationError as error:
        raise _mismatch(error) from None
    except RecursionError:
        raise Mismatch((), "it is nested too deeply") from None
    check = checks_in(annotation).get(type(made))
    try:
        return made if check is None else check(made)
    except ValueError as error:
        raise Mismatch((), str(error)) from None


def write_json(record: object) -> bytes:
    """Write a record as compact JSON. Raises ValueError for text that no UTF-8 can carry."""
    return msgspec.json.encode(record)


def write_indented(record: object) -> str:
    """Write a record as JSON for people."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2).decode()


def plain_values(record: object) -> Any:
    """Return a record as the values that JSON has."""
    return msgspec.to_builtins(record)


def _mismatch(error: msgspec.ValidationError) -> Mismatch:
    """Take a place and a reason from msgspec's words (its only account of an error)."""
    found = _AT.match(str(error))
    what, path = (found["what"], found["path"] or "") if found else (str(error), "")
    place: Place = tuple(
        int(index) if index else name for name, index in _STEP.findall(path) if name or index
    )
    if missing := _MISSING.match(what):
        return Mismatch((*place, missing[1]), "is required", "missing")
    if unknown := _UNKNOWN.match(what):
        return Mismatch((*place, unknown[1][:_SHOWN]), "is not known", "unknown")
    if named := _NAMED.match(what):
        return Mismatch((*place, named[1]), named[2][:_SHOWN])
    return Mismatch(place, (what[:1].lower() + what[1:])[:_SHOWN])
