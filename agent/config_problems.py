"""What is wrong with a configuration, in words: where it stands, what was meant, once each."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent.redaction.known import redact_value
from agent.wire.mistakes import Mistake, bare, choices_of, fields_below, mistakes_in
from agent.wire.model import Record
from agent.wire.reading import Place

_HEADER = re.compile(r"^\s*(\[{1,2})\s*([\w.\-]+)\s*\]{1,2}")
_ASSIGNMENT = re.compile(r"^\s*([\w\-]+)\s*=")
_NEAR: Final = 0.5
"""How alike two words must be to be taken for each other (difflib's ratio)."""

_EXPECTED: Final = re.compile(r"expected `(\w+)`(?: of length)? ?(?:(>=|>|<=|<) (\S+))?")
_BOUNDS: Final = {">=": "at least", ">": "more than", "<=": "at most", "<": "less than"}
_THINGS: Final = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def problems_of(
    model: type[Record],
    tree: Mapping[str, Any],
    name: str,
    text: str,
    origins: Mapping[str, str],
    *,
    more: Iterable[Mistake] = (),
) -> tuple[str, ...]:
    """Return a line for each mistake in ``tree``, read from ``text``, the file called ``name``.

    ``origins`` tells for ``section.key`` the file or the variable a value came from; ``more`` are
    mistakes that somebody else has found.
    """
    source = _Source(name, _positions(text), origins)
    mistakes = (*mistakes_in(model, tree), *more)
    meant = _meant(model, mistakes)
    found = sorted(
        (*source.place_of(mistake.place), _message(model, mistake))
        for mistake in mistakes
        if mistake.place not in meant
    )
    return tuple(dict.fromkeys(f"{place}: {message}" for _, place, message in found))


def place_of(key: str, name: str, text: str, origins: Mapping[str, str]) -> str:
    """Return where ``section.key`` stands: a variable, or file:line:column."""
    return _Source(name, _positions(text), origins).place_of(tuple(key.split(".")))[1]


def in_words(reason: str, choices: Sequence[str] = ()) -> str:
    """Say for a person what msgspec says for a programmer."""
    if choices:
        *others, last = (repr(choice) for choice in choices)
        return f"must be {', '.join(others)} or {last}"
    expected = _EXPECTED.match(reason)
    if expected is None:
        return reason
    thing, comparison, bound = expected.groups()
    if comparison is None:
        return f"must be {_THINGS.get(thing, thing)}"
    number = bound.removesuffix(".0")
    if thing in {"str", "array"}:
        unit = "characters" if thing == "str" else "entries"
        return f"must have {_BOUNDS[comparison]} {number} {unit}"
    return f"must be {_BOUNDS[comparison]} {number}"


def is_text(annotation: Any) -> bool:
    """Tell whether a value of this type is written as a text."""
    return bare(annotation) is str or bool(choices_of(annotation))


@dataclass(frozen=True, slots=True)
class _Source:
    """A file's name, where its keys stand (line, column), and what variables have set."""

    name: str
    positions: Mapping[Place, tuple[int, int]]
    origins: Mapping[str, str]

    def place_of(self, place: Place) -> tuple[int, str]:
        """Return the line, to sort by, and the place in words: a variable or file:line:column."""
        prefix = ".".join(str(part) for part in place[:2])
        origin = next(
            (o for k, o in self.origins.items() if k == prefix or k.startswith(f"{prefix}.")),
            self.name,
        )
        if origin != self.name:
            return 0, origin
        for length in range(len(place), 0, -1):
            if position := self.positions.get(place[:length]):
                return position[0], f"{self.name}:{position[0]}:{position[1]}"
        return 0, self.name


def _meant(model: type[Record], mistakes: Sequence[Mistake]) -> set[Place]:
    """Return the missing keys for which an unknown one was written: one mistake, not two."""
    missing = [m.place for m in mistakes if m.fault == "missing"]
    meant: set[Place] = set()
    for *above, key in (m.place for m in mistakes if m.fault == "unknown"):
        here = [str(m[-1]) for m in missing if m[:-1] == tuple(above) and m not in meant]
        nearest = _nearest(str(key), here)
        if nearest and _nearest(str(key), list(fields_below(model, tuple(above)))) == nearest:
            meant.add((*above, nearest))
    return meant


def _nearest(word: str, known: list[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=_NEAR)), None)


def syntax_problem(
    model: type[Record], name: str, error: tomllib.TOMLDecodeError, text: str
) -> str:
    """Say what breaks the syntax, and where. Of the line only a key that is one of ours is shown:
    whatever else stands there may be a secret, or a part of one."""
    message = str(error)
    if found := re.search(r" \(at line (\d+), column (\d+)\)$", message):
        line, column = int(found[1]), int(found[2])
        key = _key_in_line(model, text.splitlines()[line - 1 : line])
        where = f": '{key} = …'" if key else ""
        return f"{name}:{line}:{column}: {message[: found.start()]}{where}"
    return f"{name}: {message}"


def _key_in_line(model: type[Record], lines: Sequence[str]) -> str | None:
    assignment = _ASSIGNMENT.match(lines[0]) if lines else None
    sections = fields_below(model, ())
    known = {*sections, *(key for section in sections for key in fields_below(model, (section,)))}
    return assignment[1] if assignment and assignment[1] in known else None


def _positions(text: str) -> dict[Place, tuple[int, int]]:
    """Map each table and key of a TOML text to the line and column where it stands.

    Enough for this configuration: plain tables, arrays of tables and bare keys.
    """
    positions: dict[Place, tuple[int, int]] = {}
    table: Place = ()
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


def _message(model: type[Record], mistake: Mistake) -> str:
    *section, key = mistake.place or ("",)
    where = f" in [{section[0]}]" if section else ""
    if mistake.fault == "unknown":
        nearest = _nearest(str(key), list(fields_below(model, tuple(section))))
        return f"unknown key {str(key)!r}{where}{_suggestion(nearest)}"
    if mistake.fault == "missing":
        return f"the key {str(key)!r}{where} is required"
    choices = choices_of(mistake.annotation)
    nearest = _nearest(str(mistake.value), list(choices))
    reason = in_words(mistake.reason, choices)
    name = ".".join(str(part) for part in mistake.place if isinstance(part, str))
    if mistake.value is None:
        return f"{name} {reason}"
    return f"{name} {reason} (it is {_shown(mistake)}{_suggestion(nearest)})"


def _shown(mistake: Mistake) -> str:
    """Return what stands there; redacted before it is cut, for half a password looks like none."""
    key = next((part for part in reversed(mistake.place) if isinstance(part, str)), "")
    return repr(redact_value(key, mistake.value))[:80]


def _suggestion(nearest: str | None) -> str:
    return f"; did you mean {nearest!r}?" if nearest else ""
