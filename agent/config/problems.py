"""Messages for the problems of a configuration: place, reason and suggestion."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.config.model import SECTIONS, Config
from agent.config.syntax import ASSIGNMENT, HEADER
from agent.redaction.known import redact_value
from agent.wire.validation import Issue, Path

_SIMILARITY_MIN: Final = 0.5
"""Minimum similarity of a suggestion (difflib's ratio)."""
_SAME_MEANING: Final = {
    "verbose": "debug", "trace": "debug", "notice": "info", "warn": "warning", "err": "error",
    "fatal": "error", "critical": "error", "push": "stream", "plain": "text", "tcp": "network",
    "lan": "network", "bluetooth": "ble", "card-reader": "payment-terminal",
    "pinpad": "payment-terminal", "eftpos": "payment-terminal", "kds": "kitchen-display",
}  # fmt: skip
"""Values that are common in other programs, each with the value that means the same here."""
_WITHOUT_QUOTES: Final = {
    "must be true or false": re.compile("true|false"),
    "must be a number": re.compile(r"[+-]?\d+(\.\d+)?"),
    "must be a whole number": re.compile(r"[+-]?\d+"),
}
"""Patterns by the reason of an issue. A string that matches the pattern is valid without quotes."""


def problems_of(issues: Sequence[Issue], source: "Source") -> tuple[str, ...]:
    """Return a line for each issue."""
    misspelled = _misspelled(issues)
    messages = sorted(
        (*source.place_of(issue.path), _message(issue))
        for issue in issues
        if issue.path not in misspelled
    )
    return tuple(dict.fromkeys(f"{place}: {message}" for _, place, message in messages))


@dataclass(frozen=True, slots=True)
class Source:
    """The places of a configuration's values.

    Args:
        name: The file's name.
        positions: The line and column of each key in the file.
        origins: The file or variable that sets each ``section.key``.
    """

    name: str
    positions: Mapping[Path, tuple[int, int]]
    origins: Mapping[str, str]

    def place_of(self, path: Path) -> tuple[int, str]:
        """Return the line, for sorting, and the place: a variable or file:line:column."""
        prefix = ".".join(str(part) for part in path[:2])
        keys = (key for key in self.origins if key == prefix or key.startswith(f"{prefix}."))
        origin = self.origins.get(next(keys, ""), self.name)
        if origin != self.name:
            return 0, origin
        for length in range(len(path), 0, -1):
            if position := self.positions.get(path[:length]):
                return position[0], f"{self.name}:{position[0]}:{position[1]}"
        return 0, self.name


def _misspelled(issues: Sequence[Issue]) -> set[Path]:
    """Return the required keys that are missing because the user misspelled them.

    A misspelled key is reported once, as unknown, and not also as missing. A missing section is
    returned too if the user wrote one of its keys above the first header, because the message about
    this unknown key already names the section.
    """
    missing = [issue.path for issue in issues if issue.fault == "missing"]
    misspelled: set[Path] = set()
    for *parents, key in (issue.path for issue in issues if issue.fault == "unknown"):
        if not parents:
            misspelled.update((name,) for name in _sections_with(key))
        missing_keys = [
            str(path[-1])
            for path in missing
            if path[:-1] == tuple(parents) and path not in misspelled
        ]
        nearest = _nearest(str(key), missing_keys)
        if nearest and _nearest(str(key), _keys_below(parents)) == nearest:
            misspelled.add((*parents, nearest))
    return misspelled


def _sections_with(key: object) -> list[str]:
    """Return the names of the sections that have ``key``."""
    return [name for name, section in SECTIONS.items() if key in section.model_fields]


def _keys_below(parents: Sequence[object]) -> list[str]:
    """Return the keys of the table at the path ``parents``; none if there is no such table."""
    section = SECTIONS.get(str(parents[0])) if parents else Config
    return [] if section is None else list(section.model_fields)


def _nearest(word: str, known_words: list[str]) -> str | None:
    matches = difflib.get_close_matches(word, known_words, n=1, cutoff=_SIMILARITY_MIN)
    return matches[0] if matches else None


def positions_of(text: str) -> dict[Path, tuple[int, int]]:
    """Map each table and key of a TOML text to its line and column.

    Only the syntax of this configuration is supported: tables, arrays of tables and bare keys.
    """
    positions: dict[Path, tuple[int, int]] = {}
    table: Path = ()
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := HEADER.match(line):
            table = tuple(header[2].split("."))
            if header[1] == "[[":
                counts[header[2]] = counts.get(header[2], -1) + 1
                table = (*table, counts[header[2]])
            positions[table] = (number, header.start(2) + 1)
        elif assignment := ASSIGNMENT.match(line):
            positions[(*table, assignment[1])] = (number, assignment.start(1) + 1)
    return positions


def _message(issue: Issue) -> str:
    *section, key = issue.path or ("",)
    where = f" in [{section[0]}]" if section else ""
    if issue.fault == "unknown":
        return f"unknown key {str(key)!r}{where}{_hint(issue.path)}"
    if issue.fault == "missing":
        return f"the key {str(key)!r}{where} is required"
    reason = "must be a table" if issue.is_table else issue.reason
    name = ".".join(str(part) for part in issue.path if isinstance(part, str))
    if issue.value is None:
        return f"{name} {reason}"
    return f"{name} {reason} (it is {_redacted_value(issue)}{_instead(issue)})"


def _hint(path: Path) -> str:
    """Return a hint for an unknown key: the section that it belongs to, or the most similar key."""
    *parents, key = path
    sections = _sections_with(key)
    if len(sections) == 1 and not parents:
        return f": it belongs below a line [{sections[0]}]"
    nearest = _nearest(str(key), _keys_below(parents))
    if nearest is None and len(sections) == 1:
        return f": it belongs in [{sections[0]}]"
    return _suggestion(nearest)


def _instead(issue: Issue) -> str:
    """Return what to write instead of a wrong value; "" if unknown."""
    value = issue.value
    if issue.reason == "must be a list":
        if isinstance(value, dict):
            return f"; write [[{issue.path[-1]}]], with two brackets"
        return "; write it in square brackets"
    if isinstance(value, str) and issue.reason in _WITHOUT_QUOTES:
        return "; delete the quotes" if _WITHOUT_QUOTES[issue.reason].fullmatch(value) else ""
    choices = list(issue.choices)
    synonym = _SAME_MEANING.get(str(value).lower())
    return _suggestion(synonym if synonym in choices else _nearest(str(value), choices))


def _redacted_value(issue: Issue) -> str:
    """Return the redacted value, cut to 80 characters.

    The value is redacted before it is cut, because a cut password might not be recognized.
    """
    key = next((part for part in reversed(issue.path) if isinstance(part, str)), "")
    return repr(redact_value(key, issue.value))[:80]


def _suggestion(nearest: str | None) -> str:
    return f"; did you mean {nearest!r}?" if nearest else ""
