"""Messages for frequent mistakes in TOML: what is wrong, and what to write instead.

A message repeats only names of sections and keys that are valid in a configuration, because all
other text of a line may be a secret.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from tomllib import TOMLDecodeError
from typing import Final, get_args, get_origin

from agent.config.model import SECTIONS, Config
from agent.wire.base import Port

HEADER: Final = re.compile(r"^\s*(\[{1,2})\s*([\w.\-]+)\s*\]{1,2}")
ASSIGNMENT: Final = re.compile(r"^\s*([\w\-]+)\s*=")
_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_CURLY: Final = re.compile("[\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb]")
_BOOLEANS: Final = {
    "yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false",
}  # fmt: skip
_NO_VALUES: Final = frozenset({"none", "null", "nil"})
_OTHER_COMMENT: Final = re.compile(r"\s*(?:;|//|/\*|--|<!--)")
"""The start of a comment in languages other than TOML."""
_FIRST_WORD: Final = re.compile(r"\s*([\w\-]+)\s*")
_UNQUOTED_IN_LIST: Final = re.compile(r"[\[,]\s*(?:[A-Za-z_]|\d+\.\d+\.)")
_LEADING_ZERO: Final = re.compile(r"[+-]?0\d")
_WITH_UNIT: Final = re.compile(r"[+-]?\d+(?:\.\d+)?\s*[A-Za-z%]+$")
_KNOWN_NAMES: Final = frozenset(SECTIONS).union(*(each.model_fields for each in SECTIONS.values()))
"""The names of all sections and keys."""
_UNCLEAR: Final = (
    "this line is neither a [section] nor a key = value; if it is a comment, put # before it"
)


def syntax_problem(name: str, error: TOMLDecodeError, text: str) -> str:
    """Return a line that describes a syntax error and its place."""
    message, lines = str(error), text.splitlines()
    place = _PLACE.search(message)
    if place is None:
        return f"{name}: {message}"
    number = int(place[1] or len(lines))
    line = "".join(lines[number - 1 : number])
    column = place[2] or len(line) + 1
    mistake = _Mistake(message[: place.start()], line, lines[: number - 1])
    return f"{name}:{number}:{column}: {mistake.describe()}"


@dataclass(frozen=True, slots=True)
class _Mistake:
    """A syntax error: tomllib's message, the line with the error, and all earlier lines."""

    message: str
    line: str
    previous_lines: Sequence[str]

    def describe(self) -> str:
        """Return what is wrong and what to write instead."""
        # tomllib's messages about tables and keys that appear twice begin with "Cannot".
        if not self.message.startswith("Cannot"):
            if _CURLY.search(self.line):
                return f"the quotes are curly: write straight ones, {self._example}"
            if "\\" in self.line and self.value.startswith('"'):
                return (
                    "a backslash in double quotes has a special meaning: use single quotes,"
                    f" {self.key or 'key'} = 'C:\\folder\\file'"
                )
        for start, describe in _DESCRIPTIONS.items():
            if self.message.startswith(start):
                return describe(self)
        return self._describe_as_tomllib()

    @property
    def key(self) -> str | None:
        """The key that the line sets; None if the configuration has no such key."""
        assignment = ASSIGNMENT.match(self.line)
        return assignment[1] if assignment and assignment[1] in _KNOWN_NAMES else None

    @property
    def value(self) -> str:
        """The text after the first equals sign, without a comment."""
        return self.line.partition("=")[2].partition("#")[0].strip()

    def _describe_as_tomllib(self) -> str:
        return self.message + (f": '{self.key} = …'" if self.key else "")

    @property
    def _example(self) -> str:
        return self._example_of(self.key)

    def _example_of(self, key: str | None) -> str:
        """Return an assignment in the form that the key's type needs."""
        fields = (section.model_fields.get(key or "") for section in SECTIONS.values())
        annotation = next((field.annotation for field in fields if field is not None), str)
        value = '"…"'
        if get_origin(annotation) is tuple:
            value = "[80, 443]" if get_args(annotation)[0] is Port else '["…", "…"]'
        elif annotation in (int, float):
            value = "30"
        elif annotation is bool:
            value = "true"
        return f"{key or 'key'} = {value}"

    def describe_repeated_section(self) -> str:
        header = HEADER.match(self.line)
        if header is None or header[2] not in SECTIONS:
            return self._describe_as_tomllib()
        name = header[2]
        if get_origin(Config.model_fields[name].annotation) is tuple:
            return f"write [[{name}]], with two brackets, above each of the {name}"
        headers = (HEADER.match(line) for line in self.previous_lines)
        first = next((n for n, match in enumerate(headers, 1) if match and match[2] == name), None)
        if first is None:
            return f"keys of [{name}] are set above, as {name}.key = …: move them below this line"
        return (
            f"[{name}] appears twice, first in line {first}: move these keys there, and delete"
            " this line"
        )

    def describe_repeated_key(self) -> str:
        assignment = ASSIGNMENT.match(self.line)
        for number in range(len(self.previous_lines), 0, -1):
            line = self.previous_lines[number - 1]
            if assignment is None or HEADER.match(line):
                break
            earlier = ASSIGNMENT.match(line)
            if earlier and earlier[1] == assignment[1]:
                name = repr(self.key) if self.key else "a key"
                return f"{name} is set twice, first in line {number}: delete one of the two lines"
        return self._describe_as_tomllib()

    def describe_invalid_value(self) -> str:
        value, key = self.value, self.key or "key"
        if not value:
            return f"{key!r} has no value: write {self._example}, or delete the line"
        if value.lower() in _NO_VALUES:
            return f"{value.lower()} is no value: delete the line to use the default"
        if boolean := _BOOLEANS.get(value.lower()):
            return f"write {key} = {boolean}"
        if value[0] == "[":
            return self.describe_incomplete_list("a list")
        return self._describe_missing_quotes()

    def _describe_missing_quotes(self) -> str:
        example = self._example  # its value has the type of the key
        if example.endswith("= 30"):
            return f"the value must be a number: write {example}"
        if example.endswith("= true"):
            return f"the value must be true or false: write {example}"
        return f"quotes are missing: write {example}"

    def describe_text_after_value(self) -> str:
        value, example = self.value, self._example
        if _WITH_UNIT.match(value) and not example.endswith('"'):
            return f"write the number without a unit: {example}"
        if _LEADING_ZERO.match(value):
            return f"a number must not begin with 0: {example}"
        if value.endswith((",", ";")):
            return "delete the comma or semicolon at the end of the line"
        if _KNOWN_NAMES.intersection(re.findall(r"([\w\-]+)\s*=", value)):
            return "write each key in a line of its own"
        if example.endswith(('"', "]")) and value[:1] not in {'"', "'", "["}:
            return self._describe_missing_quotes()
        return "only a comment, which begins with #, may follow the value"

    def describe_missing_equals_sign(self) -> str:
        word = _FIRST_WORD.match(self.line)
        if word is None or word[1] not in _KNOWN_NAMES:
            return _UNCLEAR
        has_colon = self.line[word.end() :].startswith(":")
        fix = "write = instead of the colon" if has_colon else "the sign = is missing"
        return f"{fix}: {self._example_of(word[1])}"

    def describe_unclosed_list(self) -> str:
        lines = [replace(self, line=line) for line in (*self.previous_lines, self.line)]
        numbers = range(len(lines), 0, -1)
        opening = next((n for n in numbers if lines[n - 1].value.startswith("[")), len(lines))
        which_list = "a list" if opening == len(lines) else f"the list in line {opening}"
        return lines[opening - 1].describe_incomplete_list(which_list)

    def describe_incomplete_list(self, which_list: str) -> str:
        if _UNQUOTED_IN_LIST.match(self.value):
            return self._describe_missing_quotes()
        # For an unknown key, the example has the key "exclude", whose value is a list.
        example = self._example if self.key else self._example_of("exclude")
        return (
            f"{which_list} is not complete: check its commas, quotes and closing bracket: {example}"
        )

    def describe_unclosed_section(self) -> str:
        return "the closing bracket of the section is missing: write [section]"

    def describe_unclosed_text(self) -> str:
        return f"the closing quote is missing: write {self._example}"

    def describe_invalid_statement(self) -> str:
        return "a comment begins with #" if _OTHER_COMMENT.match(self.line) else _UNCLEAR


_DESCRIPTIONS: Final[Mapping[str, Callable[[_Mistake], str]]] = {
    "Cannot declare": _Mistake.describe_repeated_section,
    "Cannot mutate": _Mistake.describe_repeated_section,
    "Cannot overwrite a value": _Mistake.describe_repeated_key,
    "Invalid value": _Mistake.describe_invalid_value,
    "Invalid statement": _Mistake.describe_invalid_statement,
    "Expected newline": _Mistake.describe_text_after_value,
    "Expected '='": _Mistake.describe_missing_equals_sign,
    "Expected ']": _Mistake.describe_unclosed_section,
    "Illegal character '\\n'": _Mistake.describe_unclosed_text,
    "Unterminated string": _Mistake.describe_unclosed_text,
    "Unclosed array": _Mistake.describe_unclosed_list,
}
"""Descriptions by the start of tomllib's message."""
