"""What is wrong with a configuration, in words: where it stands, what was meant, once each."""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

Location = tuple[int | str, ...]

_HEADER = re.compile(r"^\s*(\[{1,2})\s*([\w.\-]+)\s*\]{1,2}")
_ASSIGNMENT = re.compile(r"^\s*([\w\-]+)\s*=")
_NEAR = 0.5
"""How alike two words must be to be taken for each other (difflib's ratio)."""


def problems_of(
    model: type[BaseModel],
    error: ValidationError,
    name: str,
    text: str,
    origins: Mapping[str, str],
) -> tuple[str, ...]:
    """Return a line for each mistake in ``text``, the file called ``name``.

    ``origins`` tells for ``section.key`` the file or the variable a value came from.
    """
    source = _Source(name, _positions(text), origins)
    first_at: dict[Location, ErrorDetails] = {}
    for details in error.errors():
        details["loc"] = _place(model, details["loc"])
        first_at.setdefault(details["loc"], details)
    meant = _meant(model, first_at)
    found = sorted(
        (*source.place_of(location), _message(model, location, details))
        for location, details in first_at.items()
        if location not in meant.values()
    )
    return tuple(dict.fromkeys(f"{place}: {message}" for _, place, message in found))


@dataclass(frozen=True, slots=True)
class _Source:
    """A file's name, where its keys stand (line, column), and what variables have set."""

    name: str
    positions: Mapping[Location, tuple[int, int]]
    origins: Mapping[str, str]

    def place_of(self, location: Location) -> tuple[int, str]:
        """Return the line, to sort by, and the place in words: a variable or file:line:column."""
        prefix = ".".join(str(part) for part in location[:2])
        origin = next(
            (o for k, o in self.origins.items() if k == prefix or k.startswith(f"{prefix}.")),
            self.name,
        )
        if origin != self.name:
            return 0, origin
        for length in range(len(location), 0, -1):
            if position := self.positions.get(location[:length]):
                return position[0], f"{self.name}:{position[0]}:{position[1]}"
        return 0, self.name


def _meant(
    model: type[BaseModel], errors: Mapping[Location, ErrorDetails]
) -> dict[Location, Location]:
    """Pair each unknown key with the missing one it was meant for: one mistake, not two."""
    missing = [at for at, e in errors.items() if e["type"] == "missing"]
    meant: dict[Location, Location] = {}
    for at in (at for at, e in errors.items() if e["type"] == "extra_forbidden"):
        here = [str(m[-1]) for m in missing if m[:-1] == at[:-1] and m not in meant.values()]
        known = list(fields_below(model, at[:-1]))
        nearest = _nearest(str(at[-1]), here)
        if nearest and _nearest(str(at[-1]), known) == nearest:
            meant[at] = (*at[:-1], nearest)
    return meant


def _nearest(word: str, known: list[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=_NEAR)), None)


def fields_below(model: type[BaseModel], location: Location) -> Mapping[str, Any]:
    """Return the fields of the section that ``location`` leads to; none if it leads nowhere."""
    for part in location:
        if isinstance(part, int):
            continue
        field = model.model_fields.get(part)
        if field is None:
            return {}
        inner = next(
            (t for t in _types_in(field.annotation) if issubclass(t, BaseModel)),
            None,
        )
        if inner is None:
            return {}
        model = inner
    return model.model_fields


def _place(model: type[BaseModel], location: Location) -> Location:
    """Return ``location`` without the names that pydantic gives to the branches of a union."""
    for depth, part in enumerate(location):
        if isinstance(part, str) and not fields_below(model, location[:depth]):
            return location[:depth]
    return location


def _types_in(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _types_in(argument)


def syntax_problem(name: str, error: tomllib.TOMLDecodeError, text: str) -> str:
    message = str(error)
    if found := re.search(r" \(at line (\d+), column (\d+)\)$", message):
        line, column = int(found[1]), int(found[2])
        offending = text.splitlines()[line - 1].strip() if line <= text.count("\n") + 1 else ""
        return f"{name}:{line}:{column}: {message[: found.start()]}: {offending!r}"
    return f"{name}: {message}"


def _positions(text: str) -> dict[Location, tuple[int, int]]:
    """Map each table and key of a TOML text to the line and column where it stands.

    Enough for this configuration: plain tables, arrays of tables and bare keys.
    """
    positions: dict[Location, tuple[int, int]] = {}
    table: Location = ()
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = tuple(header[2].split("."))
            if header[1] == "[[":
                counts[header[2]] = counts.get(header[2], -1) + 1
                table = (*table, counts[header[2]])
            positions[table] = (number, header.start(2) + 1)
        elif assignment := _ASSIGNMENT.match(line):
            positions[(*table, assignment[1])] = (number, assignment.start(1) + 1)
    return positions


def _message(model: type[BaseModel], location: Location, error: ErrorDetails) -> str:
    *section, key = location or ("",)
    where = f" in [{section[0]}]" if section else ""
    if error["type"] == "extra_forbidden":
        nearest = _nearest(str(key), list(fields_below(model, tuple(section))))
        suggestion = f"; did you mean {nearest!r}?" if nearest else ""
        return f"unknown key {str(key)!r}{where}{suggestion}"
    if error["type"] == "missing":
        return f"the key {str(key)!r}{where} is required"
    value = f" (it is {repr(error['input'])[:80]}{_suggestion(error)})"
    text = error["msg"].removeprefix("Value error, ")
    name = ".".join(str(part) for part in location if isinstance(part, str))
    if not name:
        return error["msg"]
    return f"{name} {text[:1].lower()}{text[1:]}{value}"


def _suggestion(error: ErrorDetails) -> str:
    """Name the nearest of the words a value may be."""
    words = re.findall(r"'([^']+)'", str(error.get("ctx", {}).get("expected", "")))
    nearest = _nearest(str(error["input"]), words) if error["type"] == "literal_error" else None
    return f"; did you mean {nearest!r}?" if nearest else ""
